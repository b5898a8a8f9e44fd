"""Top-k: which entries are kept, what they cost, and what is refused."""

import dataclasses

import numpy as np
import pytest

from tests.nn import small
from vflnn.messages import CutOutputs, SparseOutputs
from vflnn.protocols.topk import TopK
from vflparty import RemoteProtocolError, codec

ROWS = np.arange(20)
NORMAL = np.random.default_rng(3).normal(size=(20, 7)).astype(np.float32)


def sent(outputs, compressor, rows=None):
    """What arrives, over a frame."""
    rows = np.arange(len(outputs)) if rows is None else rows
    frame = codec.encode(compressor.pack(outputs, 0, rows))
    return compressor.unpack(codec.decode(frame, (SparseOutputs,)), 0, outputs.shape)


@pytest.mark.parametrize(
    ("ratio", "n_kept"), [(0.9, 126), (0.5, 70), (0.1, 14), (0.011, 2), (0.001, 1), (1.0, 140)]
)
def test_exactly_the_share_of_entries_is_kept(ratio, n_kept):
    assert np.count_nonzero(sent(NORMAL, TopK(ratio))) == n_kept


@pytest.mark.parametrize("ratio", [0.9, 0.3, 0.05])
def test_the_largest_entries_are_kept_as_they_are(ratio):
    arrived = sent(NORMAL, TopK(ratio))
    kept = arrived != 0
    assert np.array_equal(arrived[kept], NORMAL[kept])
    assert (NORMAL[kept] < 0).any()
    assert np.abs(NORMAL[kept]).min() > np.abs(NORMAL[~kept]).max()


@pytest.mark.parametrize("options", [{}, {"per_row": True}, {"ratio": 0.2}])
def test_what_arrived_arrives_again(options):
    compressor = TopK(**options)
    once = sent(NORMAL, compressor)
    assert np.array_equal(sent(once, compressor), once)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("options", [{}, {"per_row": True}, {"error_feedback": True}, {"score": "gradient"}])
def test_ratio_one_changes_nothing(options, dtype):
    outputs = NORMAL.astype(dtype)
    arrived = sent(outputs, TopK(1, **options))
    assert np.array_equal(arrived, outputs) and arrived.dtype == dtype


def test_of_equal_entries_the_first_are_kept():
    outputs = np.array([[1, -2, 1], [2, 1, -1]], dtype=np.float32)
    assert np.array_equal(sent(outputs, TopK(0.5)), [[1, -2, 0], [2, 0, 0]])
    assert np.array_equal(sent(outputs, TopK(0.6)), [[1, -2, 1], [2, 0, 0]])
    assert np.array_equal(sent(np.ones((2, 3)), TopK(0.5, per_row=True)), [[1, 1, 0], [1, 1, 0]])


@pytest.mark.parametrize(
    ("ratio", "width", "per_row"), [(0.9, 7, 7), (0.5, 7, 4), (0.01, 7, 1), (0.28, 25, 7)]
)
def test_each_row_keeps_its_largest_where_asked(ratio, width, per_row):
    outputs = np.random.default_rng(1).normal(size=(9, width))
    outputs[0] *= 100
    arrived = sent(outputs, TopK(ratio, per_row=True))
    assert (np.count_nonzero(arrived, axis=1) == per_row).all()
    for before, after in zip(np.abs(outputs), np.abs(arrived), strict=True):
        assert np.array_equal(np.sort(after)[-per_row:], np.sort(before)[-per_row:])


def test_the_gradient_of_the_last_round_scores_where_asked():
    compressor = TopK(0.25, score="gradient")
    outputs = np.array([[9.0, 1.0], [2.0, 3.0]])
    assert np.array_equal(sent(outputs, compressor), [[9, 0], [0, 0]])  # no gradient yet: the largest
    compressor.note_gradient(np.array([[0.1, -0.7], [0.2, 0.3]]))
    assert np.array_equal(sent(outputs, compressor), [[0, 1], [0, 0]])
    compressor.note_gradient(np.array([[0.1, -0.7]]))  # of a shorter batch
    assert np.array_equal(sent(outputs, compressor), [[9, 0], [0, 0]])


def test_without_the_option_a_gradient_changes_nothing():
    compressor = TopK(0.25)
    compressor.note_gradient(NORMAL[::-1])
    assert np.array_equal(sent(NORMAL, compressor), sent(NORMAL, TopK(0.25)))


def test_with_error_feedback_all_that_was_put_in_has_arrived_or_waits_with_its_sample():
    compressor, random = TopK(0.3, error_feedback=True), np.random.default_rng(0)
    put_in, arrived = np.zeros((2, 30, 4))
    for _ in range(6):
        order = random.permutation(30)
        for rows in np.split(order, [12, 24]):
            outputs = random.normal(size=(len(rows), 4))
            put_in[rows] += outputs
            arrived[rows] += sent(outputs, compressor, rows)
    assert np.abs(put_in - arrived).max() > 0.1
    waiting = sent(np.zeros((30, 4)), TopK(1.0), np.arange(30))
    assert not waiting.any()
    for rows in np.split(np.arange(30), 3):  # nothing new comes: what waits arrives, largest first
        for _ in range(4):
            arrived[rows] += sent(np.zeros((10, 4)), compressor, rows)
    np.testing.assert_allclose(arrived, put_in, atol=1e-12)


def test_without_error_feedback_nothing_is_kept_for_later():
    compressor = TopK(0.3)
    first = sent(NORMAL, compressor)
    assert np.array_equal(sent(NORMAL, compressor), first)


