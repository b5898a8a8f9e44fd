"""A recurrent network for texts: rows of word numbers."""

import torch
from torch import Tensor, nn

from .shapes import Shape, positive, vector_length, whole_numbers


class LSTM(nn.Module):
    """Embedding, one bidirectional LSTM, and one Linear on the last states of both directions; returns logits."""

    def __init__(self, vocab_size: int, embedding: int, hidden: int, out_features: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embedding)
        self.lstm = nn.LSTM(embedding, hidden, batch_first=True, bidirectional=True)
        self.linear = nn.Linear(2 * hidden, out_features)

    def forward(self, x: Tensor) -> Tensor:
        """
        Parameters
        ----------
        x : Tensor of whole numbers (of any dtype) from 0 to vocab_size - 1, shape (n, length)

        Returns
        -------
        Tensor of shape (n, out_features)
        """
        words = whole_numbers(x, self.embedding.num_embeddings, "vocab_size")
        _, (last, _) = self.lstm(self.embedding(words))
        forwards, backwards = last  # each (n, hidden)
        return self.linear(torch.cat([forwards, backwards], dim=1))


def lstm(
    in_shape: Shape, out_features: int, *, vocab_size: int, embedding: int = 100, hidden: int = 128
) -> nn.Module:
    vector_length(in_shape, "tokens")  # any length will do
    sizes = positive(vocab_size, "vocab_size"), positive(embedding, "embedding"), positive(hidden, "hidden")
    return LSTM(*sizes, out_features)
