"""What the child does at every step, whichever GPU the script runs on: tell the parent, and stop when it is time."""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from gpututor.results import write_at_once
from gpututor.run.limits import Limits, StopRun
from gpututor.run.request import PROGRESS, RESULT, Request
from gpututor.run.steps import StepWatch

TELL_EVERY_S = 0.2


class Watcher(ABC):
    """One run as its own process sees it."""

    def __init__(self, request: Request, folder: Path) -> None:
        self.request, self.folder = request, folder
        self.watch = StepWatch(self.here, self.on_mark)
        self.stopped: str | None = None
        self.error: str | None = None
        self.began_s = time.monotonic()
        self._limits = Limits(request.n_steps, request.skip, request.seconds)
        self._told_s = 0.0
        self._finished = False

    @abstractmethod
    def here(self) -> tuple[int, int, int]:
        """How far the tape is, the time on the run's own clock and the time with kernels, both in nanoseconds."""

    @abstractmethod
    def told(self) -> dict[str, Any]:
        """What the parent shows while the script runs."""

    @abstractmethod
    def result(self) -> dict[str, Any]:
        """Write what was recorded; what the report needs beside it."""

    def begin(self) -> None:
        """The script starts now; its seconds count from here."""
        self.began_s = time.monotonic()
        self.tell()

    def on_mark(self) -> None:
        """A step that counts is over."""
        now_s = time.monotonic()
        if now_s - self._told_s > TELL_EVERY_S:
            self._told_s = now_s
            self.tell()
        self.stopped = self._limits.reached(self.n_steps, now_s - self.began_s) or self.stopped
        if self.stopped:
            raise StopRun

    @property
    def n_steps(self) -> int:
        """How many steps are over."""
        return len(self.watch.marks.best)

    def common(self) -> dict[str, Any]:
        """What every kind of run tells."""
        marks = self.watch.marks
        return {
            "n_steps": self.n_steps,
            "loss": marks.best[-1].loss if marks.best else None,
            "seconds": time.monotonic() - self.began_s,
            "stopped": self.stopped,
            "error": self.error,
            "steps_are": marks.kind,
            "optimizer": self.watch.leader_name,
        }

    def tell(self) -> None:
        """Let the parent know how far the run is; a full disk is no reason to end it."""
        try:
            write_at_once(self.folder / PROGRESS, json.dumps(self.common() | self.told()))
        except OSError:
            return

    def finish(self) -> None:
        """Write down what was recorded; a second call does nothing."""
        if not self._finished:
            self._finished = True
            told = self.common() | self.told() | self.result()
            write_at_once(self.folder / RESULT, json.dumps(told))
