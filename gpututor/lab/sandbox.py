"""A bubblewrap sandbox with a process inside that starts calls (`zygote`): how it begins, serves, and ends."""

from __future__ import annotations

import json
import os
import platform
import select
import selectors
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, final

from gpututor.errors import SandboxFailed
from gpututor.lab.limits import LOOK_EVERY_S, MAX_FILE_BYTES, MAX_PROCESSES, MIB, Cut, Limits
from gpututor.lab.outlets import Watched, read_some
from gpututor.lab.process_tree import Process, below, held_bytes
from gpututor.lab.sandbox_view import FOLDER, Way, arguments, import_from, stranger

STARTS_WITHIN_S = 60.0  # a tenth of a second, and some more on a busy machine
LOADS_WITHIN_S = 300.0  # torch is read from a disk that may be slow
STOPS_WITHIN_S = 5.0
MORE_BYTES = 64 * MIB  # code and data of modules that a call imports
MAX_TASKS = 256  # processes and threads; what the system itself holds a fork bomb at
COUNTS_BY_NAMESPACE = (
    5,
    14,
)  # the first Linux that counts them for each user namespace, not for a user's whole machine
ZYGOTE = Path(__file__).with_name("zygote.py")


@final
class Sandbox:
    """A running sandbox. Everything in it ends when it is closed, or when the thread that made it ends.

    Raises:
        SandboxFailed: it doesn't start, or can't be used; says why.
    """

    def __init__(self, way: Way) -> None:
        self._way, self._loaded = way, False
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        infos, info = os.pipe()
        try:
            self._process = _start(way, theirs.fileno(), info)
        except OSError as error:
            self._control.close()
            os.close(infos)
            raise SandboxFailed(f"bubblewrap can't be run: {error.strerror}") from error
        finally:
            theirs.close()
            os.close(info)
        self._first: int | None = None  # the first process inside; its number is kept from reuse by a descriptor
        try:
            with os.fdopen(infos, "rb") as file:
                self._pid = int(json.loads(file.read() or b"{}").get("child-pid", 0))
            self._first = os.pidfd_open(self._pid) if self._pid else None
            self._expect("ready", STARTS_WITHIN_S)
        except (SandboxFailed, OSError, ValueError) as error:
            self._process.kill()
            why = (isinstance(error, SandboxFailed) and str(error)) or _first_line(self._process)
            self.close()
            raise SandboxFailed(why or "it ended at once and said nothing") from error

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End every process in it; returns when they are gone."""
        if self._first is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._first, signal.SIGKILL)
            select.select([self._first], [], [], STOPS_WITHIN_S)  # the first of a namespace goes after all others
            os.close(self._first)
            self._first = None
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(STOPS_WITHIN_S)
        self._process.kill()
        self._process.wait()
        self._control.close()
        if self._process.stderr is not None:
            self._process.stderr.close()

    def load(self) -> None:
        """Have torch imported inside, once.

        Raises:
            SandboxFailed: it did not come to an end.
        """
        if not self._loaded:
            self._say({"do": "load"})
            self._expect("loaded", LOADS_WITHIN_S)
            self._loaded = True

    def call(self, request: dict[str, Any], limits: Limits, card: int | None = None) -> tuple[Watched, bool]:
        """What came of one request, and whether the sandbox is as it was, ready for another.

        Raises:
            SandboxFailed: the sandbox was gone before the request.
        """
        fds = [_as_file(json.dumps(request).encode())]
        prints, printing = os.pipe()
        answers, answering = os.pipe()
        try:
            asked = {"do": "call", "memory_bytes": limits.memory_bytes, "file_bytes": MAX_FILE_BYTES}
            asked |= {"cpu_s": int(limits.told_s) + 1, "n_tasks": self._most_tasks()}
            before = below(self._pid)
            try:
                self._say(asked, [*fds, printing, answering, *([] if card is None else [card])])
            finally:
                for fd in (*fds, printing, answering):
                    os.close(fd)
            return self._watch(prints, answers, limits, before)
        finally:
            os.close(prints)
            os.close(answers)

    def _most_tasks(self) -> int | None:
        """The limit on tasks, None where the system would count those of others too, or none of root's."""
        release = tuple(int(part) for part in platform.release().split("-")[0].split(".")[:2] if part.isdigit())
        return MAX_TASKS if self._way.drops_user or release >= COUNTS_BY_NAMESPACE else None

    def _say(self, what: dict[str, Any], fds: list[int] | None = None) -> None:
        if self._process.poll() is not None:  # what was in it may take a moment longer to end, and still listen
            raise SandboxFailed("the sandbox has ended by itself")
        try:
            socket.send_fds(self._control, [json.dumps(what).encode()], fds or [])
        except OSError as error:
            raise SandboxFailed("the sandbox has ended by itself") from error

    def _expect(self, word: str, within_s: float) -> None:
        """Wait for this word."""
        if not select.select([self._control], [], [], within_s)[0]:
            raise SandboxFailed(f"the sandbox was not {word} within {within_s:g} s")
        told = self._heard()
        if word not in told:
            raise SandboxFailed(str(told.get("trouble", "")))

    def _heard(self) -> dict[str, Any]:
        """The zygote's next word; empty when it is gone."""
        with suppress(OSError, ValueError):
            return dict(json.loads(self._control.recv(2**16)))
        return {}

    def _watch(self, prints: int, answers: int, limits: Limits, before: list[Process]) -> tuple[Watched, bool]:
        watched, until_s = Watched(), time.monotonic() + limits.wall_s
        with selectors.DefaultSelector() as outlets:
            outlets.register(prints, selectors.EVENT_READ, False)
            outlets.register(answers, selectors.EVENT_READ, True)
            outlets.register(self._control, selectors.EVENT_READ, None)
            while True:
                read_some(outlets, watched, LOOK_EVERY_S)
                if select.select([self._control], [], [], 0)[0]:
                    return self._ended(outlets, watched, limits)
                if watched.cut is None:
                    watched.cut = self._beyond(until_s, limits, before)
                if watched.cut is not None:
                    return watched, watched.cut != "processes" and self._stopped()

    def _ended(self, outlets: selectors.BaseSelector, watched: Watched, limits: Limits) -> tuple[Watched, bool]:
        """Take what is left in the pipes, which nobody holds any more, and how the call's process ended."""
        told = self._heard()
        if not told:
            watched.cut = watched.cut or "keeper"
            return watched, False
        outlets.unregister(self._control)
        while watched.cut is None and read_some(outlets, watched, 0.0):
            pass
        watched.returncode = told["ended"]
        killed = watched.returncode in (-signal.SIGKILL, -signal.SIGXCPU)
        if killed and limits.cpu_s is not None and told["cpu_s"] >= limits.cpu_s:
            watched.cut = "time"  # the system saw it before we did
        return watched, bool(told["clean"])

    def _stopped(self) -> bool:
        """Have the call ended; whether that went well, so that the sandbox can be used again."""
        with suppress(SandboxFailed):
            self._say({"do": "stop"})
            if select.select([self._control], [], [], STOPS_WITHIN_S)[0]:
                return bool(self._heard().get("clean"))
        return False

    def _beyond(self, until_s: float, limits: Limits, before: list[Process]) -> Cut | None:
        """The limit that the call is beyond. What a busy machine brings about too, time, is looked at last."""
        now = below(self._pid)
        call = now[2:]
        if len(call) > 1 + MAX_PROCESSES:
            return "processes"
        # The system refuses one process's own memory at the limit, with the line. This is for memory of other kinds.
        most = limits.memory_bytes + limits.memory_bytes // 4 + MORE_BYTES
        zygotes = now[1].resident_bytes if len(now) > 1 else 0
        if sum(max(0, each.resident_bytes - zygotes) for each in call) > most and (
            sum(map(held_bytes, call)) > most + zygotes
        ):
            return "memory"
        over = limits.cpu_s is not None and _cpu_s(now) - _cpu_s(before) > limits.cpu_s
        return "time" if over or time.monotonic() > until_s else None


