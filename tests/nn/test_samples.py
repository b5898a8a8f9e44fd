"""Batches of sparse tables: dense for any model, sparse for those that take them so."""

import numpy as np
import torch
from scipy import sparse
from torch import nn

from vflnn.models import make_bottom
from vflnn.samples import Samples

ROWS = np.array([2, 0])
# Columns out of order, and one of them twice.
TABLE = sparse.csr_matrix(
    (np.array([1.0, 2, 4, 8, 16], dtype=np.float32), np.array([3, 3, 1, 0, 2]), np.array([0, 3, 3, 5])),
    (3, 5),
)


def test_a_perceptron_gets_them_sparse():
    (batch,) = Samples(TABLE).inputs(ROWS, make_bottom("MLP2", (5,), 2))
    assert batch.layout is torch.sparse_coo and batch.is_coalesced()
    assert batch.to_dense().tolist() == TABLE.toarray()[ROWS].tolist() == [[8, 0, 16, 0, 0], [0, 4, 0, 3, 0]]


def test_any_other_model_gets_them_dense():
    (batch,) = Samples(TABLE).inputs(ROWS, nn.Linear(5, 2))
    assert batch.layout is torch.strided and batch.tolist() == TABLE.toarray()[ROWS].tolist()


def test_the_callers_matrix_stays_as_it_is():
    Samples(TABLE)
    assert TABLE.indices.tolist() == [3, 3, 1, 0, 2] and TABLE.nnz == 5


def test_the_weights_may_be_of_double_precision():
    samples, model = Samples(TABLE), make_bottom("MLP2", (5,), 2).double()
    torch.testing.assert_close(
        model(*samples.inputs(ROWS, model)), model(torch.from_numpy(TABLE.toarray()[ROWS]).double())
    )
