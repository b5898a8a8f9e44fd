"""Data whose columns belong to several parties: vertical partitions, and data sets that come already split.

This package knows nothing of encryption, parties or models, and imports none of the other packages.
"""

from vfldata.breast_cancer import load_breast_cancer_vertical
from vfldata.credit import load_credit
from vfldata.dataset import VerticalDataset
from vfldata.nursery import load_nursery
from vfldata.partition import columns_by_party

__all__ = [
    "VerticalDataset",
    "columns_by_party",
    "load_breast_cancer_vertical",
    "load_credit",
    "load_nursery",
]
