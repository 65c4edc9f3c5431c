"""The process inside a sandbox that starts a learner's calls. A script: it imports what they need once, then forks.

It never runs or reads anything of the learner's: a request goes unread from `sandbox` to the forked process. Nothing
that the fork does reaches back: it has no descriptor of the zygote's, may not look into its memory (it isn't dumpable),
and when it ends, so does every other process in the sandbox. It can kill the zygote; then `sandbox` starts a new one.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib.util
import json
import os
import resource
import select
import shutil
import signal
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PR_SET_DUMPABLE = 4  # linux/prctl.h
MAX_OPEN_FILES = 256
EMPTIED = ("/tmp", "/dev/shm")  # noqa: S108 - the sandbox's own
LONGEST_END_S = 5.0
PIECE_BYTES = 2**16


def main(arguments: Sequence[str]) -> None:
    """Say that it is ready, then serve calls until the other side hangs up."""
    control = socket.socket(fileno=int(arguments[0]))
    control.set_inheritable(False)
    user, folder, *import_from = arguments[1:]
    if int(user):
        os.setgroups([])
        os.setresgid(int(user), int(user), int(user))
        os.setresuid(int(user), int(user), int(user))
    _let_be_read(False)
    sys.path[:] = [place for place in sys.path if place != str(Path(__file__).parent)]
    sys.path[:0] = [place for place in import_from if place not in sys.path]
    trouble = _trouble()
    _tell(control, {"trouble": trouble} if trouble else {"ready": True})
    kept = {place: set(os.listdir(place)) for place in EMPTIED}  # noqa: PTH208
    while not trouble:
        piece, fds, _, _ = socket.recv_fds(control, PIECE_BYTES, 8)
        if not piece:
            return
        asked = json.loads(piece)
        if asked["do"] == "load":
            from gpututor.lab.preloaded import load

            load()
            gc.collect()
            gc.freeze()  # what is there now is never looked at again, and so its pages stay shared
            _tell(control, {"loaded": True})
        elif asked["do"] == "call":
            _tell(control, _served(control, asked, fds, Path(folder)) | {"clean": _emptied(kept)})


def _trouble() -> str:
    """Why the sandbox can't be used, empty where it can: what is shown must also be readable."""
    try:
        for name in ("gpututor", "numpy", "torch"):
            found = importlib.util.find_spec(name)
            if found is None or found.origin is None:
                return f"{name} can't be found inside"
            with open(found.origin, "rb") as file:  # noqa: PTH123
                file.read(1)
    except OSError as error:
        return f"{error.strerror}: {error.filename}"
    return ""


def _tell(control: socket.socket, what: dict[str, Any]) -> None:
    control.send(json.dumps(what).encode())


def _let_be_read(allowed: bool) -> None:
    """Whether others of this user may look into this process: its memory, its descriptors, its calls."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_DUMPABLE, int(allowed), 0, 0, 0)


def _served(control: socket.socket, asked: dict[str, Any], fds: Sequence[int], folder: Path) -> dict[str, Any]:
    """Fork for one call, wait for its end or for word that it is over, and end all that is left of it."""
    pid = os.fork()
    if not pid:
        _become_the_call(control, asked, fds, folder)
    for fd in fds:
        os.close(fd)
    end = os.pidfd_open(pid)
    look = select.poll()
    look.register(end, select.POLLIN)
    look.register(control, select.POLLIN)
    ready = [fd for fd, _ in look.poll()]
    os.close(end)
    if end not in ready and not control.recv(PIECE_BYTES):
        sys.exit()
    _end_all()
    _, status, used = os.wait4(pid, 0)
    _end_all()
    return {"ended": os.waitstatus_to_exitcode(status), "cpu_s": used.ru_utime + used.ru_stime}


def _end_all() -> None:
    """Kill every process in the sandbox but its first and this one: only ever called where these are all there are."""
    if os.getppid() != 1:
        raise RuntimeError("not the first process of a sandbox; so many would be killed")
    until_s = time.monotonic() + LONGEST_END_S
    with contextlib.suppress(ProcessLookupError):
        while time.monotonic() < until_s:
            os.kill(-1, signal.SIGKILL)
            if all(_is_dead(int(name)) for name in os.listdir("/proc") if name.isdigit()):  # noqa: PTH208
                return
            time.sleep(0.001)


def _is_dead(pid: int) -> bool:
    """Whether it is gone or waits for its parent only; the sandbox's first process and this one count as that too."""
    if pid in (1, os.getpid()):
        return True
    with contextlib.suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] in (b"Z", b"X")
    return True


def _emptied(kept: dict[str, set[str]]) -> bool:
    """Delete what the call left in writable places; whether all of it is gone."""
    for place, names in kept.items():
        for name in set(os.listdir(place)) - names:  # noqa: PTH208
            path = Path(place, name)
            try:
                if path.is_dir() and not path.is_symlink():
                    path.chmod(0o700)
                    shutil.rmtree(path)
                else:
                    path.unlink()
            except (OSError, RecursionError, ValueError):
                return False
    return all(set(os.listdir(place)) == names for place, names in kept.items())  # noqa: PTH208


def _become_the_call(control: socket.socket, asked: dict[str, Any], fds: Sequence[int], folder: Path) -> None:
    """Be the process in which one request of the learner's is answered; doesn't return."""
    try:
        control.close()
        request_fd, prints, answer, *card = fds
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(prints, 1)
        os.dup2(prints, 2)
        _close_all_but({0, 1, 2, request_fd, answer, *card})
        from gpututor.lab import learner_child

        folder.mkdir(mode=0o700)
        os.chdir(folder)
        sys.argv = [learner_child.FILE]
        with os.fdopen(request_fd, "rb") as file:
            request = json.load(file)
        learner_child.keep_limits(_private_bytes() + asked["memory_bytes"], asked["cpu_s"], asked["file_bytes"])
        _keep_more_limits(asked["n_tasks"])
        _let_be_read(True)  # so that its memory can be watched from outside
        learner_child.work(request | ({"card_fd": card[0]} if card else {}), answer)
    finally:
        os._exit(0)


def _close_all_but(kept: set[int]) -> None:
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
        if int(name) not in kept:
            with contextlib.suppress(OSError):
                os.close(int(name))


def _private_bytes() -> int:
    """Private writable memory that this process begins with: what was imported for it counts not."""
    for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) * 1024
    return 0


def _keep_more_limits(n_tasks: int | None) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (MAX_OPEN_FILES, MAX_OPEN_FILES))
    if n_tasks is not None:
        resource.setrlimit(resource.RLIMIT_NPROC, (n_tasks, n_tasks))


if __name__ == "__main__":
    main(sys.argv[1:])
