"""One GPU under the sampler's eye: its questions, what became of them, and the moment it was lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gpututor.measure.nvml import gpm
from gpututor.measure.nvml.clocks import clock_reasons
from gpututor.measure.nvml.columns import Column, Figure
from gpututor.measure.nvml.contact import Contact
from gpututor.measure.nvml.devices import Device, handle, mig_place
from gpututor.measure.nvml.failures import Meaning, Refusal
from gpututor.measure.nvml.library import Library, gate
from gpututor.measure.nvml.metrics import METRICS
from gpututor.measure.nvml.probing import Probe, Standing, State
from gpututor.measure.nvml.questions import questions
from gpututor.measure.nvml.readings import Energy, GpuSummary, Held, Reading, Series

SCRUBBING_NS = 1_000_000_000
"""ECC memory is cleaned while a driver starts, and counts as work; a driver without persistence starts with us. Source:
nvml.h, nvmlDeviceGetUtilizationRates, which gives no length; a second is the longest sample period it names."""

STALE_TIMES = 3
"""Our choice: a value is not believed after three times the time in which a new one was due."""

MEET_AGAIN_NS = (1 * 10**9, 60 * 10**9)
"""Our choice: a GPU that can't be opened again is tried after a second, then after twice as long, up to a minute."""

Tell = Callable[[str, str, Refusal], None]


