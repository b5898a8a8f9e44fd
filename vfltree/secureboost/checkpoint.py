"""Checkpoints: what each party writes down after finished rounds, at its own seat, to take up again from there.

    active     trees, own splits, raw scores, history of the evaluation, seed
    passive    own splits, seed of its secret order

Nobody's file has a key: a training that is taken up again makes a new one, and its trees do not depend on it. A file
says what it was trained on, settings in words and data as digests, so that another training is refused by name.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np

from vflparty import DamagedFileError, Message, ModelFile, ModelFileError, RemoteProtocolError, codec
from vflparty.callables import HERE, find_function

from ..objectives.custom import function_name
from .messages import ActiveSetup, EvaluationSetup, PassiveSetup

KIND = "secureboost checkpoint"
# Settings that do not change the trees of the rounds that are finished.
FREE_SETTINGS = ("n_estimators", "n_jobs", "key_bits", "allow_weak_key")

State = TypeVar("State", bound=Message)


def digest(*parts: np.ndarray | bytes | None) -> str:
    """SHA-256 of arrays with their shapes and types, in hexadecimal."""
    found = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            found.update(f"{part.dtype.str}{part.shape}".encode())
            found.update(np.ascontiguousarray(part).tobytes())
        else:
            found.update(b"none" if part is None else f"{len(part)}:".encode() + part)
    return found.hexdigest()


@dataclass(frozen=True)
class Checkpoint:
    """One party's file.

    path : of the file.  party : whose it is.  settings : name -> JSON value.  data : what -> digest.
    """

    path: str
    party: str
    settings: Mapping[str, Any]
    data: Mapping[str, str]

    def write(self, training: str, state: Message, n_rounds: int, seed: int) -> None:
        """Replace the file by one of this state."""
        os.makedirs(os.path.dirname(os.path.abspath(self.path)), exist_ok=True)
        facts = {"settings": dict(self.settings), "data": dict(self.data), "n_rounds": n_rounds, "seed": seed}
        ModelFile.of(KIND, self.party, training, [state], facts).write(self.path)

    def read(self, kind: type[State], check: Callable[[State], None]) -> tuple[str, State, int, int] | None:
        """Training id, state, finished rounds and seed; None where there is no file.

        check : raises ValueError where the state is none to go on from.

        Raises ValueError that names what differs where the file is of another training, ModelFileError where it is
        damaged.
        """
        if not os.path.exists(self.path):
            return None
        file = ModelFile.read(self.path, kind=KIND, party=self.party)
        settings, data = (self._fact(file, name, dict) for name in ("settings", "data"))
        found = self._differences(settings, data)
        if found:
            raise ValueError(
                f"the checkpoint {self.path} is of another training: {', '.join(found)}; choose another folder, or "
                "delete this one to train anew"
            )
        n_rounds, seed = (self._fact(file, name, int) for name in ("n_rounds", "seed"))
        try:
            state = cast("State", file.messages(kind)[0])
            check(state)
        except ModelFileError as error:
            raise error.of(self.path) from error.__cause__
        except (ValueError, RemoteProtocolError) as error:
            raise DamagedFileError(f"it cannot be gone on from: {error}", self.path) from error
        return file.training, state, n_rounds, seed

    def _fact(self, file: ModelFile, name: str, kind: type) -> Any:
        """A value of the file's metadata; numbers are never negative."""
        value = file.metadata.get(name)
        if type(value) is not kind or (isinstance(value, int) and value < 0):
            raise DamagedFileError(f"its metadata has no {name!r} that could be", self.path)
        return value

    def _differences(self, settings: Mapping[str, Any], data: Mapping[str, str]) -> list[str]:
        found = [
            f"{name} was {settings.get(name)!r} and is {self.settings.get(name)!r}"
            for name in {**self.settings, **settings}
            if settings.get(name) != self.settings.get(name) and name not in FREE_SETTINGS
        ]
        return found + [
            f"the {name} differ" for name in {**self.data, **data} if data.get(name) != self.data.get(name)
        ]


def active_checkpoint(setup: ActiveSetup) -> Checkpoint | None:
    """The active party's; None where none is kept."""
    if not setup.checkpoint:
        return None
    evaluation = cast("Any", codec.decode(setup.evaluation, (EvaluationSetup,))) if setup.evaluation else None
    settings = json.loads(setup.settings_json)
    settings["custom_objective"] = _function_of(settings["custom_objective"])
    settings["parties"] = [setup.party, *setup.passive_parties]
    data = {
        f"features of party {setup.party!r}": digest(setup.features, setup.categories, *(setup.cuts or ())),
        "targets": digest(setup.targets),
        "sample weights": digest(setup.weights),
        "row IDs": digest(setup.ids_digest),
        "model that is continued": digest(setup.past),
    }
    if evaluation is not None:
        settings["eval_metric"] = [_function_of(name) for name in evaluation.metrics]
        parts = (evaluation.features, evaluation.ids_digest, evaluation.sizes, evaluation.targets)
        data["evaluation sets"] = digest(*parts, evaluation.weights, evaluation.categories)
    return Checkpoint(setup.checkpoint, setup.party, settings, data)


def passive_checkpoint(setup: PassiveSetup) -> Checkpoint | None:
    """A passive party's; None where none is kept."""
    if not setup.checkpoint:
        return None
    data = {
        f"features of party {setup.party!r}": digest(setup.features, setup.categories, *(setup.cuts or ())),
        "row IDs": digest(setup.ids_digest),
        "evaluation sets": digest(setup.evaluation),
    }
    settings = {
        "max_bin": setup.max_bin,
        "min_rows_per_sum": setup.min_rows_per_sum,
        "monotone_constraints": None if setup.signs is None else setup.signs.tolist(),
    }
    return Checkpoint(setup.checkpoint, setup.party, settings, data)


def _function_of(name: str) -> str:
    """What a function is called, where its name holds for this process only."""
    return function_name(find_function(name)) if name.startswith(HERE) else name
