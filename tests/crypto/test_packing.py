"""Packing and compression of gradients: laws, edges, and plans that do not fit."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from insecure_keys import insecure_key

from vflcrypto import CiphertextArray, DecryptionError, SlotOverflowError, plan_packing
from vflcrypto import words as wide

KEY = insecure_key("INSECURE_TEST_KEY_512")
quick = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def gradients(rng, plan, n):
    one = 2**plan.fraction_bits
    return rng.integers(-one, one + 1, (n, plan.n_outputs)), rng.integers(0, one + 1, (n, plan.n_outputs))


def in_python(plan, g, h) -> list[list[int]]:
    """The packed values by the formula of the module's docstring, in Python integers."""
    per = plan.outputs_per_ciphertext
    rows = []
    for g_row, h_row in zip(g.tolist(), h.tolist(), strict=True):
        pairs = [(a << plan.hessian_bits) + b for a, b in zip(g_row, h_row, strict=True)]
        columns = [pairs[i : i + per] for i in range(0, plan.n_outputs, per)]
        rows.append(
            [sum(pair << (k * plan.pair_bits) for k, pair in enumerate(column)) for column in columns]
        )
    return rows


@pytest.mark.parametrize("key_bits", [160, 512, 1024])
@pytest.mark.parametrize("n_outputs", [1, 2, 5, 17])
@pytest.mark.parametrize("n_rows", [1, 2, 1000, 24000, 2**31])
def test_packed_values_are_those_of_the_formula(n_rows, n_outputs, key_bits, rng):
    plan = plan_packing(n_rows, n_outputs, 30, key_bits)
    g, h = gradients(rng, plan, min(n_rows, 9))
    words = plan.pack(g, h)
    assert words.shape[:2] == (len(g), plan.ciphertexts_per_row)
    got = [[wide.to_ints(words[i, j : j + 1])[0] for j in range(words.shape[1])] for i in range(len(g))]
    assert got == in_python(plan, g, h)
    unpacked = plan.unpack_values(words)
    np.testing.assert_array_equal(unpacked[0], g)
    np.testing.assert_array_equal(unpacked[1], h)


def test_one_output_is_the_pair_of_the_published_example():
    """1000 rows, 30 fraction bits: w_h = 40, w_g = 41; three rows add up to G = -0.25, H = 0.6875."""
    plan = plan_packing(1000, 1, 30, 3072)
    assert (plan.hessian_bits, plan.gradient_bits, plan.pair_bits) == (40, 41, 81)
    g = (np.array([[-0.5], [0.5], [-0.25]]) * 2**30).astype(np.int64)
    h = (np.array([[0.25], [0.25], [0.1875]]) * 2**30).astype(np.int64)
    m = sum(wide.to_ints(plan.pack(g, h)[:, 0]))
    assert (m & (2**40 - 1)) / 2**30 == 0.6875
    assert (m >> 40) / 2**30 == -0.25


@pytest.mark.parametrize(("g", "h"), [(1, 1), (-1, 0), (-1, 1), (1, 0), (0, 0), (0, 1)])
@pytest.mark.parametrize("n_rows", [1, 7, 8, 255, 256])
def test_sums_of_extreme_values_fit_their_slots(n_rows, g, h, key):
    """Every row at the edge: also where n_rows is a power of two."""
    plan = plan_packing(n_rows, 3, 30, 512)
    one = 2**30
    rows = plan.encrypt(key, np.full((n_rows, 3), g * one), np.full((n_rows, 3), h * one))
    total = plan.compress(rows.sum(0).reshape(1, -1))
    got_g, got_h = plan.unpack(key.decrypt_words(total), 1)
    assert got_g.tolist() == [[n_rows * g * one] * 3]
    assert got_h.tolist() == [[n_rows * h * one] * 3]


