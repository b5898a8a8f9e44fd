"""Bottom and top models: ordinary `torch.nn.Module`s, made by name from the shape of a party's input.

    bottom = make_bottom("MLP2", (392,), 10)          # one party's columns -> 10 numbers per row
    top = make_top("sum", [10, 10], 10)               # two parties' outputs -> class scores

`BOTTOM_MODELS` and `TOP_MODELS` list them. Weights come from torch's global generator: `torch.manual_seed` before a
`make_*` call fixes them. A module whose `takes_graph` is true is called with the party's normalised adjacency as a
second argument; one whose `takes_sparse` is true with coalesced COO tensors where the party's table is sparse. A top
whose `log_probabilities` is true returns those, so its loss is NLL and not cross-entropy.
"""

from .registry import BOTTOM_MODELS, REQUIRED, TOP_MODELS, ModelEntry, make_bottom, make_top

__all__ = ["BOTTOM_MODELS", "REQUIRED", "TOP_MODELS", "ModelEntry", "make_bottom", "make_top"]
