"""Rounds, amounts and totals: VFLAIR's tables as known answers, and frames as they were sent."""

import dataclasses

import numpy as np
import pytest

from tests.nn import small
from vflnn.communication import Communication, amount, communication

MNIST = {"batch_size": 2048, "n_samples": 60000}, 10
NUSWIDE = {"batch_size": 1024, "n_samples": 60000}, 5
CRITEO = {"batch_size": 8192, "n_samples": 1650263}, 2
AVAZU = {"batch_size": 8192, "n_samples": 727722}, 2
CORA = {"batch_size": None, "n_samples": 2708}, 7
NEWS20 = {"batch_size": 128, "n_samples": 4000}, 5
QUANTIZE = {"compressor": "quantize", "compressor_options": {"bits": 16}}
TOPK = {"compressor": "topk", "compressor_options": {"ratio": 0.9}}
PRINTED = [  # data, compressor, rounds, MiB a round, total
    (MNIST, {}, 150, 0.156, 23.438), (MNIST, {"protocol": "fedbcd-p"}, 113, 0.156, 17.656),
    (MNIST, QUANTIZE, 161, 0.117, 18.867), (MNIST, TOPK, 150, 0.148, 22.266),
    (MNIST, {"protocol": "celu"}, 105, 0.156, 16.406),
    (NUSWIDE, {}, 60, 0.039, 2.344), (NUSWIDE, {"protocol": "fedbcd-p"}, 26, 0.039, 1.016),
    (NUSWIDE, QUANTIZE, 94, 0.029, 2.754), (NUSWIDE, TOPK, 60, 0.037, 2.227),
    (NUSWIDE, {"protocol": "celu"}, 25, 0.039, 0.977),
    (CRITEO, {}, 2, 0.125, 0.250), (AVAZU, {}, 5, 0.125, 0.625), (CORA, {}, 11, 0.145, 1.591),
    (NEWS20, {}, 57, 0.005, 0.278),
]  # fmt: skip


@pytest.mark.parametrize(("data", "protocol", "rounds", "printed_amount", "printed_total"), PRINTED)
def test_amount_and_total_are_the_printed_ones(data, protocol, rounds, printed_amount, printed_total):
    settings, width = data
    per_round = amount(small.settings(**settings, **protocol), {"passive": width})
    assert round(per_round, 3) == printed_amount
    total = Communication("batch", 0.9, rounds, 1.0, rounds, per_round, per_round).total
    assert total == pytest.approx(printed_total, abs=5.1e-4)


def test_the_amount_of_mnist_is_exact_and_adds_up_over_parties():
    settings = small.settings(**MNIST[0])
    assert amount(settings, {"one": 10}) == 0.15625
    assert amount(settings, {"one": 10, "two": 10, "three": 5}) == 0.15625 * 2.5
    assert amount(dataclasses.replace(settings, n_samples=1024), {"one": 10}) == 0.078125


# ---------------------------------------------------------------- rounds


@pytest.fixture(scope="module")
def trained():
    X, y = small.blocks(3, n=40)
    agreed = small.settings(n_samples=40, n_evaluation=40, epochs=3)
    return small.Training(X, y, agreed, evaluation=X, evaluation_labels=y).run(), agreed


WIDTHS = {"one": 3, "two": 3}


def measured(trained, target, rule="batch", **figures):
    training, agreed = trained
    result = dataclasses.replace(training.result, **figures)
    return communication(result, training.network.ledger, agreed, WIDTHS, target=target, rule=rule)


def test_rounds_count_to_the_first_batch_above_the_target_it_included(trained):
    accuracy = np.array([0.1, 0.7, 0.7, 0.9, 0.5, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.95])
    seconds = np.arange(1.0, 13.0)

    def until(target):
        found = measured(trained, target, step_accuracy=accuracy, step_seconds=seconds)
        return found.rounds, found.seconds

    assert until(0.05) == (1, 1.0)
    assert until(0.69) == (2, 3.0)
    assert until(0.7) == (4, 10.0)  # above, not equal
    assert until(0.94) == (12, 78.0)
    assert until(0.95) == (None, None)


def test_by_epochs_all_rounds_of_the_epoch_count(trained):
    scores = np.array([0.3, 0.8, 0.6])
    assert [measured(trained, t, "epoch", epoch_score=scores).rounds for t in (0.2, 0.3, 0.8)] == [4, 8, None]
    found = measured(trained, 0.5, "epoch", epoch_score=scores)
    assert found.seconds == pytest.approx(trained[0].result.step_seconds[:8].sum())


def test_what_was_sent_is_what_the_frames_of_training_hold_and_nothing_of_scoring(trained):
    training, _ = trained
    kinds = training.network.ledger.summary().groupby("kind").bytes.sum()
    assert kinds["ScoredOutputs"] > 0
    found = measured(trained, 0.0)
    assert found.sent == (kinds["CutOutputs"] + kinds["CutGradient"]) / 12 / 2**20
    headers = 2 * 2 * 100 / 2**20  # of two frames of two parties
    assert found.amount < found.sent < found.amount + headers
    assert found.total_sent == found.rounds * found.sent


@pytest.mark.parametrize(("compressor", "share"), [(QUANTIZE, 0.5), (TOPK, 0.9 + 1 / 32)])
def test_what_a_compressor_saves_shows_in_what_was_sent(compressor, share):
    X, y = small.blocks(2, n=4000)
    runs = []
    for chosen in ({}, compressor):
        agreed = small.settings(n_samples=4000, batch_size=2000, epochs=1, **chosen)
        training = small.Training(X, y, agreed).run()
        runs.append(communication(training.result, training.network.ledger, agreed, {"one": 3}, target=0.0))
    assert runs[1].sent / runs[0].sent == pytest.approx((share + 1) / 2, abs=2e-3)


def test_it_reads_as_one_line(trained):
    text = str(measured(trained, 0.0, step_seconds=np.ones(12)))
    assert text.startswith("training accuracy of a batch above 0: round 1, 0.000 MiB (")
    assert "1.00 s; 0.000 MiB a round by VFLAIR's formula, 0.001 sent" in text
    assert str(measured(trained, 1.0, "epoch")).startswith(
        "test accuracy after an epoch above 1: not in 12 rounds; "
    )


# ---------------------------------------------------------------- what is refused


def test_questions_without_an_answer_are_refused(trained):
    with pytest.raises(ValueError, match="rule must be 'batch' or 'epoch', got 'test'"):
        measured(trained, 0.9, "test")
    with pytest.raises(ValueError, match="target must be an accuracy, got nan"):
        measured(trained, float("nan"))
    nothing = np.full(3, np.nan)
    with pytest.raises(
        ValueError, match=r"there is no test accuracy after an epoch: .* labelled rows to evaluate"
    ):
        measured(trained, 0.9, "epoch", epoch_score=nothing)
    with pytest.raises(ValueError, match="nothing was trained: there are 0 rounds"):
        measured(trained, 0.9, step_accuracy=np.zeros(0))
