"""docs/models.md is true: its programs run and print what they should."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning")
@pytest.mark.parametrize(
    ("program", "printed"), list(zip(PROGRAMS, [r"True\n", r"\['(good|bad)' .*\]\n"], strict=True))
)
def test_a_program_of_the_page_prints_what_it_should(program, printed, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile(program, "models.md", "exec"), {})
    assert re.fullmatch(printed, capsys.readouterr().out)
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == ["bank.model", "shop.model"]
