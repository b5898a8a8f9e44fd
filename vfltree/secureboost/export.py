"""A trained model as an `xgboost.Booster`, once every party has agreed.

A Booster holds what the parties keep from each other: all column names or numbers, all thresholds, and the leaf values.
Whoever holds it holds the whole model. So it is made only when every party is named, and where a party's half is not at
hand, out of the file that this party hands over.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from vflparty import WrongFileError, codec
from vflparty.modelfile import FilePath

from ..categories import category_value
from ..growing.messages import Records
from ..growing.models import result_trees
from ..halves import Half
from ..inspection import own_names
from ..losses import POISSON_DELTA_STEP
from .exported_trees import Share, stump, tree_document

# Objective -> where XGBoost keeps its parameter, the parameter, and ours of the same meaning.
_OBJECTIVES: dict[str, tuple[str, str, str] | None] = {
    "binary:logistic": ("reg_loss_param", "scale_pos_weight", "scale_pos_weight"),
    "multi:softprob": None,
    "reg:squarederror": ("reg_loss_param", "scale_pos_weight", "scale_pos_weight"),
    "reg:absoluteerror": None,
    "reg:quantileerror": None,
    "reg:pseudohubererror": ("pseudo_huber_param", "huber_slope", "huber_slope"),
    "count:poisson": ("poisson_regression_param", "max_delta_step", "max_delta_step"),
}


class ExportedToXGBoost:
    """Mixin of estimators of boosted trees."""

    def to_xgboost(self, consent: Iterable[str] | Mapping[str, FilePath | None]) -> Any:
        """The model as an `xgboost.Booster`, with the same predictions (up to 1e-6) on single-precision values.

        Parameters
        ----------
        consent : the names of all parties, each of which agrees to show what it holds of the model to whoever gets the
            Booster: the active party its trees, leaf values and class order; every party the columns and thresholds of
            its splits, and the names of its columns. A dict party -> file adds the files of parties whose halves are
            not at hand (after `load_active`); None in place of a file where the half is at hand.

        Returns
        -------
        xgboost.Booster : columns in the order of X; party after party where the model was trained on a dict of blocks.
            Class k is `classes_[k]`. Column names are left out where there are none, or XGBoost forbids one of them;
            names that two parties share get "party.name". A column of categories becomes one of codes: code k is entry
            k of its list in `json.loads(booster.attr("categories"))`, and any other value is missing.

        Raises
        ------
        ImportError : xgboost is not installed
        ValueError : a party has not agreed; a training row would change sides in single precision (names owner and
            column); or the model is one that XGBoost cannot represent
        """
        xgboost = _xgboost()
        check_is_fitted(self, "_active_model")
        shares = _shares(self, _agreed(self, consent))
        document = _document(self, shares, _version(xgboost))
        return xgboost.Booster(model_file=bytearray(json.dumps(document).encode()))


def _xgboost() -> Any:
    try:
        return import_module("xgboost")
    except ImportError as error:
        raise ImportError("to_xgboost needs XGBoost: pip install xgboost") from error


def _version(xgboost: Any) -> tuple[int, int]:
    major, minor = xgboost.__version__.split(".")[:2]
    return int(major), int(minor)


# ---------------------------------------------------------------- consent


def _agreed(model: Any, consent: Any) -> dict[str, FilePath | None]:
    """Party -> file or None, for all parties; ValueError names those that have not agreed."""
    if isinstance(consent, str):
        raise TypeError(f"consent is a list of party names or a dict, got the text {consent!r}")
    given = dict(consent) if isinstance(consent, Mapping) else dict.fromkeys(consent)
    silent = [party for party in model.parties_ if party not in given]
    if silent:
        raise ValueError(
            f"not agreed: {', '.join(map(repr, silent))}. A Booster shows the columns and thresholds of every party, "
            f"and the leaf values, to whoever holds it; consent must name {list(model.parties_)}"
        )
    unknown = [party for party in given if party not in model.parties_]
    if unknown:
        raise ValueError(f"consent names {unknown}; the model has {list(model.parties_)}")
    return given


def _shares(model: Any, agreed: Mapping[str, FilePath | None]) -> list[Share]:
    """One share per party, in order."""
    active, *passive = model.parties_
    own = codec.decode(model._active_model.records, (Records,), fill=True)
    assert isinstance(own, Records)
    found = [(active, own, own_names(model, active), int(model.n_features_in_per_party_[active]))]
    for party in passive:
        if party in model._passive_models:
            n_features = int(model.n_features_in_per_party_[party])
            found.append((party, model._passive_models[party], own_names(model, party), n_features))
        else:
            half = _handed_over(model, party, agreed[party])
            assert isinstance(half.message, Records)
            found.append((party, half.message, half.names, half.n_features))
    starts = np.cumsum([0] + [n for *_, n in found])
    columns = model._columns
    return [
        Share(party, records, names, columns[party] if columns is not None else np.arange(start, start + n))
        for (party, records, names, n), start in zip(found, starts, strict=False)
    ]


def _handed_over(model: Any, party: str, file: FilePath | None) -> Half:
    if file is None:
        raise ValueError(
            f"the half of party {party!r} is not here: consent={{{party!r}: its file, ...}} hands it over"
        )
    half = Half.read(file, party=party, active=False)
    if half.training != model.training_id_:
        raise WrongFileError("it comes from another training than the active party's file", file)
    return half


# ---------------------------------------------------------------- the document


def _document(model: Any, shares: list[Share], version: tuple[int, int]) -> dict[str, Any]:
    """XGBoost's model as JSON, as its documentation of the schema has it."""
    active = model._active_model
    _check_representable(active)
    objective, n_outputs = active.objective, len(active.base_score)
    n_features = sum(len(share.places) for share in shares)
    trees = [
        tree_document(tree, number, shares, n_features) for number, tree in enumerate(result_trees(active))
    ]
    outputs = [number % n_outputs for number in range(len(trees))]
    base_score = _base_score(objective, active.base_score)
    if version < (3, 1):
        if (
            len(set(base_score)) > 1
        ):  # one number for all outputs; a first round of stumps holds the differences
            stumps = [stump(value, k, n_features) for k, value in enumerate(active.base_score)]
            trees, outputs = stumps + trees, [*range(n_outputs), *outputs]
            base_score = [0.0]
        base_text = str(np.float32(base_score[0]))
    else:
        base_text = f"[{','.join(str(np.float32(value)) for value in base_score)}]"
    for number, tree in enumerate(trees):
        tree["id"] = number
    classes = objective == "multi:softprob"
    names, types = _feature_names(shares), _feature_types(shares)
    return {
        "learner": {
            "attributes": {"categories": json.dumps(_category_lists(shares, names))} if "c" in types else {},
            "feature_names": names,
            "feature_types": types if names or "c" in types else [],
            "gradient_booster": {
                "model": {
                    "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": str(len(trees))},
                    "iteration_indptr": [*range(0, len(trees) + 1, n_outputs)],
                    "tree_info": outputs,
                    "trees": trees,
                },
                "name": "gbtree",
            },
            "learner_model_param": {
                "base_score": base_text,
                "boost_from_average": "1",
                "num_class": str(n_outputs) if classes else "0",
                "num_feature": str(n_features),
                "num_target": "1" if classes else str(n_outputs),
            },
            "objective": _objective(model, objective, n_outputs),
        },
        "version": [*version, 0],
    }


