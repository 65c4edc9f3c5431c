"""Keep what a script does on the simulated card, and write it down when the script ends, however it ends."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpututor.model import tape_file
from gpututor.model.tape import BeginStep, EndRun, Entry, Sync, Tape
from gpututor.run.request import TAPE, Request
from gpututor.run.steps import Mark
from gpututor.run.watcher import Watcher

if TYPE_CHECKING:
    from gpututor.simgpu.session import Session

AFTER_THE_TAPE = -1
MOST_ENTRIES = 400_000
"""Our choice: ops whose ledger is made in well under a minute. A longer run is accounted up to there, and says so."""


class Recorder(Watcher):
    """A run on the simulated card of `session`."""

    def __init__(self, request: Request, folder: Path, session: Session) -> None:
        super().__init__(request, folder)
        self._session = session
        self._keeping = True

    def here(self) -> tuple[int, int, int]:
        """How far the tape is, the virtual time when everything so far is done, and the time with kernels."""
        queue, n_entries = self._session.player.queue, len(self._session.tape.entries)
        at = n_entries if self._keeping else AFTER_THE_TAPE
        if self._keeping and n_entries > MOST_ENTRIES and self.n_steps > self.request.skip + 1:
            self._session.stop_keeping()
            self._keeping = False
        return at, queue.end_ns, queue.summed_kernel_ns

    def told(self) -> dict[str, Any]:
        """Pace and use of the card over the steps so far, those left out apart."""
        marks, queue, memory = self.watch.marks.best, self._session.player.queue, self._session.memory
        n_out = min(self.request.skip, len(marks))
        first = marks[n_out - 1] if n_out else Mark(0, 0, 0, None)
        last = marks[-1] if marks else Mark(0, queue.end_ns, queue.summed_kernel_ns, None)
        n_kept, long_ns = len(marks) - n_out, last.virtual_ns - first.virtual_ns
        self._session.n_steps_seen = len(marks)
        return {
            "step_ns": long_ns / n_kept if n_kept else None,
            "busy_share": min(1.0, (last.busy_ns - first.busy_ns) / long_ns) if long_ns > 0 else None,
            "virtual_ns": queue.end_ns,
            "n_launches": queue.n_launches,
            "memory_peak_bytes": memory.peak_bytes,
        }

    def result(self) -> dict[str, Any]:
        """Write the tape."""
        import torch

        tape, n_left_out = self._tape()
        tape_file.save(tape, self.folder / TAPE)
        self._session.tell_no_more()
        return {
            "n_left_out": n_left_out,
            "n_kept": tape.n_steps,
            "kept_whole": self._keeping,
            "torch": torch.__version__,
        }

    def _tape(self) -> tuple[Tape, int]:
        """The run with its steps marked, and how many steps before them are left out.

        The card is waited for where the kept steps begin and where they end, so that they hold their own work and
        no other. Without a mark the whole run is one window.
        """
        entries, named = self._session.tape.entries, replace(self._session.tape, what=self.request.name)
        marks = [mark for mark in self.watch.marks.best if mark.at != AFTER_THE_TAPE]
        if not marks:
            whole = [*entries, Sync("end of the run"), EndRun()] if entries else []
            return replace(named, entries=whole), 0
        skip = min(self.request.skip, len(marks) - 1)
        bounds = [Mark(0, 0, 0, None), *marks][skip:]
        kept: list[Entry] = entries[: bounds[0].at]
        if bounds[0].at:
            kept.append(Sync("before the kept steps"))
        for begin, end in pairwise(bounds):
            kept.append(BeginStep(end.n_samples))
            kept += entries[begin.at : end.at]
        kept += [Sync("after the kept steps"), EndRun()]
        return replace(named, entries=kept, losses=[mark.loss for mark in bounds[1:]]), skip
