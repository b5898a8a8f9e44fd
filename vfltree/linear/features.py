"""A party's features between estimator, seat and protocol: dense or CSR, and X w in an order that does not vary."""

from __future__ import annotations

from typing import Any

import numpy as np

from vflparty import codec

from .columns import LARGEST_SCORE_BITS, SCORE_BITS
from .messages import Features

_NONE = np.zeros(0, dtype=np.int64)


def encode_features(values: Any) -> bytes:
    """A dense float64 array, or a SciPy matrix, on its way to its own party's seat."""
    if not hasattr(values, "tocsr"):
        dense = np.ascontiguousarray(values, dtype=np.float64)
        return codec.encode(Features(dense.shape[1], dense, _NONE, _NONE))
    csr = values.tocsr()
    return codec.encode(
        Features(
            csr.shape[1],
            csr.data.astype(np.float64),
            csr.indices.astype(np.int64),
            csr.indptr.astype(np.int64),
        )
    )


def decode_features(data: bytes) -> Any:
    """float64 (n_rows, n_columns), dense or CSR."""
    message = codec.decode(data, (Features,))
    assert isinstance(message, Features)
    if message.values.ndim == 2:
        return message.values
    from scipy import sparse  # only who passes sparse data needs SciPy

    shape = (len(message.starts) - 1, message.n_columns)
    return sparse.csr_array((message.values, message.columns, message.starts), shape=shape)


def fixed_scores(scores: np.ndarray, unit: float) -> np.ndarray:
    """Float scores as int64, in units of unit * 2**-SCORE_BITS, so that masks modulo 2**64 cancel exactly."""
    scaled = np.rint(np.ldexp(scores / unit, SCORE_BITS))
    if not (np.abs(scaled) < 2.0**LARGEST_SCORE_BITS).all():
        raise OverflowError(
            f"a score beyond {unit * 2.0 ** (LARGEST_SCORE_BITS - SCORE_BITS):g} cannot be hidden among those of other "
            "parties: are the columns those of training?"
        )
    return scaled.astype(np.int64)


def float_scores(features: Any, coefficients: np.ndarray) -> np.ndarray:
    """X w in floats, (n_rows, n_outputs): a row's score does not depend on what other rows there are."""
    if hasattr(features, "tocsr"):
        return np.asarray(features @ coefficients)
    total = np.zeros((len(features), coefficients.shape[1]))
    for column, line in zip(features.T, coefficients, strict=True):
        total += column[:, None] * line
    return total
