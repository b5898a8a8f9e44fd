"""Data sets by name: for a command line, and for loops over several."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from vfldata.adult import load_adult
from vfldata.avazu import load_avazu
from vfldata.bank_marketing import load_bank_marketing
from vfldata.breast_cancer import load_breast_cancer_vertical
from vfldata.census_income import load_census_income
from vfldata.cifar import load_cifar10, load_cifar100
from vfldata.cora import load_cora
from vfldata.credit import load_credit
from vfldata.criteo import load_criteo
from vfldata.dataset import VerticalDataset
from vfldata.diabetes import load_diabetes
from vfldata.fate_examples import FATE_EXAMPLES, load_fate_example
from vfldata.home import Folder
from vfldata.mnist import load_mnist
from vfldata.names import no_such_name
from vfldata.news20 import load_news20
from vfldata.nursery import load_nursery
from vfldata.nuswide import load_nuswide
from vfldata.sf_crime import load_sf_crime
from vfldata.transforms import repartition

Shares = Sequence[float] | Mapping[str, float]


@dataclass(frozen=True)
class Entry:
    """A data set in a list of names: one line about it, its loader, options given to the loader, and a last step.

    Calling it loads the data set.
    """

    description: str
    loader: Callable[..., VerticalDataset]
    options: Mapping[str, Any] = field(default_factory=dict)
    then: Callable[[VerticalDataset], VerticalDataset] | None = None

    def __call__(
        self,
        *,
        n_parties: int | None = None,
        shares: Shares | None = None,
        data_home: Folder = None,
        random_state: int | None = None,
        **options: Any,
    ) -> VerticalDataset:
        """As `load` says."""
        accepted = inspect.signature(self.loader).parameters
        # What not every loader knows, given to those that do.
        common = {"n_parties": n_parties, "data_home": data_home, "random_state": random_state}
        known = {name: value for name, value in common.items() if value is not None and name in accepted}
        data = self.loader(**{**self.options, **known, **options})
        if self.then is not None:
            data = self.then(data)
        if shares is not None or n_parties not in (None, len(data.parties)):
            data = repartition(data, n_parties, shares=shares)
        return data


DATASETS: dict[str, Entry] = {
    "adult": Entry("48,790 people: income above 50,000 dollars?", load_adult),
    "avazu": Entry("advertisements on phones, hashed categories: clicked?", load_avazu),
    "bank_marketing": Entry("45,211 calls of a bank: time deposit taken?", load_bank_marketing),
    "breast_cancer": Entry("569 tumours, 30 measurements: benign?", load_breast_cancer_vertical),
    "census_income": Entry("299,285 people, 40 columns: income above 50,000 dollars?", load_census_income),
    "cifar10": Entry("60,000 colour images in halves or quarters, 10 classes", load_cifar10),
    "cifar100": Entry("60,000 colour images in halves or quarters, 100 classes", load_cifar100),
    "cora": Entry("2,708 papers with words and citations, 7 subjects", load_cora),
    "credit": Entry("30,000 credit card clients: payment missed?", load_credit),
    "criteo": Entry("display advertisements, counts and hashed categories: clicked?", load_criteo),
    "diabetes": Entry("768 women, 8 measurements: diabetes within five years?", load_diabetes),
    **{
        f"fate_{name}": Entry(f"FATE's example {name!r}, split by FATE", partial(load_fate_example, name))
        for name in sorted(FATE_EXAMPLES)
    },
    "mnist": Entry("70,000 handwritten digits in halves or quarters", load_mnist),
    "news20": Entry("4,702 postings as word weights, 5 newsgroups", load_news20),
    "nursery": Entry("12,960 applications, generated, 5 ranks", load_nursery),
    "nuswide": Entry("photographs: image features and tags, 5 concepts", load_nuswide),
    "sf_crime": Entry("incidents of San Francisco's police, up to 39 crimes", load_sf_crime),
}


def load(
    name: str,
    *,
    n_parties: int | None = None,
    shares: Shares | None = None,
    data_home: Folder = None,
    random_state: int | None = None,
    **options: Any,
) -> VerticalDataset:
    """A data set by its name in `DATASETS`.

    Parameters
    ----------
    name : str
    n_parties : int, optional
        Images are cut for 2 or 4; tables dealt out anew, see `repartition`, unless they have as many already.
        None: the parties of the loader.
    shares : sequence or dict of numbers, optional
        Unequal parts of a table instead, as for `repartition`.
    data_home, random_state
        For the loader; without effect where no file is read, or where the publishers' split leaves nothing to draw.
    options
        For the loader: see its docstring.

    Raises ValueError for an unknown name, with the one that was probably meant; and whatever the loader raises.
    """
    entry = find_entry("data set", name, DATASETS)
    return entry(
        n_parties=n_parties, shares=shares, data_home=data_home, random_state=random_state, **options
    )


def find_entry(what: str, name: str, entries: Mapping[str, Entry]) -> Entry:
    if name not in entries:
        raise no_such_name(what, name, entries)
    return entries[name]
