"""Each room knows only the floors below it."""

import ast
import subprocess
import sys

import pytest

from .reading import FOLDERS, MODULES, ROOMS, imports_in, imports_of

MAY_IMPORT = {
    "vflcrypto": set(),
    "vflparty": {"vflcrypto"},
    "vfldata": set(),
    "vfltree": {"vflparty", "vflcrypto", "vfldata"},
    "vflnn": {"vflparty", "vflcrypto", "vfldata"},
}
TOP_FLOOR = ("tests", "examples", "benchmarks")  # import everything and are imported by nothing


def broken_rules(name: str, imports: set[str]) -> list[str]:
    """What a module with these imports does wrong, in words."""
    room = name.split(".")[0]
    roots = sorted({imported.split(".")[0] for imported in imports})
    wrong = [
        f"{name} imports {other}, which is not below {room}"
        for other in roots
        if other in FOLDERS and other != room and other not in MAY_IMPORT[room]
    ]
    wrong += [f"{name} imports {other}, which nobody may import" for other in roots if other in TOP_FLOOR]
    if name != "vflcrypto.kernels" and imports_module(imports, "vflcrypto._native"):
        wrong.append(f"{name} imports vflcrypto._native; only vflcrypto.kernels may")
    return wrong


def imports_module(imports: set[str], module: str) -> bool:
    return any(imported == module or imported.startswith(module + ".") for imported in imports)


@pytest.mark.parametrize(("name", "path"), MODULES, ids=[name for name, _ in MODULES])
def test_imports_point_downwards_only(name, path):
    assert broken_rules(name, imports_of(name, path)) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("vflcrypto.ciphertexts", "import vflparty"),
        ("vflparty.channel", "from vfltree.secureboost import messages"),
        ("vfldata.nursery", "import vflcrypto"),
        ("vfltree.tree", "def f():\n    from vflnn import split"),
        ("vflnn.split", "import importlib\nimportlib.import_module('vfltree.tree')"),
        ("vflparty.codec", "from tests.conftest import REPO"),
        ("vflcrypto.paillier", "from vflcrypto import _native"),
        ("vflcrypto.paillier", "from ._native import mul"),
    ],
)
def test_a_planted_wrong_import_is_found(name, text):
    assert len(broken_rules(name, imports_in(text, name))) == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("vflcrypto.kernels", "from vflcrypto import _native"),
        ("vflparty.coordinator", "from vflcrypto import PublicKey"),
        ("vfltree.secureboost.active", "from .messages import M\nfrom vfldata import columns_by_party"),
    ],
)
def test_a_right_import_is_allowed(name, text):
    assert broken_rules(name, imports_in(text, name)) == []


@pytest.mark.parametrize("room", [room for room in ROOMS if room != "vflnn"])
def test_importing_loads_no_heavy_or_test_only_library(room):
    assert loaded_by(room) & {"torch", "xgboost", "phe", "matplotlib", "pytest"} == set()


@pytest.mark.parametrize("room", ROOMS)
def test_importing_a_room_loads_no_room_above_it(room):
    assert loaded_by(room) & set(FOLDERS) <= {room} | MAY_IMPORT[room]


WITHOUT_TORCH = """
import sys

class NoTorch:
    def find_spec(name, path, target=None):
        if name == "torch":
            raise ModuleNotFoundError("No module named 'torch'")

sys.meta_path.insert(0, NoTorch)
"""


def test_without_pytorch_vflnn_says_what_to_install_and_all_else_works():
    done = run(WITHOUT_TORCH + "import vfltree, vfldata, vflparty")
    assert done.returncode == 0, done.stderr
    told = run(WITHOUT_TORCH + "import vflnn")
    assert told.returncode != 0 and told.stderr.rstrip().endswith(
        "ImportError: vflnn needs PyTorch, which is not installed: pip install 'vfltree[nn]'"
    )


def loaded_by(room: str) -> set[str]:
    """Top-level modules in a fresh interpreter after importing a room."""
    done = run(f"import sys, {room}; print({{name.split('.')[0] for name in sys.modules}})")
    assert done.returncode == 0, done.stderr
    return set(ast.literal_eval(done.stdout))


def run(code: str) -> subprocess.CompletedProcess[str]:
    """The code in a fresh interpreter."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
