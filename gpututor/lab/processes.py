"""Starting, ending and explaining processes: the part of the lab that knows the operating system."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil  # type: ignore[import-untyped]

PACKAGE_ROOT = Path(__file__).resolve().parent.parent.parent

_SIGNAL_WORDS = {
    "SIGSEGV": "segmentation fault",
    "SIGABRT": "abort",
    "SIGKILL": "killed from outside, most often because memory ran out",
    "SIGBUS": "bus error",
    "SIGFPE": "arithmetic error",
    "SIGILL": "illegal instruction",
    "SIGTERM": "asked to end",
    "SIGXCPU": "CPU time limit",
    "SIGALRM": "time limit",
}


def how_it_ended(returncode: int | None) -> str:
    """The way a process ended, in words for a sentence in brackets.

    >>> how_it_ended(-11), how_it_ended(3)
    ('signal 11, segmentation fault', 'exit code 3')
    """
    if returncode is None:
        return "no exit code"
    if returncode >= 0:
        return f"exit code {returncode}"
    try:
        name = signal.Signals(-returncode).name
    except ValueError:
        return f"signal {-returncode}"
    return f"signal {-returncode}, {_SIGNAL_WORDS.get(name, name)}"


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End `process` and all that it started, at once; returns when it is gone.

    The process must lead a group of its own (`start_new_session=True`). Elsewhere than on POSIX its
    descendants are looked up instead.
    """
    if sys.platform == "win32":
        _end_descendants(process.pid)
    elif process.poll() is None or not exists(process.pid):  # else the number is a stranger's by now
        # Also after the leader's own end: its children may live on in the group.
        with suppress(ProcessLookupError, PermissionError):  # PermissionError: macOS, when only a zombie is left
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()


def _end_descendants(pid: int) -> None:
    try:
        for child in psutil.Process(pid).children(recursive=True):
            child.kill()
    except psutil.Error:
        return


def memory_bytes(pid: int) -> int | None:
    """Bytes of memory that a process holds (resident set), or None when it is gone or can't be read."""
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return None


def machine_memory_bytes() -> int:
    """Bytes of memory that the machine has."""
    return int(psutil.virtual_memory().total)


def exists(pid: int) -> bool:
    """Whether a process with this number runs now."""
    return bool(psutil.pid_exists(pid))


def n_descendants(pid: int) -> int:
    """How many processes descend from `pid`; 0 when it is gone."""
    try:
        return len(psutil.Process(pid).children(recursive=True))
    except psutil.Error:
        return 0


def import_path() -> str | None:
    """What PYTHONPATH must hold so that another process finds this package; None when it is installed."""
    if PACKAGE_ROOT.name in ("site-packages", "dist-packages"):
        return os.environ.get("PYTHONPATH")
    return os.pathsep.join(filter(None, (str(PACKAGE_ROOT), os.environ.get("PYTHONPATH"))))