def _check_representable(active: Any) -> None:
    """ValueError says what of the model XGBoost has no place for."""
    if active.objective not in _OBJECTIVES:
        raise ValueError(f"XGBoost has no objective {active.objective!r}")
    if active.base_score.dtype != np.float32:
        raise ValueError(
            "the targets of this model need double precision, which XGBoost's raw scores do not have: train on targets "
            "with their mean subtracted"
        )
    if active.value.shape[1] != 1:
        raise ValueError(
            f"trees with {active.value.shape[1]} values in a leaf: XGBoost's versions write such trees differently; "
            'multi_strategy="one_output_per_tree" can be exported'
        )


def _base_score(objective: str, start: np.ndarray) -> list[float]:
    """The start as XGBoost keeps it: a probability or a mean, whose raw score is `start`, float32 (n_outputs,)."""
    if objective == "binary:logistic":
        return [
            _nearest(lambda p: -np.log((1 / p - 1).astype(np.float64)).astype(np.float32), start[0], _sigmoid)
        ]
    if objective == "count:poisson":
        return [_nearest(lambda m: np.log(m.astype(np.float64)).astype(np.float32), start[0], np.exp)]
    return [float(value) for value in start]


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _nearest(to_raw: Any, raw: np.float32, guess: Any) -> float:
    """The float32 near guess(raw) whose raw score comes closest."""
    middle = np.float32(guess(np.float64(raw)))
    around = [middle]
    for way in (-np.inf, np.inf):
        step = middle
        for _ in range(4):
            step = np.nextafter(step, np.float32(way))
            around.append(step)
    candidates = np.array(around, dtype=np.float32)
    return float(candidates[np.abs(to_raw(candidates).astype(np.float64) - raw).argmin()])


def _objective(model: Any, name: str, n_outputs: int) -> dict[str, Any]:
    document: dict[str, Any] = {"name": name}
    if (parameter := _OBJECTIVES[name]) is not None:
        group, theirs, ours = parameter
        value = getattr(model, ours)
        document[group] = {theirs: str(POISSON_DELTA_STEP if value is None else value)}
    if name == "multi:softprob":
        document["softmax_multiclass_param"] = {"num_class": str(n_outputs)}
    if name == "reg:quantileerror":
        levels = np.atleast_1d(model.quantile_alpha).tolist()
        document["quantile_loss_param"] = {"quantile_alpha": f"[{','.join(map(str, levels))}]"}
    return document


def _feature_names(shares: list[Share]) -> list[str]:
    """Names in the order of the columns; none where XGBoost would refuse one."""
    n_features = sum(len(share.places) for share in shares)
    all_names = [name for share in shares for name in share.names or ()]
    twice = (
        {name for name in all_names if all_names.count(name) > 1} if len(all_names) == n_features else set()
    )
    names = [""] * n_features
    for share in shares:
        for place, name in zip(share.places.tolist(), share.names or (), strict=False):
            names[place] = f"{share.party}.{name}" if name in twice else name
    forbidden = len(set(names)) < n_features or any(set(name) & set("[]<") or not name for name in names)
    return [] if forbidden else names


def _feature_types(shares: list[Share]) -> list[str]:
    """ "c" for columns of categories, in the order of the columns."""
    types = ["float"] * sum(len(share.places) for share in shares)
    for share in shares:
        for column in share.categories:
            types[share.places[column]] = "c"
    return types


def _category_lists(shares: list[Share], names: list[str]) -> dict[str, list[Any]]:
    """What the codes of a column stand for: code k is entry k. By name, or by number where there are no names."""
    return {
        names[place] if names else str(place): [category_value(key) for key in keys]
        for share in shares
        for place, keys in ((int(share.places[column]), keys) for column, keys in share.categories.items())
    }
