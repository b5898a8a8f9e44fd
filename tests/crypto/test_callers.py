"""Warnings name the user's line, however deep they arise."""

from __future__ import annotations

import types
import warnings

import numpy as np
import pytest

from vflcrypto import InsecureKeyWarning, generate_keypair, obtain_keypair, reuse_keys
from vflcrypto.callers import outside_level
from vfltree import NotEncryptedWarning, SecureBoostClassifier


def function_of(module: str, body: str, **names):
    """A function `f` that lives in a module of this name."""
    made = types.ModuleType(module)
    made.__dict__.update(names)
    exec(compile(body, f"{module}.py", "exec"), made.__dict__)
    return made.__dict__["f"]


def test_the_level_counts_frames_inside():
    inner = function_of("vflcrypto.deep", "def f(): return outside_level()", outside_level=outside_level)
    middle = function_of("vfltree.high", "def f(): return g()", g=inner)
    outer = function_of("sklearn.pipeline", "def f(): return g()", g=middle)
    assert (inner(), middle(), outer()) == (2, 3, 4)
    assert outside_level() == 1  # called from outside


@pytest.mark.parametrize("make", [generate_keypair, obtain_keypair])
def test_a_weak_key_names_the_line_that_asks_for_it(make):
    with pytest.warns(InsecureKeyWarning) as caught:
        make(128, allow_weak_key=True)
    assert [w.filename for w in caught] == [__file__]


@pytest.mark.parametrize("encryption", ["paillier", "none"])
def test_a_fit_names_the_line_that_fits(encryption):
    X, y = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]]), [0, 0, 1, 1]
    model = SecureBoostClassifier(1, encryption=encryption, key_bits=512, allow_weak_key=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
        with reuse_keys():
            model.fit(X, y)
    kinds = (InsecureKeyWarning, NotEncryptedWarning)
    files = [w.filename for w in caught if issubclass(w.category, kinds)]
    assert files == [__file__] * 2
