"""The quantiser's laws, its bytes, and what it refuses."""

import dataclasses

import numpy as np
import pytest

from tests.nn import small
from vflnn.messages import CutOutputs, QuantizedOutputs
from vflnn.protocols.quantize import Quantize, pack_codes, unpack_codes
from vflparty import RemoteProtocolError, codec

ROWS = np.arange(20)
NORMAL = np.random.default_rng(3).normal(size=(20, 7)).astype(np.float32)


def sent(outputs, bits, step=0):
    """What arrives, over a frame."""
    sender, receiver = (Quantize(bits, seed=4, party="shop") for _ in range(2))
    frame = codec.encode(sender.pack(outputs, step, ROWS))
    return receiver.unpack(codec.decode(frame, (QuantizedOutputs,)), step, outputs.shape)


def step_size(outputs, bits):
    return (float(outputs.max()) - float(outputs.min())) / (2**bits - 1)


@pytest.mark.parametrize("bits", range(1, 33))
def test_codes_of_every_width_survive_packing_in_exactly_that_many_bits(bits):
    random = np.random.default_rng(bits)
    for shape in ((1, 1), (3, 5), (8, 4), (17, 3)):
        codes = random.integers(0, 2**bits, size=shape, dtype=np.uint64).astype(np.uint32)
        codes.flat[0], codes.flat[-1] = 2**bits - 1, 0
        packed = pack_codes(codes, bits)
        assert len(packed) == -(-codes.size * bits // 8)
        assert np.array_equal(unpack_codes(packed, bits, shape), codes)


def test_codes_lie_one_after_the_other_highest_bit_first():
    assert pack_codes(np.array([[0b101, 0b001, 0b111]], dtype=np.uint32), 3) == bytes(
        [0b10100111, 0b10000000]
    )


@pytest.mark.parametrize("bits", [*range(1, 10), 15, 16, 17, 24, 31, 32])
def test_an_error_is_at_most_half_a_step(bits):
    outputs = NORMAL.astype(np.float64)
    error = np.abs(sent(outputs, bits) - outputs).max()
    assert error <= step_size(outputs, bits) / 2 * (1 + 1e-6)
    single = np.abs(sent(NORMAL, bits).astype(np.float64) - NORMAL).max()
    assert single <= step_size(NORMAL, bits) / 2 + 3e-7  # and the rounding of float32


def test_half_a_step_is_reached_so_that_the_bound_says_something():
    outputs = np.random.default_rng(0).normal(size=(20, 500))
    assert np.abs(sent(outputs, 4) - outputs).max() > 0.49 * step_size(outputs, 4)


@pytest.mark.parametrize("bits", [1, 2, 4])
def test_errors_are_zero_on_average_over_dithers_at_the_ends_of_the_range_too(bits):
    outputs = NORMAL.astype(np.float64)
    n_dithers = 1500
    mean = np.mean([sent(outputs, bits, step) for step in range(n_dithers)], axis=0)
    # An error is uniform over a step: its deviation is s / sqrt(12), that of the mean sqrt(n_dithers) times smaller.
    deviation = step_size(outputs, bits) / np.sqrt(12 * n_dithers)
    assert np.abs(mean - outputs).max() < 4.5 * deviation
    assert abs(float((mean - outputs).mean())) < 4.5 * deviation / np.sqrt(outputs.size)


def test_what_is_decoded_may_lie_half_a_step_outside_the_range():
    """Cut off at low and high, two bits would be biased at both ends."""
    values = np.concatenate([sent(NORMAL, 2, step) for step in range(200)])
    assert values.min() < NORMAL.min() - 0.4 * step_size(NORMAL, 2)
    assert values.max() > NORMAL.max() + 0.4 * step_size(NORMAL, 2)


@pytest.mark.parametrize("bits", [4, 8, 16])
def test_signs_are_kept_where_values_exceed_half_a_step(bits):
    clear = np.abs(NORMAL) > step_size(NORMAL, bits) / 2
    assert (NORMAL[clear] < 0).sum() > 30
    assert np.array_equal(np.sign(sent(NORMAL, bits))[clear], np.sign(NORMAL)[clear])


@pytest.mark.parametrize("value", [0.0, -3.25, 1e-30])
@pytest.mark.parametrize("bits", [1, 16, 32])
def test_a_constant_output_arrives_exactly(value, bits):
    outputs = np.full((20, 3), value, dtype=np.float32)
    assert np.array_equal(sent(outputs, bits), outputs)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_outputs_keep_their_precision(dtype):
    assert sent(NORMAL.astype(dtype), 8).dtype == dtype


def test_the_dither_differs_between_steps_parties_and_seeds_and_is_alike_at_both_ends():
    def codes(seed=1, party="shop", step=0):
        return Quantize(4, seed=seed, party=party).pack(NORMAL, step, ROWS).codes

    assert codes() == codes()
    assert len({codes(), codes(seed=2), codes(party="bank"), codes(step=1)}) == 4


def test_a_frame_has_the_bytes_of_its_codes():
    whole = len(codec.encode(CutOutputs(np.zeros((2048, 10), dtype=np.float32))))
    outputs = np.random.default_rng(0).normal(size=(2048, 10)).astype(np.float32)
    for bits in (4, 16):
        message = Quantize(bits, seed=0, party="shop").pack(outputs, 0, np.arange(2048))
        assert len(message.codes) == 2048 * 10 * bits / 8
        assert abs(len(codec.encode(message)) - (whole * bits / 32)) < 120


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize("bits", [0, 33, 16.0, "16", True, None, -4])
def test_bits_out_of_range_are_refused_with_the_range(bits):
    with pytest.raises(ValueError, match="bits must be a whole number from 1 to 32, got"):
        Quantize(bits, seed=0, party="shop")


HONEST = Quantize(3, seed=0, party="shop").pack(NORMAL, 0, ROWS)
HOSTILE = {
    "another kind": (CutOutputs(NORMAL), "answered with CutOutputs"),
    "a byte short": (dataclasses.replace(HONEST, codes=HONEST.codes[:-1]), "52 bytes of codes, 140 of 3 bits take 53"),
    "no codes": (dataclasses.replace(HONEST, codes=b""), "0 bytes of codes"),
    "much too long": (dataclasses.replace(HONEST, codes=bytes(10**6)), "1000000 bytes of codes"),
    "bits behind": (dataclasses.replace(HONEST, codes=HONEST.codes[:-1] + b"\xff"), "bits are set after"),
    "upside down": (dataclasses.replace(HONEST, low=2.0, high=1.0), "range from 2.0 to 1.0"),
    "nan": (dataclasses.replace(HONEST, low=float("nan")), "range from nan"),
    "endless": (dataclasses.replace(HONEST, high=float("inf")), "to inf"),
    "wider than floats": (dataclasses.replace(HONEST, low=-1.7e308, high=1.7e308), "range from"),
    "too large for float32": (dataclasses.replace(HONEST, low=-1e60, high=1e60, double=False), "not finite"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_message_is_refused_with_what_is_wrong(name):
    message, text = HOSTILE[name]
    receiver = Quantize(3, seed=0, party="shop")
    assert np.isfinite(receiver.unpack(HONEST, 0, NORMAL.shape)).all()
    with pytest.raises(RemoteProtocolError, match=text):
        receiver.unpack(message, 0, NORMAL.shape)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_outputs_that_are_not_finite_are_not_sent(bad):
    outputs = NORMAL.copy()
    outputs[3, 2] = bad
    with pytest.raises(OverflowError, match="1 of 140 outputs are not finite: training has diverged"):
        Quantize(8, seed=0, party="shop").pack(outputs, 0, ROWS)


def test_a_range_beyond_all_floats_is_not_sent():
    outputs = np.full((20, 3), 1.5e308)
    outputs[0] = -1.5e308
    with pytest.raises(OverflowError, match=r"outputs from -1.5e\+308 to 1.5e\+308 are too far apart"):
        Quantize(8, seed=0, party="shop").pack(outputs, 0, ROWS)


# ---------------------------------------------------------------- in training


def test_training_takes_what_arrives_and_not_what_was_computed():
    """32 bits are as good as none; one bit is not."""
    X, y = small.blocks(3)

    def weights(compressor, **options):
        agreed = small.settings(compressor=compressor, compressor_options=options, optimizer="sgd")
        return small.Training(X, y, agreed).run().weights

    plain, fine, coarse = weights(""), weights("quantize", bits=32), weights("quantize", bits=1)
    gap = {name: np.abs(fine[name] - plain[name]).max() for name in plain}
    assert max(gap.values()) < 1e-5
    assert max(np.abs(coarse[name] - plain[name]).max() for name in plain) > 1e-3


def test_only_outputs_are_quantised_and_no_other_message_changes():
    X, y = small.blocks(3)
    tables = []
    for compressor in ("", "quantize"):
        agreed = small.settings(compressor=compressor)
        tables.append(small.Training(X, y, agreed).run().network.ledger.summary())
    plain, quantised = (dict(t.groupby("kind").bytes.sum()) for t in tables)
    assert quantised["CutGradient"] == plain["CutGradient"]
    assert quantised["AskOutputs"] == plain["AskOutputs"]
    assert "CutOutputs" not in quantised and "QuantizedOutputs" in quantised


@pytest.mark.parametrize("schedule", ["fedsgd", "fedbcd-p", "fedbcd-s", "celu"])
@pytest.mark.parametrize("compressor", ["quantize", "topk"])
def test_every_schedule_takes_every_compressor(schedule, compressor):
    X, y = small.blocks(2, n=40)
    agreed = small.settings(protocol=schedule, compressor=compressor, epochs=8, n_samples=40)
    loss = small.Training(X, y, agreed).run().result.step_loss
    assert loss[-5:].mean() < 0.7 * loss[:5].mean()
