"""Examples are lessons that must not rot: each one runs, fast, and prints what it promises to print."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((REPO / "examples").glob("[0-9]*.py"))
# What a lesson is about, as words that its output must contain.
PROMISES = {
    "01_add_two_numbers": ["decrypts to", "12.25"],
    "02_pack_and_sum": ["equal to the sums in clear: True"],
    "03_two_parties_one_message": ["What each party received", "EncryptedLabels", "EncryptedTotal"],
    "04_blinding_matters": ["exactly 1 of", "exactly 0 of"],
    "09_logistic_regression": ["to the last bit: True", "the coordinator opened, masked", "SealedScores"],
    "10_neural_networks_cut_between_parties": ["CutGradient", 'top="sum": 100.0% of the labels'],
    "07_forest": ["once for all 30 trees", "out-of-bag accuracy", "TargetsOfForest"],
    "08_save_load_export": [
        "bit for bit the same: True",
        "predicts the same: True",
        "not agreed: 'laboratory'",
    ],
}


def run(script: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """The script in an interpreter of its own, from another folder, as a user would start it."""
    return subprocess.run(
        [sys.executable, str(script), *arguments],
        capture_output=True,
        text=True,
        cwd=script.parent,
        env={**os.environ, **variables},
        check=False,
    )


def flags_of(script: Path) -> list[str]:
    """--fast (weak keys, few trees) where a script has it; the first lessons are quick without."""
    return ["--fast"] if "--fast" in script.read_text(encoding="utf-8") else []


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda script: script.stem)
def test_example_runs_and_says_what_it_promises(script, request):
    variables = {}
    if "load_credit" in script.read_text(encoding="utf-8"):
        variables["VFL_DATA_HOME"] = str(request.getfixturevalue("data_home"))
    done = run(script, *flags_of(script), **variables)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "" or "Error" not in done.stderr
    for promise in PROMISES.get(script.stem, []):
        assert promise in done.stdout
    assert len(done.stdout.splitlines()) >= 5, "a lesson prints what happened"


def test_lessons_are_numbered_without_gaps():
    numbers = [int(script.name[:2]) for script in EXAMPLES]
    assert numbers == list(range(1, len(numbers) + 1))


def test_every_lesson_opens_with_what_it_teaches():
    for script in EXAMPLES:
        assert re.match(r'"""\S.+', script.read_text(encoding="utf-8")), f"{script.name} has no docstring"
