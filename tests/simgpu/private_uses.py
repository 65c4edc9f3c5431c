"""Finds uses of torch's inner names in a module's source; test_private.py holds our modules against it."""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterator

import torch

PATH = re.compile(r"[A-Za-z_][\w.:]*")
OF_TEXT = frozenset({"startswith", "endswith", "removeprefix", "removesuffix", "partition", "replace"})


def inner(name: str) -> bool:
    """Whether a name is private by Python's custom and not marked as ours.

    `__torch_dispatch__` and its like are torch's public protocol.
    """
    public = name.startswith("__") and name.endswith("__")
    return name.startswith("_") and len(name) > 1 and not public and not name.startswith("_gpututor_")


def is_operator(word: str) -> bool:
    """Whether this is the name of an operator of aten, which a list or a table may hold to compare with."""
    return hasattr(torch.ops.aten, word.removeprefix("aten::").partition(".")[0])


def from_torch(tree: ast.Module) -> dict[str, str]:
    """What each name stands for that was imported from torch, or was given one of its names."""
    known: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] == "torch":
                    known[alias.asname or "torch"] = alias.name if alias.asname else "torch"
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "torch":
            known |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            path = path_of(node.value, known)
            if path is not None:
                known.setdefault(node.targets[0].id, path)
    return known


def path_of(node: ast.AST, known: dict[str, str]) -> str | None:
    """The dotted path of an attribute chain that begins at a name from torch, else None."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    if isinstance(node, ast.Name) and node.id in known:
        return ".".join([known[node.id], *parts])
    return None


def own_names(tree: ast.AST) -> Iterator[str]:
    """Names that a module gives to something of its own."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_self(node.value):
            yield node.attr


def is_self(node: ast.AST) -> bool:
    """Whether this is the object or class of the method at hand."""
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def private_uses(source: str, inherited: Container[str] = (), torchs: Container[str] = ()) -> list[str]:
    """Each use of an inner name of torch, as "line: name".

    A private attribute is taken for torch's unless the module itself gives something that name, or it is one of
    `inherited` on self. `torchs` are names known to be torch's, which may not be taken for something of ours.
    """
    tree = ast.parse(source)
    known = from_torch(tree)
    if not known:
        return sorted(f"{line}: {text}" for line, text in _paths_in_text(tree))
    found = {*_imports(tree), *_attributes(tree, known, inherited, torchs), *_text(tree, torchs), *_paths_in_text(tree)}
    return [f"{line}: {name}" for line, name in sorted(found)]


def _imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            paths = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            paths = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from ((node.lineno, p) for p in paths if p.startswith("torch.") and any(map(inner, p.split("."))))


def _attributes(
    tree: ast.Module, known: dict[str, str], inherited: Container[str], torchs: Container[str]
) -> Iterator[tuple[int, str]]:
    others = {a.asname or a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names} - set(known)
    own = set(own_names(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in torchs:
            yield node.lineno, node.name
        if not isinstance(node, ast.Attribute) or not inner(node.attr):
            continue
        if isinstance(node.value, ast.Name) and node.value.id in others:
            continue  # of another library, such as os._exit
        path = path_of(node, known)
        ours = node.attr in own or (node.attr in inherited and is_self(node.value))
        if path is not None or not ours or node.attr in torchs:
            yield node.lineno, path or node.attr


def _text(tree: ast.Module, torchs: Container[str]) -> Iterator[tuple[int, str]]:
    """Names in text that something can be asked for by, lists of them included; parts of names are none."""
    parts_only = {
        id(text)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in OF_TEXT
        for argument in node.args
        for text in ast.walk(argument)
    } | {id(text) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for text in ast.walk(node)}
    lists = {
        id(node.func.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "split"
    }
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Constant) and isinstance(node.value, str)) or id(node) in parts_only:
            continue
        for word in node.value.split() if id(node) in lists else [node.value]:
            if not PATH.fullmatch(word) or not any(map(inner, re.split(r"[.:]+", word))):
                continue
            if word in torchs or not is_operator(word):
                yield node.lineno, word


def _paths_in_text(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
        if text.startswith("torch.") and PATH.fullmatch(text) and any(map(inner, text.split("."))):
            yield node.lineno, text
