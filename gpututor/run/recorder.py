"""Keep what a script does on the simulated card, and write it down when the script ends, however it ends."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpututor.model import tape_file
from gpututor.model.tape import BeginStep, EndRun, Entry, Sync, Tape
from gpututor.results import write_at_once
from gpututor.run.limits import Limits, StopRun
from gpututor.run.request import PROGRESS, RESULT, TAPE, Request
from gpututor.run.steps import Mark, StepWatch

if TYPE_CHECKING:
    from gpututor.simgpu.session import Session

TELL_EVERY_S = 0.2
AFTER_THE_TAPE = -1
PROCESS_BEGAN_S = time.monotonic()
"""Nearly: this module is loaded before torch, which takes the child's first seconds."""

MOST_ENTRIES = 400_000
"""Our choice: ops whose ledger takes about 20 s to make. A longer run is accounted up to there, and says so."""


class Recorder:
    """One simulated run: its marks, its limits, and what the parent hears of it."""

    def __init__(self, request: Request, folder: Path, session: Session) -> None:
        self._request, self._folder, self._session = request, folder, session
        self._limits = Limits(request.n_steps, request.skip, request.seconds)
        self.watch = StepWatch(self._here, self._on_mark)
        self._began_s = time.monotonic()
        self._told_s = 0.0
        self.stopped: str | None = None
        self._finished = False
        self._keeping = True
        self.error: str | None = None

    # --- while the script runs ---------------------------------------------------------------------------------

    def _here(self) -> tuple[int, int, int]:
        queue, n_entries = self._session.player.queue, len(self._session.tape.entries)
        at = n_entries if self._keeping else AFTER_THE_TAPE
        if n_entries > MOST_ENTRIES and len(self.watch.marks.best) > self._request.skip + 1:
            self._session.stop_keeping()
            self._keeping = False
        return at, queue.end_ns, queue.summed_kernel_ns

    def _on_mark(self) -> None:
        now_s = time.monotonic()
        if now_s - self._told_s > TELL_EVERY_S:
            self._told_s = now_s
            self.tell()
        self.stopped = self._limits.reached(len(self.watch.marks.best), now_s - self._began_s) or self.stopped
        if self.stopped:
            raise StopRun

    def tell(self) -> None:
        """Let the parent know how far the run is; a full disk is no reason to end it."""
        try:
            write_at_once(self._folder / PROGRESS, json.dumps(self._told()))
        except OSError:
            return

    def _told(self) -> dict[str, Any]:
        marks, queue, memory = self.watch.marks.best, self._session.player.queue, self._session.memory
        first = marks[min(self._request.skip, len(marks)) - 1] if marks and self._request.skip else Mark(0, 0, 0, None)
        last = marks[-1] if marks else Mark(0, queue.host_ns, queue.summed_kernel_ns, None)
        n_kept = len(marks) - min(self._request.skip, len(marks))
        long_ns = last.virtual_ns - first.virtual_ns
        return {
            "n_steps": len(marks),
            "step_ns": long_ns / n_kept if n_kept else None,
            "busy_share": min(1.0, (last.busy_ns - first.busy_ns) / long_ns) if long_ns > 0 else None,
            "loss": last.loss,
            "virtual_ns": queue.end_ns,
            "n_launches": queue.n_launches,
            "memory_peak_bytes": memory.peak_bytes,
            "seconds": time.monotonic() - self._began_s,
            "started_s": self._began_s - PROCESS_BEGAN_S,
            "stopped": self.stopped,
        }

    # --- at its end --------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Write tape and result; a second call does nothing."""
        if self._finished:
            return
        self._finished = True
        marks = self.watch.marks
        tape, n_left_out = self._tape(marks.best)
        tape_file.save(tape, self._folder / TAPE)
        import torch

        told = self._told() | {
            "error": self.error,
            "steps_are": marks.kind,
            "optimizer": self.watch.leader_name,
            "n_left_out": n_left_out,
            "n_kept": max(0, tape.n_steps),
            "kept_whole": self._keeping,
            "torch": torch.__version__,
            "losses": [mark.loss for mark in marks.best[-1000:]],
        }
        write_at_once(self._folder / RESULT, json.dumps(told))

    def _tape(self, marks: list[Mark]) -> tuple[Tape, int]:
        """The run with its steps marked, and how many steps before them are left out.

        The card is waited for where the kept steps begin and where they end, so that they hold their own work and
        no other. Without two marks the whole run is one window.
        """
        entries = self._session.tape.entries
        marks = [mark for mark in marks if mark.at != AFTER_THE_TAPE]
        n_cards = self._session.machine.n_cards
        if not marks:
            whole = [*entries, Sync("end of the run"), EndRun()] if entries else []
            return Tape(self._request.name, whole, n_cards=n_cards), 0
        skip = min(self._request.skip, len(marks) - 1)
        kept: list[Entry] = []
        at = 0
        begins = ([Mark(0, 0, 0, None)] + marks)[skip:]
        for k, (begin, end) in enumerate(zip(begins, begins[1:], strict=False)):
            kept += entries[at : begin.at]
            if k == 0 and begin.at:
                kept.append(Sync("before the kept steps"))
            kept.append(BeginStep(end.n_samples))
            at = begin.at
        kept += entries[at : begins[-1].at]
        kept += [Sync("after the kept steps"), EndRun()]
        return Tape(self._request.name, kept, [mark.loss for mark in begins[1:]], n_cards=n_cards), skip
