"""Data sets that scikit-learn can fetch from OpenML, when no file of the user's is there."""

import warnings
from typing import Any


def fetch(data_id: int, what_to_do: str, *, as_frame: bool = True) -> Any:
    """The data set with `data` and `target`; FileNotFoundError with `what_to_do` when it cannot be had."""
    from sklearn import datasets

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # retries; what matters is said below
            return datasets.fetch_openml(data_id=data_id, as_frame=as_frame, parser="auto", n_retries=1)
    except Exception as error:
        # No network, a proxy, a moved service, a damaged copy: the way out is the same.
        raise FileNotFoundError(f"{what_to_do} (OpenML: {type(error).__name__}: {error})") from error