class WatchedGpu:
    """The state of one GPU; only the sampler's thread asks, any thread may look."""

    def __init__(self, device: Device, interval_ns: int, most_entries: int) -> None:
        self.device = device
        self.lost: str | None = None
        self.monitor = gpm.Monitor()
        self.contact: Contact | None = None
        self.meet_at_ns = self.meet_wait_ns = 0
        scrubbing = device.facts.get("ecc") == 1 and device.facts.get("persistence") == 0
        held_ns = SCRUBBING_NS if scrubbing else 0
        self.standings = {name: Standing(metric, Column(metric, most_entries)) for name, metric in METRICS.items()}
        asked = [*questions(held_ns), gpm.question(self.monitor)]
        self.probes = [Probe(q, [self.standings[name] for name in q.metrics], interval_ns) for q in asked]
        if scrubbing:
            self.probes[0].due_ns = held_ns
            waits = Refusal(None, "the first second is left out, in which ECC memory is cleaned", Meaning.NOTHING_NEW)
            for name in self.probes[0].question.metrics:
                self.standings[name].refusal = waits
        self.interval_ns = interval_ns

    def meet(self, library: Library, now_ns: int) -> Refusal | None:
        """Take a handle from this library; the refusal where it gives none, after which it is tried again later."""
        gpu = handle(library, self.device.uuid)
        if isinstance(gpu, Refusal):
            least, longest = MEET_AGAIN_NS
            self.meet_wait_ns = min(longest, max(least, 2 * self.meet_wait_ns))
            self.meet_at_ns = now_ns + self.meet_wait_ns
            if gpu.meaning is Meaning.LOST:
                self._lose(gpu)
            else:
                self.leave(gpu)
            return gpu
        self.meet_wait_ns = 0
        self.contact = Contact(library.nvml, gpu)
        if self.device.is_mig:
            place = mig_place(library, gpu)
            if place is not None:
                self.contact.parent, self.contact.gpu_instance = place
        return None

    def round(self, now_ns: int, zero_ns: int, tell: Tell, *, last: bool = False) -> bool:
        """Ask all that is due; whether the library must be opened again. A lost GPU is never asked again."""
        gpu = self.contact
        if gpu is None or self.lost:
            return False
        gpu.now_ns, gpu.zero_ns = now_ns, zero_ns
        soon_ns = now_ns + self.interval_ns // 2
        for probe in self.probes:
            if probe.due_ns > soon_ns and not (last and not probe.dead and not probe.n_failures):
                continue
            for metric, refusal in probe.ask(gpu):
                if refusal.meaning is Meaning.REOPEN:
                    return True
                tell(self.device.uuid, metric.name, refusal)
                if refusal.meaning is Meaning.LOST:
                    self._lose(refusal)
                    return False
        return False

    def leave(self, refusal: Refusal) -> None:
        """There is no way to the GPU now, so that nothing of it is known."""
        self.contact = None
        for standing in self.standings.values():
            standing.latest = None
            if standing.state is not State.UNSUPPORTED:
                standing.refusal = Refusal(refusal.code, f"the GPU can't be opened ({refusal.said})")

    def _lose(self, refusal: Refusal) -> None:
        """The GPU is gone; its handle isn't passed on again, since drivers have crashed on it (nvitop issue 139)."""
        self.lost = f"the {self.device.name} is lost ({refusal.words}); only a restart of the machine brings it back"
        self.contact = None
        for standing in self.standings.values():
            if standing.state is not State.UNSUPPORTED:
                standing.refuse(refusal)

    def close(self, nvml: Any) -> None:
        """Give back what belongs to the library, which must still be open."""
        try:
            with gate():
                self.monitor.free(nvml)
        except Exception:  # noqa: BLE001  # a driver that fails here has nothing of ours any more
            return

    # --- looking ---

    def why(self, name: str) -> str:
        """Why this metric has no value now."""
        if self.lost:
            return self.lost
        standing = self.standings[name]
        refusal = standing.refusal
        if refusal is None:
            return "it was not asked for yet" if standing.state is State.UNTRIED else "there is no new value"
        if standing.state is State.FAILED:
            return f"{standing.words} ({refusal.words})"
        return refusal.words

    def reading(self, now_ns: int) -> Reading:
        """The newest values; one that is too old is None."""
        values: dict[str, float | None] = {}
        reasons: dict[str, str] = {}
        every_ns = {name: probe.every_ns for probe in self.probes for name in probe.question.metrics}
        for name, standing in self.standings.items():
            value, at_ns = standing.latest, standing.latest_ns
            if value is not None and now_ns - at_ns > STALE_TIMES * max(every_ns[name], self.interval_ns, 500_000_000):
                value = None
                reasons[name] = f"the last value is {(now_ns - at_ns) / 1e9:.1f} s old"
            elif value is None:
                reasons[name] = self.why(name)
            values[name] = value
        return Reading(self.device, now_ns, values, reasons)

    def series(self, name: str) -> Series:
        """All that is kept of one metric."""
        standing = self.standings[name]
        times, values = standing.column.entries()
        reason = None if standing.latest is not None and not self.lost else self.why(name)
        return Series(name, standing.metric.unit, self.device.uuid, times, values, reason)

    def summary(self) -> GpuSummary:
        """The whole run in figures."""
        figures = {name: figure for name, s in self.standings.items() if (figure := s.column.figure()) is not None}
        energy = energy_of(figures, self.why)
        return GpuSummary(
            self.device,
            figures,
            {name: standing.words for name, standing in self.standings.items()},
            {name: self.why(name) for name in METRICS if name not in figures},
            energy if isinstance(energy, Energy) else None,
            energy if isinstance(energy, str) else None,
            held_of(dict(self.standings["clock_reasons"].column.masks)),
            self.lost,
            {p.question.metrics[0]: p.spent_ns / p.n_calls / 1e9 for p in self.probes if p.n_calls},
        )


def energy_of(figures: Mapping[str, Figure], why: Callable[[str], str]) -> Energy | str:
    """The energy of a run: from the card's counter, else from its power; or the reason why neither tells."""
    counter, power = figures.get("energy_j"), figures.get("power_w")
    if counter and counter.last_ns > counter.first_ns and counter.lowest == counter.first <= counter.last:
        seconds = (counter.last_ns - counter.first_ns) / 1e9
        return Energy(counter.last - counter.first, seconds, "the card's own counter")
    if power and power.n > 1:
        seconds = (power.last_ns - power.first_ns) / 1e9
        return Energy(power.mean * seconds, seconds, "mean power times time, since the card has no counter to read")
    return f"neither a counter ({why('energy_j')}) nor power ({why('power_w')}) was read twice"


def held_of(masks: Mapping[int, int]) -> tuple[Held, ...]:
    """Reasons for the clocks with the share of samples that gave them, from how often each mask came."""
    n = sum(masks.values())
    bits = {reason.bit: reason for mask in masks for reason in clock_reasons(mask)}
    return tuple(
        Held(bit, r.name, r.words, r.slows, sum(k for mask, k in masks.items() if mask & bit) / n)
        for bit, r in sorted(bits.items())
    )
