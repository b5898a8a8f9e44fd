"""How few rows a batch may have: the active party asks for no fewer, a passive party answers none."""

from __future__ import annotations

ROWS_PER_COLUMN = 64  # of a batch, at least; a rule of thumb, see SMALL_BATCH
SMALL_BATCH = (
    "batches of {batch} rows for party {party!r} with {columns} columns: from a gradient over few rows the residuals, "
    "and so the labels, can be solved for. Use batch_size=None (all rows) or at least {least}, or pass "
    "allow_small_batches=True"
)


def least_batch(n_columns: int) -> int:
    """Rows of a batch below which a party's gradient says too much about single rows (a rule of thumb)."""
    return ROWS_PER_COLUMN * (n_columns + 1)
