"""Tests train on few rows, so passive parties merge bins only where a test says so."""

from collections.abc import Iterator

import pytest

from vfltree import SecureBoostClassifier
from vfltree.growing.follower import TreeFollower


@pytest.fixture(scope="package", autouse=True)
def sums_of_any_rows() -> Iterator[set[int]]:
    """`min_rows_per_sum` is 1 by default in this folder. Yields the true defaults."""
    with pytest.MonkeyPatch.context() as patch:
        defaults = set()
        for kind in (SecureBoostClassifier, TreeFollower):
            defaults.add(kind.__init__.__kwdefaults__["min_rows_per_sum"])
            patch.setitem(kind.__init__.__kwdefaults__, "min_rows_per_sum", 1)
        yield defaults
