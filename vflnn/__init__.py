"""Neural networks cut between parties: split training, its protocols, and the estimators around them.

    from vflnn import VFLClassifier
    model = VFLClassifier("MLP2", top="sum", partition={"bank": bank_columns, "shop": shop_columns})
    model.fit(X_train, y_train).predict_proba(X_test)

A *bottom model* of each party turns its own columns into a small output; the active party's *top model* joins the
outputs into scores. Both are ordinary `torch.nn.Module`s, and only the cut is ours: outputs go up, gradients come
down, as bytes on a `vflparty` network. Needs PyTorch: ``pip install 'vfltree[nn]'``.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Any

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError("vflnn needs PyTorch, which is not installed: pip install 'vfltree[nn]'") from error

from vflnn.active import ActiveParty
from vflnn.passive import PassiveParty
from vflnn.recipes import model_recipe
from vflnn.samples import Samples
from vflnn.split import JoinedNetwork

if TYPE_CHECKING:
    from vflnn.estimator import VFLClassifier, VFLRegressor
    from vflnn.saving import load

__all__ = [
    "ActiveParty",
    "JoinedNetwork",
    "PassiveParty",
    "Samples",
    "VFLClassifier",
    "VFLRegressor",
    "load",
    "model_recipe",
]

_ON_FIRST_USE = {"VFLClassifier": "estimator", "VFLRegressor": "estimator", "load": "saving"}


def __getattr__(name: str) -> Any:
    """What needs scikit-learn is loaded on first use: a party in a process of its own does without."""
    if name not in _ON_FIRST_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_import_module(f"{__name__}.{_ON_FIRST_USE[name]}"), name)


def __dir__() -> list[str]:
    return __all__
