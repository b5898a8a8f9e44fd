"""Rows are joined by ID, exactly; parties that hold other rows notice before they start."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vflparty import (
    InProcessNetwork,
    Party,
    RowsDigest,
    RowsDisagreeError,
    align,
    check_rows,
    compare_rows,
    row_digest,
    set_digest,
)
from vflparty.alignment import canonical_order

IDS = st.lists(st.integers(-30, 30) | st.text("abc", max_size=2), unique=True, max_size=15)


def test_reversed_ids_are_matched_row_by_row():
    joined = align({"a": [1, 2, 3, 4], "b": [4, 3, 2, 1]})
    assert joined.indices["a"].tolist() == [0, 1, 2, 3] and joined.indices["b"].tolist() == [3, 2, 1, 0]
    assert joined.complete


def test_duplicate_ids_are_counted_and_not_listed():
    with pytest.raises(
        ValueError, match=r"party 'shop': 1 of 3 IDs appear more than once in 4 rows"
    ) as caught:
        align({"bank": [71, 72, 73, 74], "shop": [71, 71, 72, 73]})
    assert "71" not in str(caught.value)


def test_inner_join_keeps_the_common_ids_in_the_first_partys_order():
    joined = align({"bank": [1, 2, 3, 4, 5], "shop": [9, 5, 4, 2]})
    assert joined.n_common == 3 and joined.counts == {"bank": 5, "shop": 4} and not joined.complete
    assert joined.indices["bank"].tolist() == [1, 3, 4] and joined.indices["shop"].tolist() == [3, 2, 1]
    assert str(joined) == "5 rows of party 'bank', 4 rows of party 'shop'; 3 common"


def test_join_is_exact_and_its_indices_are_in_range():
    joined = align([range(10), range(5, 4000)])
    assert joined.indices["0"].tolist() == [5, 6, 7, 8, 9] and joined.indices["1"].tolist() == [0, 1, 2, 3, 4]


def test_exact_join_refuses_differing_sets_with_the_counts():
    assert align({"a": [1, 2], "b": [2, 1]}, how="exact").n_common == 2
    with pytest.raises(ValueError, match=r"5 rows of party 'a', 4 rows of party 'b'; 3 common"):
        align({"a": [1, 2, 3, 4, 5], "b": [9, 5, 4, 2]}, how="exact")
    with pytest.raises(ValueError, match=r"2 rows of party 'a', 2 rows of party 'b'; 1 common"):
        align({"a": [1, 2], "b": [1, 3]}, how="exact")


def test_numbers_never_match_texts_and_the_error_says_so():
    with pytest.raises(ValueError, match=r"no common IDs: .*'a': int, 'b': str"):
        align({"a": [1, 2], "b": ["1", "2"]})


def test_arguments_of_the_join_are_checked():
    with pytest.raises(ValueError, match="outer"):
        align({"a": [1]}, how="outer")
    with pytest.raises(ValueError, match="no party"):
        align({})
    assert align({"a": [], "b": []}).n_common == 0


@given(st.lists(IDS, min_size=1, max_size=4))
@settings(max_examples=100, deadline=None)
def test_joined_rows_have_equal_ids_and_no_common_one_is_missing(parts):
    common = set(parts[0]).intersection(*parts[1:])
    if not common and any(parts):
        with pytest.raises(ValueError, match="no common"):
            align(parts)
        return
    joined = align(parts)
    rows = [[part[i] for i in joined.indices[str(k)]] for k, part in enumerate(parts)]
    assert rows == [[value for value in parts[0] if value in common]] * len(parts)


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA, pd.NaT, np.datetime64("NaT")], ids=str)
def test_missing_id_is_refused_by_its_row(missing):
    with pytest.raises(ValueError, match="party 'b', row 1 has no ID"):
        align({"a": [1, 2], "b": [1, missing]})


@pytest.mark.parametrize("odd", [True, [1], 1j, ...], ids=str)
def test_id_of_another_type_is_refused(odd):
    with pytest.raises(TypeError, match=f"row 0: IDs are int.*got {type(odd).__name__}"):
        row_digest([odd])


# ---------------------------------------------------------------- digests


@pytest.mark.parametrize(
    "ids",
    [
        [3, 1, 2],
        (3.0, 1.0, 2.0),
        np.array([3, 1, 2], np.uint8),
        np.array([3, 1, 2], ">i2"),
        np.array([3.0, 1.0, 2.0]),
        np.array([3, 1, 2], object),
        pd.Index([3, 1, 2]),
        pd.Series([3, 1, 2], dtype="Int64"),
    ],
    ids=lambda ids: f"{type(ids).__name__}-{getattr(ids, 'dtype', '')}",
)
def test_digest_depends_on_values_and_not_on_containers(ids):
    assert row_digest(ids) == row_digest(np.array([3, 1, 2]))


def test_digest_of_a_range_is_that_of_its_numbers():
    assert row_digest(range(1000)) == row_digest(list(range(1000))) and len(row_digest(range(3))) == 32


def test_digest_of_dates_is_the_same_in_every_form():
    dates = pd.date_range("2020-02-28", periods=3, tz="UTC")
    plain = dates.tz_localize(None)
    forms = [
        dates,
        list(dates),
        plain,
        plain.to_numpy(),
        plain.to_numpy().astype("M8[s]"),
        list(plain.to_pydatetime()),
    ]
    assert len({row_digest(form) for form in forms}) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([1, 2], [2, 1]),
        ([1], ["1"]),
        (["1"], [b"1"]),
        (["ab", "c"], ["a", "bc"]),
        ([("a", "b")], [("ab",)]),
        ([1, 2], [(1, 2)]),
        ([1.5], [1]),
        ([], [0]),
        ([2**63], [-(2**63)]),
        ([0], [2**64]),
    ],
)
def test_other_ids_or_another_order_give_another_digest(one, other):
    assert row_digest(one) != row_digest(other)


@given(IDS, st.randoms())
@settings(max_examples=100, deadline=None)
def test_set_digest_and_canonical_order_do_not_depend_on_the_order(ids, source):
    shuffled = list(ids)
    source.shuffle(shuffled)
    assert set_digest(shuffled) == set_digest(ids)
    assert [ids[i] for i in canonical_order(ids)] == [shuffled[i] for i in canonical_order(shuffled)]


# ---------------------------------------------------------------- the conversation


class Rows(Party):
    messages = (RowsDigest,)

    def __init__(self, ids: object, lies: bool = False) -> None:
        self._rows = RowsDigest.of(ids)
        self._lies = lies

    def on_rows_digest(self, msg: RowsDigest) -> RowsDigest:
        return self._rows if self._lies else check_rows(self._rows, msg)


def compare(**parties: Party) -> InProcessNetwork:
    network = InProcessNetwork(parties, leader="bank")
    network.run(compare_rows(parties, RowsDigest.of([5, 6, 7])))
    return network


def test_parties_with_the_same_rows_agree_in_one_round():
    ledger = compare(shop=Rows([5, 6, 7]), phone=Rows(np.array([5, 6, 7]))).ledger
    assert ledger.rounds == 1 and ledger.messages_sent == 4


@pytest.mark.parametrize("lies", [False, True], ids=["shop notices", "bank notices"])
def test_parties_with_other_rows_do_not_start(lies):
    with pytest.raises(RowsDisagreeError, match=r"3 rows on both sides.*order"):
        compare(phone=Rows([5, 6, 7]), shop=Rows([6, 5, 7], lies))
    with pytest.raises(RowsDisagreeError, match=r"(2 rows there, 3 here|3 rows there, 2 here)"):
        compare(phone=Rows([5, 6, 7]), shop=Rows([5, 6], lies))


def test_disagreement_noticed_by_the_leader_names_the_party():
    with pytest.raises(RowsDisagreeError, match="party 'shop'") as caught:
        compare(phone=Rows([5, 6, 7]), shop=Rows([5, 6], lies=True))
    assert caught.value.party == "shop"
