"""What parties compare before they start, so that row i is the same person everywhere."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from vflparty import row_digest


def rows_digest(ids: Collection[Any] | None, n_rows: int) -> bytes:
    """Digest of row IDs in order; of the row numbers where rows have no IDs."""
    return row_digest(range(n_rows) if ids is None else ids)
