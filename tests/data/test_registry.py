"""Data sets by name."""

import inspect

import pytest

import vfldata
from vfldata import DATASETS, load


def test_every_loader_is_listed_once_with_a_line_about_it():
    loaders = {name for name in vfldata.__all__ if name.startswith("load_") and name != "load_vflair"}
    named = {getattr(entry.loader, "func", entry.loader).__name__ for entry in DATASETS.values()}
    assert named == loaders
    assert list(DATASETS) == sorted(DATASETS)
    for entry in DATASETS.values():
        assert 10 < len(entry.description) < 80


def test_every_loader_has_named_options_with_defaults():
    for name, entry in DATASETS.items():
        for option in inspect.signature(entry.loader).parameters.values():
            assert option.kind is option.KEYWORD_ONLY, name
            assert option.default is not option.empty, name


def test_a_data_set_by_name_is_that_of_its_loader():
    named, loaded = (
        load("nursery", one_hot="drop_first", random_state=4),
        vfldata.load_nursery(one_hot="drop_first", random_state=4),
    )
    assert named.X_test.equals(loaded.X_test)
    assert named.partition == loaded.partition


def test_tables_are_dealt_to_so_many_parties_or_by_shares():
    assert len(load("nursery", n_parties=3).parties) == 3
    assert load("nursery", n_parties=2).parties == ("school", "town")  # as many as there are already
    data = load("breast_cancer", shares={"clinic": 1, "lab": 5}, data_home="unused")
    assert {party: len(columns) for party, columns in data.partition.items()} == {"clinic": 5, "lab": 25}


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("minst", "mnist"), ("Breast Cancer", "breast_cancer"), ("cifar-10", "cifar10"), ("news_20", "news20")],
)
def test_a_misspelt_name_is_answered_with_the_right_one(wrong, right):
    with pytest.raises(ValueError, match=f"no data set called {wrong!r}; did you mean {right!r}"):
        load(wrong)


def test_a_name_like_no_other_is_answered_with_all_names():
    with pytest.raises(ValueError, match=r"no data set called 'zzz'\. Known: adult, avazu, .*, sf_crime"):
        load("zzz")


def test_an_option_the_loader_does_not_know_is_refused():
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        load("nursery", colour="red")


def test_files_are_looked_for_where_asked(tmp_path):
    with pytest.raises(FileNotFoundError, match=str(tmp_path)):
        load("fate_motor", data_home=tmp_path)