@quick
@given(st.data())
def test_histograms_come_back_exactly_through_compression(data):
    n_rows, n_outputs = data.draw(st.integers(1, 30)), data.draw(st.integers(1, 8))
    n_bins = data.draw(st.integers(1, 9))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    plan = plan_packing(n_rows, n_outputs, data.draw(st.integers(0, 30)), 512)
    g, h = gradients(rng, plan, n_rows)
    bins = rng.integers(0, n_bins, n_rows)
    received = CiphertextArray.from_bytes(plan.encrypt(KEY, g, h).to_bytes(), KEY.public_key)
    reply = plan.compress(received.sum_by_bin(bins, n_bins)).rerandomize()
    reply = CiphertextArray.from_bytes(reply.to_bytes(), KEY.public_key)
    assert reply.size == -(-n_bins * plan.ciphertexts_per_row // plan.values_per_reply)
    for got, values in zip(plan.unpack(KEY.decrypt_words(reply), n_bins), (g, h), strict=True):
        expected = np.zeros((n_bins, n_outputs), dtype=np.int64)
        np.add.at(expected, bins, values)
        np.testing.assert_array_equal(got, expected)


def test_public_and_private_keys_pack_alike(key):
    plan = plan_packing(4, 2, 30, 512)
    g, h = np.arange(8).reshape(4, 2) - 4, np.arange(8).reshape(4, 2)
    for side, freshness in ((key, "wide"), (key.public_key, "half")):
        rows = plan.encrypt(side, g, h, n_jobs=2)
        assert rows.freshness == freshness
        assert rows.encoding == plan
        assert (key.decrypt(rows) == np.array(in_python(plan, g, h), dtype=object)).all()


def test_no_rows_and_no_sums_are_fine(key):
    plan = plan_packing(4, 2, 30, 512)
    rows = plan.encrypt(key, np.empty((0, 2), dtype=int), np.empty((0, 2), dtype=int))
    assert rows.shape == (0, 1)
    reply = plan.compress(rows)
    assert reply.shape == (0,)
    assert plan.unpack(key.decrypt_words(reply), 0)[0].shape == (0, 2)


# ---- plans ----


def test_widths_depend_on_rows_and_fraction_bits_only():
    """They are public."""
    assert plan_packing(100, 1, 30, 1024).pair_bits == plan_packing(100, 7, 30, 4096).pair_bits == 2 * 37 + 1


def test_outputs_are_spread_evenly_over_ciphertexts():
    plan = plan_packing(1000, 10, 30, 512)  # 6 pairs of 81 bits fit
    assert plan.ciphertexts_per_row == 2
    assert plan.outputs_per_ciphertext == 5
    assert plan.values_per_reply == 1


def test_pairs_that_do_not_fit_name_both_numbers():
    with pytest.raises(ValueError, match=r"needs 117 bits, the 118-bit key offers 116"):
        plan_packing(2**27, fraction_bits=30, key_bits=118)
    with pytest.raises(ValueError, match="need 83 bits, 61 are offered"):
        plan_packing(n_rows=10**9, fraction_bits=53, key_bits=128)
    for key_bits in (2, 0, 64):
        with pytest.raises(ValueError, match="needs"):
            plan_packing(1000, key_bits=key_bits)


@pytest.mark.parametrize("n_rows", [2**31, 2**31 + 1])
def test_sums_beyond_62_bits_are_refused(n_rows):
    if n_rows <= 2**31:
        assert plan_packing(n_rows, fraction_bits=30).hessian_bits == 62
    else:
        with pytest.raises(ValueError, match="use fewer fraction bits"):
            plan_packing(n_rows, fraction_bits=30)


@pytest.mark.parametrize("bad", [(0,), (-1,), (1.5,), (10, 0), (10, 1, -1)])
def test_impossible_plans_are_refused(bad):
    with pytest.raises((ValueError, TypeError)):
        plan_packing(*bad)


@pytest.mark.parametrize("fraction_bits", [62, 10**9, 10**12, 10**30])
def test_absurd_fraction_bits_are_refused_without_memory(fraction_bits):
    with pytest.raises(ValueError, match=f"need {fraction_bits} bits, 61 are offered"):
        plan_packing(1, 1, fraction_bits, 3072)


def test_values_that_would_spill_into_the_next_slot_are_refused():
    plan = plan_packing(10, 1, 30, 512)
    one = np.full((10, 1), 2**30)
    for g, h in ((one + 1, one), (-one - 1, one), (one, one + 1), (one, -one)):
        with pytest.raises(ValueError, match=r"must lie in \[-?\d, 1\] \* 2\*\*30"):
            plan.pack(g, h)
    for g, h in (
        (one[:, 0], one),
        (np.tile(one, 2), one),
        (np.vstack([one, one]), np.vstack([one, one])),
        (one[:5], one),
    ):
        if g.shape != (10,):
            with pytest.raises(ValueError):
                plan.pack(g, h)
    with pytest.raises(TypeError, match="fixed-point integers"):
        plan.pack(one * 0.5, one)


def test_a_plan_needs_its_key_size():
    with pytest.raises(ValueError, match="needs a key of 1024 bits, got one of 512"):
        plan_packing(10, key_bits=1024).encrypt(KEY, np.zeros((1, 1), dtype=int), np.zeros((1, 1), dtype=int))


# ---- sums ----


def test_sums_of_more_terms_than_planned_are_refused(key):
    plan = plan_packing(4, 1, 30, 512)
    rows = plan.encrypt(key, np.ones((4, 1), dtype=int), np.ones((4, 1), dtype=int))
    everything = rows.sum(0)
    assert everything.terms == 4
    for operation in (
        lambda: everything + everything,
        lambda: everything + rows[0],
        lambda: rows.sum_rows(np.array([0, 5]), np.array([0, 1, 2, 3, 3])),
        lambda: rows.reshape(2, 2).sum(0) + rows.reshape(2, 2).sum(1) + rows[0],
    ):
        with pytest.raises(SlotOverflowError, match="planned for 4"):
            operation()
    drawn_twice = rows.sum_rows(np.array([0, 4]), np.array([0, 0, 1, 1]))
    assert plan.unpack_values(key.decrypt_words(drawn_twice))[0].tolist() == [[4]]


def test_packed_values_only_add_up(key):
    plan = plan_packing(4, 1, 30, 512)
    rows = plan.encrypt(key, np.ones((4, 1), dtype=int), np.ones((4, 1), dtype=int))
    other = plan_packing(5, 1, 30, 512).encrypt(key, np.ones((4, 1), dtype=int), np.ones((4, 1), dtype=int))
    for operation in (
        lambda: rows * 2, lambda: -rows, lambda: rows + 1, lambda: rows - rows, lambda: np.ones((1, 4)) @ rows,
        lambda: rows + other, lambda: rows + key.encrypt([1]), lambda: other.encoding.compress(rows),
    ):  # fmt: skip
        with pytest.raises(TypeError):
            operation()


# ---- forged replies ----


def test_bits_beyond_the_slots_are_refused():
    plan = plan_packing(10, 1, 30, 512)
    count = plan.values_per_reply + 2
    good = wide.from_ints([5, 5], 8)
    assert plan.unpack(good, count)[0].shape == (count, 1)
    for first, second in (
        (1 << 508, 5),
        (-(1 << 508), 5),
        (5, 1 << (2 * plan.value_bits)),
        (5, -(1 << (2 * plan.value_bits))),
    ):
        with pytest.raises(DecryptionError, match="beyond its"):
            plan.unpack(wide.from_ints([first, second], 8), count)


def test_replies_of_another_length_are_refused():
    plan = plan_packing(10, 1, 30, 512)
    for rows, count in ((1, 100), (3, 1), (1, 0), (0, 1)):
        with pytest.raises(ValueError, match="take"):
            plan.unpack(np.zeros((rows, 8), dtype=np.uint64), count)


def test_a_forged_reply_is_found_at_decryption(key):
    """Somebody answers with a random plaintext: it does not lie within the bound a reply declares."""
    plan = plan_packing(10, 1, 30, 512)
    forged = key.encrypt([key.public_key.capacity - 12345])
    data = bytearray(forged.to_bytes())
    honest = plan.compress(
        plan.encrypt(key, np.ones((3, 1), dtype=int), np.ones((3, 1), dtype=int))
    ).rerandomize()
    data[: len(data) - 128] = honest.to_bytes()[: len(data) - 128]
    received = CiphertextArray.from_bytes(bytes(data), key.public_key)
    with pytest.raises(DecryptionError):
        plan.unpack(key.decrypt_words(received), 3)
