"""What no source file may contain: pickles, seeded randomness near keys, loose ends, private paths."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

from .reading import MODULES, REPO, ROOMS, calls_in, imports_in, imports_of

UNPICKLERS = {"pickle", "_pickle", "dill", "cloudpickle", "marshal", "shelve", "joblib.load", "joblib.dump"}
EVALUATORS = {"eval", "exec"}  # the plain functions; model.eval() of a network is another matter
TEXT_SUFFIXES = {".py", ".pyi", ".c", ".h", ".md", ".toml", ".txt", ".sh", ".json", ""}
# Loose ends, and what only one person's machine or tracker can explain.
FORBIDDEN = re.compile(r"\b(TODO|FIXME|XXX)\b|(?<![\w.~])/(home|root|Users|work)/|\b(issue|PR) ?#\d")
IDS = [name for name, _ in MODULES]
CRYPTO = [(name, path) for name, path in MODULES if name.split(".")[0] == "vflcrypto"]


def ways_to_run_foreign_code(text: str) -> set[str]:
    """Names in a text that unpickle or evaluate."""
    imports, calls = imports_in(text, "any.module"), calls_in(text)
    names = imports | calls | {name.split(".")[0] for name in imports}
    return (names & UNPICKLERS) | (calls & EVALUATORS)


def tracked_texts() -> list[Path]:
    """Text files under version control; without git (an unpacked archive), those in the source folders."""
    command = ["git", "ls-files", "-z"]
    listed = subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        paths = [REPO / name for name in listed.stdout.split("\0") if name]
    else:
        folders = [*ROOMS.values(), *(REPO / name for name in ("native", "tests", "examples", "docs"))]
        paths = [path for folder in folders for path in folder.rglob("*")]
    return [path for path in paths if path.is_file() and path.suffix in TEXT_SUFFIXES]


def test_every_package_is_typed():
    assert {room for room, folder in ROOMS.items() if not (folder / "py.typed").exists()} == set()


@pytest.mark.parametrize(("name", "path"), MODULES, ids=IDS)
def test_no_module_can_unpickle_or_evaluate(name, path):
    assert ways_to_run_foreign_code(path.read_text(encoding="utf-8")) == set()


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "import _pickle as p",
        "from pickle import loads",
        "from joblib import load",
        "import joblib\njoblib.load(path)",
        "def f():\n    import marshal",
        "eval('1')",
        "exec(code)",
    ],
)
def test_planted_ways_to_run_foreign_code_are_found(text):
    assert ways_to_run_foreign_code(text) != set()


@pytest.mark.parametrize(("name", "path"), MODULES, ids=IDS)
def test_every_module_says_what_it_is_for(name, path):
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), f"{name} has no docstring"


@pytest.mark.parametrize(("name", "path"), CRYPTO, ids=[name for name, _ in CRYPTO])
def test_crypto_has_no_seeded_randomness(name, path):
    imports = imports_of(name, path)
    assert [module for module in sorted(imports) if re.match(r"(numpy\.)?random\b", module)] == []
    assert not re.search(r"\b(np|numpy)\.random\b", path.read_text(encoding="utf-8"))


def test_no_file_has_loose_ends_or_private_paths():
    found = [
        f"{path.relative_to(REPO)}:{number}: {line.strip()}"
        for path in tracked_texts()
        if path != Path(__file__).resolve()  # this file has to spell them
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if FORBIDDEN.search(line)
    ]
    assert found == []
