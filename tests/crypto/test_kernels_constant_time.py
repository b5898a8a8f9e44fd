"""No branch and no address of the secret paths depends on a secret: valgrind says so of the portable kernels, the
disassembly of the IFMA ones (which valgrind cannot run)."""

import os
import re
import shutil
import subprocess

import pytest

IFMA_FLAGS = [
    "-mavx512f",
    "-mavx512dq",
    "-mavx512vl",
    "-mavx512bw",
    "-mavx512ifma",
    "-mbmi2",
    "-DVFL_HAVE_IFMA",
]
# What could carry the content of a vector into a branch or an address.
ESCAPES = re.compile(
    r"\b(v?ptest|ktest\w*|kortest\w*|vpgather\w*|vgather\w*|vpscatter\w*|vpmovmskb|vmovmskp\w)\b"
)
SECRET_KERNELS = ["mul", "sqr", "add", "half_mul", "half_add", "load", "half_load", "store", "half_store"]
SECRET_KERNELS += ["select", "row_get"]


# A sanitizer's runtime is for Python, not for the tools.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}


def run(command):
    return subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)


def compiler():
    found = shutil.which("cc")
    if not found:
        pytest.skip("needs a C compiler")
    return found


@pytest.fixture(scope="module")
def checked_program(repo, tmp_path_factory):
    """The program that marks secrets as undefined memory."""
    if not shutil.which("valgrind"):
        pytest.skip("needs valgrind")
    native, program = repo / "native", tmp_path_factory.mktemp("check") / "constant_time"
    sources = [native / "check" / "constant_time.c"]
    sources += [native / f"{name}.c" for name in ("convert", "dispatch", "exp", "mont_portable")]
    built = run([compiler(), "-O3", "-g", f"-I{native}", *map(str, sources), "-o", str(program)])
    if "valgrind/memcheck.h" in built.stderr:
        pytest.skip("needs valgrind/memcheck.h")
    assert built.returncode == 0, built.stderr
    return program


def memcheck(program, *arguments):
    return run(["valgrind", "-q", "--error-exitcode=9", str(program), *arguments])


def test_portable_kernels_branch_and_address_independently_of_secrets(checked_program):
    checked = memcheck(checked_program)
    assert checked.returncode == 0, checked.stderr


def test_a_planted_branch_on_a_secret_is_found(checked_program):
    checked = memcheck(checked_program, "leak")
    assert checked.returncode == 9
    assert "Conditional jump or move depends on uninitialised value" in checked.stderr


@pytest.fixture(scope="module")
def ifma_functions(repo, tmp_path_factory):
    """Name -> disassembly of every function of mont_ifma.c."""
    if not shutil.which("objdump"):
        pytest.skip("needs objdump")
    compiled = tmp_path_factory.mktemp("check") / "mont_ifma.o"
    source = str(repo / "native" / "mont_ifma.c")
    command = [compiler(), "-O3", *IFMA_FLAGS, "-c", source, "-o", str(compiled)]
    if run(command).returncode != 0:
        pytest.skip("needs a compiler for AVX-512 IFMA")
    listing = run(["objdump", "-d", "--no-show-raw-insn", str(compiled)]).stdout
    return dict(re.findall(r"^[0-9a-f]+ <(\w+)>:\n((?:.+\n)+)", listing, re.MULTILINE))


@pytest.mark.parametrize("kernel", SECRET_KERNELS)
def test_no_vector_content_reaches_a_branch_or_an_address(ifma_functions, kernel):
    code = ifma_functions[f"{kernel}_ifma"]
    assert "zmm" in code
    assert ESCAPES.findall(code) == []


def test_the_search_finds_the_gather_of_the_public_look_up(ifma_functions):
    assert ESCAPES.search(ifma_functions["pick_ifma_vartime"])
