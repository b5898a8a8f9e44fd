"""Nursery: 12,960 applications to nursery schools, ranked into five classes by a published set of rules.

The data set of Olave, Rajkovic and Bohanec (UCI "Nursery") is the full enumeration of eight attributes,
labelled by a hierarchy of small decision tables. So it needs no download: the tables below reproduce the file
byte for byte. Levels are numbered from 1, the most favourable.
"""

import itertools
from collections.abc import Iterator

import pandas as pd

from vfldata.dataset import VerticalDataset, from_table
from vfldata.onehot import OneHot, check_one_hot, group_columns, indicators

ATTRIBUTES: dict[
    str, tuple[str, ...]
] = {  # values in the order of the file; the last attribute varies fastest
    "parents": ("usual", "pretentious", "great_pret"),
    "has_nurs": ("proper", "less_proper", "improper", "critical", "very_crit"),
    "form": ("complete", "completed", "incomplete", "foster"),
    "children": ("1", "2", "3", "more"),
    "housing": ("convenient", "less_conv", "critical"),
    "finance": ("convenient", "inconv"),
    "social": ("nonprob", "slightly_prob", "problematic"),
    "health": ("recommended", "priority", "not_recom"),
}
CLASSES = ("not_recom", "recommend", "very_recom", "priority", "spec_prior")

# Rows and columns in the order of the values above. EMPLOY: parents x has_nurs; STRUCTURE: form x children.
EMPLOY = ((1, 2, 2, 3, 4), (2, 2, 3, 4, 4), (3, 3, 4, 4, 4))
STRUCTURE = ((1, 2, 3, 3), (2, 2, 3, 3), (2, 3, 3, 3), (3, 3, 3, 3))
# FINANCE[structure - 1]: housing x finance, and how the family's structure and means count together.
FINANCE = (((1, 2), (2, 2), (2, 2)), ((2, 2), (2, 2), (3, 3)), ((2, 3), (3, 3), (3, 3)))
# SOCIAL: social x health.
SOCIAL = ((1, 2, 3), (1, 2, 3), (2, 2, 3))
# VERDICT[employ - 1][social - 1][finance - 1], for social 1 and 2; social 3 is always not_recom.
VERDICT = (
    (("recommend", "very_recom", "priority"), ("priority", "priority", "priority")),
    (("very_recom", "very_recom", "priority"), ("priority", "priority", "priority")),
    (("priority", "priority", "priority"), ("priority", "priority", "spec_prior")),
    (("priority", "priority", "spec_prior"), ("priority", "spec_prior", "spec_prior")),
)

PARTITION = {  # whose attributes; the first party also has the class
    "school": ("parents", "has_nurs", "form", "children"),
    "town": ("housing", "finance", "social", "health"),
}
N_TEST = 2592  # a fifth: 10,368 + 2,592 rows, as in the papers


def load_nursery(
    *, one_hot: OneHot | None = "full", stratified: bool = False, random_state: int = 0
) -> VerticalDataset:
    """Nursery for two parties: a school that ranks applications, a town that knows how the families live.

    Active "school": parents, has_nurs, form, children, and the class. Passive "town": housing, finance,
    social, health. Classes 0..4 are not_recom (4,320 rows), recommend (2), very_recom (328), priority
    (4,266), spec_prior (4,044). 10,368 training and 2,592 test rows, drawn at random with `random_state`.
    Sample IDs are the row numbers.

    Parameters
    ----------
    one_hot : "full", "drop_first" or None
        "full", for trees: one column of 0.0 and 1.0 per value, 16 + 11 columns named like ``"form=foster"``.
        "drop_first", for linear models and networks: without the first value of each attribute, 12 + 7
        columns. None: the eight text columns as they stand in the file.
    stratified : bool
        Every class in proportion in both parts.
    random_state : int
    """
    check_one_hot(one_hot)
    table = pd.DataFrame(nursery_rows(), columns=[*ATTRIBUTES, "class"])
    y = table.pop("class").map({name: k for k, name in enumerate(CLASSES)}).astype("int64")
    groups = {name: group_columns(name, values, one_hot) for name, values in ATTRIBUTES.items()}
    return from_table(
        "nursery",
        table if one_hot is None else indicators(table, groups),
        y,
        {party: [column for name in names for column in groups[name]] for party, names in PARTITION.items()},
        n_test=N_TEST,
        stratified=stratified,
        random_state=random_state,
        task="multiclass",
        class_names=CLASSES,
        one_hot_groups=() if one_hot is None else tuple(groups.values()),
        source="generated from the decision tables of the data set",
    )


def nursery_rows() -> Iterator[tuple[str, ...]]:
    """All rows in the order of the file: eight values and the class."""
    for values in itertools.product(*ATTRIBUTES.values()):
        yield (*values, nursery_class(*values))


def nursery_class(*values: str) -> str:
    """The class of one application, from its eight values."""
    i = [choices.index(value) for choices, value in zip(ATTRIBUTES.values(), values, strict=True)]
    parents, has_nurs, form, children, housing, finance, social, health = i
    social_level = SOCIAL[social][health]
    if social_level == 3:
        return "not_recom"
    finance_level = FINANCE[STRUCTURE[form][children] - 1][housing][finance]
    return VERDICT[EMPLOY[parents][has_nurs] - 1][social_level - 1][finance_level - 1]


def nursery_text() -> str:
    """The file ``nursery.data``, byte for byte: 1,059,371 bytes with an empty line at the end."""
    return "".join(",".join(row) + "\n" for row in nursery_rows()) + "\n"
