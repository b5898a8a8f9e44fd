"""Slots for forests: laws, edges, several ciphertexts a row, the header on the wire, and plans that do not fit."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from insecure_keys import insecure_key

from vflcrypto import CiphertextArray, DamagedCiphertextError, DecryptionError, SlotOverflowError, plan_slots
from vflcrypto import words as wide

KEY = insecure_key("INSECURE_TEST_KEY_512")
quick = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
LAYOUTS = [  # signed, weights, counts, fraction bits
    (0, 0, 2, 0),
    (0, 0, 1, 0),
    (0, 3, 1, 30),
    (1, 0, 1, 30),
    (1, 1, 1, 30),
    (0, 0, 70, 0),
    (3, 20, 2, 30),
]


def some_rows(rng, plan, n):
    one = 1 << plan.fraction_bits
    return np.concatenate(
        [
            rng.integers(-one, one + 1, (n, plan.n_signed)),
            rng.integers(0, one + 1, (n, plan.n_weights)),
            rng.integers(0, 2, (n, plan.n_counts)),
        ],
        axis=1,
    )


def made(layout, n_rows, key_bits=512):
    n_signed, n_weights, n_counts, fraction_bits = layout
    return plan_slots(
        n_rows, n_signed=n_signed, n_weights=n_weights, n_counts=n_counts,
        fraction_bits=fraction_bits, key_bits=key_bits,
    )  # fmt: skip


def in_python(plan, row) -> list[int]:
    """The packed values of a row by the formula of the module's docstring, in Python integers."""
    packed = []
    for column in plan.columns:
        offset, total = 0, 0
        for slot in column:
            total += int(row[slot]) << offset
            offset += plan.widths[slot]
        packed.append(total)
    return packed


@pytest.mark.parametrize("n_rows", [1, 2, 1000, 24000, 2**31])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_packed_values_are_those_of_the_formula(layout, n_rows, rng):
    plan = made(layout, n_rows)
    rows = some_rows(rng, plan, min(n_rows, 9))
    words = plan.pack(rows)
    got = [[wide.to_ints(words[i, j : j + 1])[0] for j in range(words.shape[1])] for i in range(len(rows))]
    assert got == [in_python(plan, row) for row in rows]
    np.testing.assert_array_equal(plan.unpack_values(words), rows)


def test_two_classes_of_24000_rows_take_31_bits():
    """A count of 15 bits per class, and the sign: 99 sums of the default key in one reply."""
    plan = plan_slots(24000, n_counts=2, key_bits=3072)
    assert plan.widths == (15, 15)
    assert (plan.value_bits, plan.values_per_reply) == (31, 99)


@pytest.mark.parametrize("edge", ["low", "high"])
@pytest.mark.parametrize("n_rows", [1, 7, 8, 255, 256])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_sums_of_extreme_values_fit_their_slots(layout, n_rows, edge, key):
    """One row, drawn as often as the plan allows: also where that is a power of two."""
    plan = made(layout, n_rows)
    one = 1 << plan.fraction_bits
    high = [one] * (plan.n_signed + plan.n_weights) + [1] * plan.n_counts
    low = [-one] * plan.n_signed + [0] * (plan.n_weights + plan.n_counts)
    row = np.array([high if edge == "high" else low])
    drawn = np.zeros(n_rows, dtype=np.int64)
    total = plan.encrypt(key, row)[drawn].sum_by_bin(drawn, 1)
    got = plan.unpack(key.decrypt_words(plan.compress(total)), 1)
    np.testing.assert_array_equal(np.stack(got, axis=1)[0, :, 0], n_rows * row[0])


