"""Start the child, watch it, and end it when it is time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Protocol

from gpututor.lab import processes
from gpututor.run import request as requests
from gpututor.run.limits import GRACE_S
from gpututor.run.request import PROGRESS, RESULT, Request, read_if_there

LOOK_EVERY_S = 0.1
OUTPUT_GRACE_S = 1.0  # a grandchild that lives on may hold the pipe open for ever


class Viewer(Protocol):
    """Who watches a run."""

    def streams(self) -> dict[str, Any]:
        """Arguments for Popen: where the script's outputs go."""

    def show(self, told: dict[str, Any], held_bytes: int | None) -> None:
        """Hear what the child told, and the bytes of memory that it holds."""

    def read(self, pipe: IO[bytes]) -> threading.Thread:
        """Take over what comes through a pipe of the child's; the thread ends with the pipe."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended. `told` is the child's last word, `whole` whether it is its result or only its progress.

    `stopped` says why it was stopped, or None when the script ended by itself; `status` is the exit status.
    """

    status: int
    told: dict[str, Any]
    whole: bool
    stopped: str | None
    how: str
    host_memory_peak_bytes: int
    seconds: float


def command() -> list[str]:
    """The command line of the child but for its folder, run by this same Python."""
    return [sys.executable, "-m", "gpututor.run.child"]


def environment(request: Request) -> tuple[dict[str, str], Request]:
    """The child's environment, and the request with what the child must take out of it again."""
    env = dict(os.environ)
    if not request.here:
        request = replace(request, visible_gpus=env.get("CUDA_VISIBLE_DEVICES"))
        env["CUDA_VISIBLE_DEVICES"] = ""
    path = processes.import_path()
    if path != env.get("PYTHONPATH") and path is not None:
        request = replace(request, added_path=str(processes.PACKAGE_ROOT))
        env["GPUTUTOR_PYTHONPATH"], env["PYTHONPATH"] = env.get("PYTHONPATH", ""), path
    return env, request


def run(request: Request, folder: Path, viewer: Viewer) -> Ended:
    """Run the script to its end, its limit, or Ctrl-C; `viewer` hears how far it is.

    Raises:
        OSError: no process can be started, or the disk is full.
    """
    env, request = environment(request)
    requests.write(folder, request)
    child: subprocess.Popen[bytes] = subprocess.Popen([*command(), str(folder)], env=env, **viewer.streams())
    readers = [viewer.read(pipe) for pipe in (child.stdout, child.stderr) if pipe is not None]
    watch = _Watch(child, request, folder, viewer)
    try:
        watch.until_it_ends()
    finally:
        if child.poll() is None:
            child.kill()
            child.wait()
        for reader in readers:
            reader.join(OUTPUT_GRACE_S)
    return watch.ended()


class _Watch:
    """The parent's side of one run."""

    def __init__(self, child: subprocess.Popen[bytes], request: Request, folder: Path, viewer: Viewer) -> None:
        self.child, self._request, self._folder, self._viewer = child, request, folder, viewer
        self._began_s = time.monotonic()
        self._memory_peak_bytes = 0
        self._stop_s: float | None = None  # when it was first to stop
        self._script_began_s: float | None = None  # when its process was first heard of
        self._why: str | None = None
        self._n_asked = 0
        self._interrupted = False

    def until_it_ends(self) -> None:
        """Look again and again; a first Ctrl-C lets the script end itself, a second one ends it."""
        while self.child.poll() is None:
            try:
                self.child.wait(LOOK_EVERY_S)
            except subprocess.TimeoutExpired:
                self._look()
            except KeyboardInterrupt:
                if self._interrupted:
                    self.child.kill()
                self._interrupted = True
                self._stop_s = self._stop_s or time.monotonic()

    def _look(self) -> None:
        held_bytes = processes.memory_bytes(self.child.pid)
        self._memory_peak_bytes = max(self._memory_peak_bytes, held_bytes or 0)
        told = read_if_there(self._folder / PROGRESS)
        self._viewer.show(told or {}, held_bytes)
        now_s = time.monotonic()
        if self._stop_s is None and told is not None:
            limit_s = self._request.seconds
            self._script_began_s = self._script_began_s or now_s
            late = limit_s is not None and now_s - self._script_began_s > limit_s + 2 * LOOK_EVERY_S
            self._why = f"after {limit_s:g} s, as asked" if late else None
            self._stop_s = now_s - GRACE_S if late else now_s if told["stopped"] else None
        if self._stop_s is not None and now_s - self._stop_s >= GRACE_S * (1 + self._n_asked):
            self._ask_to_end()

    def _ask_to_end(self) -> None:
        """Twice politely, so that the tape is written; then not."""
        self._n_asked += 1
        if self._n_asked <= 2 and sys.platform != "win32":
            self.child.send_signal(signal.SIGTERM)
        else:
            self.child.kill()

    def ended(self) -> Ended:
        """What is known when the child is gone."""
        code = self.child.returncode
        result = read_if_there(self._folder / RESULT)
        told = result or read_if_there(self._folder / PROGRESS) or {}
        stopped = "by Ctrl-C" if self._interrupted else self._why or told.get("stopped")
        status = 128 + signal.SIGINT if self._interrupted else 0 if stopped else code if code >= 0 else 128 - code
        seconds = time.monotonic() - self._began_s
        how = processes.how_it_ended(code)
        return Ended(status, told, result is not None, stopped, how, self._memory_peak_bytes, seconds)
