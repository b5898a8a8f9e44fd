"""Programs and modules of the kernels that tests compile for themselves."""

import os
import shutil
import subprocess

import pytest

# A sanitizer's runtime is for Python, not for the tools; a pytest of its own is no worker of this one.
ENVIRONMENT = {
    name: value
    for name, value in os.environ.items()
    if name != "LD_PRELOAD" and not name.startswith("PYTEST_")
}
EMULATED = ["-DVFL_HAVE_IFMA", "-DVFL_EMULATE_IFMA", "-Wno-psabi"]


def run(command, **more):
    return subprocess.run(
        command, env=ENVIRONMENT | more, capture_output=True, text=True, check=False, errors="replace"
    )


def compiler(name="cc"):
    found = shutil.which(name)
    if not found:
        pytest.skip(f"needs a C compiler called {name}")
    return found
