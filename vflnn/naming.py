"""The way out of a name that nobody knows."""

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str:
    """End of an error message: the nearest right name, or else all of them."""
    names = list(known)
    close = difflib.get_close_matches(name.lower(), {n.lower(): n for n in names}, n=1)
    if close:
        return f"; did you mean {next(n for n in names if n.lower() == close[0])!r}?"
    return f"; known: {', '.join(sorted(names))}" if names else "; it takes none"
