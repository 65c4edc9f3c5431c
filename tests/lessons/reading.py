"""Lessons as source text: cells, controls and prose, read from the syntax tree without running anything."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATHS = sorted((ROOT / "lessons").glob("[0-9]*.py"))
SLOT = "\N{OBJECT REPLACEMENT CHARACTER}"  # stands for what a placeholder puts there
MAKERS = re.compile(r"^(mo\.ui\.\w+|\w+\.(\w+_controls?|\w+_buttons))$")
FORMULA = re.compile(r"\$\$.*?\$\$|\$[^$\n]+\$", re.DOTALL)


@dataclass(frozen=True)
class Notebook:
    """One lesson's file."""

    path: Path

    @property
    def number(self) -> int:
        """The number that the file's name begins with."""
        return int(self.path.name[:2])

    @cached_property
    def source(self) -> str:
        """The file's text."""
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        """The file's syntax tree."""
        return ast.parse(self.source)

    @cached_property
    def setup(self) -> ast.With:
        """The `with app.setup` block."""
        return next(node for node in self.tree.body if isinstance(node, ast.With))

    @cached_property
    def cells(self) -> list[ast.FunctionDef]:
        """The functions decorated as cells, in order."""
        return [
            node
            for node in self.tree.body
            if isinstance(node, ast.FunctionDef) and any("app.cell" in ast.unparse(d) for d in node.decorator_list)
        ]

    @property
    def showing_cells(self) -> list[str]:
        """Names of the cells whose last expression is an output."""
        return [cell.name for cell in self.cells if isinstance(body(cell)[-1], ast.Expr)]

    def controls(self) -> dict[str, str]:
        """Each control's name and the cell that makes it."""
        return {
            target.id: cell.name
            for cell in self.cells
            for node in ast.walk(cell)
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
            if MAKERS.match(ast.unparse(node.value.func))
            for target in targets(node)
            if isinstance(target, ast.Name)
        }

    def shown_names(self) -> set[str]:
        """Names that some cell uses as a whole, not only their `.value`, and not only to hand them on."""
        found = set()
        for cell in self.cells:
            inside = [node for statement in body(cell) for node in ast.walk(statement)]
            only_value = {id(node.value) for node in inside if isinstance(node, ast.Attribute) and node.attr == "value"}
            found |= {
                node.id
                for node in inside
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in only_value
            }
        return found

    def markdown(self) -> dict[str, str]:
        """The text of each cell that writes Markdown, by the cell's name."""
        return {
            cell.name: "\n".join(text(call.args[0]) for call in calls(cell, "mo.md", "gt.instructor_notes"))
            for cell in self.cells
            if list(calls(cell, "mo.md", "gt.instructor_notes"))
        }

    def sentences(self) -> Iterator[str]:
        """Every text of the file with a space in it: what a reader may see, wherever it stands."""
        inside = {id(v) for node in ast.walk(self.tree) if isinstance(node, ast.JoinedStr) for v in node.values}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.JoinedStr | ast.Constant) and id(node) not in inside and " " in text(node).strip():
                yield text(node)


def targets(node: ast.Assign) -> Iterator[ast.expr]:
    """What is assigned to, each name of a tuple for itself."""
    for target in node.targets:
        yield from target.elts if isinstance(target, ast.Tuple) else [target]


def body(cell: ast.FunctionDef) -> list[ast.stmt]:
    """The statements of a cell without its last return."""
    return cell.body[:-1] if isinstance(cell.body[-1], ast.Return) and len(cell.body) > 1 else cell.body


def calls(node: ast.AST, *names: str) -> Iterator[ast.Call]:
    """The calls of functions of these names."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call) and ast.unparse(inner.func) in names:
            yield inner


def text(node: ast.expr) -> str:
    """The text of a string; a placeholder is one mark, whatever it will be."""
    if isinstance(node, ast.JoinedStr):
        return "".join(str(v.value) if isinstance(v, ast.Constant) else SLOT for v in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def n_words(prose: str) -> int:
    """Words as a reader counts them: a formula or a placeholder is one, marks of Markdown are none."""
    return len(re.findall(rf"[\w{SLOT}][^\s]*", FORMULA.sub(SLOT, prose)))
