"""Data whose columns belong to several parties: vertical partitions, and data sets that come already split.

This package knows nothing of encryption, parties or models, and imports none of the other packages.
"""

from vfldata.adult import load_adult
from vfldata.avazu import load_avazu
from vfldata.bank_marketing import load_bank_marketing
from vfldata.breast_cancer import load_breast_cancer_vertical
from vfldata.census_income import load_census_income
from vfldata.cifar import load_cifar10, load_cifar100
from vfldata.cora import load_cora
from vfldata.credit import load_credit
from vfldata.criteo import load_criteo
from vfldata.dataset import UNLABELLED, VerticalDataset
from vfldata.diabetes import load_diabetes
from vfldata.fate_examples import FATE_EXAMPLES, load_fate_example
from vfldata.mnist import load_mnist
from vfldata.news20 import load_news20
from vfldata.nursery import load_nursery
from vfldata.nuswide import load_nuswide
from vfldata.partition import column_positions, columns_by_party
from vfldata.registry import DATASETS, load
from vfldata.sf_crime import load_sf_crime
from vfldata.transforms import held_out, repartition, scaled_to_unit, standardised, with_partition
from vfldata.vflair import VFLAIR, load_vflair

__all__ = [
    "DATASETS",
    "FATE_EXAMPLES",
    "UNLABELLED",
    "VFLAIR",
    "VerticalDataset",
    "column_positions",
    "columns_by_party",
    "held_out",
    "load",
    "load_adult",
    "load_avazu",
    "load_bank_marketing",
    "load_breast_cancer_vertical",
    "load_census_income",
    "load_cifar10",
    "load_cifar100",
    "load_cora",
    "load_credit",
    "load_criteo",
    "load_diabetes",
    "load_fate_example",
    "load_mnist",
    "load_news20",
    "load_nursery",
    "load_nuswide",
    "load_sf_crime",
    "load_vflair",
    "repartition",
    "scaled_to_unit",
    "standardised",
    "with_partition",
]