def _cpu_s(tree: list[Process]) -> float:
    """Processor time of a sandbox's calls: of its first process and the zygote only what children have used."""
    return sum(each.childrens_cpu_s for each in tree) + sum(each.own_cpu_s for each in tree[2:])


def _start(way: Way, control: int, info: int) -> subprocess.Popen[bytes]:
    python = [sys.executable, "-s", "-B", "-X", "utf8"]
    told = [str(control), str(stranger() if way.drops_user else 0), FOLDER, *import_from()]
    return subprocess.Popen(
        [way.program, *arguments(way), "--info-fd", str(info), "--", *python, str(ZYGOTE), *told],
        cwd="/",
        env={},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        pass_fds=(control, info),
        start_new_session=True,
    )


def _first_line(process: subprocess.Popen[bytes]) -> str:
    """What it complained of: the last line of a traceback, else the first."""
    assert process.stderr is not None
    process.wait()
    lines = process.stderr.read(2**16).decode("utf-8", "replace").strip().splitlines() or [""]
    return lines[-1] if lines[0].startswith("Traceback") else lines[0]


def _as_file(text: bytes) -> int:
    """A descriptor from which this can be read, which never makes the writer wait."""
    fd = os.memfd_create("request")
    with os.fdopen(os.dup(fd), "wb") as file:
        file.write(text)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