def test_a_frame_has_the_bytes_of_its_values_and_one_bit_an_entry():
    outputs = np.random.default_rng(0).normal(size=(2048, 10)).astype(np.float32)
    message = TopK(0.9).pack(outputs, 0, np.arange(2048))
    assert len(message.kept) + message.values.nbytes == 20480 / 8 + 4 * 18432
    whole = len(codec.encode(CutOutputs(outputs)))
    assert len(codec.encode(message)) / whole == pytest.approx(0.931, abs=1e-3)


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"ratio": 0}, "ratio must be above 0 and at most 1, got 0"),
        ({"ratio": 1.01}, "ratio must be above 0 and at most 1, got 1.01"),
        ({"ratio": float("nan")}, "ratio must be a finite number, got nan"),
        ({"ratio": "0.9"}, "ratio must be a finite number, got '0.9'"),
        ({"score": "size"}, "score must be 'magnitude' or 'gradient', got 'size'"),
        ({"score": ["magnitude"]}, "score must be 'magnitude' or 'gradient', got"),
        ({"per_row": 1}, "per_row must be True or False, got 1"),
        ({"error_feedback": "no"}, "error_feedback must be True or False, got 'no'"),
        ({"ration": 0.5}, "has no option 'ration'; did you mean 'ratio'"),
    ],
)
def test_wrong_options_are_refused_by_either_side_before_training(options, text):
    X, y = small.blocks()
    training = small.Training(X, y, small.settings())
    agreed = small.settings(compressor="topk", compressor_options=options)
    with pytest.raises(ValueError, match=text):
        small.Training(X, y, agreed)
    with pytest.raises(ValueError, match=text):
        training.passive["one"].on_training_settings(agreed)


HONEST = TopK(0.51).pack(NORMAL, 0, ROWS)  # 71 of 140
NO_NUMBER = HONEST.values.copy()
NO_NUMBER[5] = np.nan


def flipped(bit):
    """The bits with one of them changed."""
    kept = bytearray(HONEST.kept)
    kept[bit // 8] ^= 128 >> bit % 8
    return bytes(kept)


HOSTILE = {
    "another kind": (CutOutputs(NORMAL), "answered with CutOutputs"),
    "a byte short": (dataclasses.replace(HONEST, kept=HONEST.kept[:-1]), "17 bytes .* 140 outputs take 18 bytes"),
    "much too long": (dataclasses.replace(HONEST, kept=bytes(10**6)), "1000000 bytes"),
    "a bit flipped": (dataclasses.replace(HONEST, kept=flipped(7)), "(70|72) outputs of 140 were kept, 71 were"),
    "bits behind": (dataclasses.replace(HONEST, kept=flipped(141)), "bits are set after"),
    "a value short": (dataclasses.replace(HONEST, values=HONEST.values[1:]), r"shape \(70,\), expected floats \(71,\)"),
    "a table": (dataclasses.replace(HONEST, values=HONEST.values[:, None]), r"shape \(71, 1\)"),
    "whole numbers": (dataclasses.replace(HONEST, values=np.arange(71)), "kept outputs of int64"),
    "nan": (dataclasses.replace(HONEST, values=NO_NUMBER), "1 of 71 kept outputs are not finite"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_message_is_refused_with_what_is_wrong(name):
    message, text = HOSTILE[name]
    receiver = TopK(0.51)
    assert np.count_nonzero(receiver.unpack(HONEST, 0, NORMAL.shape)) == 71
    with pytest.raises(RemoteProtocolError, match=text):
        receiver.unpack(message, 0, NORMAL.shape)


def test_a_row_with_more_than_its_share_is_refused():
    kept = np.zeros((20, 7), dtype=bool)
    kept[:, :4] = True
    kept[0, 4], kept[1, 0] = True, False
    message = SparseOutputs(np.packbits(kept).tobytes(), NORMAL[kept])
    with pytest.raises(RemoteProtocolError, match="5 outputs of a row were kept, 4 were agreed on"):
        TopK(0.5, per_row=True).unpack(message, 0, NORMAL.shape)


class Liar:
    """A passive party whose compressor packs something else than was agreed on."""

    def pack(self, outputs, step, rows):
        return TopK(0.5).pack(outputs, step, rows)


def test_the_party_that_sent_it_is_named():
    X, y = small.blocks(3)
    training = small.Training(X, y, small.settings(compressor="topk"))
    honest = training.passive["two"].on_training_settings

    def lying(message):
        answer = honest(message)
        training.passive["two"]._compressor = Liar()
        return answer

    training.passive["two"].on_training_settings = lying
    with pytest.raises(
        RemoteProtocolError, match="party 'two': 15 outputs of 30 were kept, 27 were agreed on"
    ):
        training.run()


# ---------------------------------------------------------------- in training


@pytest.mark.parametrize("n_parties", [2, 3])
def test_training_at_ratio_one_is_fedsgd_bit_for_bit(n_parties):
    X, y = small.blocks(n_parties)
    whole = small.settings(compressor="topk", compressor_options={"ratio": 1})
    assert small.same(
        small.Training(X, y, whole).run().weights, small.Training(X, y, small.settings()).run().weights
    )


@pytest.mark.parametrize(
    "options", [{"per_row": True}, {"score": "gradient"}, {"error_feedback": True}, {"ratio": 0.1}]
)
def test_options_change_what_is_learned(options):
    X, y = small.blocks(3)
    plain = small.Training(X, y, small.settings(compressor="topk", compressor_options={"ratio": 0.5})).run()
    agreed = small.settings(compressor="topk", compressor_options={"ratio": 0.5} | options)
    changed = small.Training(X, y, agreed).run()
    assert np.isfinite(changed.result.step_loss).all()
    assert not small.same(changed.weights, plain.weights)
