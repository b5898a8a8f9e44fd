"""The page of data sets: every name, and figures that hold."""

import re

import pytest

from vfldata import DATASETS, load


@pytest.fixture(scope="module")
def page(repo):
    return (repo / "docs" / "data.md").read_text(encoding="utf-8")


def test_every_data_set_has_a_line(page):
    named = set(re.findall(r"^\| `([a-z0-9_]+)` \|", page, re.MULTILINE))
    assert named == {name for name in DATASETS if not name.startswith("fate_")}
    for name in DATASETS:
        if name.startswith("fate_"):
            assert name.removeprefix("fate_") in page


def test_every_file_named_is_one_that_a_loader_asks_for(page, repo):
    sources = "".join(path.read_text(encoding="utf-8") for path in (repo / "vfldata").glob("*.py"))
    last_column = [line.split("|")[-2] for line in page.splitlines() if line.startswith("| `")]
    files = [name for cell in last_column for name in re.findall(r"`([a-z_0-9]+/[\w.-]*)`", cell)]
    assert len(files) > 10
    for name in files:
        folder, _, file = name.partition("/")
        assert folder in sources
        assert file in sources


@pytest.mark.parametrize(
    "name", ["adult", "bank_marketing", "breast_cancer", "credit", "diabetes", "nursery"]
)
def test_rows_and_columns_of_tables_are_those_of_the_page(page, name, data_home):
    if DATASETS[name].loader.__module__.split(".")[-1] not in ("breast_cancer", "nursery"):
        folder = {"credit": "credit_default", "diabetes": "pima"}.get(name, name)
        if not (data_home / folder).is_dir():
            pytest.skip(f"needs the folder {folder} in {data_home}")
    data = load(name, data_home=data_home)
    line = next(line for line in page.splitlines() if line.startswith(f"| `{name}` |"))
    assert f"{len(data.y_train):,} + {len(data.y_test):,}" in line
    for party, columns in data.partition.items():
        assert re.search(rf"\b{party} {len(columns)}\b", line)


def test_the_program_of_the_page_runs(page):
    program = re.search(r"```python\n(.*?)```", page, re.DOTALL)[1]
    names = {}
    exec(compile(program, "data.md", "exec"), names)
    assert list(names["data"].blocks("train")) == ["school", "town"]
    assert len(names["four"].parties) == 4
