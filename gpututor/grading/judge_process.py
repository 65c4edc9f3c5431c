"""The process that judges: started, fed, watched, replaced when it dies; the same here and on a cluster's workers."""

from __future__ import annotations

import json
import math
import os
import selectors
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Literal

import psutil  # type: ignore[import-untyped]

from gpututor import errors
from gpututor.errors import GradingNotPossible, GradingStopped
from gpututor.exercises.registry import exercise
from gpututor.grading import items, judging
from gpututor.lab.processes import import_path, memory_bytes

TRIES = 3  # the first one and two more, for an item at which the process died
MAX_CPU_S = 60.0  # the judge's own, a case: reckoning takes some ms, pricing what code launched some seconds
MAX_WALL_S = (
    900.0  # a case: learner's code has limits of its own, so beyond this the machine is at fault, not the answer
)
STARTS_WITHIN_S = 180.0  # torch is imported once for a sandbox, and the machine may be busy
MAX_MEMORY_BYTES = 2 * 2**30  # the judge's own, learner's code not counted; pricing a run takes some 100 MB
LOOK_EVERY_S = 0.1
MAX_LINE_BYTES = 2**22

Done = Callable[[str, dict[str, Any]], None]
End = Literal["died", "time", "memory"]


class _Over(Exception):
    """The process is no more; why."""

    def __init__(self, why: End) -> None:
        super().__init__(why)
        self.why: End = why


class JudgeProcess:
    """One process that judges, from its start until `close`."""

    def __init__(self) -> None:
        self._home = tempfile.TemporaryDirectory(prefix="gpututor-judge-", ignore_cleanup_errors=True)
        environment = {**os.environ, "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        # Nobody's progress and nobody's calibration: verdicts are the same on every machine.
        environment["GPUTUTOR_HOME"] = self._home.name
        if (path := import_path()) is not None:
            environment["PYTHONPATH"] = path
        self._process = subprocess.Popen(
            [sys.executable, "-m", "gpututor.grading.judging"],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is the grader's to hear
        )
        self._heard = b""

    def send(self, bundle: Mapping[str, Any]) -> None:
        """Hand over a bundle of items."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(bundle).encode("ascii") + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise _Over("died") from error

    def hear(self, within_s: float, stopping: threading.Event | None, cpu_s: float = math.inf) -> dict[str, Any]:
        """The next line that it says, after `within_s` on the clock and `cpu_s` of its own processor time at most."""
        until_s, cpu_before_s = time.monotonic() + within_s, self._cpu_s()
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as outlet:
            outlet.register(self._process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._heard:
                if stopping is not None and stopping.is_set():
                    raise GradingStopped("grading was stopped")
                if time.monotonic() > until_s:
                    raise _Over("died")
                if self._cpu_s() - cpu_before_s > cpu_s:
                    raise _Over("time")
                if (memory_bytes(self._process.pid) or 0) > MAX_MEMORY_BYTES or len(self._heard) > MAX_LINE_BYTES:
                    raise _Over("memory")
                if outlet.select(LOOK_EVERY_S):
                    piece = os.read(self._process.stdout.fileno(), 2**16)
                    if not piece:
                        raise _Over("died")
                    self._heard += piece
        line, _, self._heard = self._heard.partition(b"\n")
        told: dict[str, Any] = json.loads(line)
        return told

    def _cpu_s(self) -> float:
        """Seconds of processor time that it has used, those of learners' code not counted."""
        try:
            used = psutil.Process(self._process.pid).cpu_times()
        except psutil.Error:
            return 0.0
        return float(used.user + used.system)

    def close(self) -> None:
        """End it and all that it started."""
        with suppress(psutil.Error):
            own = psutil.Process(self._process.pid)
            for each in (*own.children(recursive=True), own):
                with suppress(psutil.Error):
                    each.kill()
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        self._home.cleanup()


_HERE = threading.local()
"""The judge of this thread, kept from one bundle to the next: starting one takes a second."""


def judge_bundle(
    bundle: Mapping[str, Any], done: Done | None = None, stopping: threading.Event | None = None
) -> dict[str, Any]:
    """Judge the items of one learner: their verdicts by key, and how often an item had to be tried again.

    `done` hears each verdict at once.

    Raises:
        GradingNotPossible: this is another grader than the one that asks, or the isolation isn't there.
        GradingStopped: `stopping` was set.
    """
    if bundle["grader"] != items.version():
        raise GradingNotPossible(
            f"a worker has {items.version()}, and {bundle['grader']} asks; install the same gpututor on all machines"
        )
    waiting: list[Mapping[str, Any]] = list(bundle["items"])
    verdicts: dict[str, dict[str, Any]] = {}
    n_tries = n_again = 0

    def keep(verdict: dict[str, Any]) -> None:
        verdicts[waiting[0]["key"]] = verdict
        if done is not None:
            done(waiting[0]["key"], verdict)
        del waiting[0]

    while waiting:
        n_before = len(waiting)
        over = _ask(bundle, waiting, keep, stopping)
        if over is None:
            break
        n_tries = n_tries + 1 if len(waiting) == n_before else 1
        if over != "died":
            keep(_too_much(waiting[0], over))
            n_tries = 0
        elif n_tries >= TRIES:
            keep(not_judged(waiting[0]))
            n_tries = 0
        else:
            n_again += 1
    return {"verdicts": verdicts, "n_again": n_again}


def _ask(
    bundle: Mapping[str, Any],
    waiting: list[Mapping[str, Any]],
    keep: Callable[[dict[str, Any]], None],
    stopping: threading.Event | None,
) -> End | None:
    """Have the items judged in this thread's process; why that ended before they were, if it did."""
    judge = getattr(_HERE, "judge", None) or JudgeProcess()
    _HERE.judge = judge
    try:
        judge.send({"isolation": bundle["isolation"], "items": waiting})
        told = judge.hear(STARTS_WITHIN_S, stopping)
        while True:
            if "verdict" in told:
                keep(told["verdict"])
            elif told.get("kind") == "SandboxFailed":
                raise _Over("died")
            elif "refused" in told:
                raise getattr(errors, told["kind"], GradingNotPossible)(told["refused"])
            elif "done" in told:
                return None
            n_cases = 1 + len(waiting[0]["hidden"]) if waiting else 1
            told = judge.hear(n_cases * MAX_WALL_S, stopping, n_cases * MAX_CPU_S)
    except _Over as over:
        close_here()
        return over.why
    except BaseException:
        close_here()
        raise


def close_here() -> None:
    """End this thread's judge, if it has one."""
    judge: JudgeProcess | None = getattr(_HERE, "judge", None)
    _HERE.judge = None
    if judge is not None:
        judge.close()


def _too_much(item: Mapping[str, Any], over: End) -> dict[str, Any]:
    limit = f"{MAX_CPU_S:g} s a case" if over == "time" else f"{MAX_MEMORY_BYTES // 2**30} GiB of memory"
    return judging.failed(exercise(item["number"]), f"judging it takes more than {limit}")


def not_judged(item: Mapping[str, Any]) -> dict[str, Any]:
    """The verdict on an item at which whoever judged it died, again and again."""
    told = judging.failed(exercise(item["number"]), "the grader could not judge this")
    text = f"The grader could not judge this: its process died {TRIES} times. Somebody will look at it."
    return told | {"state": "not judged", "text": text}
