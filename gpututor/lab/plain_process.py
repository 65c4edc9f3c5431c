"""A learner's function in a process of its own with limits, and nothing more: it may read what its user may read."""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from gpututor.lab import learner_child
from gpututor.lab.limits import LOOK_EVERY_S, MAX_PROCESSES, Cut, Limits
from gpututor.lab.outlets import Watched, read_some
from gpututor.lab.processes import end_group, memory_bytes, n_descendants


def run_plainly(request: bytes, limits: Limits, card: int | None = None) -> Watched:
    """Start the process in an empty folder, feed it, watch it to its end; nothing of it is left when this returns.

    `card` is a descriptor that it inherits under its own number.

    Raises:
        OSError: it can't be started.
    """
    with tempfile.TemporaryDirectory(prefix="gpututor-", ignore_cleanup_errors=True) as folder:
        answers, theirs = os.pipe()
        try:
            process = _start(folder, theirs, card)
        except OSError:
            os.close(answers)
            raise
        finally:
            os.close(theirs)
        try:
            with os.fdopen(answers, "rb", buffering=0) as answer_pipe:
                watched = _watch(process, request, answer_pipe.fileno(), limits)
        finally:
            ended_by_itself = process.poll()
            end_group(process)
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
    watched.returncode = ended_by_itself
    return watched


def _start(folder: str, answer_fd: int, card: int | None) -> subprocess.Popen[bytes]:
    environment = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "SYSTEMROOT") if name in os.environ}
    environment |= {"HOME": folder, "TMPDIR": folder, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-I", "-B", "-X", "utf8", str(Path(learner_child.__file__).resolve())]
    if sys.platform == "win32":
        # No descriptor can be handed down: prints are dropped and the answer comes on standard output. Not tried.
        return subprocess.Popen(
            command, cwd=folder, env=environment, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
    return subprocess.Popen(
        [*command, str(answer_fd)],
        cwd=folder,
        env=environment,
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=(answer_fd,) if card is None else (answer_fd, card),
        start_new_session=True,
    )


def _watch(process: subprocess.Popen[bytes], request: bytes, answer_fd: int, limits: Limits) -> Watched:
    """Read what the process prints and answers until it ends or goes beyond a limit."""
    watched = Watched()
    until_s = time.monotonic() + limits.wall_s
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(request)
        process.stdin.close()
    except OSError:
        return watched  # it died before it listened
    with selectors.DefaultSelector() as outlets:
        outlets.register(process.stdout, selectors.EVENT_READ, False)
        outlets.register(answer_fd, selectors.EVENT_READ, True)
        while True:
            over = process.poll() is not None
            # Once it's over, take what is left without waiting: its children may hold the pipes open.
            some = read_some(outlets, watched, 0.0 if over else LOOK_EVERY_S)
            if watched.cut is None and not over:
                watched.cut = _beyond(process.pid, until_s, limits)
            if watched.cut is not None or (over and not some):
                return watched


def _beyond(pid: int, until_s: float, limits: Limits) -> Cut | None:
    if time.monotonic() > until_s:
        return "time"
    if (memory_bytes(pid) or 0) > limits.memory_bytes:
        return "memory"
    return "processes" if n_descendants(pid) > MAX_PROCESSES else None
