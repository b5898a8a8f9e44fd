"""Monotone constraints: how users write them, and that predictions follow them whoever owns the column."""

from __future__ import annotations

import re

import pytest

from vfltree.secureboost.monotone import PartyColumns, constraint_signs

NAMED = {
    "bank": PartyColumns(("age", "debt"), (2, 0)),
    "shop": PartyColumns(("visits", "age", "spent"), (1, 3, 4)),
}
NUMBERED = {"bank": PartyColumns(None, (2, 0)), "shop": PartyColumns(None, (1, 3, 4))}


@pytest.mark.parametrize(
    ("parties", "written", "bank", "shop"),
    [
        (NAMED, None, [0, 0], [0, 0, 0]),
        (NAMED, {"debt": -1, "spent": 1}, [0, -1], [0, 0, 1]),
        (NAMED, {"shop": {"age": 1}, "bank": [0, -1]}, [0, -1], [0, 1, 0]),
        (NAMED, (1, -1, 0, 0, 1), [0, 1], [-1, 0, 1]),
        (NUMBERED, {0: 1, 3: -1}, [0, 1], [0, -1, 0]),
        (NUMBERED, {"shop": {2: 1}}, [0, 0], [0, 0, 1]),
        (NUMBERED, [0, 1, 1.0, 0, -1], [1, 0], [1, 0, -1]),
    ],
)
def test_constraints_can_be_written_by_column_by_party_and_in_order(parties, written, bank, shop):
    signs = constraint_signs(written, parties, 5)
    assert {party: own.tolist() for party, own in signs.items()} == {"bank": bank, "shop": shop}


@pytest.mark.parametrize(
    ("parties", "written", "kind", "message"),
    [
        (
            NAMED,
            {"height": 1},
            ValueError,
            "names column 'height', which no party has: party 'bank' has ['age', 'd",
        ),
        (NAMED, {"age": 1}, ValueError, "names column 'age', which parties ['bank', 'shop'] have"),
        (NAMED, {0: 1}, ValueError, "names column 0, which no party has"),
        (NAMED, {"debt": 2}, ValueError, "column 'debt' of party 'bank' must be -1, 0 or 1, got 2"),
        (NAMED, {"debt": True}, ValueError, "column 'debt' of party 'bank' must be -1, 0 or 1, got True"),
        (NAMED, {"debt": "up"}, ValueError, "column 'debt' of party 'bank' must be -1, 0 or 1, got 'up'"),
        (NAMED, {"mill": {"debt": 1}}, ValueError, "names party 'mill'; the parties are ['bank', 'shop']"),
        (
            NAMED,
            {"bank": {"spent": 1}},
            ValueError,
            "of party 'bank' names column 'spent'; the party has ['age'",
        ),
        (NAMED, {"bank": [1, 0, 0]}, ValueError, "of party 'bank' has 3 signs, the party has 2 columns"),
        (NAMED, {"bank": [1, 0], "debt": 1}, TypeError, "mixes signs of columns with constraints of parties"),
        (NUMBERED, [1, 0], ValueError, "has 2 signs, X has 5 columns"),
        (NUMBERED, [0, 0, 0, 0.5, 0], ValueError, "column 1 of party 'shop' must be -1, 0 or 1, got 0.5"),
        (NUMBERED, {5: 1}, ValueError, "names column 5, which no party has"),
        (NUMBERED, {"age": 1}, ValueError, "names column 'age', which no party has"),
        (NUMBERED, "(1,0,0,0,0)", TypeError, "a dict of columns or parties, or a sequence"),
        (NUMBERED, 1, TypeError, "a dict of columns or parties, or a sequence"),
    ],
)
def test_what_cannot_be_meant_is_refused_naming_party_and_column(parties, written, kind, message):
    with pytest.raises(kind, match=re.escape(message)):
        constraint_signs(written, parties, 5)
