"""Federated forests predict as well as scikit-learn's on pooled columns."""

from __future__ import annotations

import pytest

from benchmarks.compare_forests import compare
from vfldata import load_credit, load_nursery

PAPER = {"credit": 0.816, "nursery": 0.884}  # VFLAIR, forests of 5 trees of depth 6


@pytest.mark.slow
@pytest.mark.parametrize("max_features", ["sqrt", None])
@pytest.mark.parametrize("name", ["credit", "nursery"])
def test_five_trees_of_depth_six_are_as_good_as_pooled_ones(name, max_features, request):
    data = (
        load_credit(data_home=request.getfixturevalue("data_home"))
        if name == "credit"
        else load_nursery(one_hot="full")
    )
    found = compare(data, max_features, n_seeds=5)
    assert found.as_good, found.row()
    assert found.ours.mean() > PAPER[name]
