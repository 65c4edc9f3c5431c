"""Rounds of questions to all GPUs, the library opened again where it must be; no thread and no clock of its own."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from gpututor.measure.nvml.columns import ENTRY_BYTES
from gpututor.measure.nvml.devices import find_devices
from gpututor.measure.nvml.failures import Refusal
from gpututor.measure.nvml.library import Library, open_library, versions
from gpututor.measure.nvml.metrics import METRICS
from gpututor.measure.nvml.readings import Note
from gpututor.measure.nvml.watched import WatchedGpu

log = logging.getLogger(__name__)

KEEP_BYTES = 14_000_000
"""Our choice: an hour at 5 Hz is to stay under 20 MB, of which arrays may waste an eighth and our objects need some."""

MOST_NOTES = 200
"""Our choice: every GPU can fail in each metric with a few codes; nobody reads more."""

REOPEN_NS = (1 * 10**9, 60 * 10**9)
"""Our choice: a library that won't open again is tried after a second, then after twice as long, up to a minute."""


class Rounds:
    """All that a sampler knows. Times are nanoseconds since sampling began."""

    def __init__(
        self, interval_ns: int, wanted: Sequence[int | str] | None, nvml: Any = None, keep_bytes: int = KEEP_BYTES
    ) -> None:
        self.interval_ns = interval_ns
        self.wanted = wanted
        self.nvml = nvml
        self.keep_bytes = keep_bytes
        self.library: Library | None = None
        self.reason: str | None = None
        self.gpus: tuple[WatchedGpu, ...] = ()
        self.versions: Mapping[str, str] = {}
        self.notes: dict[tuple[str | None, str | None, int | str | None], Note] = {}
        self._now_ns = 0
        self._reopen_at_ns = self._reopen_wait_ns = 0

    def open(self) -> None:
        """Open the library and find the GPUs; `reason` says why there are none. Raises nothing of a driver."""
        opened = open_library(self.nvml)
        if isinstance(opened, str):
            self.reason = opened
            return
        self.library = opened
        self.versions = versions(opened)
        found = find_devices(opened, self.wanted)
        for said in found.notes:
            self._note(Note(said))
        most = self.keep_bytes // (ENTRY_BYTES * len(METRICS) * max(1, len(found.devices)))
        self.gpus = tuple(WatchedGpu(device, self.interval_ns, most) for device in found.devices)
        for gpu in self.gpus:
            self._meet(gpu, opened)
        if not self.gpus:
            self.reason = "; ".join(found.notes) or "the NVIDIA driver is here, and shows no GPU"

    @property
    def done(self) -> bool:
        """Whether there is nothing left to ask."""
        return all(gpu.lost for gpu in self.gpus)

    def round(self, now_ns: int, zero_ns: int, *, last: bool = False) -> None:
        """Ask every GPU what is due; with `last` also what is not."""
        self._now_ns = now_ns
        if self.library is None and not self._reopened(now_ns):
            return
        for gpu in self.gpus:
            if gpu.contact is None and not gpu.lost and now_ns >= gpu.meet_at_ns and self.library is not None:
                self._meet(gpu, self.library)
            if gpu.round(now_ns, zero_ns, self._tell, last=last):
                self.close()
                self._reopened(now_ns)
                return

    def close(self) -> None:
        """Give everything back."""
        library, self.library = self.library, None
        if library is None or not library.ours:
            return
        for gpu in self.gpus:
            gpu.close(library.nvml)
        library.close()

    def _reopened(self, now_ns: int) -> bool:
        if now_ns < self._reopen_at_ns:
            return False
        opened = open_library(self.nvml)
        if isinstance(opened, str):
            least, longest = REOPEN_NS
            self._reopen_wait_ns = min(longest, max(least, 2 * self._reopen_wait_ns))
            self._reopen_at_ns = now_ns + self._reopen_wait_ns
            self._note(Note(f"the driver's library closed and did not open again: {opened}", first_ns=now_ns))
            refusal = Refusal(None, opened)
            for gpu in self.gpus:
                gpu.leave(refusal)
            return False
        self._reopen_wait_ns, self._reopen_at_ns = 0, now_ns + REOPEN_NS[0]  # not several times a second
        self.library = opened
        for gpu in self.gpus:
            if not gpu.lost:
                self._meet(gpu, opened)
        return True

    def _meet(self, gpu: WatchedGpu, library: Library) -> None:
        refusal = gpu.meet(library, self._now_ns)
        if refusal is not None:
            self._tell(gpu.device.uuid, "handle", refusal)

    def _tell(self, uuid: str, metric: str, refusal: Refusal) -> None:
        self._note(Note(refusal.words, uuid, metric, refusal.code, self._now_ns))

    def _note(self, note: Note) -> None:
        """Keep it the first time; a GPU, a metric and a code are told once."""
        key = (note.uuid, note.metric, note.said if note.metric is None else note.code)
        if key in self.notes or len(self.notes) >= MOST_NOTES:
            return
        self.notes[key] = note
        log.info("%s %s: %s", note.uuid or "GPU", note.metric or "sampling", note.said)
