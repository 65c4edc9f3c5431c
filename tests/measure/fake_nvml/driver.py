"""The fake driver built with gcc and put in the place of the real one, under the real binding."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pynvml

SOURCE = Path(__file__).with_name("fake_nvml.c")
MISSING = "no gcc here (or no Linux), so the fake driver can't be built"


def can_build() -> bool:
    return sys.platform == "linux" and shutil.which("gcc") is not None


def build(folder: Path, *flags: str) -> Path:
    """The shared library in `folder`, under the name that the binding and CUDA look for."""
    path = folder / "libnvidia-ml.so.1"
    command = ["gcc", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", *flags, "-o", str(path), str(SOURCE)]
    subprocess.run(command, check=True)
    return path


class FakeDriver:
    """One built library, and what it is told to answer."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lib: Any = ctypes.CDLL(str(path))

    def says(self, script: str = "") -> FakeDriver:
        """Replace all rules; rules are `[GPU.]KEY=VALUE` with `;` between them."""
        self.lib.fake_nvml_script(script.encode())
        return self

    def count(self, function: str) -> int:
        return int(self.lib.fake_nvml_count(function.encode()))

    @property
    def n_open(self) -> int:
        return int(self.lib.fake_nvml_open())

    @property
    def n_asked_after_loss(self) -> int:
        return int(self.lib.fake_nvml_asked_after_loss())

    @property
    def n_bad_handles(self) -> int:
        return int(self.lib.fake_nvml_bad_handles())

    def forget(self) -> None:
        """All that was opened is closed, as after a driver was unloaded and loaded."""
        self.lib.fake_nvml_forget()

    @contextmanager
    def in_place(self) -> Iterator[FakeDriver]:
        """The binding calls this library in this process, freshly loaded."""
        before = pynvml.nvmlLib, dict(_pointers())
        pynvml.nvmlLib = self.lib
        _pointers().clear()
        self.lib.fake_nvml_reset()
        try:
            yield self
        finally:
            pynvml.nvmlLib = before[0]
            _pointers().clear()
            _pointers().update(before[1])

    def environ(self, script: str = "") -> dict[str, str]:
        """The environment of a process that finds this driver by itself."""
        return {**os.environ, "LD_LIBRARY_PATH": str(self.path.parent), "FAKE_NVML": script}


def _pointers() -> dict[str, Any]:
    return getattr(pynvml, "_nvmlGetFunctionPointer_cache", {})


def uuid(gpu: int, kind: str = "GPU") -> str:
    """The UUID of a fake GPU or its MIG instance."""
    return f"{kind}-{10 + gpu:x}{10 + gpu:x}000000-0000-4000-8000-{gpu + (0x7000 if kind == 'MIG' else 0):012x}"
