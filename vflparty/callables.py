"""Functions of the user's own on their way to a party's seat: by name, never by their code.

A function at the top level of an importable module is named "module:qualname" and imported again in the party's
process. Any other (a lambda, one defined in a notebook) can only be used in this process; it is named "here:number".
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

HERE = "here:"
_HELD: WeakValueDictionary[str, Any] = WeakValueDictionary()


def name_of(function: Callable[..., Any], parameter: str, network: str) -> str:
    """A name that `find_function` resolves at the seat.

    parameter : of the estimator, for the error.  network : "inprocess", or "process", for which only functions that can
    be imported will do (ValueError).
    """
    name = importable_name(function)
    if name is not None:
        return name
    if network == "process":
        path = getattr(function, "__qualname__", None) or type(function).__name__
        raise ValueError(
            f'{parameter}: {path} cannot be imported by name, which network="process" '
            "needs, as the active party has a process of its own: define it at the top level of a module"
        )
    name = f"{HERE}{id(function):x}"
    _HELD[name] = function
    return name


def importable_name(function: Callable[..., Any]) -> str | None:
    """The name "module:qualname" under which another process imports this very function or class; None without one."""
    module, path = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    name = f"{module}:{path}"
    return name if module and path and _can_be_found(module) and _imported(name) is function else None


def find_function(name: str) -> Callable[..., Any]:
    """The function of a name; ValueError where there is none."""
    found = _HELD.get(name) if name.startswith(HERE) else _imported(name)
    if not callable(found):
        raise ValueError(f"there is no function {name} here")
    return found


def _can_be_found(module: str) -> bool:
    """Whether an import elsewhere would find the module, whatever this process has loaded under its name."""
    path: Any = None
    parts = module.split(".")
    for n in range(1, len(parts) + 1):
        finders = (getattr(finder, "find_spec", None) for finder in sys.meta_path)
        specs = (find(".".join(parts[:n]), path) for find in finders if find is not None)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is None:
            return False
        path = spec.submodule_search_locations
    return True


def _imported(name: str) -> Any:
    module, _, path = name.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError):  # "<locals>" is no attribute
        return None
    return found
