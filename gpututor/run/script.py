"""Run a script as `python train.py …` would: its own `__main__`, arguments, search path and traceback."""

from __future__ import annotations

import importlib.util
import io
import sys
import types
from pathlib import Path
from types import CodeType, TracebackType
from typing import Any

from gpututor.run.request import Request


def run(request: Request) -> None:
    """Run the script to its end; whatever it raises comes out."""
    sys.argv = [request.target, *request.arguments]
    if request.added_path in sys.path[1:]:
        del sys.path[sys.path.index(request.added_path, 1)]
    module = types.ModuleType("__main__")
    module.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = module
    code = _module_code(request.target, module) if request.is_module else _file_code(request.target, module)
    exec(code, module.__dict__)  # noqa: S102  running the reader's script is what this is for


def _file_code(target: str, module: types.ModuleType) -> CodeType:
    path = Path(target).absolute()  # as Python does for its main script, in __file__ and in tracebacks
    if path.is_dir():
        sys.path[0] = str(path)
        path /= "__main__.py"
    else:
        sys.path[0] = str(path.resolve().parent)
    module.__file__ = str(path)
    module.__dict__["__cached__"] = None
    with io.open_code(str(path)) as file:
        return compile(file.read(), str(path), "exec", dont_inherit=True)


def _module_code(name: str, module: types.ModuleType) -> CodeType:
    sys.path[0] = str(Path.cwd())
    spec = importlib.util.find_spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = importlib.util.find_spec(f"{name}.__main__")
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"No module named {name}", name=name)
    loader: Any = spec.loader
    code: CodeType | None = loader.get_code(spec.name)
    if code is None:
        raise ImportError(f"{name} has no Python code to run")
    module.__dict__.update(__file__=spec.origin, __spec__=spec, __loader__=loader, __package__=spec.parent)
    sys.argv[0] = spec.origin or name
    return code


def own_frames(trace: TracebackType | None) -> TracebackType | None:
    """The traceback from the script's own first frame on, as Python would show it."""
    ours = str(Path(__file__).resolve().parent)
    while trace is not None and str(Path(trace.tb_frame.f_code.co_filename).resolve()).startswith(ours):
        trace = trace.tb_next
    return trace
