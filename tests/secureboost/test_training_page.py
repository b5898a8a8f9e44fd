"""docs/training.md is true: its programs run, and its tables name what there is."""

import re
from pathlib import Path

import pytest

from vfltree.metrics import METRICS
from vfltree.secureboost.evaluation import DEFAULT_METRICS
from vfltree.secureboost.objectives import OBJECTIVES

PAGE = (Path(__file__).parents[2] / "docs" / "training.md").read_text(encoding="utf-8")


@pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning")
def test_the_programs_run(capsys):
    names: dict[str, object] = {"__name__": "training_page"}
    for program in re.findall(r"```python\n(.*?)```", PAGE, re.S):
        exec(compile(program, "training.md", "exec"), names)
    best, score, auc = (float(word) for word in capsys.readouterr().out.split())
    assert best > 5
    assert score < 0.1 < 0.98 < auc


def test_every_objective_and_metric_is_on_the_page():
    for objective in OBJECTIVES:
        (row,) = (line for line in PAGE.splitlines() if line.startswith(f'| `"{objective}"` |'))
        assert row.endswith(f"| `{DEFAULT_METRICS[objective]}` |")
    for metric in METRICS:
        assert f"`{metric}`" in PAGE
