"""The driver's library, opened once a process: after a fork the child must open it again."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from gpututor.measure.nvml.failures import Refusal, errors_of, refusal_of, why_closed

T = TypeVar("T")

_FORK_WAITS_S = 0.2
"""Our choice: a fork waits this long for a call to end. A call that hangs for longer holds no lock of the binding."""


class _Gate:
    """Held during every call of the driver, so that no fork copies a lock of the binding while it is taken."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.forks_in: int | None = None  # the thread that holds the lock for its fork

    def before_fork(self) -> None:
        if self.lock.acquire(timeout=_FORK_WAITS_S):
            self.forks_in = threading.get_ident()

    def after_fork_in_parent(self) -> None:
        if self.forks_in == threading.get_ident():
            self.forks_in = None
            self.lock.release()

    def after_fork_in_child(self) -> None:
        self.__init__()  # type: ignore[misc]


_GATE = _Gate()
if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(
        before=_GATE.before_fork,
        after_in_parent=_GATE.after_fork_in_parent,
        after_in_child=_GATE.after_fork_in_child,
    )


def gate() -> threading.Lock:
    """The lock to hold during a call of the driver; forks of this process wait for it."""
    return _GATE.lock


@dataclass(slots=True)
class Library:
    """The binding, opened in the process `pid`."""

    nvml: Any
    pid: int
    errors: tuple[type[BaseException], ...]

    @property
    def ours(self) -> bool:
        """Whether it was opened in this process, and not in the one this was forked from."""
        return self.pid == os.getpid()

    def ask(self, question: Callable[[Any], T]) -> T | Refusal:
        """What `question(nvml)` gives, or why not. Raises nothing that a driver or binding may raise."""
        try:
            return question(self.nvml)
        except self.errors as error:
            return refusal_of(error)

    def asked(self, name: str, *given: Any) -> Any:
        """What the binding's function of this name gives, or the refusal; forks of this process wait for it."""
        with gate():
            return self.ask(lambda nvml: getattr(nvml, name)(*given))

    def close(self) -> None:
        """Give the library back; nothing happens in a forked child, where it was never opened."""
        if self.ours:
            self.ask(lambda nvml: nvml.nvmlShutdown())


def binding() -> Any:
    """The module of nvidia-ml-py. It touches no driver before it is opened.

    Raises:
        ImportError: it is not installed.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of the old package's name, which a reader can't act on here
        import pynvml

    return pynvml


def open_library(nvml: Any = None) -> Library | str:
    """The library, opened; or one sentence on why there is none. Never raises.

    Each opening must be closed.
    """
    try:
        nvml = nvml or binding()
        with gate():
            nvml.nvmlInit()
    except Exception as error:  # noqa: BLE001  # most machines have no driver, and some have a broken one
        return why_closed(error)
    return Library(nvml, os.getpid(), errors_of(nvml))


def text(value: str | bytes) -> str:
    """A driver's string; older bindings give bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def versions(library: Library) -> Mapping[str, str]:
    """Versions of driver, NVML and binding, as far as they are told."""
    asked = {
        "driver": library.ask(lambda nvml: text(nvml.nvmlSystemGetDriverVersion())),
        "NVML": library.ask(lambda nvml: text(nvml.nvmlSystemGetNVMLVersion())),
        "nvidia-ml-py": _binding_version(library.nvml),
    }
    return {name: version for name, version in asked.items() if isinstance(version, str)}


def _binding_version(nvml: Any) -> str | None:
    """The version of the package that brought this module; the old pynvml, a folder, hides the newer file."""
    from importlib.metadata import PackageNotFoundError, version

    names = ("nvidia-ml-py", "pynvml", "nvidia-ml-py3")
    for name in ("pynvml",) if hasattr(nvml, "__path__") else names:
        try:
            return version(name) if name == "nvidia-ml-py" else f"{version(name)} of {name}"
        except PackageNotFoundError:
            continue
    return None
