"""Errors for names that do not exist, with the one that was probably meant."""

import difflib
from collections.abc import Iterable


def no_such_name(what: str, name: object, known: Iterable[str]) -> ValueError:
    """The error to raise; with the nearest known name if one is near, and all of them."""
    known = list(known)
    near = difflib.get_close_matches(str(name).lower().replace("-", "_").replace(" ", "_"), known, n=1)
    guess = f"; did you mean {near[0]!r}?" if near else "."
    return ValueError(f"there is no {what} called {name!r}{guess} Known: {', '.join(known)}")