@quick
@given(st.data())
def test_sums_of_multisets_come_back_exactly_through_compression(data):
    n_rows, n_bins = data.draw(st.integers(1, 30)), data.draw(st.integers(1, 9))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    plan = made(data.draw(st.sampled_from(LAYOUTS)), n_rows)
    rows = some_rows(rng, plan, n_rows)
    drawn, bins = rng.integers(0, n_rows, n_rows), rng.integers(0, n_bins, n_rows)
    received = CiphertextArray.from_bytes(plan.encrypt(KEY, rows).to_bytes(), KEY.public_key)
    assert received.encoding == plan
    reply = plan.compress(received[drawn].sum_by_bin(bins[drawn], n_bins)).rerandomize()
    reply = CiphertextArray.from_bytes(reply.to_bytes(), KEY.public_key)
    assert reply.size == -(-n_bins * plan.ciphertexts_per_row // plan.values_per_reply)
    expected = np.zeros((n_bins, plan.n_slots), dtype=np.int64)
    np.add.at(expected, bins[drawn], rows[drawn])
    got = np.concatenate(plan.unpack(KEY.decrypt_words(reply), n_bins), axis=1)
    np.testing.assert_array_equal(got, expected)


def test_a_sum_of_more_draws_than_planned_is_refused(key):
    plan = plan_slots(3, n_counts=2, key_bits=512)
    rows = plan.encrypt(key, np.array([[1, 0]]))
    with pytest.raises(SlotOverflowError, match="planned for 3"):
        rows[np.zeros(4, dtype=int)].sum_by_bin(np.zeros(4, dtype=int), 1)


def test_slots_are_spread_evenly_over_ciphertexts():
    plan = plan_slots(24000, n_counts=40, key_bits=512)  # 33 of 15 bits would fit one
    assert [len(column) for column in plan.columns] == [20, 20]
    assert sorted(slot for column in plan.columns for slot in column) == list(range(40))


def test_widths_depend_on_rows_and_fraction_bits_only():
    """They are public."""
    few, many = plan_slots(100, n_counts=1, key_bits=512), plan_slots(100, n_counts=9, key_bits=4096)
    assert set(few.widths) == set(many.widths) == {7}


@pytest.mark.parametrize("layout", [(255, 0, 0, 0), (0, 4095, 0, 0), (0, 0, 4095, 0), (2, 3, 4, 5)])
def test_the_header_says_every_layout(layout, key):
    plan = made(layout, 3)
    rows = plan.encrypt(key, np.zeros((1, plan.n_slots), dtype=int))
    assert CiphertextArray.from_bytes(rows.to_bytes(), key.public_key).encoding == plan


def test_a_header_with_impossible_slots_is_refused(key):
    data = bytearray(plan_slots(3, n_counts=2, key_bits=512).encrypt(key, np.array([[1, 0]])).to_bytes())
    at = 4 + 1 + 1 + 2 + 4 + 8  # of the layout: it becomes 2 counts and 256 signed slots
    data[at : at + 4] = (2 + (255 << 24)).to_bytes(4, "little")
    data[8:12] = (62).to_bytes(4, "little")  # fraction bits that no sum fits
    with pytest.raises(DamagedCiphertextError, match="impossible"):
        CiphertextArray.from_bytes(bytes(data), key.public_key)


@pytest.mark.parametrize("forged", [-1, 1 << 14])
def test_bits_beyond_the_slots_are_refused(forged, key):
    plan = plan_slots(100, n_counts=2, key_bits=512)  # 14 bits and a sign
    with pytest.raises(DecryptionError, match="bits beyond"):
        plan.unpack(key.decrypt_words(key.encrypt([forged])), 1)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[2, 0, 1]], "slot 0 must lie in \\[-1, 1\\]"),
        ([[0, -1, 1]], "slot 1 must lie in \\[0, 1\\]"),
        ([[0, 0, 2]], "slot 2"),
        ([[0, 0]], "3 slots"),
        ([[0, 0, 0]] * 6, "planned for 5"),
    ],
)
def test_values_outside_their_slots_are_refused(values, message):
    plan = plan_slots(5, n_signed=1, n_weights=1, n_counts=1, key_bits=512)
    with pytest.raises(ValueError, match=message):
        plan.pack(np.array(values))


def test_floats_are_refused():
    with pytest.raises(TypeError, match="float64"):
        plan_slots(5, n_counts=1, key_bits=512).pack(np.array([[0.5]]))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_rows": 5}, "one slot at least"),
        ({"n_rows": 0, "n_counts": 1}, "n_rows must be an integer from 1"),
        ({"n_rows": 5, "n_counts": 4096}, "n_counts must be an integer from 0 to 4095, got 4096"),
        ({"n_rows": 2**40, "n_weights": 1, "fraction_bits": 30}, "70 bits, 61 are offered"),
        (
            {"n_rows": 2**30, "n_weights": 1, "fraction_bits": 30, "key_bits": 32},
            "needs 62 bits, .* offers 30",
        ),
    ],
)
def test_plans_that_cannot_be_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        plan_slots(**parameters)
