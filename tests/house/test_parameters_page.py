"""docs/parameters.md has every parameter of every estimator, with its default."""

import ast
import inspect
import re

import pytest

import vfltree

from .reading import REPO

PAGE = (REPO / "docs" / "parameters.md").read_text(encoding="utf-8")
SECTIONS = {part.splitlines()[0]: part for part in PAGE.split("\n## ")[1:]}
COMMON = "Every estimator"
FAMILIES = {title: title.split(": ")[1].split(", ") for title in SECTIONS if title != COMMON}


def table(title):
    """parameter -> defaults in its row."""
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| .+ \|$", SECTIONS[title], re.MULTILINE)
    assert len(rows) == len(dict(rows)), "a parameter stands there twice"
    return {name: [ast.literal_eval(cell) for cell in re.findall(r"`(.*?)`", cells)] for name, cells in rows}


def signature(estimators):
    """parameter -> its defaults, each once, in the order of the estimators."""
    found = {}
    for name in estimators:
        parameters = inspect.signature(getattr(vfltree, name)).parameters.values()
        for parameter in parameters:
            defaults = found.setdefault(parameter.name, [])
            if parameter.default not in defaults:
                defaults.append(parameter.default)
    return found


def test_every_estimator_has_its_family():
    shown = {name for names in FAMILIES.values() for name in names}
    assert shown == {name for name in vfltree.__all__ if re.match(r"Secure\w+(Classifier|Regress)", name)}
    assert len(FAMILIES) == 3


@pytest.mark.parametrize("title", FAMILIES)
def test_the_table_has_the_parameters_and_defaults_of_the_signatures(title):
    assert table(COMMON) | table(title) == signature(FAMILIES[title])


def test_what_every_estimator_has_stands_there_once():
    for title in FAMILIES:
        assert not table(COMMON).keys() & table(title).keys()
