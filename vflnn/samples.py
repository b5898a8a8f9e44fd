"""A party's own samples: dense arrays, sparse text, or the nodes of a graph; handed to its model batch by batch."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from vflparty import Message, codec

from .messages import DenseSamples, GraphSamples, SparseSamples

KINDS: tuple[type[Message], ...] = (DenseSamples, SparseSamples, GraphSamples)


class Samples:
    """What one party holds of every sample, ready for its model.

    Parameters
    ----------
    values : ndarray or SciPy CSR, shape (n_samples, ...)
        Features of floats, image blocks (n_samples, channels, height, width), or int64 codes for embeddings. Rows of a
        CSR are features; batches of them are dense, or sparse for a model whose `takes_sparse` is true. A model is
        handed floats in the precision of its weights.
    graph : SciPy sparse, shape (n_samples, n_samples), optional
        The party's adjacency, normalised as its model wants it. The samples are then nodes, and every batch is the
        whole graph.
    device : str
        Where batches go.
    """

    def __init__(self, values: Any, graph: Any = None, device: str = "cpu") -> None:
        self._device = torch.device(device)
        if graph is not None and sparse.issparse(values):
            values = values.toarray()  # all nodes are in every batch
        self._sparse = _canonical(_floats(values.tocsr())) if sparse.issparse(values) else None
        self._dense = None if self._sparse is not None else torch.from_numpy(_own(values)).to(self._device)
        self.graph = None if graph is None else _csr_tensor(graph, self._device)
        self._graph = graph

    def __len__(self) -> int:
        return int((self._dense if self._dense is not None else self._sparse).shape[0])  # type: ignore[union-attr]

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one sample."""
        whole = self._dense.shape if self._dense is not None else self._sparse.shape  # type: ignore[union-attr]
        return tuple(int(size) for size in whole[1:])

    def batch(self, rows: NDArray[np.int64], *, sparsely: bool = False) -> torch.Tensor:
        """The samples of these rows, shape (n_rows, ...). sparsely : as a COO tensor, where they are sparse."""
        if self._dense is not None:
            if self.graph is not None:
                return self._dense
            return self._dense[torch.from_numpy(rows).to(self._device)]
        batch = self._sparse[rows]  # type: ignore[index]
        return (_coo_tensor(batch) if sparsely else torch.from_numpy(batch.toarray())).to(self._device)

    def inputs(
        self, rows: NDArray[np.int64], model: torch.nn.Module, *, dense: bool = False
    ) -> tuple[torch.Tensor, ...]:
        """What `model` is called with. dense : also where it takes sparse rows."""
        batch = self.batch(rows, sparsely=getattr(model, "takes_sparse", False) and not dense)
        return (_in_precision_of(model, batch) if batch.is_floating_point() else batch, *self.context(model))

    def context(self, model: torch.nn.Module) -> tuple[torch.Tensor, ...]:
        """The graph, for a model that takes one."""
        if not getattr(model, "takes_graph", False):
            return ()
        if self.graph is None:
            raise ValueError(f"{type(model).__name__} takes the party's graph, and its samples have none")
        return (_in_precision_of(model, self.graph),)

    def to_frame(self) -> bytes:
        """For a setup message."""
        return codec.encode(self._message())

    @classmethod
    def from_frame(cls, frame: bytes, device: str = "cpu") -> Samples:
        message = codec.decode(frame, KINDS)
        if isinstance(message, DenseSamples):
            return cls(message.values, device=device)
        assert isinstance(message, SparseSamples | GraphSamples)
        matrix = sparse.csr_matrix((message.data, message.indices, message.indptr), shape=message.shape)
        if isinstance(message, GraphSamples):
            return cls(message.values, matrix, device)
        return cls(matrix, device=device)

    def _message(self) -> Message:
        if self._sparse is not None:
            return SparseSamples(*_csr_fields(self._sparse))
        assert self._dense is not None
        values = self._dense.cpu().numpy()
        return (
            DenseSamples(values) if self._graph is None else GraphSamples(values, *_csr_fields(self._graph))
        )


def _own(values: Any) -> NDArray[Any]:
    """Float32, float64 or int64, contiguous, and not shared with the caller's array."""
    array = np.asarray(values)
    if array.dtype in (np.float32, np.float64, np.int64):
        return np.array(array, order="C")
    if array.dtype.kind in "iu":
        return array.astype(np.int64)
    return array.astype(np.float32)


def _floats(matrix: Any) -> Any:
    return matrix if matrix.dtype in (np.float32, np.float64) else matrix.astype(np.float32)


def _canonical(matrix: Any) -> Any:
    """A CSR whose rows name a column once, in ascending order."""
    if matrix.has_canonical_format:
        return matrix
    matrix = matrix.copy()
    matrix.sum_duplicates()
    return matrix


def _in_precision_of(model: torch.nn.Module, values: torch.Tensor) -> torch.Tensor:
    """In the dtype of the model's weights; as they are where it has none."""
    weight = next((weight for weight in model.parameters() if weight.is_floating_point()), values)
    return values.to(weight.dtype)


def _csr_fields(matrix: Any) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64], tuple[int, int]]:
    csr = matrix.tocsr()
    return (
        csr.data,
        csr.indices.astype(np.int64),
        csr.indptr.astype(np.int64),
        (int(csr.shape[0]), int(csr.shape[1])),
    )


def _coo_tensor(matrix: Any) -> torch.Tensor:
    """Of a canonical CSR."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    places = torch.from_numpy(np.stack([rows, matrix.indices.astype(np.int64)]))
    return torch.sparse_coo_tensor(
        places, torch.from_numpy(matrix.data), matrix.shape, check_invariants=False, is_coalesced=True
    )


def _csr_tensor(matrix: Any, device: torch.device) -> torch.Tensor:
    data, indices, indptr, shape = _csr_fields(matrix)
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", "Sparse (CSR tensor support|invariant checks)"
        )  # SciPy has checked it
        return torch.sparse_csr_tensor(
            torch.from_numpy(indptr),
            torch.from_numpy(indices),
            torch.from_numpy(data),
            size=shape,
            device=device,
        )
