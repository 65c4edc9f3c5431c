"""Imports go one way, and `import gpututor` is quick; both are read from the code, not believed."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import gpututor

PACKAGE = Path(gpututor.__file__).parent

# From the ground up: a module imports from its own line or from lines above it, never from below.
ORDER = (
    ("errors",),
    ("text", "progress", "marking"),
    ("intervals", "timeline"),
    ("timeline_file",),
    ("paths", "tables", "hardware"),
    ("live", "event_file", "board"),
    ("cards", "references", "links"),
    ("own_machine",),
    ("lookup",),
    ("ledger",),
    ("expect",),
    ("history",),
    ("model",),
    ("recording",),
    ("simgpu",),
    ("measure", "trace"),
    ("doctor",),
    ("watch",),
    ("compiling", "recorder"),
    ("workloads",),
    ("jobs",),
    ("lab",),
    ("experiments",),
    ("predict",),
    ("replay",),
    ("one_kernel",),
    ("causes",),
    ("own_gpu",),
    ("charts",),
    ("results",),
    ("readers",),
    ("parsing", "serving"),
    ("recordings",),
    ("store",),
    ("calibration",),
    ("exercises",),
    ("page",),
    ("run",),
    ("explain",),
    ("bench",),
    ("grading",),
    ("workshop",),
    ("cli",),
    ("__main__",),
)
LEVEL = {part: level for level, parts in enumerate(ORDER) for part in parts}

# Where torch may be imported when a module is loaded. The lab's worker and the recorder ask for it inside functions.
MAY_LOAD_TORCH = {"simgpu", "measure", "workloads", "jobs", "calibration", "bench"}
HEAVY = {"torch", "marimo", "altair", "pynvml", "numpy"}
MODULES = sorted(PACKAGE.rglob("*.py"))


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(tree: ast.AST, path: Path) -> Iterator[str]:
    """Every module that is imported anywhere in the tree, with its full name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = ["gpututor", *path.relative_to(PACKAGE).parts[:-1]]
                base = ".".join([*package[: len(package) - node.level + 1], *filter(None, [node.module])])
            yield base
            if base == "gpututor":
                yield from (f"gpututor.{alias.name}" for alias in node.names)


def loaded_at_once(tree: ast.Module) -> Iterator[str]:
    """Top-level names of what is imported when the module is, leaving out functions and TYPE_CHECKING blocks."""
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting.extend(node.orelse)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting.extend(ast.iter_child_nodes(node))


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def named(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_a_module_imports_only_what_stands_above_it(path):
    if path == PACKAGE / "__init__.py":
        return  # names the homes of the public names, and imports each when it is asked for
    own = part_of(path)
    names = [name.split(".")[1] for name in imported(parsed(path), path) if name.startswith("gpututor.")]
    backward = sorted({name for name in names if name in LEVEL and LEVEL[name] > LEVEL[own]})

    assert not backward, f"{own} imports {', '.join(backward)}, which stands below it"


def test_every_part_of_the_package_has_its_place_in_the_order():
    assert {part_of(path) for path in MODULES} - {"__init__"} <= set(LEVEL)


def may_load_torch(path: Path) -> bool:
    """Also what runs beside a learner's code, in a process of its own."""
    return part_of(path) in MAY_LOAD_TORCH or named(path).startswith("exercises/on_card/")


@pytest.mark.parametrize("path", [p for p in MODULES if not may_load_torch(p)], ids=named)
def test_only_the_parts_that_run_work_load_torch(path):
    assert "torch" not in set(loaded_at_once(parsed(path)))


def test_the_syntax_walk_sees_relative_imports():
    path = PACKAGE / "model" / "cost.py"

    assert list(imported(ast.parse("from ..cards import Card\nfrom .spec import Gemm"), path)) == [
        "gpututor.cards",
        "gpututor.model.spec",
    ]


def test_the_syntax_walk_leaves_out_what_is_imported_later():
    code = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch\ndef f():\n    import torch"

    assert set(loaded_at_once(ast.parse(code))) == {"typing"}


def loaded_by(statement: str) -> set[str]:
    """Top-level modules that a fresh interpreter has loaded after `statement`."""
    code = f"{statement}\nimport sys\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "statement",
    [
        "import gpututor",
        "import gpututor; gpututor.Timeline; gpututor.card('V100')",
        "import gpututor.cli",
    ],
)
def test_importing_loads_nothing_heavy(statement):
    assert not loaded_by(statement) & HEAVY


def test_all_lists_the_public_names_and_each_can_be_had():
    assert set(gpututor.__all__) == {*gpututor._HOME, "__version__"}
    assert all(getattr(gpututor, name) is not None for name in gpututor.__all__)


def test_no_public_name_hides_a_module():
    modules = {part_of(path) for path in MODULES}
    hidden = {
        name
        for name in modules & set(gpututor.__all__)
        if getattr(gpututor, name) is not sys.modules[f"gpututor.{name}"]
    }

    assert not hidden


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Ledgre'"):
        gpututor.Ledgre  # noqa: B018
