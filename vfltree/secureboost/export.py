"""A trained model as an `xgboost.Booster`, once every party has agreed.

A Booster holds what the parties keep from each other: all column names or numbers, all thresholds, and the leaf values.
Whoever holds it holds the whole model. So it is made only when every party is named, and where a party's half is not at
hand, out of the file that this party hands over.

XGBoost compares single precision: a threshold must be a float32 that leaves every training row on its side. The owner's
half knows the largest training value below each threshold, so this is checked without training data.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from vflparty import WrongFileError, codec
from vflparty.modelfile import FilePath

from ..growing.messages import Records
from ..growing.models import result_trees
from ..halves import Half
from ..inspection import own_names
from ..losses import POISSON_DELTA_STEP
from ..tree import LEAF, Tree, TreeBuilder, record_id

_NO_PARENT = 2147483647  # XGBoost's mark of a root
_LARGEST = float(np.finfo(np.float32).max)
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


@dataclass(frozen=True)
class _Share:
    """What one party hands over. places : its columns in the Booster's matrix."""

    party: str
    records: Records
    names: tuple[str, ...] | None
    places: np.ndarray


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
            names that two parties share get "party.name".

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


def _shares(model: Any, agreed: Mapping[str, FilePath | None]) -> list[_Share]:
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
        _Share(party, records, names, columns[party] if columns is not None else np.arange(start, start + n))
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


def _document(model: Any, shares: list[_Share], version: tuple[int, int]) -> dict[str, Any]:
    """XGBoost's model as JSON, as its documentation of the schema has it."""
    active = model._active_model
    _check_representable(active)
    objective, n_outputs = active.objective, len(active.base_score)
    n_features = sum(len(share.places) for share in shares)
    trees = [
        _tree_document(tree, number, shares, n_features) for number, tree in enumerate(result_trees(active))
    ]
    outputs = [number % n_outputs for number in range(len(trees))]
    base_score = _base_score(objective, active.base_score)
    if version < (3, 1):
        if (
            len(set(base_score)) > 1
        ):  # one number for all outputs; a first round of stumps holds the differences
            stumps = [_stump(value, k, n_features) for k, value in enumerate(active.base_score)]
            trees, outputs = stumps + trees, [*range(n_outputs), *outputs]
            base_score = [0.0]
        base_text = str(np.float32(base_score[0]))
    else:
        base_text = f"[{','.join(str(np.float32(value)) for value in base_score)}]"
    for number, tree in enumerate(trees):
        tree["id"] = number
    classes = objective == "multi:softprob"
    names = _feature_names(shares)
    return {
        "learner": {
            "attributes": {},
            "feature_names": names,
            "feature_types": ["float"] * n_features if names else [],
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
        raise ValueError(f"trees with {active.value.shape[1]} values in a leaf cannot be exported")


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


def _feature_names(shares: list[_Share]) -> list[str]:
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


# ---------------------------------------------------------------- trees


def _tree_document(tree: Tree, number: int, shares: list[_Share], n_features: int) -> dict[str, Any]:
    order = _breadth_first(tree)
    place = np.empty(tree.n_nodes, dtype=np.int64)
    place[order] = np.arange(tree.n_nodes)
    inner = tree.owner != LEAF
    conditions = tree.value[:, 0].astype(np.float32)
    columns, default_left = np.zeros(tree.n_nodes, np.int64), np.zeros(tree.n_nodes, np.int64)
    for owner, share in enumerate(shares):
        at = np.flatnonzero(tree.owner == owner)
        rows = np.searchsorted(share.records.ids, record_id(number, tree.node[at]))
        columns[at] = share.places[share.records.columns[rows]]
        default_left[at] = share.records.missing_left[rows]
        conditions[at] = _thresholds(share, rows)
    parents = np.full(tree.n_nodes, _NO_PARENT, dtype=np.int64)
    for side in (tree.left, tree.right):
        parents[side[inner]] = place[inner]
    return {
        "base_weights": _singles(tree.value[:, 0][order]),
        **{f"categories{part}": [] for part in ("", "_nodes", "_segments", "_sizes")},
        "default_left": default_left[order].tolist(),
        "left_children": np.where(inner, place[tree.left], -1)[order].tolist(),
        "loss_changes": _singles(tree.gain[order]),
        "parents": parents[order].tolist(),
        "right_children": np.where(inner, place[tree.right], -1)[order].tolist(),
        "split_conditions": _singles(conditions[order]),
        "split_indices": columns[order].tolist(),
        "split_type": [0] * tree.n_nodes,
        "sum_hessian": _singles(tree.cover[order]),
        "tree_param": {
            "num_deleted": "0",
            "num_feature": str(n_features),
            "num_nodes": str(tree.n_nodes),
            "size_leaf_vector": "1",
        },
    }


def _breadth_first(tree: Tree) -> np.ndarray:
    """Positions level by level, so that the right child follows the left, which XGBoost's prediction relies on."""
    order = [0]
    for at in order:
        if tree.owner[at] != LEAF:
            order += [int(tree.left[at]), int(tree.right[at])]
    return np.array(order)


def _thresholds(share: _Share, rows: np.ndarray) -> np.ndarray:
    """Thresholds of these records in single precision, every training row on its side; float32, shape of rows."""
    records = share.records
    if len(records.lower) != len(records.ids):
        raise ValueError(f"the half of party {share.party!r} does not say which values its thresholds divide")
    exact = records.thresholds[rows]
    if np.isnan(exact).any():
        column = int(records.columns[rows][np.isnan(exact)][0])
        raise ValueError(f"{_place(share, column)} is split by categories, which cannot be exported")
    singles = np.clip(exact, -_LARGEST, _LARGEST).astype(np.float32)
    with np.errstate(over="ignore"):
        lower = records.lower[rows].astype(np.float32)
    wrong = ~(lower < singles)
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"{_place(share, int(records.columns[rows][at]))} is split between training values that are one number in "
            "single precision, which XGBoost compares in: train on float32 values to export"
        )
    return singles


def _place(share: _Share, column: int) -> str:
    return f"column {column if share.names is None else share.names[column]!r} of party {share.party!r}"


def _stump(value: np.float32, output: int, n_features: int) -> dict[str, Any]:
    """A tree of one leaf."""
    builder = TreeBuilder()
    builder.set_leaf(0, float(value))
    leaf = builder.freeze()
    return _tree_document(leaf, output, [], n_features)


def _singles(values: np.ndarray) -> list[float]:
    return values.astype(np.float32).astype(np.float64).tolist()
