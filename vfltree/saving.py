"""A trained estimator as files, one per party, and back: `model.save(folder)`, `vfltree.load(folder)`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from vflparty import (
    DamagedFileError,
    Message,
    ModelFileError,
    RemoteProtocolError,
    WrongFileError,
    file_names,
)
from vflparty.labels import decode_labels
from vflparty.modelfile import SUFFIX, FilePath

from .blocks import Block
from .growing.own_file import own_block
from .halves import FileKind, Half, active_extra, checked, checked_list
from .joining import join_prediction


class SavedByParty:
    """Mixin of estimators: one file per party.

    Uses `_file_kind`, and of a trained model `parties_`, `training_id_`, what `_keep_model` keeps, `_names`,
    `_columns`, `n_features_in_per_party_`, and `classes_` where there are classes.
    """

    _file_kind: FileKind
    parties_: tuple[str, ...]
    _active_model: Any
    _passive_models: dict[str, Any]
    _ask: Callable[[Any], Any] | None = None  # how the active party alone asks the others, see `load_active`
    # Party -> class of what it transforms its columns with, which no file holds.
    _transformer_names: Mapping[str, str] = MappingProxyType({})

    def _keep_model(self, active: Any, passive: dict[str, Any]) -> None:
        """Take the halves of all parties, after training or out of files."""
        self._active_model, self._passive_models = active, passive

    def _prediction_blocks(self, X: Any) -> dict[str, Block]:
        if self._ask is None:
            blocks: dict[str, Block] = super()._prediction_blocks(X)  # type: ignore[misc]
            return blocks
        return {self.parties_[0]: X if isinstance(X, Block) else self._own_block(X)}

    def _with_ids(self, X: Any, ids: Any) -> Any:
        """X for `_prediction_blocks`, rows matched by explicit IDs: per party, or the active party's alone."""
        if self._ask is None:
            return join_prediction(X, ids, self.parties_)
        return self._own_block(X, ids)

    def _own_block(self, X: Any, ids: Any = None) -> Block:
        model = cast("Any", self)
        party = model.parties_[0]
        n_features, categorical = model.n_features_in_per_party_[party], model._categorical.get(party, ())
        return own_block(party, X, model._names[party], n_features, ids, categorical)

    def save(self, folder: FilePath) -> dict[str, Path]:
        """Write one file per party into `folder` (made if need be); returns dict party -> path.

        Each file is for its party alone: the active party's has the trees, the leaf values and the class labels, a
        passive party's its own columns and thresholds. None has a key. Parameters that are plain numbers or text are
        kept; `random_state` is not, since it seeds the secret orders of the passive parties.

        Raises NotFittedError before `fit`.
        """
        check_is_fitted(cast("Any", self), "_active_model")
        model = cast("Any", self)
        os.makedirs(folder, exist_ok=True)
        names = file_names(model.parties_)
        paths = {party: Path(folder) / names[party] for party in model._names}  # those at hand
        for party, path in paths.items():
            half_of(model, party).to_file().write(path)
        return paths


def half_of(model: Any, party: str) -> Half:
    """What a party keeps of a trained estimator."""
    active = party == model.parties_[0]
    names, columns = model._names[party], None
    if model._columns is not None:
        columns = tuple(model._columns[party].tolist())
        known = getattr(model, "feature_names_in_", None)
        names = None if known is None else tuple(str(known[i]) for i in columns)
    return Half(
        party,
        model.training_id_,
        model._file_kind,
        model._active_model if active else model._passive_models[party],
        int(model.n_features_in_per_party_[party]),
        names,
        columns,
        _active_extra(model) if active else None,
        model._transformer_names.get(party),
    )


# Of the caller's own, or telling what other parties keep to themselves: the columns of others by name or place, and
# the seed of their secret orders.
_NOT_KEPT = {
    "partition", "categorical_features", "monotone_constraints", "random_state", "verbose", "checkpoint",
}  # fmt: skip


def _active_extra(model: Any) -> dict[str, Any]:
    parameters = {
        name: _plain(value) for name, value in model.get_params(deep=False).items() if name not in _NOT_KEPT
    }
    attributes = {
        name: _plain(getattr(model, name)) for name in model._file_kind.kept if hasattr(model, name)
    }
    return active_extra(
        type(model).__name__,
        model.parties_,
        getattr(model, "classes_", None),
        partitioned=model.partition is not None,
        parameters={name: value for name, value in parameters.items() if value is not _NOT_PLAIN},
        attributes={name: value for name, value in attributes.items() if value is not _NOT_PLAIN},
    )


