"""No branch and no address of the secret paths depends on a secret.

Valgrind says so of the kernels that are portable or use AVX2, and of the IFMA ones with their instructions emulated;
the disassembly, of these as they are, which valgrind cannot run.
"""

import re
import shutil

import pytest
from native_builds import EMULATED, compiler, run

from vflcrypto import kernels

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


@pytest.fixture(scope="module")
def checked_program(request, repo, tmp_path_factory):
    """The program that marks secrets as undefined memory, by a compiler with options."""
    cc, *options = request.param
    if not shutil.which("valgrind"):
        pytest.skip("needs valgrind")
    native, program = repo / "native", tmp_path_factory.mktemp("check") / "constant_time"
    sources = [native / "check" / "constant_time.c"]
    sources += [native / f"{name}.c" for name in SOURCES]
    built = run([compiler(cc), *options, "-g", f"-I{native}", *map(str, sources), "-o", str(program)])
    if "valgrind/memcheck.h" in built.stderr:
        pytest.skip("needs valgrind/memcheck.h")
    assert built.returncode == 0, built.stderr
    return program


SOURCES = ("convert", "dispatch", "exp", "mont_portable", "mont_avx2", "mont_ifma")


def memcheck(program, *arguments):
    return run(["valgrind", "-q", "--error-exitcode=9", str(program), *arguments])


BUILDS = {"portable": ["-O3"], "avx2": ["-O3", "-mavx2", "-DVFL_HAVE_AVX2"], "ifma": ["-O1", *EMULATED]}
# Compilers have ideas of their own about masks.
BUILT = [
    pytest.param(
        [cc, *options],
        kernel,
        id=f"{kernel}-{cc}",
        marks=pytest.mark.skipif(kernel == "avx2" and kernel not in kernels.backends(), reason="needs AVX2"),
    )
    for kernel, options in BUILDS.items()
    for cc in ("cc", "clang")
]


@pytest.mark.parametrize(("checked_program", "kernel"), BUILT, indirect=["checked_program"])
def test_kernels_branch_and_address_independently_of_secrets(checked_program, kernel):
    checked = memcheck(checked_program)
    assert checked.returncode == 0, checked.stderr
    assert set(checked.stdout.split()) == {kernel}


@pytest.mark.parametrize("checked_program", [["cc", "-O3"]], indirect=True)
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
