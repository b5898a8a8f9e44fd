"""Where data files lie that are not ours to ship: a folder of the user's, named by argument or by VFL_DATA_HOME."""

import os
from collections.abc import Sequence
from pathlib import Path

DATA_HOME = "VFL_DATA_HOME"

Folder = str | os.PathLike[str] | None


def data_folder(data_home: Folder = None) -> Path | None:
    """`data_home`, else what the environment variable names, else None."""
    named = data_home if data_home is not None else os.environ.get(DATA_HOME)
    return Path(named).expanduser() if named else None


def find_file(names: Sequence[str], data_home: Folder = None) -> Path | None:
    """The first of these files that exists in the data folder."""
    folder = data_folder(data_home)
    if folder is None:
        return None
    return next((folder / name for name in names if (folder / name).is_file()), None)


def need_file(names: Sequence[str], data_home: Folder, what: str, where_from: str) -> Path:
    """As `find_file`; FileNotFoundError says what is missing, where to get it and where to put it."""
    path = find_file(names, data_home)
    if path is None:
        raise FileNotFoundError(missing(what, data_home, f"Get it from {where_from}", names[0]))
    return path


def missing(what: str, data_home: Folder, get_it: str, put_it: str) -> str:
    """For an error message: what was not found, how to get it and where to put it. A folder ends in a slash."""
    into = f"put them into {put_it}" if put_it.endswith("/") else f"put it as {put_it}"
    return (
        f"{what} was not found: {where_looked(data_home)}. {get_it}, {into} in a folder of your choice, "
        f"and set {DATA_HOME} to that folder"
    )


def where_looked(data_home: Folder) -> str:
    folder = data_folder(data_home)
    return f"it is not in {folder}" if folder else f"{DATA_HOME} is not set"
