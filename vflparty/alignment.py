"""Which rows the parties share, and whether they hold them in the same order.

Two steps, with different hands. `align` joins explicit IDs exactly and is for whoever may see all of them: a
simulation on one host. `row_digest` and `compare_rows` are for parties that hold their rows already: before
they start, the leading party sends a digest of its row IDs and every other party compares.

The digest speaks of IDs *in order*: row i here must be row i there. Parties that know the common IDs but not
each other's order sort by `canonical_order` first (`set_digest` does so by itself). Whoever can guess the
whole list of IDs can check the guess against a digest; a digest says nothing about a single ID.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import RowsDisagreeError
from .messages import Message
from .party import Round, to_all

_DIGEST_DOMAIN = b"vflparty row ids 1\0"


@dataclass(frozen=True)
class RowsDigest(Message, answer="RowsDigest"):
    """active -> every passive, before anything else; the answer is the passive party's own."""

    n_rows: int
    digest: bytes  # row_digest of the rows' IDs, 32 bytes

    @classmethod
    def of(cls, ids: Collection[Any]) -> RowsDigest:
        """The digest of IDs in the order of the rows."""
        return cls(len(ids), row_digest(ids))


def compare_rows(parties: Iterable[str], rows: RowsDigest) -> Generator[Round, Round, None]:
    """One round: all parties must hold these rows. ``yield from compare_rows(names, RowsDigest.of(ids))``."""
    answers = yield to_all(parties, rows)
    for party, theirs in answers.items():
        assert isinstance(theirs, RowsDigest)
        check_rows(rows, theirs, party)


def check_rows(own: RowsDigest, theirs: RowsDigest, party: str | None = None) -> RowsDigest:
    """Compare two digests; returns `own`, which makes an answering party's handler one line.

    ``def on_rows_digest(self, msg): return check_rows(self._rows, msg)``
    """
    if own.n_rows != theirs.n_rows:
        raise RowsDisagreeError(f"{theirs.n_rows} rows there, {own.n_rows} here: align the IDs first", party)
    if own.digest != theirs.digest:
        raise RowsDisagreeError(f"{own.n_rows} rows on both sides, but other IDs or another order", party)
    return own


# ---------------------------------------------------------------- digests


def row_digest(ids: Collection[Any]) -> bytes:
    """SHA-256 over the IDs in order, 32 bytes.

    Integers count by value whatever their dtype (a float without fraction is the integer; pandas makes such
    floats), text by its UTF-8, dates by their nanoseconds; 1 and "1" are different IDs. A missing ID is a
    ValueError.
    """
    digest = hashlib.sha256(_DIGEST_DOMAIN + struct.pack("<Q", len(ids)))
    array = np.asarray(ids) if isinstance(ids, range) or hasattr(ids, "dtype") else None
    if array is not None and array.dtype.kind == "i":
        # The same bytes as _id_bytes gives for integers, without a loop.
        packed = np.empty(len(array), dtype=[("tag", "u1"), ("value", "<i8")])
        packed["tag"], packed["value"] = ord("i"), array
        digest.update(packed.tobytes())
    else:
        digest.update(b"".join(map(_id_bytes, id_keys(ids))))
    return digest.digest()


def set_digest(ids: Collection[Any]) -> bytes:
    """row_digest of the IDs in canonical order: the same for every order of the same IDs."""
    keys = id_keys(ids)
    return row_digest([keys[i] for i in canonical_order(keys)])


def canonical_order(ids: Collection[Any]) -> NDArray[np.int64]:
    """Indices that sort the IDs in the same way at every party, whatever their types; shape (n_rows,)."""
    encoded = [_id_bytes(key) for key in id_keys(ids)]
    return np.array(sorted(range(len(encoded)), key=encoded.__getitem__), dtype=np.int64)


def id_keys(ids: Iterable[Any], party: str | None = None) -> list[Any]:
    """IDs as plain values that compare alike at every party: int, float, str, bytes or tuples of them."""
    # tolist() gives plain numbers; elements of other arrays and of pandas' indexes are made plain one by one.
    array = np.asarray(ids) if hasattr(ids, "dtype") else None
    values = list(ids) if array is None else array.tolist() if array.dtype.kind in "iuf" else list(array)
    return [_id_key(value, index, party) for index, value in enumerate(values)]


