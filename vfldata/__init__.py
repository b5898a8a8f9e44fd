"""Data whose columns belong to several parties: vertical partitions, and data sets that come already split.

This package knows nothing of encryption, parties or models, and imports none of the other packages.
"""

from vfldata.adult import load_adult
from vfldata.breast_cancer import load_breast_cancer_vertical
from vfldata.census_income import load_census_income
from vfldata.credit import load_credit
from vfldata.dataset import VerticalDataset
from vfldata.diabetes import load_diabetes
from vfldata.fate_examples import FATE_EXAMPLES, load_fate_example
from vfldata.nursery import load_nursery
from vfldata.partition import column_positions, columns_by_party

__all__ = [
    "FATE_EXAMPLES",
    "VerticalDataset",
    "column_positions",
    "columns_by_party",
    "load_adult",
    "load_breast_cancer_vertical",
    "load_census_income",
    "load_credit",
    "load_diabetes",
    "load_fate_example",
    "load_nursery",
]
