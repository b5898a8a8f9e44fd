"""The data sets of the VFLAIR benchmark as its table has them: rows, columns per party, and what is done to them first.

Where the paper says nothing about scaling, ours is said at the entry. All fits are on the training part alone.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

from vfldata.adult import load_adult
from vfldata.breast_cancer import load_breast_cancer_vertical
from vfldata.cora import load_cora
from vfldata.credit import load_credit
from vfldata.dataset import VerticalDataset
from vfldata.diabetes import load_diabetes
from vfldata.mnist import load_mnist
from vfldata.names import no_such_name
from vfldata.news20 import load_news20
from vfldata.nursery import load_nursery
from vfldata.transforms import scaled_to_unit, standardised, with_partition


def load_vflair(name: str, **options: Any) -> VerticalDataset:
    """One of VFLAIR's data sets, ready for its networks.

    Parameters
    ----------
    name : str
        One of `VFLAIR`.
    options
        For the loader: `data_home`, `random_state` and so on.

    Raises ValueError for another name, and what the loader raises.
    """
    if name not in VFLAIR:
        raise no_such_name("data set of VFLAIR", name, VFLAIR)
    return VFLAIR[name](**options)


def _adult(**options: Any) -> VerticalDataset:
    """34,153 + 14,637 rows, 93 + 15 columns. The six numbers are standardised (ours)."""
    return standardised(load_adult(**options))


def _breast_cancer(**options: Any) -> VerticalDataset:
    """454 + 114 rows, 15 + 15 columns scaled to [0, 1]: the columns in file order, the last 15 with the label."""
    data = load_breast_cancer_vertical(n_test=114, **options)
    # The table counts 568 rows, the data set has 569: the last training row stays out.
    data = dataclasses.replace(data, X_train=data.X_train[:-1], y_train=data.y_train[:-1])
    hospital, laboratory = data.partition.values()
    halves = {"hospital": laboratory[15:] + hospital, "laboratory": laboratory[:15]}
    return scaled_to_unit(with_partition(data, halves))


def _credit(**options: Any) -> VerticalDataset:
    """24,000 + 6,000 rows, 11 + 12 columns, stratified and standardised."""
    return standardised(load_credit(stratified=True, **options))


def _diabetes(**options: Any) -> VerticalDataset:
    """614 + 154 rows, 4 + 4 columns, standardised (ours)."""
    return standardised(load_diabetes(**options))


def _mnist(**options: Any) -> VerticalDataset:
    """60,000 + 10,000 images, 392 pixels a half."""
    return load_mnist(flat=True, **options)


def _nursery(**options: Any) -> VerticalDataset:
    """10,368 + 2,592 rows, stratified; 12 + 7 indicator columns, the first of each attribute dropped."""
    return load_nursery(one_hot="drop_first", stratified=True, **options)


VFLAIR: dict[str, Callable[..., VerticalDataset]] = {
    "adult": _adult,
    "breast_cancer": _breast_cancer,
    "cora": load_cora,
    "credit": _credit,
    "diabetes": _diabetes,
    "mnist": _mnist,
    "news20": load_news20,
    "nursery": _nursery,
}
