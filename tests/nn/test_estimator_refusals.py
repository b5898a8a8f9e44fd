"""The estimators: wrong parameters and wrong data are named before anything is trained."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from torch import nn

from tests.nn.tables import classifier, halves, table

NAN = np.full((90, 3), np.nan)


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        (
            {"bottom": "MLP22"},
            ValueError,
            "bottom of party 'active': no bottom model is called 'MLP22'; did you mean",
        ),
        ({"bottom": ("MLP2", {"hiden": 3})}, ValueError, "MLP2 has no option 'hiden'"),
        ({"bottom": {"active": "MLP2"}}, ValueError, "bottom says nothing about party 'passive'"),
        ({"bottom": {"active": "MLP2", "bank": "MLP2"}}, ValueError, "bottom names party 'bank'; there are"),
        ({"bottom": "LeNet5"}, ValueError, "bottom of party 'active': LeNet5: takes images"),
        (
            {"bottom": "GCN"},
            ValueError,
            "bottom of party 'active': GCN takes a graph, which estimators do not",
        ),
        (
            {"bottom": lambda s, w: nn.Linear(7, w)},
            ValueError,
            "party 'active': fails on samples of shape (3,)",
        ),
        (
            {"bottom": lambda s, w: nn.Linear(3, w + 1)},
            ValueError,
            "gives outputs of shape (2, 4) for 2 samples",
        ),
        ({"bottom": lambda s, w: 7}, TypeError, "made a int, not a module"),
        ({"top": lambda w, n: nn.Linear(6, n)}, ValueError, "top: fails on outputs of widths (3, 3)"),
        ({"optimizer": "lbfgs"}, ValueError, "optimizer LBFGS asks for the loss again and again"),
        ({"bottom": 7}, TypeError, "bottom of party 'active': must be a name"),
        ({"bottom": "tests.nn.small:nothing"}, ValueError, "cannot be imported"),
        ({"top": "summ"}, ValueError, "top: no top model is called 'summ'; did you mean 'sum'"),
        ({"cut_width": 5}, ValueError, "top: sum: a sum needs outputs as wide as the scores"),
        ({"cut_width": 0}, ValueError, "cut_width must be at least 1"),
        ({"cut_width": {"bank": 3}}, ValueError, "cut_width names parties"),
        ({"protocol": "fedsdg"}, ValueError, "protocol 'fedsdg' is unknown; did you mean 'fedsgd'"),
        ({"protocol_options": {"q": 5}}, ValueError, "protocol 'fedsgd' has no option 'q'"),
        ({"compressor": "zip"}, ValueError, "compressor 'zip' is unknown"),
        ({"optimizer": "adem"}, ValueError, "optimizer 'adem' is unknown; did you mean 'adam'"),
        ({"optimizer": ("adam", {"beta": 3})}, TypeError, "beta"),
        ({"scheduler": "sqrt"}, ValueError, "scheduler 'sqrt' is unknown"),
        ({"lr": -1}, ValueError, "lr must be a positive number, got -1"),
        ({"lr": "fast"}, TypeError, "lr must be a number"),
        ({"epochs": 0}, ValueError, "epochs must be at least 1"),
        ({"epochs": 2.5}, TypeError, "epochs must be an integer"),
        ({"batch_size": 0}, ValueError, "batch_size must be at least 1, got 0; None takes all rows"),
        ({"shuffle": "yes"}, TypeError, "shuffle must be True or False"),
        ({"device": "gpu"}, ValueError, "device must be"),
        ({"device": "cuda:99"}, ValueError, "CUDA devices here"),
        ({"network": "internet"}, ValueError, "network must be one of"),
        ({"callbacks": [3]}, TypeError, "callbacks must be a list of functions"),
        ({"partition": {"a": [0, 1], "b": [2, 3, 4]}}, ValueError, "no party owns column 5"),
        ({"partition": {"a": [0, 1, 2], "b": [3, 4, 9]}}, ValueError, "party 'b': column 9 is out of range"),
    ],
)
def test_a_wrong_parameter_is_named(changes, error, text):
    X, y = table()
    with pytest.raises(error, match=re.escape(text)):
        classifier(**changes).fit(X, y)


@pytest.mark.parametrize(
    ("X", "error", "text"),
    [
        ({"a": NAN, "b": np.ones((90, 2))}, ValueError, "party 'a': 270 values are NaN.*column 0.*impute"),
        (
            {"a": np.ones((90, 2)), "b": pd.DataFrame({"age": [1e39] * 90})},
            ValueError,
            "party 'b'.*column 'age'",
        ),
        (
            {"a": np.ones((90, 2)), "b": np.ones((89, 2))},
            ValueError,
            "party 'a' has 90 rows, party 'b' has 89",
        ),
        (
            {"a": np.ones((90, 2)), "b": pd.DataFrame({"x": ["u"] * 90})},
            TypeError,
            "column 'x' of party 'b' is of",
        ),
        ({"a": np.ones((90, 2)), "b": np.ones(90)}, ValueError, "party 'b': a block has two dimensions"),
        ({"a": np.ones((90, 2)), "b": np.ones((90, 0))}, ValueError, "party 'b' has no features"),
        ({"a": np.ones((90, 2))}, ValueError, "2 parties at least"),
        (np.full((90, 4), np.nan), ValueError, "NaN"),
        (np.ones((89, 4)), ValueError, "inconsistent numbers of samples"),
    ],
)
def test_wrong_data_are_named_with_their_party(X, error, text):
    with pytest.raises(error, match=text):
        classifier().fit(X, np.arange(90) % 2)


@pytest.mark.parametrize(
    ("y", "text"),
    [
        (np.zeros(90), "one class"),
        (np.linspace(0, 1, 90), "Unknown label type"),
        ([None] * 45 + ["b"] * 45, "45 missing values"),
        (np.arange(80) % 2, "90"),
    ],
)
def test_wrong_labels_are_refused(y, text):
    X, _ = table()
    for data in (X, halves(X)):
        with pytest.raises(ValueError, match=text):
            classifier().fit(data, y)


def test_data_unlike_those_of_training_are_refused():
    X, y = table()
    blocks = halves(X)
    model = classifier().fit(blocks, y)
    with pytest.raises(ValueError, match="trained on a dict of blocks"):
        model.predict(X)
    with pytest.raises(ValueError, match="no rows of party 'passive', which has 3 features"):
        model.predict({"active": blocks["active"]})
    with pytest.raises(ValueError, match=r"unknown parties \['bank'\]"):
        model.predict({**blocks, "bank": X})
    with pytest.raises(ValueError, match=r"party 'passive'.*missing columns \['c3'\]"):
        model.predict({**blocks, "passive": blocks["passive"].rename(columns={"c3": "x"})})
    with pytest.raises(ValueError, match="eval_set: y holds labels that training did not see"):
        model.fit(blocks, y, eval_set=(blocks, y + 1))
    with pytest.raises(NotFittedError):  # a fit that fails leaves no model of other data
        model.predict(blocks)
    with pytest.raises(ValueError, match="another order"):
        model.fit(blocks, pd.Series(y)[::-1])


def test_partial_fit_with_another_optimiser_is_refused():
    X, y = table()
    model = classifier().fit(X, y)
    with pytest.raises(ValueError, match="optimizer was 'adam' and is 'sgd'"):
        model.set_params(optimizer="sgd").partial_fit(X, y)
