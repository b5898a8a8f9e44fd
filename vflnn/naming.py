"""Names as people write them, and the way out of one that nobody knows."""

import difflib
from collections.abc import Iterable


def folded(name: str) -> str:
    """Letters and digits in lower case: "ResNet-18", "resnet18" and "ResNet_18" are one name."""
    return "".join(character for character in name.lower() if character.isalnum())


def nearest(name: str, known: Iterable[str]) -> str:
    """End of an error message: the nearest right name, or else all of them."""
    names = {folded(right): right for right in known}
    close = difflib.get_close_matches(folded(name), names, n=1)
    if close:
        return f"; did you mean {names[close[0]]!r}?"
    return f"; known: {', '.join(names.values())}" if names else "; it takes none"
