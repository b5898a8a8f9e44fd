"""The IFMA kernels on a CPU without AVX-512: their instructions emulated in C, they pass every test of the kernels."""

import os
import sys
import sysconfig
from pathlib import Path

import pytest
from native_builds import EMULATED, compiler, run

from vflcrypto import kernels

TESTS = ["kernels", "kernels_binding", "kernels_crt", "kernels_many_to_one", "kernels_properties"]
TESTS += ["kernels_tables", "known_answers"]


@pytest.mark.skipif("ifma" in kernels.backends(), reason="the kernels themselves run here, in every test")
def test_emulated_ifma_kernels_pass_the_tests_of_kernels(repo, tmp_path):
    include = sysconfig.get_path("include")
    if not Path(include, "Python.h").exists():
        pytest.skip("needs the headers of Python")
    package = tmp_path / "vflcrypto"
    package.mkdir()
    for source in (repo / "crypto" / "vflcrypto").glob("*.py"):
        (package / source.name).symlink_to(source)
    sources = map(str, sorted((repo / "native").glob("*.c")))
    module = str(package / f"_native{sysconfig.get_config_var('EXT_SUFFIX')}")
    shared = ["-shared", "-undefined", "dynamic_lookup"] if sys.platform == "darwin" else ["-shared"]
    command = [compiler(), "-O1", "-fPIC", *shared, *EMULATED, f"-I{include}", *sources, "-o", module]
    built = run(command)
    assert built.returncode == 0, built.stderr
    # Without site, whose import hooks would find the installed package first.
    path = os.pathsep.join([str(tmp_path), str(repo), *filter(None, sys.path)])
    backends = run(
        [sys.executable, "-S", "-c", "from vflcrypto import kernels; print(kernels.backends())"],
        PYTHONPATH=path,
    )
    assert backends.stdout.strip() == "['ifma', 'portable']", backends.stderr
    tests = [str(repo / "tests" / "crypto" / f"test_{name}.py") for name in TESTS]
    options = ["-q", "-x", "-p", "no:cacheprovider", f"--rootdir={repo}"]
    tested = run([sys.executable, "-S", "-m", "pytest", *options, *tests], PYTHONPATH=path)
    assert tested.returncode == 0, tested.stdout + tested.stderr
