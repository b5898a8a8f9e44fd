"""One party's half of a trained model, as its file holds it.

    active     trees without foreign features and thresholds, class labels, parameters, its own column names
    passive    its own splits (column, threshold, missing direction) and its own column names

Nobody's half has a key, nor what the parties keep from each other while they train; see docs/models.md. Each package of
estimators has a module `files` whose `FILE_KIND` says which messages are the halves of its models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from vflparty import DamagedFileError, Message, ModelFile, ModelFileError, WrongFileError
from vflparty.labels import encode_labels
from vflparty.modelfile import FilePath

# Kind of model in a file -> module of this package with its FILE_KIND.
_KINDS = {"secureboost": "secureboost.files", "forest": "forest.files", "linear": "linear.files"}


@dataclass(frozen=True)
class FileKind:
    """What files of one kind of model hold.

    name : stands in every file.  active, passive : the message that is a party's half.  module, estimators : where in
    this package, and which, the estimators of these models are.  kept : learned attributes of plain values that the
    active party's file holds beside its message.  check : given the active party's message and a (message, number of
    features) per party in order, None in place of a passive message that is elsewhere; ValueError says what cannot be.
    n_outputs : of the active party's message: as many as classes, or 1 for two of them.
    """

    name: str
    active: type[Message]
    passive: type[Message]
    module: str
    estimators: tuple[str, ...]
    kept: tuple[str, ...] = ()
    check: Callable[[Any, Sequence[tuple[Any, int]]], None] | None = None
    n_outputs: Callable[[Any], int] | None = None

    def estimator(self, name: str) -> type[Any]:
        """The class of this name; WrongFileError where it is not one of these."""
        if name not in self.estimators:
            raise WrongFileError(f"it holds a {name}, expected one of {', '.join(self.estimators)}")
        found: type[Any] = getattr(import_module(f"{__package__}.{self.module}"), name)
        return found


@dataclass(frozen=True)
class Half:
    """One party's file, opened and checked.

    names : of the party's columns, or None.  columns : their places in a matrix of all columns, or None where the model
    was trained on a dict of blocks.  extra : what only the active party's file says; None marks a passive party's.
    transformer : class of what the party changed its columns with, which the file does not hold; None: nothing.
    """

    party: str
    training: str
    kind: FileKind
    message: Message
    n_features: int
    names: tuple[str, ...] | None
    columns: tuple[int, ...] | None
    extra: Mapping[str, Any] | None
    transformer: str | None = None

    @property
    def active(self) -> bool:
        return self.extra is not None

    @classmethod
    def of_passive(
        cls,
        kind: FileKind,
        party: str,
        training: str,
        message: Message,
        n_features: int,
        names: Sequence[str] | None = None,
    ) -> Half:
        """The half of a passive party that trained on a network of its own; `to_file().write(path)` keeps it.

        message : its exported state.  training : an id that all parties of the training agree on.
        """
        return cls(
            party, training, kind, message, n_features, None if names is None else tuple(names), None, None
        )

    @classmethod
    def of_active(
        cls,
        kind: FileKind,
        party: str,
        training: str,
        message: Message,
        n_features: int,
        names: Sequence[str] | None = None,
        *,
        passive_parties: Sequence[str],
        estimator: str,
        classes: np.ndarray | None = None,
    ) -> Half:
        """As `of_passive`, of the active party.

        message : the result of its conversation.  passive_parties : in training order.  estimator : the class that its
        file becomes, "SecureBoostClassifier", say.  classes : labels of the classes 0, 1, ..., of a classifier.
        """
        extra = active_extra(estimator, (party, *passive_parties), classes)
        return cls(
            party, training, kind, message, n_features, None if names is None else tuple(names), None, extra
        )

    def to_file(self) -> ModelFile:
        own = {
            "n_features": self.n_features,
            "names": None if self.names is None else list(self.names),
            "columns": None if self.columns is None else list(self.columns),
            "transformer": self.transformer,
            "active": None if self.extra is None else dict(self.extra),
        }
        return ModelFile.of(self.kind.name, self.party, self.training, [self.message], own)

    @classmethod
    def read(cls, path: FilePath, *, party: str | None = None, active: bool | None = None) -> Half:
        """A party's half out of its file; ModelFileError names the file and what is wrong.

        party, active : whose file, and in which role, it must be; None: any.
        """
        file = ModelFile.read(path, kind=tuple(_KINDS), party=party)
        try:
            half = cls._of(file)
        except ModelFileError as error:
            raise error.of(path) from error.__cause__
        if active is not None and half.active != active:
            words = {True: "the active party's half", False: "a passive party's half"}
            raise WrongFileError(f"it holds {words[half.active]}, expected {words[active]}", path)
        return half

    @classmethod
    def _of(cls, file: ModelFile) -> Half:
        kind = _kind(file.kind)
        own = file.metadata
        n_features = checked(own, "n_features", int)
        if not 0 <= n_features < 1 << 31:  # columns are int32
            raise DamagedFileError(f"it is said to be of {n_features} features")
        extra = checked(own, "active", dict, optional=True)
        names = checked_list(own, "names", str, n_features)
        columns = checked_list(own, "columns", int, n_features)
        transformer = checked(own, "transformer", str, optional=True)
        (message,) = file.messages(kind.passive if extra is None else kind.active)
        return cls(file.party, file.training, kind, message, n_features, names, columns, extra, transformer)


def active_extra(
    estimator: str,
    parties: Sequence[str],
    classes: np.ndarray | None,
    *,
    partitioned: bool = False,
    parameters: Mapping[str, Any] | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """What only the active party's file says."""
    return {
        "estimator": estimator,
        "parties": list(parties),
        "partitioned": partitioned,
        "classes": None if classes is None else encode_labels(classes),
        "parameters": dict(parameters or {}),
        "attributes": dict(attributes or {}),
    }


def _kind(name: str) -> FileKind:
    found: FileKind = import_module(f"{__package__}.{_KINDS[name]}").FILE_KIND
    return found


def checked(own: Mapping[str, Any], name: str, kind: type, optional: bool = False) -> Any:
    """A value of metadata; DamagedFileError unless it has this type (or is None where that may be)."""
    value = own.get(name)
    if not (optional and value is None) and type(value) is not kind:
        raise DamagedFileError(f"its metadata has no {name!r} of type {kind.__name__}")
    return value


def checked_list(own: Mapping[str, Any], name: str, kind: type, length: int | None) -> tuple[Any, ...] | None:
    values = checked(own, name, list, optional=True)
    if values is None:
        return None
    if any(type(value) is not kind for value in values) or length not in (None, len(values)):
        raise DamagedFileError(f"{name!r} in its metadata must be {length} values of type {kind.__name__}")
    return tuple(values)