def _id_key(value: Any, index: int, party: str | None) -> Any:
    """One ID as a key; an error names the row, never the ID."""
    where = f"row {index}" if party is None else f"party {party!r}, row {index}"
    if isinstance(value, tuple):
        return tuple(_id_key(part, index, party) for part in value)
    if _is_missing(value):
        raise ValueError(f"{where} has no ID")
    if isinstance(value, datetime):
        value = np.datetime64(value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None))
    if isinstance(value, np.datetime64):
        return int(value.astype("M8[ns]").astype(np.int64))
    value = value.item() if isinstance(value, np.generic) else value
    if type(value) in (int, str, bytes):
        return value
    if type(value) is float:
        return int(value) if value.is_integer() else value
    raise TypeError(f"{where}: IDs are int, float, str, bytes, dates or tuples, got {type(value).__name__}")


def _is_missing(value: Any) -> bool:
    """None, NaN and NaT (unlike themselves), and pandas' NA (which does not even say)."""
    try:
        return value is None or bool(value != value)
    except TypeError:
        return True


def _id_bytes(key: Any) -> bytes:
    """One key as bytes that no other key has, also when many are written one after the other."""
    if isinstance(key, int):
        if -(2**63) <= key < 2**63:
            return b"i" + key.to_bytes(8, "little", signed=True)
        tag, data = b"I", key.to_bytes(key.bit_length() // 8 + 1, "little", signed=True)
    elif isinstance(key, float):
        return b"f" + struct.pack("<d", key)
    elif isinstance(key, str):
        tag, data = b"s", key.encode("utf-8", "surrogatepass")
    elif isinstance(key, bytes):
        tag, data = b"b", key
    else:
        tag, data = b"t", b"".join(map(_id_bytes, key))
    return tag + struct.pack("<Q", len(data)) + data


# ---------------------------------------------------------------- the exact join


@dataclass(frozen=True)
class Alignment:
    """The common rows of all parties, in the order of the first one.

    Row i of the aligned data is row `indices[party][i]` of that party's own.
    """

    indices: dict[str, NDArray[np.int64]]  # party -> (n_common,)
    counts: dict[str, int]  # party -> rows it came with
    n_common: int

    def __str__(self) -> str:
        rows = ", ".join(f"{count} rows of party {party!r}" for party, count in self.counts.items())
        return f"{rows}; {self.n_common} common"

    @property
    def complete(self) -> bool:
        """True when no party has a row that another lacks."""
        return all(count == self.n_common for count in self.counts.values())


def align(ids: Mapping[str, Collection[Any]] | Sequence[Collection[Any]], how: str = "inner") -> Alignment:
    """Join the parties' rows by their IDs, exactly.

    Parameters
    ----------
    ids : IDs per party; the first party's order is the result's. In a sequence they are called "0", "1", ...
    how : "inner" keeps the common rows; "exact" wants the same IDs at every party, in any order

    Raises
    ------
    ValueError : a party has an ID twice (says how many, never which), no row is common, or sets differ where
        `how` is "exact"; the text has the counts
    """
    if how not in ("inner", "exact"):
        raise ValueError(f"how must be 'inner' or 'exact', got {how!r}")
    named = ids if isinstance(ids, Mapping) else {str(i): part for i, part in enumerate(ids)}
    if not named:
        raise ValueError("there is no party to align")
    rows = {party: _row_of_id(party, part) for party, part in named.items()}
    first, *others = rows.values()
    common = [key for key in first if all(key in other for other in others)]
    indices = {party: np.array([row[key] for key in common], dtype=np.int64) for party, row in rows.items()}
    result = Alignment(indices, {party: len(row) for party, row in rows.items()}, len(common))
    if not common and any(result.counts.values()):
        kinds = ", ".join(f"{party!r}: {_kinds(row)}" for party, row in rows.items())
        raise ValueError(f"no common IDs: {result} (IDs of {kinds})")
    if how == "exact" and not result.complete:
        raise ValueError(f"the parties have different IDs: {result}")
    return result


def _row_of_id(party: str, ids: Collection[Any]) -> dict[Any, int]:
    """ID -> row; duplicates are refused, since nobody could say which row is meant."""
    keys = id_keys(ids, party)
    row = {key: index for index, key in enumerate(keys)}
    if len(row) != len(keys):
        seen: dict[Any, int] = {}
        for key in keys:
            seen[key] = seen.get(key, 0) + 1
        duplicated = sum(count > 1 for count in seen.values())
        raise ValueError(
            f"party {party!r}: {duplicated} of {len(row)} IDs appear more than once in {len(keys)} rows"
        )
    return row


def _kinds(keys: Iterable[Any]) -> str:
    return " and ".join(sorted({type(key).__name__ for key in keys})) or "no type"
