"""How learners' code is shut in: a bubblewrap sandbox, or a plain process with limits where that is asked for by name.

Inside the sandbox there are the interpreter, its packages and the parts of this package that a simulated card needs,
all read-only; an empty /tmp of limited size; no network, no other processes, no environment. See CONTRIBUTING.md for
what it does not defend against.
"""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from gpututor.errors import IsolationMissing, SandboxFailed
from gpututor.lab.limits import Limits
from gpututor.lab.sandbox import Sandbox
from gpututor.lab.sandbox_view import Way

WALL_TIMES, WALL_MORE_S = 5.0, 10.0  # five right answers may share a core; what sleeps is ended all the same
HOW_TO_GET_IT = "install it (Debian and Ubuntu: apt-get install bubblewrap), or ask for limits only"
ONLY_LIMITS = (
    "Learners' code ran with limits on time and memory but in no sandbox: it could read this user's files and reach "
    "the network."
)


@dataclass(frozen=True, slots=True)
class Isolation:
    """One way to run learners' code: by name, with the `warning` that a report must carry if it shuts nothing in.

    `way` is how its sandbox is made, None for a plain process. In a sandbox a run may take `timeout_s` of processor
    time, and on the clock `wall_times` as much and `wall_more_s` seconds.
    """

    name: Literal["bubblewrap", "limits only"]
    way: Way | None = None
    warning: str | None = None
    wall_times: float = WALL_TIMES
    wall_more_s: float = WALL_MORE_S

    def limits(self, timeout_s: float, memory_mb: int) -> Limits:
        """What a run with this time and memory may use."""
        if self.way is None:
            return Limits(timeout_s, timeout_s, memory_mb)
        return Limits(self.wall_times * timeout_s + self.wall_more_s, timeout_s, memory_mb, cpu_s=timeout_s)


def bubblewrap() -> Isolation:
    """The sandbox of the program bubblewrap, which needs no daemon, no image and no special rights.

    It is tried once in a process.

    Raises:
        IsolationMissing: it is not installed, or doesn't work here; says why and what to do.
    """
    found = _tried()
    if isinstance(found, str):
        raise IsolationMissing(found)
    return Isolation("bubblewrap", found)


def limits_only() -> Isolation:
    """A plain process with limits on time and memory: for code that you trust as your own. It carries a warning."""
    return Isolation("limits only", warning=ONLY_LIMITS)


def best() -> Isolation:
    """The sandbox. There is no falling back to anything weaker: that has to be asked for by name.

    Raises:
        IsolationMissing: as `bubblewrap`.
    """
    return bubblewrap()


@lru_cache(maxsize=1)
def _tried() -> Way | str:
    """The first way that works, or one sentence why there is none."""
    if platform.system() != "Linux":
        return "bubblewrap shuts learners' code in on Linux only; grade in a Linux container, or ask for limits only"
    program = shutil.which("bwrap")
    if program is None:
        return f"the program bubblewrap (bwrap) is missing, which shuts learners' code in; {HOW_TO_GET_IT}"
    why = ""
    for way in ways(program):
        try:
            with Sandbox(way):
                return way
        except (SandboxFailed, OSError) as error:
            why = str(error)
    return f"bubblewrap doesn't work here ({why}); let it make namespaces, or ask for limits only"


def ways(program: str) -> tuple[Way, ...]:
    """How a sandbox may be made by this user, the best way first."""
    if os.geteuid() == 0:
        return Way(program, drops_user=True), Way(program)
    return (Way(program),)


_NOT_ASKED = Isolation("limits only")
_HOW: ContextVar[Isolation] = ContextVar("how", default=_NOT_ASKED)


def current() -> Isolation:
    """The way that is in force here: outside of `isolated` a plain process, for the reader's own code on a page."""
    return _HOW.get()


@contextmanager
def isolated(how: Isolation) -> Iterator[Isolation]:
    """A block in which learners' code runs this way. It holds in this thread and the tasks it starts."""
    before = _HOW.set(how)
    try:
        yield how
    finally:
        _HOW.reset(before)