_NOT_PLAIN = object()


def _plain(value: Any) -> Any:
    """A number, text, bool, None or list of numbers as JSON has it, or _NOT_PLAIN."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, list | tuple | np.ndarray) and np.ndim(value) == 1:
        plain = [_plain(item) for item in value]
        return plain if all(type(item) in (int, float) for item in plain) else _NOT_PLAIN
    if isinstance(value, float) and not np.isfinite(value):
        return _NOT_PLAIN
    return value if value is None or isinstance(value, bool | int | float | str) else _NOT_PLAIN


# ---------------------------------------------------------------- reading


def load(files: FilePath | Iterable[FilePath], *, transformed: bool = False) -> Any:
    """The estimator whose parties' files these are: ready to predict, without a key.

    Parameters
    ----------
    files : a folder that `save` wrote, or the files of all parties, in any order
    transformed : True is the caller's word that the X of predictions is a dict of what the parties' transformers give,
        where the model was trained with a vertical_transformer; files hold none

    Returns
    -------
    the estimator, predicting bit for bit what it did when it was saved

    Raises
    ------
    ModelFileError : a file is damaged, of another format version, or of another kind; the files come from different
        trainings; a party's file is missing or there twice
    ValueError : the model needs transformed columns, and `transformed` does not say that they will be
    """
    paths = _paths(files)
    halves = [Half.read(path) for path in paths]
    active = _only_active(paths, halves)
    for path, half in zip(paths, halves, strict=True):
        if half.training != active.training:
            raise WrongFileError(
                f"it comes from training {half.training}, the active party's file from {active.training}: files of "
                "different trainings do not make a model",
                path,
            )
        if halves[[other.party for other in halves].index(half.party)] is not half:
            raise WrongFileError(f"there are two files of party {half.party!r}", path)
    _check_transformed(halves, transformed)
    try:
        return _restored(active, {half.party: half for half in halves if not half.active})
    except ModelFileError as error:
        raise error.of(paths[halves.index(active)]) from error.__cause__


def load_active(file: FilePath, ask: Callable[[Any], Any], *, transformed: bool = False) -> Any:
    """The estimator as the active party has it, out of its own file alone; the others answer over a network.

    Parameters
    ----------
    file : the active party's
    ask : called with a `PredictionSetup`, which holds the active party's half and rows; seats an `ActivePredictor` with
        it on the network of the parties, and returns its `Predicted`
    transformed : see `load`

    Returns
    -------
    the estimator; its X is the active party's own block, an array or a DataFrame whose index is the row ID

        model = load_active("bank.model", lambda setup: network.run(ActivePredictor.from_setup(setup)))
        model.predict_proba(own_columns)
    """
    half = Half.read(file, active=True)
    _check_transformed([half], transformed)
    try:
        return _restored_alone(half, ask)
    except ModelFileError as error:
        raise error.of(file) from error.__cause__


def _check_transformed(halves: Iterable[Half], transformed: bool) -> None:
    """Raw columns of the same number as transformed ones would be predicted from without a complaint."""
    named = _named_transformers(halves)
    if named and transformed is not True:
        used = ", ".join(f"party {party!r} with {name}" for party, name in named.items())
        raise ValueError(
            f"columns were transformed before training, by {used}, and files hold no transformers: each party keeps "
            "its own. With transformed=True the model loads, and X is a dict of what the transformers give"
        )


def _restored_alone(active: Half, ask: Callable[[Any], Any]) -> Any:
    assert active.extra is not None
    model = _new_estimator(active)
    parties = checked_list(active.extra, "parties", str, None) or ()
    _check(active, [(active.message, active.n_features), *((None, 0) for _ in parties[1:])])
    model.parties_, model.training_id_ = parties, active.training
    model.n_features_in_per_party_ = {active.party: active.n_features}
    model.n_features_in_ = active.n_features
    model._names, model._columns = {active.party: active.names}, None
    model._transformer_names = _named_transformers([active])
    model._keep_model(active.message, {})
    model._ask = ask
    _restore_extra(model, {**active.extra, "partitioned": False})
    return model


def _paths(files: FilePath | Iterable[FilePath]) -> list[FilePath]:
    paths: list[FilePath]
    if not isinstance(files, str | os.PathLike):
        paths = list(files)
    elif os.path.isdir(files):
        paths = [*sorted(Path(files).glob("*" + SUFFIX))]
    else:
        paths = [files]
    if not paths:
        raise FileNotFoundError(f"no model files in {files}")
    return paths


def _only_active(paths: list[FilePath], halves: list[Half]) -> Half:
    active = [half for half in halves if half.active]
    if len(active) != 1:
        raise WrongFileError(
            f"one file must be the active party's, {len(active)} of {len(paths)} are: {', '.join(map(str, paths))}"
        )
    return active[0]


def _restored(active: Half, passive: Mapping[str, Half]) -> Any:
    """An estimator out of the active party's half and those of the passive parties, by name."""
    assert active.extra is not None
    model = _new_estimator(active)
    parties = checked_list(active.extra, "parties", str, None) or ()
    for party in parties[1:]:
        if party not in passive:
            raise WrongFileError(
                f"the file of party {party!r} is missing; there are {[active.party, *passive]}"
            )
    if active.party not in parties[:1] or len(parties) != 1 + len(passive):
        raise WrongFileError(f"files of {[active.party, *passive]} are there, the model has {list(parties)}")
    halves = {active.party: active, **{party: passive[party] for party in parties[1:]}}
    _check(active, [(half.message, half.n_features) for half in halves.values()])
    model.parties_ = parties
    model.training_id_ = active.training
    model._keep_model(active.message, {party: passive[party].message for party in parties[1:]})
    _restore_columns(model, halves)
    _restore_extra(model, active.extra)
    return model


