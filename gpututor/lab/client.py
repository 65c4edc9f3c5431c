"""The page's side of one worker process: start it, talk to it, read what it printed, end it."""

from __future__ import annotations

import os
import selectors
import socket
import subprocess
import sys
import threading
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import IO, Literal

from gpututor.lab.processes import end_group, how_it_ended, import_path
from gpututor.lab.protocol import Message, Wire

Kind = Literal["simulated", "real"]

LOG_BYTES = 2**16  # the last 64 KiB of what a worker printed
NICE = 5  # the page's server goes first when both want the same core

# One thread: sums come out the same on every machine, and readers don't take cores from one another.
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


class Log:
    """The last LOG_BYTES of what a process printed, read on a thread of its own so that it never has to wait."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe, self._open = pipe, True
        self._pieces: deque[bytes] = deque()
        self._size_bytes = self._forgotten_bytes = 0
        self._lock = threading.RLock()
        if sys.platform != "win32":
            os.set_blocking(pipe.fileno(), False)
        self._thread = threading.Thread(target=self._follow, daemon=True, name="lab log")
        self._thread.start()

    def _follow(self) -> None:
        if sys.platform == "win32":  # no waiting on pipes there: read piece by piece, and never catch up
            while piece := os.read(self._pipe.fileno(), 2**16):
                self._keep(piece)
            return
        with self._pipe, selectors.DefaultSelector() as printed:
            printed.register(self._pipe, selectors.EVENT_READ)
            while self._open:
                printed.select()
                self._catch_up()

    def _catch_up(self) -> None:
        """Read what was printed until now, so that a job's last words belong to that job."""
        if sys.platform == "win32":
            return
        with self._lock, suppress(BlockingIOError):
            while self._open:
                if piece := os.read(self._pipe.fileno(), 2**16):
                    self._keep(piece)
                else:
                    self._open = False

    def _keep(self, piece: bytes) -> None:
        with self._lock:
            self._pieces.append(piece)
            self._size_bytes += len(piece)
            while self._size_bytes - len(self._pieces[0]) > LOG_BYTES:
                first = self._pieces.popleft()
                self._size_bytes -= len(first)
                self._forgotten_bytes += len(first)

    @property
    def position(self) -> int:
        """Bytes printed so far."""
        self._catch_up()
        with self._lock:
            return self._forgotten_bytes + self._size_bytes

    def since(self, position: int) -> str:
        """What was printed after `position`, as far as it is still kept."""
        self._catch_up()
        with self._lock:
            kept = b"".join(self._pieces)
            text = kept[max(0, position - self._forgotten_bytes) :][-LOG_BYTES:]
        return text.decode("utf-8", "replace")


class WorkerProcess:
    """A process that runs experiments. Of kind "simulated" it sees no GPU; the two kinds never mix in one process."""

    def __init__(self, kind: Kind = "simulated", *, torch: bool = True) -> None:
        self.kind = kind
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-m", "gpututor.lab.worker", "--nice", str(NICE)]
        command += ["--torch"] if torch else []
        try:
            self._process = _start(command, theirs, _environment(kind))
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        self._wire = Wire(ours)
        assert self._process.stdout is not None
        self.log = Log(self._process.stdout)

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def send(self, message: Message) -> None:
        """See `Wire.send`."""
        self._wire.send(message)

    def receive(self, timeout_s: float) -> Message | None:
        """See `Wire.receive`."""
        return self._wire.receive(timeout_s)

    def how_it_ended(self) -> str:
        """How the process ended, in words; waits a moment for a process that is just ending."""
        try:
            return how_it_ended(self._process.wait(timeout=2.0))
        except subprocess.TimeoutExpired:
            return "it hung up"

    def end(self) -> None:
        """End the process and all it started; returns when they are gone."""
        end_group(self._process)
        self._wire.close()


def _environment(kind: Kind) -> dict[str, str]:
    environment = {**os.environ, **_ONE_THREAD, "PYTHONUNBUFFERED": "1"}
    if kind == "simulated":
        environment["CUDA_VISIBLE_DEVICES"] = ""
        environment.pop("CUDA_LAUNCH_BLOCKING", None)  # the simulated card would heed it
    if (path := import_path()) is not None:
        environment["PYTHONPATH"] = path
    return environment


def _start(command: list[str], wire: socket.socket, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    """The process, holding the wire's other end, printing into a pipe, leading a group of its own."""
    root = Path(os.sep).resolve()  # not the reader's folder: a random.py there would hide Python's own
    if sys.platform == "win32":
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment, cwd=root
        )
        assert process.stdin is not None
        with process.stdin as pipe:
            pipe.write(wire.share(process.pid))
        return process
    return subprocess.Popen(
        [*command, "--wire", str(wire.fileno())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        cwd=root,
        pass_fds=(wire.fileno(),),
        start_new_session=True,
    )
