"""Trained estimators as files, one per party, and back: `model.save(folder)`, `vflnn.load(folder)`. No pickle.

    active     how its models are made, their weights, class labels, the optimiser and where its random numbers stand
    passive    the same of its bottom model; no label, and nothing of others

A file says by a name how a model is made. Names of `vflnn.models` are safe; the function of a "module:function" is
called, and a file could name any: `load` calls only those that its caller names in `trusted`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from vflparty import DamagedFileError, Ledger, Message, ModelFile, ModelFileError, WrongFileError, file_names
from vflparty.labels import decode_labels, encode_labels
from vflparty.modelfile import SUFFIX, FilePath

from .choices import Choice
from .messages import HalfState, ModelRecipe, TrainingSettings
from .recipes import from_json

KIND = "neural"
_ACTIVE = (
    TrainingSettings,
    HalfState,
    ModelRecipe,
    ModelRecipe,
)  # the top's, and the bottom's where it has columns
_PASSIVE = (HalfState, ModelRecipe)


def save(model: Any, folder: FilePath) -> dict[str, Path]:
    """One file per party of a trained estimator, into `folder` (made if need be); returns dict party -> path."""
    for what, choice in [
        ("top", model._top),
        *((f"bottom of party {party!r}", bottom) for party, bottom in model._bottoms.items()),
    ]:
        if choice.module is not None:
            raise ValueError(
                f"{what}: a {type(choice.module).__name__} that was given as an object cannot be kept in a file; "
                'give a name or "module:function" that makes it'
            )
    files = {party: _file_of(model, party) for party in model.parties_}
    os.makedirs(folder, exist_ok=True)
    names = file_names(model.parties_)
    paths = {party: Path(folder) / names[party] for party in model.parties_}
    for party, path in paths.items():
        files[party].write(path)
    return paths


def load(files: FilePath | Iterable[FilePath], *, trusted: Iterable[str] = ()) -> Any:
    """The estimator whose parties' files these are: ready to predict, and to go on with `partial_fit`.

    Parameters
    ----------
    files : a folder that `save` wrote, or the files of all parties
    trusted : "module:function" of functions that make models and may be called

    Raises
    ------
    ModelFileError : a file is damaged or of another kind; files of different trainings; a party's is missing or there
        twice
    ValueError : a function that is not trusted
    """
    paths = _paths(files)
    found = [ModelFile.read(path, kind=KIND) for path in paths]
    active = [file for file in found if file.metadata.get("active") is not None]
    if len(active) != 1:
        raise WrongFileError(
            f"one file must be the active party's, {len(active)} of {len(paths)} are: {', '.join(map(str, paths))}"
        )
    for path, file in zip(paths, found, strict=True):
        try:
            file.check(training=active[0].training)
            _check_trusted(file, set(trusted))
        except ModelFileError as error:
            raise error.of(path) from error.__cause__
    by_party = {file.party: file for file in found}
    parties = active[0].metadata["active"].get("parties")
    if (
        len(by_party) < len(found)
        or sorted(by_party) != sorted(parties or ())
        or parties[0] != active[0].party
    ):
        raise WrongFileError(f"files of {[file.party for file in found]} are there, the model has {parties}")
    try:
        return _restored({party: by_party[party] for party in parties})
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise DamagedFileError(f"the halves of the model do not fit: {error}") from error


# ---------------------------------------------------------------- writing


def _file_of(model: Any, party: str) -> ModelFile:
    active = party == model.parties_[0]
    bottom, state = model._bottoms.get(party), model._states[party]
    recipes = [] if bottom is None else [bottom.recipe]
    messages: list[Message] = [state, *recipes]
    if active:
        messages = [model._settings, state, model._top.recipe, *recipes]
    columns, names = model._columns, model._names[party]
    own = {
        "shape": list(model._shapes[party]),
        "width": model._widths.get(party, 0),
        "names": None if names is None else list(names),
        "columns": None if columns is None else columns[party].tolist(),
        "active": _active_extra(model) if active else None,
    }
    return ModelFile.of(KIND, party, model.training_id_, messages, own)


def _active_extra(model: Any) -> dict[str, Any]:
    classes = getattr(model, "classes_", None)
    return {
        "estimator": type(model).__name__,
        "parties": list(model.parties_),
        "classes": None if classes is None else encode_labels(classes),
        "target": None if classes is not None else [model._mean.hex(), model._scale.hex()],
        "n_epochs": model.n_epochs_,
        "partitioned": model.partition is not None,
    }


# ---------------------------------------------------------------- reading


def _paths(files: FilePath | Iterable[FilePath]) -> list[FilePath]:
    if not isinstance(files, str | os.PathLike):
        paths: list[FilePath] = list(files)
    else:
        paths = [*sorted(Path(files).glob("*" + SUFFIX))] if os.path.isdir(files) else [files]
    if not paths:
        raise FileNotFoundError(f"no model files in {files}")
    return paths


def _messages(file: ModelFile) -> tuple[Any, ...]:
    kinds: tuple[type[Message], ...] = _PASSIVE if file.metadata.get("active") is None else _ACTIVE
    if len(file.frames) == len(kinds) - 1 and kinds is _ACTIVE:
        kinds = kinds[:-1]
    return file.messages(*kinds)


def _check_trusted(file: ModelFile, trusted: set[str]) -> None:
    for message in _messages(file):
        if isinstance(message, ModelRecipe) and ":" in message.factory and message.factory not in trusted:
            raise ValueError(
                f"the file of party {file.party!r} makes its model with {message.factory!r}, a function that loading "
                f"would call: if it is yours, load(..., trusted=[{message.factory!r}])"
            )


def _restored(files: Mapping[str, ModelFile]) -> Any:
    """An estimator out of all files, the active party's first."""
    from . import estimator as door

    active, *_ = files
    extra = files[active].metadata["active"]
    settings, state, top, *bottom = _messages(files[active])
    states: dict[str, HalfState] = {active: state}
    recipes: dict[str, ModelRecipe] = dict(zip([active], bottom, strict=False))  # it may have no columns
    for party in list(files)[1:]:
        states[party], recipes[party] = _messages(files[party])
    own = {party: file.metadata for party, file in files.items()}
    widths = {party: int(own[party]["width"]) for party in recipes}
    kinds = {cls.__name__: cls for cls in (door.VFLClassifier, door.VFLRegressor)}
    model: Any = kinds[extra["estimator"]](**_parameters(settings, top, recipes, widths))
    model.parties_ = tuple(files)
    model._shapes = {party: tuple(entry["shape"]) for party, entry in own.items()}
    model._names = {party: None if e["names"] is None else tuple(e["names"]) for party, e in own.items()}
    model.n_features_in_per_party_ = {party: int(np.prod(shape)) for party, shape in model._shapes.items()}
    model.n_features_in_ = sum(model.n_features_in_per_party_.values())
    _restore_columns(model, own, bool(extra["partitioned"]))
    if extra["classes"] is not None:
        model.classes_ = decode_labels(extra["classes"])
    else:
        model._mean, model._scale = map(float.fromhex, extra["target"])
    model._widths = widths
    model._bottoms = {
        party: Choice(recipe, (model._shapes[party], widths[party])) for party, recipe in recipes.items()
    }
    model._top = Choice(top, (tuple(widths.values()), model._n_outputs), is_top=True)
    model._seeds = {"batches": settings.seed, active: top.seed} | {p: r.seed for p, r in recipes.items()}
    model._settings, model._states, model.n_epochs_ = settings, states, int(extra["n_epochs"])
    model.training_id_ = files[active].training
    model.steps_, model.history_, model._ledger = pd.DataFrame(), pd.DataFrame(), Ledger().to_message()
    model._modules()  # weights that do not fit are noticed now
    return model