def _check(active: Half, parties: list[tuple[Message | None, int]]) -> None:
    if active.kind.check is None:
        return
    try:
        active.kind.check(active.message, parties)
    except (ValueError, RemoteProtocolError) as error:
        raise DamagedFileError(f"the halves of the model do not fit: {error}") from error


def _new_estimator(active: Half) -> Any:
    assert active.extra is not None
    cls = active.kind.estimator(checked(active.extra, "estimator", str))
    parameters = checked(active.extra, "parameters", dict)
    known = cls().get_params(deep=False).keys() - _NOT_KEPT
    return cls(**{name: value for name, value in parameters.items() if name in known})


def _named_transformers(halves: Iterable[Half]) -> dict[str, str]:
    """party -> class of its transformer."""
    return {half.party: half.transformer for half in halves if half.transformer is not None}


def _restore_columns(model: Any, halves: Mapping[str, Half]) -> None:
    """Who owns which columns, and their names as scikit-learn keeps them."""
    model.n_features_in_per_party_ = {party: half.n_features for party, half in halves.items()}
    model.n_features_in_ = sum(half.n_features for half in halves.values())
    model._transformer_names = _named_transformers(halves.values())
    as_blocks = [half.columns is None for half in halves.values()]
    if any(as_blocks):
        if not all(as_blocks):
            raise DamagedFileError("some files place their columns in one matrix and some do not")
        model._columns = None
        model._names = {party: half.names for party, half in halves.items()}
        return
    placed = sorted(column for half in halves.values() for column in half.columns or ())
    if placed != list(range(len(placed))):
        raise DamagedFileError("the columns of the parties' files do not make up one matrix")
    columns = {party: np.array(half.columns, dtype=np.int64) for party, half in halves.items()}
    order = np.concatenate(list(columns.values()))
    model._columns = columns
    model._names = dict.fromkeys(halves)
    if all(half.names is not None for half in halves.values()):
        names = np.empty(len(order), dtype=object)
        names[order] = [name for half in halves.values() for name in half.names or ()]
        model.feature_names_in_ = names


def _restore_extra(model: Any, extra: Mapping[str, Any]) -> None:
    if checked(extra, "partitioned", bool):
        model.partition = (
            {party: columns.tolist() for party, columns in model._columns.items()}
            if model._columns is not None
            else {party: model._names[party] for party in model.parties_}
        )
    for name, value in checked(extra, "attributes", dict).items():
        if name in model._file_kind.kept:
            setattr(model, name, value)
    classes = checked(extra, "classes", dict, optional=not is_classifier(model))
    if classes is not None:
        try:
            model.classes_ = decode_labels(classes)
        except ValueError as error:
            raise DamagedFileError(str(error)) from error
        outputs = model._file_kind.n_outputs
        if outputs is not None and len(model.classes_) != max(2, outputs(model._active_model)):
            raise DamagedFileError(
                f"it lists {len(model.classes_)} classes, its trees tell {outputs(model._active_model)} apart"
            )
