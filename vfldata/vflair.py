"""The data sets of the VFLAIR benchmark as its table has them: rows, columns per party, and what is done to them first.

All scaling is fitted on the training part alone. Where the paper says nothing about scaling, ours is marked.
"""

import dataclasses
from typing import Any

from vfldata.adult import load_adult
from vfldata.avazu import load_avazu
from vfldata.breast_cancer import load_breast_cancer_vertical
from vfldata.cifar import load_cifar10, load_cifar100
from vfldata.cora import load_cora
from vfldata.credit import load_credit
from vfldata.criteo import load_criteo
from vfldata.dataset import VerticalDataset
from vfldata.diabetes import load_diabetes
from vfldata.mnist import load_mnist
from vfldata.news20 import load_news20
from vfldata.nursery import load_nursery
from vfldata.nuswide import load_nuswide
from vfldata.registry import Entry, find_entry
from vfldata.transforms import scaled_to_unit, standardised, with_partition


def load_vflair(name: str, **options: Any) -> VerticalDataset:
    """One of VFLAIR's 13 data sets, ready for its networks.

    name : one of `VFLAIR`, which says in a line what each is
    options : as for `load`: n_parties, shares, data_home, random_state, and those of the loader

    Raises ValueError for another name, and what the loader raises.
    """
    return find_entry("data set of VFLAIR", name, VFLAIR)(**options)


def _halves_in_unit(data: VerticalDataset) -> VerticalDataset:
    """Breast cancer with 15 + 15 columns in file order, the last 15 with the label, between 0 and 1."""
    # The table counts 568 rows, the data set has 569: the last training row stays out.
    data = dataclasses.replace(data, X_train=data.X_train[:-1], y_train=data.y_train[:-1])
    last_ten, first_twenty = data.partition.values()
    halves = {"hospital": first_twenty[15:] + last_ten, "laboratory": first_twenty[:15]}
    return scaled_to_unit(with_partition(data, halves))


VFLAIR: dict[str, Entry] = {
    "adult": Entry(
        "34,153 + 14,637 rows, 93 + 15 columns, numbers standardised (ours)",
        load_adult,
        then=standardised,
    ),
    "avazu": Entry("13 + 9 hashed categories", load_avazu),
    "breast_cancer": Entry(
        "454 + 114 rows, 15 + 15 columns, between 0 and 1",
        load_breast_cancer_vertical,
        {"n_test": 114},
        _halves_in_unit,
    ),
    "cifar10": Entry("50,000 + 10,000 images, 3x16x32 a half, 3x16x16 a quarter", load_cifar10),
    "cifar100": Entry("50,000 + 10,000 images, 3x16x32 a half, 3x16x16 a quarter", load_cifar100),
    "cora": Entry("140 + 1,000 of 2,708 nodes, 716 + 716 words, half of the edges each", load_cora),
    "credit": Entry(
        "24,000 + 6,000 rows, stratified, 11 + 12 columns, standardised",
        load_credit,
        {"stratified": True},
        standardised,
    ),
    "criteo": Entry("13 counts + 26 hashed categories", load_criteo),
    "diabetes": Entry("614 + 154 rows, 4 + 4 columns, standardised (ours)", load_diabetes, then=standardised),
    "mnist": Entry("60,000 + 10,000 images, 392 + 392 pixels", load_mnist, {"flat": True}),
    "news20": Entry("3,762 + 940 postings, half of the words each", load_news20),
    "nursery": Entry(
        "10,368 + 2,592 rows, stratified, 12 + 7 indicators",
        load_nursery,
        {"one_hot": "drop_first", "stratified": True},
    ),
    "nuswide": Entry("60,000 + 40,000 photographs, 634 image features + 1,000 tags", load_nuswide),
}
