"""Reading the sources without running them: which modules there are, and what each one imports and calls."""

import ast
from collections.abc import Collection, Iterator
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
FOLDERS = {
    "vflcrypto": REPO / "crypto" / "vflcrypto",
    "vflparty": REPO / "vflparty",
    "vfldata": REPO / "vfldata",
    "vfltree": REPO / "vfltree",
    "vflnn": REPO / "vflnn",
}
ROOMS = {name: folder for name, folder in FOLDERS.items() if folder.is_dir()}


def modules() -> Iterator[tuple[str, Path]]:
    """Every module of every room with its dotted name."""
    for folder in ROOMS.values():
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder.parent).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


MODULES = list(modules())


def imports_in(text: str, name: str, *, is_package: bool = False) -> set[str]:
    """Absolute dotted names that a module imports anywhere in its text, inside functions too.

    ``from a import b`` counts as both a and a.b, since b may be a module.
    """
    package = name.split(".") if is_package else name.split(".")[:-1]
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*above, *([node.module] if node.module else [])])
            found |= {origin} | {f"{origin}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            found |= {str(argument.value) for argument in node.args[:1] if isinstance(argument, ast.Constant)}
    return found


def imports_of(name: str, path: Path) -> set[str]:
    """As `imports_in`, for a file."""
    return imports_in(path.read_text(encoding="utf-8"), name, is_package=path.name == "__init__.py")


def modules_in(imports: set[str], known: Collection[str]) -> set[str]:
    """Those of the known modules that are imported. ``from package import module`` is no import of the package."""
    found = {imported for imported in imports if imported in known}
    below = {name: {other for other in imports if other.rpartition(".")[0] == name} for name in found}
    return {name for name in found if not below[name] or not below[name] <= found}


def calls_in(text: str) -> set[str]:
    """Dotted names of everything that a text calls."""
    return {ast.unparse(node.func) for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)}
