"""What travels as text and becomes an object at its party: models, optimisers, schedules of the learning rate."""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any

import torch
from torch.optim.lr_scheduler import LambdaLR, LRScheduler

from .messages import ModelRecipe
from .models import make_bottom, make_top
from .naming import nearest

Options = Mapping[str, Any]
SCHEDULERS: dict[str, Callable[[int], float]] = {
    "constant": lambda epoch: 1.0,
    "inverse_sqrt": lambda epoch: 1.0 / math.sqrt(max(epoch, 1)),  # VFLAIR's
}

UNFIT: dict[type[torch.optim.Optimizer], str] = {
    torch.optim.LBFGS: "asks for the loss again and again, which passive parties do not have",
    torch.optim.SparseAdam: "takes sparse gradients, and those of bottom models are dense",
}


def model_recipe(factory: str, options: Options | None = None, seed: int = 0) -> ModelRecipe:
    """The recipe of a model: a name of the registry, or "module:function" for one of your own.

    A function is called with the shape of one sample and the number of outputs (a top model: the widths of the parties'
    outputs and the number of scores), then `options` by name. They must be plain values.
    """
    return ModelRecipe(factory, to_json(options or {}, f"options of {factory}"), seed)


def build_bottom(recipe: ModelRecipe, in_shape: tuple[int, ...], width: int) -> torch.nn.Module:
    """A party's own half, from its recipe; draws from the current random stream."""
    options = from_json(recipe.options)
    if ":" in recipe.factory:
        return _checked(recipe, imported(recipe.factory)(in_shape, width, **options))
    return make_bottom(recipe.factory, in_shape, width, **options)


def build_top(recipe: ModelRecipe, widths: tuple[int, ...], n_outputs: int) -> torch.nn.Module:
    """The model that joins the parties' outputs."""
    options = from_json(recipe.options)
    if ":" in recipe.factory:
        return _checked(recipe, imported(recipe.factory)(widths, n_outputs, **options))
    return make_top(recipe.factory, widths, n_outputs, **options)


def make_optimizer(
    name: str, options: Options, learning_rate: float, parameters: Iterable[torch.nn.Parameter]
) -> torch.optim.Optimizer | None:
    """An optimiser of `torch.optim` by its name in any case; None where there is nothing to train."""
    trained = [parameter for parameter in parameters if parameter.requires_grad]
    cls = find_class(torch.optim, name, torch.optim.Optimizer, "optimizer")
    if cls in UNFIT:
        raise ValueError(f"optimizer {cls.__name__} {UNFIT[cls]}: it cannot train a cut network")
    return cls(trained, lr=learning_rate, **options) if trained else None


def make_scheduler(name: str, options: Options, optimizer: torch.optim.Optimizer) -> LRScheduler:
    """A schedule that is moved on once an epoch: one of SCHEDULERS, or of `torch.optim.lr_scheduler` by its name."""
    if name in SCHEDULERS:
        if options:
            raise ValueError(f"scheduler {name!r} takes no options, got {sorted(options)}")
        return LambdaLR(optimizer, SCHEDULERS[name])
    cls = find_class(torch.optim.lr_scheduler, name, LRScheduler, "scheduler", tuple(SCHEDULERS))
    if cls is torch.optim.lr_scheduler.ReduceLROnPlateau:
        raise ValueError("scheduler ReduceLROnPlateau needs a score, which passive parties do not have")
    return cls(optimizer, **options)


def find_class(module: Any, name: str, base: type, what: str, more: tuple[str, ...] = ()) -> Any:
    """The subclass of `base` that `module` knows under this name in any case."""
    found = {
        known.lower(): cls
        for known, cls in vars(module).items()
        if isinstance(cls, type) and issubclass(cls, base) and cls is not base and not known.startswith("_")
    }
    if name.lower() not in found:
        raise ValueError(f"{what} {name!r} is unknown{nearest(name, (*found, *more))}")
    return found[name.lower()]


def imported(path: str) -> Any:
    """The object behind "module:name"."""
    module, _, name = path.partition(":")
    try:
        return attrgetter(name)(importlib.import_module(module))
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{path!r} cannot be imported: {error}") from error


def to_json(options: Options, what: str) -> str:
    try:
        return json.dumps(dict(options), sort_keys=True)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{what} must be plain values (numbers, text, lists): {error}") from error


def from_json(text: str) -> dict[str, Any]:
    try:
        options = json.loads(text) if text else {}
    except RecursionError:
        raise ValueError("options must be a JSON object, got one that is nested too deeply") from None
    if not isinstance(options, dict):
        raise ValueError(f"options must be a JSON object, got {text[:40]!r}")
    return options


def _checked(recipe: ModelRecipe, model: Any) -> torch.nn.Module:
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"{recipe.factory} made a {type(model).__name__}, not a torch.nn.Module")
    return model
