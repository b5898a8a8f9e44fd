"""What one party may hold besides columns of a table (images, texts, hashed categories), and graphs over the samples.

========================= ============================================ ==========================================
kind                      block of n samples                           names of the party in `partition`
========================= ============================================ ==========================================
numbers                   ndarray of float32, shape (n, features)      its features
images                    ndarray of float32, shape (n, channels,      its channels
                          height, width)
texts, bags of words      SciPy CSR array of float32, shape            its words
                          (n, features)
hashed categories         ndarray of int64, shape (n, columns),        its columns
                          bucket numbers
========================= ============================================ ==========================================

So names always run along axis 1.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from vfldata.partition import check_parties


def check_blocks(name: str, train: Any, test: Any, partition: Mapping[str, Sequence[str]]) -> None:
    """One block per party and part, of a kind in the table above, the same kind and width in both parts."""
    check_parties(partition)
    for part, blocks in (("train", train), ("test", test)):
        if not isinstance(blocks, Mapping):
            raise TypeError(
                f"{name}: X_train and X_test are both frames or both dicts from party to block, "
                f"got {type(blocks).__name__} for X_{part}"
            )
        if set(blocks) != set(partition):
            raise ValueError(f"{name}: {part} blocks of {sorted(blocks)} for the parties {list(partition)}")
        for party, names in partition.items():
            _check_block(f"{name}: the {part} block of party {party!r}", blocks[party], names)
        rows = {party: block.shape[0] for party, block in blocks.items()}
        if len(set(rows.values())) > 1:
            raise ValueError(
                f"{name}: all parties hold the same {part} samples, in one order; got {rows} rows"
            )
    for party in partition:
        if _kind(train[party]) != _kind(test[party]):
            raise ValueError(
                f"{name}: party {party!r} holds {_kind(train[party])} for training and {_kind(test[party])} for testing"
            )


def check_graphs(name: str, graphs: Mapping[str, Any], n_samples: int, parties: Sequence[str]) -> None:
    """One square CSR matrix of float32 per party, a row and a column per sample."""
    if set(graphs) != set(parties):
        raise ValueError(f"{name}: graphs of {sorted(graphs)} for the parties {list(parties)}")
    for party, graph in graphs.items():
        where = f"{name}: the graph of party {party!r}"
        if not _is_csr(graph) or graph.dtype != np.float32:
            raise TypeError(f"{where} is a SciPy CSR array of float32, got {_words(graph)}")
        if graph.shape != (n_samples, n_samples):
            raise ValueError(
                f"{where} has shape {graph.shape} for {n_samples} samples; a graph spans all samples, so training and "
                "test blocks hold the same ones, and label -1 says which are not labelled"
            )


def check_buckets(name: str, n_buckets: Mapping[str, int], blocks: Sequence[Mapping[str, Any]]) -> None:
    """Hashed categories, and only they, say from how many buckets they are; no bucket is beyond."""
    hashed = {party for party, block in blocks[0].items() if block.dtype == np.int64}
    if set(n_buckets) != hashed:
        raise ValueError(
            f"{name}: n_buckets is given for {sorted(n_buckets)}, int64 blocks are held by {sorted(hashed)}"
        )
    for party, count in n_buckets.items():
        for block in (held[party] for held in blocks if held[party].size):
            low, high = int(block.min()), int(block.max())
            if low < 0 or high >= count:
                raise ValueError(
                    f"{name}: party {party!r} has buckets {low}..{high}, expected 0..{count - 1} (n_buckets={count})"
                )


def _check_block(where: str, block: Any, names: Sequence[str]) -> None:
    if isinstance(block, pd.DataFrame):
        raise TypeError(
            f"{where} is a frame: give X_train and X_test as one frame of all columns each, or turn it into an array "
            "with .to_numpy(dtype=numpy.float32)"
        )
    if not (isinstance(block, np.ndarray) or _is_csr(block)):
        raise TypeError(f"{where} is a NumPy array or a SciPy CSR array, got {_words(block)}")
    if block.dtype != np.float32 and not (isinstance(block, np.ndarray) and block.dtype == np.int64):
        raise TypeError(f"{where} holds float32 (or int64, for hashed categories), got {_words(block)}")
    if block.ndim not in ((2, 4) if block.dtype == np.float32 else (2,)):
        raise ValueError(
            f"{where} has shape {block.shape}; expected (samples, features), or (samples, channels, height, width) for "
            "images"
        )
    if block.shape[1] != len(names):
        raise ValueError(f"{where} has shape {block.shape}, and `partition` names {len(names)} along axis 1")
    # A sum in float64 cannot overflow, so it is finite exactly if every value is.
    values = block if isinstance(block, np.ndarray) else block.data
    if block.dtype == np.float32 and not np.isfinite(values.sum(dtype=np.float64)):
        raise ValueError(f"{where} holds NaN or infinite values")


def _is_csr(block: Any) -> bool:
    return bool(sparse.issparse(block)) and block.format == "csr"


def _kind(block: Any) -> str:
    """What must be the same for training and testing, in words."""
    form = "x".join(str(size) for size in block.shape[1:])
    return f"{'sparse ' if sparse.issparse(block) else ''}{block.dtype} of {form} a sample"


def _words(block: Any) -> str:
    kind = type(block).__name__
    return f"{kind} of {block.dtype}" if hasattr(block, "dtype") else kind
