"""Neural networks cut between parties: split training, its protocols, and the estimators around them.

A *bottom model* of each party turns its own columns into a small output; the active party's *top model* joins the
outputs into scores. Both are ordinary `torch.nn.Module`s, and only the cut is ours: outputs go up, gradients come
down, as bytes on a `vflparty` network. Needs PyTorch: ``pip install 'vfltree[nn]'``.
"""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError("vflnn needs PyTorch, which is not installed: pip install 'vfltree[nn]'") from error

from vflnn.active import ActiveParty
from vflnn.passive import PassiveParty
from vflnn.recipes import model_recipe
from vflnn.samples import Samples
from vflnn.split import JoinedNetwork

__all__ = ["ActiveParty", "JoinedNetwork", "PassiveParty", "Samples", "model_recipe"]
