"""The towers of Wide & Deep (Cheng et al., 2016) for click logs, one for numbers and one for hashed categories.

The dense tower is a plain perceptron, in-256-256-out, and is registered as such.
"""

import torch
from torch import Tensor, nn

from .linear_mlp import perceptron
from .shapes import Shape, positive, vector_length, whole_numbers


class SparseTower(nn.Module):
    """A table of `buckets` vectors per column; the vectors of a row side by side, then 256-256-out."""

    def __init__(self, n_columns: int, buckets: int, embedding: int, out_features: int) -> None:
        super().__init__()
        self.buckets = buckets
        self.embeddings = nn.ModuleList(nn.Embedding(buckets, embedding) for _ in range(n_columns))
        self.layers = perceptron(n_columns * embedding, 256, 256, out_features)

    def forward(self, x: Tensor) -> Tensor:
        """
        Parameters
        ----------
        x : Tensor of whole numbers (of any dtype) from 0 to buckets - 1, shape (n, n_columns)

        Returns
        -------
        Tensor of shape (n, out_features)
        """
        if x.shape[1:] != (len(self.embeddings),):
            raise ValueError(f"expected rows of {len(self.embeddings)} columns, got shape {tuple(x.shape)}")
        columns = whole_numbers(x, self.buckets, "buckets").unbind(dim=1)
        vectors = [embed(column) for embed, column in zip(self.embeddings, columns, strict=True)]
        return self.layers(torch.cat(vectors, dim=1))


def wide_deep_sparse(in_shape: Shape, out_features: int, *, buckets: int, embedding: int = 16) -> nn.Module:
    n_columns = vector_length(in_shape, "columns")
    return SparseTower(
        n_columns, positive(buckets, "buckets"), positive(embedding, "embedding"), out_features
    )
