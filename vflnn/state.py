"""What a party has trained, as plain arrays: a model's weights, its optimiser, its random numbers."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import torch

from .messages import HalfState
from .working import RandomStream


def export_state(
    model: torch.nn.Module, optimizer: torch.optim.Optimizer | None, stream: RandomStream
) -> HalfState:
    """Everything that training goes on from."""
    weights = {name: value for name, value in model.state_dict().items() if isinstance(value, torch.Tensor)}
    text, arrays = _pack_optimizer(optimizer)
    return HalfState(
        tuple(weights),
        tuple(value.detach().cpu().numpy() for value in weights.values()),
        text,
        arrays,
        stream.state,
    )


def restore_state(
    state: HalfState, model: torch.nn.Module, optimizer: torch.optim.Optimizer | None, stream: RandomStream
) -> None:
    """Into a model and an optimiser of the same kinds; of `weights_alone`, the optimiser starts anew.

    Raises ValueError where the weights do not fit.
    """
    load_weights(state, model)
    if optimizer is not None and state.optimizer:
        # Rates and momenta stay as agreed, and as the schedule has moved them on; the state's are the last epoch's.
        groups = optimizer.state_dict()["param_groups"]
        optimizer.load_state_dict({"state": _unpack_optimizer(state), "param_groups": groups})
    stream.state = state.random


def weights_alone(state: HalfState) -> HalfState:
    """What evaluating needs: without the optimiser, whose moments are larger than the model."""
    return replace(state, optimizer="", optimizer_arrays=())


def load_weights(state: HalfState, model: torch.nn.Module) -> None:
    """The model's part of a state alone."""
    weights = {name: torch.from_numpy(array) for name, array in zip(state.names, state.arrays, strict=True)}
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise ValueError(f"these weights are not those of this {type(model).__name__}: {error}") from error


def _pack_optimizer(optimizer: torch.optim.Optimizer | None) -> tuple[str, tuple[Any, ...]]:
    if optimizer is None:
        return "", ()
    arrays: list[Any] = []

    def put(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        arrays.append(value.detach().cpu().numpy())
        return {"array": len(arrays) - 1}

    entries = optimizer.state_dict()["state"]
    plain = {str(i): {k: put(v) for k, v in entry.items()} for i, entry in entries.items()}
    return json.dumps(plain), tuple(arrays)


def _unpack_optimizer(state: HalfState) -> dict[int, dict[str, Any]]:
    """What it remembers, by the number of the parameter."""
    plain = json.loads(state.optimizer)
    arrays = [torch.from_numpy(array) for array in state.optimizer_arrays]

    def take(value: Any) -> Any:
        return arrays[value["array"]] if isinstance(value, dict) else value

    return {int(i): {k: take(v) for k, v in entry.items()} for i, entry in plain.items()}
