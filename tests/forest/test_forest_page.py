"""docs/forest.md is true: its program runs, and the forest is as good as it looks there."""

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "forest.md").read_text(encoding="utf-8")


@pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning")
def test_the_program_runs(capsys):
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    exec(compile(program, "forest.md", "exec"), {"__name__": "forest_page"})
    out_of_bag, test = (float(word) for word in capsys.readouterr().out.split())
    assert min(out_of_bag, test) > 0.88
