"""The process in which a learner's code runs. A script on its own: it imports of gpututor only the harness it is told.

Reads one JSON request on standard input; answers with one JSON object on the descriptor named by its
first argument (on the descriptor of standard output where there is none). Whatever the learner prints
goes elsewhere. `learner_code` starts it and judges nothing here: what comes back is the learner's data. In a
sandbox `zygote` has imported this module already and forks for each request.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import linecache
import os
import signal
import sys
import traceback
import types
from collections.abc import Callable
from typing import Any

FILE = "your code"
_write = os.write  # as it is before a learner's code may change it


def keep_limits(memory_bytes: int, cpu_s: int, file_bytes: int) -> None:
    """Let the system end this process when its parent no longer can. No limits on Windows."""
    if sys.platform == "win32":
        return
    import resource

    limits = [
        # Private writable memory (Linux 4.7 and later); unlike RLIMIT_AS it doesn't count what is only reserved.
        (resource.RLIMIT_DATA, memory_bytes),
        (resource.RLIMIT_CPU, cpu_s + 1),
        (resource.RLIMIT_FSIZE, file_bytes),
        (resource.RLIMIT_CORE, 0),
    ]
    for what, most in limits:
        try:
            resource.setrlimit(what, (most, most))
        except (ValueError, OSError):  # a lower limit is in force already
            continue


def fault(error: BaseException) -> dict[str, Any]:
    """Kind, message and the deepest line of the learner's own code."""
    line: int | None = None
    if isinstance(error, SyntaxError) and error.filename == FILE:
        line, message = error.lineno, str(error.msg)
    else:
        frames = traceback.extract_tb(error.__traceback__)
        line = next((frame.lineno for frame in reversed(frames) if frame.filename == FILE), None)
        message = str(error)
    return {"kind": type(error).__name__, "message": message[:500], "line": line}


def as_data(value: object) -> object:
    """What JSON can't carry but everybody means as plain data: `...` is no answer, arrays are lists."""
    if value is ...:
        return None
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"a {type(value).__name__}")


_to_json = json.JSONEncoder(default=as_data).encode


def called_by(harness: str | None, function: Callable[..., Any], card_fd: int | None) -> Callable[..., Any]:
    """The learner's function as it is; or `harness`, "module:function", which gets it as its first argument.

    The harness is also told `card_fd`, a connected socket, where there is one.
    """
    if harness is None:
        return function
    module, _, name = harness.partition(":")
    more = {} if card_fd is None else {"card_fd": card_fd}
    return functools.partial(getattr(importlib.import_module(module), name), function, **more)


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """The values of all calls, or the fault at the first one that fails."""
    code = request["code"]
    linecache.cache[FILE] = (len(code), None, code.splitlines(keepends=True), FILE)
    module = sys.modules["your_code"] = types.ModuleType("your_code")  # dataclasses look their module up
    k_call: int | None = None
    try:
        exec(compile(code, FILE, "exec"), module.__dict__)  # noqa: S102 - what this process is for
        function = getattr(module, request["function"], None)
        if not callable(function):
            return {"missing": request["function"]}
        call = called_by(request.get("harness"), function, request.get("card_fd"))
        values = []
        for k_call, arguments in enumerate(request["calls"]):  # noqa: B007 - the except clause tells which call it was
            values.append(call(*arguments))
    except BaseException as error:  # noqa: BLE001 - whatever it raises is told
        return {"fault": fault(error), "call": k_call}
    return {"values": values}


def work(request: dict[str, Any], fd: int) -> None:
    """Run what is asked for and write the answer, after the mark it is to carry, to a descriptor."""
    told = answer(request)
    try:
        text = _to_json(told)
    except (TypeError, ValueError, RecursionError) as error:
        text = _to_json({"not_data": str(error)[:200]})
    except BaseException as error:  # noqa: BLE001 - the learner's objects take part in this
        text = _to_json({"fault": fault(error), "call": None})
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(BaseException):  # the learner may have put anything in its place
            stream.flush()
    left = memoryview((request["mark"] + text).encode("utf-8", "replace"))
    while left:
        left = left[_write(fd, left) :]


def find_package(import_from: list[str]) -> None:
    """Have this package imported from where the asking process has it, whatever else is installed."""
    sys.path[:0] = [folder for folder in import_from if folder not in sys.path]


def main() -> None:
    """Answer one request."""
    request = json.load(sys.stdin)
    # Windows starts this process without the descriptor: there the answer takes standard output's place.
    fd = int(sys.argv[1]) if len(sys.argv) > 1 else os.dup(1)
    if len(sys.argv) <= 1:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    find_package(request["import_from"])
    keep_limits(request["memory_bytes"], request["wall_s"], request["file_bytes"])
    if sys.platform != "win32":
        signal.alarm(request["wall_s"] + 1)
    work(request, fd)
    os.close(fd)


if __name__ == "__main__":
    main()
