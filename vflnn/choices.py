"""Which models the parties have: from the parameters `bottom` and `top` to a recipe, or a module at hand, for each.

A recipe is text and crosses to a process of its own. A module, or a function that no other process can import, stays in
this one.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from vflparty.callables import importable_name

from .messages import ModelRecipe
from .models.registry import bottom_entry
from .recipes import build_bottom, build_top, model_recipe
from .working import RandomStream


@dataclass(frozen=True)
class Choice:
    """One model.

    recipe : how its party makes it; where there is a module, only its seed counts
    sizes : of a bottom: (shape of one sample, width); of a top: (widths, number of scores)
    module : in place of the recipe; in this process only
    """

    recipe: ModelRecipe
    sizes: tuple[Any, Any]
    is_top: bool = False
    module: nn.Module | None = None

    def for_party(self) -> ModelRecipe | nn.Module:
        """What its party is handed; of a module a copy, since training leaves the user's own as it is."""
        return self.recipe if self.module is None else copy.deepcopy(self.module)

    def build(self) -> nn.Module:
        """The model, untrained, outside its party: to put trained weights into."""
        if self.module is not None:
            return copy.deepcopy(self.module)
        with RandomStream(self.recipe.seed).working():
            return (
                build_top(self.recipe, *self.sizes) if self.is_top else build_bottom(self.recipe, *self.sizes)
            )

    def check(self, graph: bool) -> None:
        """ValueError or TypeError where a name, an option, a size, or a model of the user's own is wrong.

        graph : whether its party has one
        """
        model = self.outline()
        if getattr(model, "takes_graph", False):
            if not graph:
                raise ValueError(
                    f"{type(model).__name__} takes a graph, which estimators do not: vflnn.ActiveParty and "
                    "PassiveParty do, and data sets with graphs in experiments from a file"
                )
            return
        if self.module is not None or ":" in self.recipe.factory:
            self._try(model)

    def _try(self, model: nn.Module) -> None:
        """Of two samples of zeros, outputs of the right shape."""
        sizes, n_outputs = self.sizes
        zeros = [torch.zeros(2, width) for width in sizes] if self.is_top else torch.zeros(2, *sizes)
        tried = copy.deepcopy(model).eval()
        try:
            with RandomStream(0).working(), torch.no_grad():
                output = tried(zeros)
        except Exception as error:
            what = f"outputs of widths {sizes}" if self.is_top else f"samples of shape {sizes}"
            raise ValueError(f"fails on {what}: {error}") from error
        shape = tuple(getattr(output, "shape", ()))
        if shape != (2, n_outputs):
            raise ValueError(f"gives outputs of shape {shape} for 2 samples, expected {(2, n_outputs)}")

    def outline(self) -> nn.Module:
        """The model, for what it says of itself; of known names without weights."""
        if self.module is not None:
            return self.module
        with torch.device("cpu" if ":" in self.recipe.factory else "meta"):
            return self.build()

    @property
    def takes_codes(self) -> bool:
        """Whether it takes numbers of embedding rows."""
        if self.module is not None or self.is_top or ":" in self.recipe.factory:
            return False
        return bottom_entry(self.recipe.factory).takes in ("tokens", "columns")

    @property
    def log_probabilities(self) -> bool:
        """Whether a top model's scores are log-probabilities."""
        return bool(getattr(self.outline(), "log_probabilities", False))


def choose_bottoms(
    bottom: Any,
    shapes: Mapping[str, tuple[int, ...]],
    widths: Mapping[str, int],
    seeds: Mapping[str, int],
    network: str,
    graphs: Collection[str] = (),
) -> dict[str, Choice]:
    """A model per party with columns.

    bottom : one for all, or a dict party -> one of: a name, "module:function", (one of them, options), a function of
    (shape of a sample, width), a module.  shapes, widths : of the parties with columns.
    graphs : the parties that have one.
    """
    if isinstance(bottom, Mapping):
        unknown, missing = [p for p in bottom if p not in seeds], [p for p in shapes if p not in bottom]
        if unknown:
            raise ValueError(f"bottom names party {unknown[0]!r}; there are {list(seeds)}")
        if missing:
            raise ValueError(f"bottom says nothing about party {missing[0]!r}; it names {list(bottom)}")
    choices = {}
    for party, shape in shapes.items():
        given = bottom[party] if isinstance(bottom, Mapping) else bottom
        what = f"bottom of party {party!r}"
        choices[party] = _choice(
            given, (shape, widths[party]), seeds[party], network, what, graph=party in graphs
        )
    return choices


def choose_top(
    top: Any, widths: tuple[int, ...], n_outputs: int, seed: int, network: str, *, graph: bool = False
) -> Choice:
    """The active party's top model: as a bottom, but a function of (widths, number of scores)."""
    return _choice(top, (widths, n_outputs), seed, network, "top", is_top=True, graph=graph)


def check_loss(loss: str, top: Choice) -> str:
    """The loss, if it takes what the top model gives; else ValueError."""
    if loss == "nll" and not top.log_probabilities:
        raise ValueError(
            f"loss 'nll' takes log-probabilities, and top {top.recipe.factory!r} gives scores: take 'cross_entropy'"
        )
    return loss


def loss_of(top: Choice, *, classes: bool) -> str:
    """Name of the loss that goes with a top model; ValueError where there is none."""
    if classes:
        return "nll" if top.log_probabilities else "cross_entropy"
    if top.log_probabilities:
        raise ValueError(f"top {top.recipe.factory!r} gives log-probabilities of classes, not numbers")
    return "squared_error"


def _choice(
    given: Any,
    sizes: tuple[Any, Any],
    seed: int,
    network: str,
    what: str,
    *,
    graph: bool,
    is_top: bool = False,
) -> Choice:
    given, options = _with_options(given, what)
    try:
        module: nn.Module | None = None
        if isinstance(given, nn.Module):
            if options:
                raise TypeError(f"a module that is there already takes no options, got {sorted(options)}")
            module, name = given, ""
        elif isinstance(given, str):
            name = given
        elif callable(given):
            name = importable_name(given) or ""
            if not name:
                module = _made(given, sizes, options, seed)
        else:
            raise TypeError(
                'must be a name, "module:function", (name, options), a function or a torch.nn.Module, got '
                f"{given!r}"
            )
        if module is not None and network == "process":
            raise ValueError(
                f'{type(module).__name__} cannot cross to a process of its own, as network="process" needs: give a '
                'name or "module:function"'
            )
        recipe = model_recipe("" if module is not None else name, {} if module is not None else options, seed)
        choice = Choice(recipe, sizes, is_top, module)
        choice.check(graph)
    except (ValueError, TypeError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{what}: {error}") from error
    return choice


def _with_options(given: Any, what: str) -> tuple[Any, dict[str, Any]]:
    if not isinstance(given, tuple | list):
        return given, {}
    if len(given) != 2 or not isinstance(given[1], Mapping):
        raise TypeError(f"{what}: options come as (name, dict of options), got {given!r}")
    return given[0], dict(given[1])


def _made(
    function: Callable[..., Any], sizes: tuple[Any, Any], options: dict[str, Any], seed: int
) -> nn.Module:
    """The module of a function that only this process has."""
    with RandomStream(seed).working():
        module = function(*sizes, **options)
    if not isinstance(module, nn.Module):
        raise TypeError(
            f"{getattr(function, '__qualname__', function)} made a {type(module).__name__}, not a module"
        )
    return module
