"""Ctrl-C, callbacks and processes that receive the terminal's signal: what is finished stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
import warnings
from typing import Any

import numpy as np
import pytest

from tests.conftest import REPO
from tests.secureboost.small import WEAK, some_data
from tests.secureboost.test_continuation import PLAIN, Raise, assert_same_model, estimator
from vfltree import InterruptedFitWarning
from vfltree.secureboost.stepwise import StepwiseActiveParty

pytestmark = [
    pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning"),
    pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning"),
]


@pytest.mark.parametrize("kind", [PLAIN, WEAK], ids=["plain", "encrypted"])
def test_ctrl_c_leaves_the_rounds_that_are_finished(kind, monkeypatch):
    X, y = some_data("binary", n_rows=100)
    true = StepwiseActiveParty._grow_round

    def interrupted(self, number, raw):
        steps = true(self, number, raw)
        if number == 2:
            next(steps)  # in the middle of a round, whose gradients are made
            raise KeyboardInterrupt
        return (yield from steps)

    monkeypatch.setattr(StepwiseActiveParty, "_grow_round", interrupted)
    with pytest.warns(InterruptedFitWarning, match="holds the 2 of 5 rounds"):
        model = estimator(**kind).fit(X, y)
    monkeypatch.undo()
    assert_same_model(model, estimator(rounds=2, **PLAIN).fit(X, y))
    assert model.predict(X).shape == (100,)
    whole = model.set_params(warm_start=True).fit(X, y)  # and training can go on
    assert_same_model(whole, estimator(**PLAIN).fit(X, y))


def test_ctrl_c_with_early_stopping_keeps_the_best_of_the_finished_rounds():
    X, y = some_data("binary", n_rows=160)
    stop: dict[str, Any] = {"early_stopping_rounds": 10, "callbacks": [Raise(4, KeyboardInterrupt())]}
    with pytest.warns(InterruptedFitWarning):
        model = estimator(**stop, **PLAIN).fit(X[:100], y[:100], eval_set=(X[100:], 1 - y[100:]))
    assert len(model.evals_result_["validation_0"]["logloss"]) == 4
    assert model.n_rounds_ == model.best_iteration_ + 1 < 4


def test_ctrl_c_before_a_round_is_finished_is_raised(monkeypatch):
    X, y = some_data("binary", n_rows=100)

    def interrupted(self, number, raw):
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(StepwiseActiveParty, "_grow_round", interrupted)
    model = estimator(**PLAIN)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert not hasattr(model, "_active_model")


SCRIPT = """
    import os, signal, sys, threading, warnings
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs have it ignored
    import numpy as np
    from vfltree import InterruptedFitWarning, SecureBoostClassifier

    class Say:
        def after_iteration(self, model, epoch, evals_log):
            print("round", epoch, flush=True)
            return False

    rng = np.random.default_rng(0)
    X = rng.normal(size=({n_rows}, 6))
    y = (X[:, 0] + X[:, 4] > 0).astype(int)
    settings = dict(max_depth=4, random_state=0, network="{network}", {encryption})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = SecureBoostClassifier(500, callbacks=[Say()], **settings).fit(X, y)
    print("stopped", model.n_rounds_, sum(w.category is InterruptedFitWarning for w in caught), flush=True)
    small = SecureBoostClassifier(1, max_depth=2, encryption="none").fit(X[:50], y[:50])
    print("usable", small.n_rounds_, (model.predict(X[:5]) >= 0).all(), flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("network", ["inprocess", "process"])
def test_a_terminals_ctrl_c_stops_soon_and_leaves_the_process_usable(network):
    """SIGINT to the whole process group, as a terminal sends it, in the middle of an encrypted round."""
    encryption = "key_bits=2048"
    script = textwrap.dedent(SCRIPT).format(network=network, encryption=encryption, n_rows=300)
    process = subprocess.Popen(
        [sys.executable, "-c", script], cwd=REPO, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    try:
        while "round 0" not in process.stdout.readline():
            assert process.poll() is None
        time.sleep(0.2)
        os.killpg(process.pid, signal.SIGINT)
        rest = process.stdout.read().splitlines()
        assert process.wait(120) == 0
    finally:
        process.kill()
        process.stdout.close()
    word, n_rounds, warned = next(line for line in rest if not line.startswith("round")).split()
    assert (word, warned) == ("stopped", "1")
    assert 1 <= int(n_rounds) < 500
    assert rest[-1] == "usable 1 True"


# ---- callbacks


def test_a_callback_sees_the_model_and_ends_the_training():
    X, y = some_data("binary", n_rows=160)
    seen = []

    class Look:
        def after_iteration(self, model, epoch, evals_log):
            scores = evals_log["validation_0"]["logloss"]
            seen.append((epoch, model.n_rounds_, len(scores), model.score(X, y)))
            return epoch == 2

    model = estimator(callbacks=[Look()], **PLAIN).fit(X[:100], y[:100], eval_set=(X[100:], y[100:]))
    assert [entry[:3] for entry in seen] == [(0, 1, 1), (1, 2, 2), (2, 3, 3)]
    assert model.n_rounds_ == 3
    assert seen[-1][3] == model.score(X, y)
    assert_same_model(model, estimator(rounds=3, **PLAIN).fit(X[:100], y[:100]))


def test_every_callback_is_called():
    X, y = some_data("binary", n_rows=100)
    calls = []

    class Count:
        def __init__(self, answer):
            self.answer = answer

        def after_iteration(self, model, epoch, evals_log):
            calls.append(self.answer)
            return self.answer

    estimator(callbacks=[Count(True), Count(False)], **PLAIN).fit(X, y)
    assert calls == [True, False]


def test_what_is_no_callback_is_refused(monkeypatch):
    monkeypatch.setattr("vfltree.growing.leader.obtain_keypair", None)
    with pytest.raises(TypeError, match="after_iteration"):
        estimator(callbacks=[print], **WEAK).fit(np.zeros((4, 9)), [0, 1, 0, 1])
    with pytest.raises(TypeError, match="checkpoint must be a folder"):
        estimator(checkpoint=3, **WEAK).fit(np.zeros((4, 9)), [0, 1, 0, 1])
    with pytest.raises(ValueError, match="checkpoint_every"):
        estimator(checkpoint_every=0, **WEAK).fit(np.zeros((4, 9)), [0, 1, 0, 1])


def test_no_warning_without_an_interruption():
    X, y = some_data("binary", n_rows=100)
    with warnings.catch_warnings():
        warnings.simplefilter("error", InterruptedFitWarning)
        estimator(rounds=1, **PLAIN).fit(X, y)
