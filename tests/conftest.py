"""What all tests share: where real data lies."""

import os
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def repo() -> Path:
    """The root of the repository."""
    return REPO


@pytest.fixture(scope="session")
def data_home() -> Path:
    """The folder with real data sets: VFL_DATA_HOME, or else ../shared/data beside the repository."""
    named = os.environ.get("VFL_DATA_HOME")
    folder = Path(named).expanduser() if named else REPO.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"needs real data: set VFL_DATA_HOME to a folder with data sets ({folder} is no folder)")
    return folder
