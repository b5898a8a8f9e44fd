"""The compile cache may be damaged, read-only or shared: a fit notices nothing but the time."""

import os
import subprocess
import sys

import pytest

from vfltree import _jit

MODULE = """
from vfltree._jit import jit

@jit
def twice(x):
    return 2 * x
"""


def run(folder, code, **env):
    """Run `code` in a new process that can import the folder."""
    path = os.pathsep.join([str(folder), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path, **env},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


USE = "import kernel_to_cache as k; assert k.twice(21) == 42; print(sum(k.twice.stats.cache_hits.values()))"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "kernel_to_cache.py").write_text(MODULE)
    return tmp_path


def cache_files(folder):
    files = sorted(path for path in (folder / "__pycache__").glob("*") if path.suffix in (".nbi", ".nbc"))
    assert files
    return files


def test_a_second_process_finds_the_first_ones_work(folder):
    assert run(folder, USE).stdout.strip() == "0"
    assert run(folder, USE).stdout.strip() == "1"


@pytest.mark.parametrize(("which", "n_bytes"), [(".nbi", 10), (".nbc", 10), (".nb", 0)])
def test_a_damaged_cache_is_a_miss_and_is_repaired(folder, which, n_bytes):
    run(folder, USE)
    for path in cache_files(folder):
        if path.suffix.startswith(which):
            path.write_bytes(path.read_bytes()[:n_bytes])
    assert run(folder, USE).stdout.strip() == "0"
    assert run(folder, USE).stdout.strip() == "1"


def test_without_a_place_to_write_kernels_still_run(folder):
    # A plain file where the cache folders should be: nobody can write there, not even root.
    (folder / "__pycache__").write_text("")
    (folder / "home").write_text("")
    home = str(folder / "home")
    done = run(folder, USE, HOME=home, XDG_CACHE_HOME=home, NUMBA_CACHE_DIR="")
    assert done.stdout.strip() == "0"
    assert done.stderr == ""


def test_a_cache_that_fails_in_every_way_is_no_cache():
    class Broken:
        def load_overload(self, signature, context):
            raise EOFError

        def save_overload(self, signature, data):
            raise PermissionError

        def flush(self):
            raise OSError

    cache = _jit.ForgivingCache(Broken())
    assert cache.load_overload(None, None) is None
    cache.save_overload(None, None)


def test_kernels_release_the_gil_and_start_no_threads_of_numba():
    @_jit.jit
    def kernel(x):
        return x + 1

    assert kernel.targetoptions["nogil"]
    assert not kernel.targetoptions.get("parallel")
