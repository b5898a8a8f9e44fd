"""Graph convolutions: a party's rows are nodes, and its own edges join them (Kipf and Welling, 2017).

The adjacency is a torch sparse CSR tensor of shape (n, n), already normalised (self-loops, D^-1/2 A D^-1/2); it is
an argument of `forward` and never part of the model, since it belongs to the party's data.
"""

import torch
from torch import Tensor, nn

from .shapes import Shape, n_features, positive


class GraphConvolution(nn.Module):
    """A X W + b, with Glorot-uniform W and zero b. W first: X W is narrower than X."""

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_in, n_out))
        self.bias = nn.Parameter(torch.zeros(n_out))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x: Tensor, adjacency: Tensor) -> Tensor:
        """
        Parameters
        ----------
        x : Tensor of shape (n, n_in)
        adjacency : Tensor of shape (n, n), sparse CSR (a dense one works, too)

        Returns
        -------
        Tensor of shape (n, n_out)
        """
        if tuple(adjacency.shape) != (len(x), len(x)):
            raise ValueError(
                f"{len(x)} rows need an adjacency of {len(x)} x {len(x)}, got {tuple(adjacency.shape)};"
                " a graph model takes all nodes at once"
            )
        return adjacency @ (x @ self.weight) + self.bias


class GCN(nn.Module):
    """A ReLU(A X W1 + b1) W2 + b2, with dropout on the hidden nodes while training."""

    takes_graph = True

    def __init__(self, n_in: int, hidden: int, n_out: int, dropout: float) -> None:
        super().__init__()
        self.first = GraphConvolution(n_in, hidden)
        self.dropout = nn.Dropout(dropout)
        self.second = GraphConvolution(hidden, n_out)

    def forward(self, x: Tensor, adjacency: Tensor) -> Tensor:
        hidden = torch.relu(self.first(x.flatten(1), adjacency))
        return self.second(self.dropout(hidden), adjacency)


def gcn(in_shape: Shape, out_features: int, *, hidden: int = 32, dropout: float = 0.5) -> nn.Module:
    return GCN(n_features(in_shape), positive(hidden, "hidden"), out_features, dropout)
