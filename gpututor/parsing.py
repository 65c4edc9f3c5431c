"""One thread at a time turns source into a syntax tree, because Python 3.11's threads get in one another's way there.

They share a counter, so that one of several which parse at once now and then gets a SystemError ("AST constructor
recursion depth mismatch", CPython issue 106905; met on 3.11.7). marimo compiles each page's cells on the page's own
thread: with 30 readers at once, about one page in a hundred died of it.
"""

from __future__ import annotations

import ast
import builtins
import threading
from importlib import import_module
from typing import Any

PARSERS = ("ast", "marimo._ast.compiler", "marimo._ast.transformers")
"""The modules that make trees with the built-in `compile`; everybody else asks `ast.parse`."""

_turn = threading.RLock()


def parse_in_turn() -> None:
    """Have these modules wait for one another, in this process, from now on."""
    for name in PARSERS:
        vars(import_module(name))["compile"] = compile_alone


def compile_alone(*arguments: Any, **named: Any) -> Any:
    """What the built-in `compile` gives; where that is a tree, no other thread makes one meanwhile."""
    flags = named.get("flags", arguments[3] if len(arguments) > 3 else 0)
    if not flags & ast.PyCF_ONLY_AST:
        return builtins.compile(*arguments, **named)
    with _turn:
        return builtins.compile(*arguments, **named)