def _parameters(
    settings: TrainingSettings,
    top: ModelRecipe,
    bottoms: Mapping[str, ModelRecipe],
    widths: Mapping[str, int],
) -> dict[str, Any]:
    """Of a constructor, as they follow from what was agreed on."""
    options = from_json(settings.compressor_options)
    return {
        "bottom": {party: (recipe.factory, from_json(recipe.options)) for party, recipe in bottoms.items()},
        "top": (top.factory, from_json(top.options)),
        "cut_width": dict(widths),
        "protocol": settings.protocol,
        "protocol_options": from_json(settings.protocol_options),
        "compressor": (settings.compressor, options) if settings.compressor else None,
        "lr": settings.learning_rate,
        "batch_size": settings.batch_size,
        "optimizer": (settings.optimizer, from_json(settings.optimizer_options)),
        "scheduler": (settings.scheduler, from_json(settings.scheduler_options)),
        "shuffle": settings.shuffle,
    }


def _restore_columns(model: Any, own: Mapping[str, Mapping[str, Any]], partitioned: bool) -> None:
    """Who owns which columns of one matrix, and their names as scikit-learn keeps them."""
    model._columns = None
    if any(entry["columns"] is None for entry in own.values()):
        return
    model._columns = {party: np.array(entry["columns"], dtype=np.int64) for party, entry in own.items()}
    order = np.concatenate(list(model._columns.values()))
    if not np.array_equal(np.sort(order), np.arange(len(order))):
        raise ValueError("the columns of the parties' files do not make up one matrix")
    if partitioned:
        model.partition = {party: columns.tolist() for party, columns in model._columns.items()}
    if all(entry["names"] is not None for entry in own.values()):
        names = np.empty(len(order), dtype=object)
        names[order] = [name for entry in own.values() for name in entry["names"]]
        model.feature_names_in_ = names
