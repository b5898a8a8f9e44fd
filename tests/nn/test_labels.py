"""Labels: what the active party takes for a loss, and rows without one."""

import json

import numpy as np
import pytest

from tests.nn import small
from vflnn.losses import checked_labels
from vflparty import InProcessNetwork

X, Y = small.blocks()
CLASSES = np.arange(6) % 3


@pytest.mark.parametrize(
    ("labels", "loss", "text"),
    [
        (CLASSES + 1, "cross_entropy", "2 of 6 labels, the first 3, are neither class numbers from 0 to 2"),
        (CLASSES - 2, "nll", "2 of 6 labels, the first -2"),
        (CLASSES[:5], "cross_entropy", "5 labels for 6 rows"),
        (CLASSES * 1.0, "cross_entropy", r"class numbers of shape \(6,\) or floats of shape \(6, 3\)"),
        (np.ones((6, 3)), "taylor_logit", r"takes class numbers of shape \(6,\), got labels of float64"),
        (np.ones(6), "squared_error", r"takes floats of shape \(6, 3\), got labels of float64 and shape \(6,\)"),
        (CLASSES, "squared_error", r"takes floats of shape \(6, 3\), got labels of int64"),
        (np.full((6, 3), np.nan), "squared_error", "18 of 18 targets are not finite"),
        (np.array(list("abcabc")), "cross_entropy", "got labels of <U1"),
        (CLASSES, "none such", "loss 'none such' is unknown"),
    ],
)  # fmt: skip
def test_labels_that_a_loss_cannot_take_are_refused(labels, loss, text):
    with pytest.raises(ValueError, match=text):
        checked_labels(labels, loss, 6, 3)


def test_class_numbers_of_any_integer_type_are_taken():
    for kind in (np.int8, np.int32, np.uint8, np.uint64):
        labels = checked_labels(CLASSES.astype(kind), "cross_entropy", 6, 3)
        assert labels.dtype == np.int64
        assert np.array_equal(labels, CLASSES)


def test_targets_of_one_axis_do_not_train():
    """They would be compared with every score, row against row."""
    with pytest.raises(ValueError, match="squared_error"):
        small.Training(X, Y * 1.0, small.settings(), loss="squared_error")


def test_labels_of_rows_to_evaluate_are_as_many_as_these():
    agreed = small.settings(n_evaluation=5)
    with pytest.raises(ValueError, match="4 labels for 5 rows"):
        small.Training(X, Y, agreed, evaluation=[x[:5] for x in X], evaluation_labels=Y[:4])


def test_rows_that_all_lack_a_label_are_refused():
    with pytest.raises(ValueError, match="none of 37 rows has a label"):
        small.Training(X, np.full(37, -1), small.settings())


@pytest.mark.parametrize("protocol", ["fedsgd", "fedbcd-p", "fedbcd-s", "celu"])
def test_a_batch_without_labels_teaches_nothing(protocol):
    """Batches of 10 of which the first alone is labelled: the weights are those of training on it alone."""
    labels = np.where(np.arange(37) < 10, Y, -1)
    changes = {"protocol": protocol, "optimizer": "sgd", "shuffle": False, "epochs": 1, "batch_size": 10}
    if protocol == "celu":
        changes["protocol_options"] = {"local_updates": 0}  # more batches, more updates on the first
    whole = small.Training(X, labels, small.settings(**changes)).run()
    first = small.Training(
        [x[:10] for x in X], labels[:10], small.settings(**changes | {"n_samples": 10})
    ).run()
    assert small.same(whole.weights, first.weights)
    assert np.isfinite(whole.result.step_loss).tolist() == [True, False, False, False]
    assert np.isnan(whole.result.step_accuracy).tolist() == [False, True, True, True]


def test_an_epoch_tells_the_mean_of_the_batches_that_have_labels():
    labels = np.where(np.arange(37) < 10, Y, -1)
    told = []
    training = small.Training(X, labels, small.settings(shuffle=False, epochs=1))

    def hear(text, done, total):
        told.append(json.loads(text))

    result = InProcessNetwork(training.passive, leader="active", on_progress=hear).run(training.active)
    assert [epoch["loss"] for epoch in told] == [result.step_loss[0]]
