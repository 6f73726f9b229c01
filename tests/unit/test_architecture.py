"""The package keeps its shape: order of imports, sizes, depth, docstrings, pure policies."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import miriam

PACKAGE = Path(miriam.__file__).parent
# docs/architecture.md: a folder imports only folders listed above it; the last two see all.
ORDER = (
    "kernels",
    "elastic",
    "compile",
    "shrink",
    "coordinator",
    "devices",
    "check",
    "models",
    "runtime",
    "bench",
    "serve",
    "cli",
)
SEE_ALL = {"serve", "cli"}
BASE = {"errors", "tomlfile"}
SOURCES = {".py", ".cu", ".cuh", ".h", ".hpp", ".cpp"}
IMPURE = {"time", "datetime", "random", "secrets", "logging", "os", "threading", "miriam.devices"}


@cache
def parsed() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}


def imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and dotted name of whatever is imported; ``from a import b`` gives ``a.b``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def where(path: Path, line: int) -> str:
    return f"{path.relative_to(PACKAGE.parent)}:{line}"


def may_import(importer: str, imported: str) -> bool:
    if imported in BASE or imported == importer or importer in SEE_ALL:
        return True
    return imported in ORDER[: ORDER.index(importer)]


def test_every_folder_has_its_place_in_the_order() -> None:
    folders = {p.name for p in PACKAGE.iterdir() if p.is_dir() and any(p.rglob("*.py"))}
    assert folders <= set(ORDER)


def test_folders_import_only_what_stands_above_them() -> None:
    wrong = []
    for path, tree in parsed().items():
        importer, *inner = path.relative_to(PACKAGE).parts
        for line, name in imports(tree):
            root, _, rest = name.partition(".")
            folder = rest.partition(".")[0]
            known = folder in ORDER or folder in BASE
            if inner and root == "miriam" and known and not may_import(importer, folder):
                wrong.append(f"{where(path, line)} imports {name}")
    assert wrong == []


def test_imports_are_absolute() -> None:
    relative = [
        where(path, line)
        for path, tree in parsed().items()
        for line, name in imports(tree)
        if name.startswith(".")
    ]
    assert relative == []


def test_policies_have_no_clock_chance_log_or_device() -> None:
    wrong = [
        f"{where(path, line)} imports {name}"
        for path, tree in parsed().items()
        if path.is_relative_to(PACKAGE / "coordinator" / "policies")
        for line, name in imports(tree)
        if any(name == banned or name.startswith(f"{banned}.") for banned in IMPURE)
    ]
    assert wrong == []


def test_files_have_at_most_500_lines() -> None:
    folders = (PACKAGE, PACKAGE.parent / "tests")
    files = [p for f in folders for p in f.rglob("*") if p.suffix in SOURCES]
    lengths = {str(p.relative_to(PACKAGE.parent)): len(p.read_text().splitlines()) for p in files}
    assert {name: n for name, n in lengths.items() if n > 500} == {}


def test_functions_are_short() -> None:
    lengths = {
        f"{where(path, node.lineno)} {node.name}": (node.end_lineno or 0) - node.lineno + 1
        for path, tree in parsed().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert {name: n for name, n in lengths.items() if n > 80} == {}
    longer = {name: n for name, n in lengths.items() if n > 40}
    assert len(longer) <= 0.05 * len(lengths), longer


def test_folders_nest_at_most_three_deep() -> None:
    deep = [p for p in parsed() if len(p.relative_to(PACKAGE).parent.parts) > 3]
    assert deep == []


def test_every_module_says_what_it_is() -> None:
    assert [where(p, 1) for p, tree in parsed().items() if not ast.get_docstring(tree)] == []


def test_public_names_have_docstrings() -> None:
    bare = []
    for path, tree in parsed().items():
        if not any(isinstance(n, ast.Assign) and names_all(n) for n in tree.body):
            continue
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        module = importlib.import_module(".".join(p for p in parts if p != "__init__"))
        bare += [f"{module.__name__}.{n}" for n in module.__all__ if undocumented(module, n)]
    assert bare == []


def names_all(node: ast.Assign) -> bool:
    return any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets)


def undocumented(module: object, name: str) -> bool:
    found = getattr(module, name)
    if not (inspect.isclass(found) or inspect.isfunction(found)):
        return False
    # A dataclass without a docstring gets its signature for one.
    text = found.__doc__ or ""
    return not text.strip() or text.startswith(f"{name}(")
