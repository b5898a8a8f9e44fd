"""docs/parties.md is true: its programs run and print what they should."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import vflparty
from vflparty import codec
from vflparty.errors import ProtocolError

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "parties.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """What each program of the page prints; the first is the module that the others import."""
    folder = tmp_path_factory.mktemp("page")
    module, *programs = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (folder / "sums.py").write_text(module, encoding="utf-8")
    path = os.pathsep.join([str(folder), str(Path(vflparty.__file__).parent.parent), *sys.path])
    environment, found = {**os.environ, "PYTHONPATH": path}, []
    for program in programs:
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        found.append(done.stdout)
    return found


def test_both_networks_of_the_page_print_the_same(outputs):
    lines = outputs[0].splitlines()
    half = len(lines) // 2
    assert lines[:half] == lines[half:] and lines[:2] == ["asked everybody 1 1", "66.0"]
    assert lines[half - 1] == "2 {'additions': 6}"


def test_parties_by_hand_of_the_page_print_their_sum(outputs):
    assert outputs[1] == "4.0\n"


def test_limits_on_the_page_are_those_of_the_codec():
    assert "4 GiB" in PAGE and codec.MAX_FRAME_BYTES == 4 * 2**30
    assert f"{codec.MAX_INT_BYTES:,} bytes" in PAGE
    assert f"{codec.MAX_TUPLE_ITEMS:,} items" in PAGE
    assert f"dimensions of an array | {codec.MAX_DIMENSIONS} |" in PAGE


def test_error_tree_on_the_page_is_complete():
    def family(cls: type) -> set[str]:
        return {cls.__name__}.union(
            *(family(c) for c in cls.__subclasses__() if c.__module__ == "vflparty.errors")
        )

    drawn = set(re.findall(r"\w*Error\b", PAGE[PAGE.index("```text") : PAGE.index("What a party raises")]))
    assert drawn == family(ProtocolError)
    assert drawn <= set(re.findall(r"\w*Error\b", sys.modules["vflparty.errors"].__doc__ or "")) | {
        "ProtocolError"
    }
