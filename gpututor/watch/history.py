"""What was read: the last minutes tick by tick, and a summary of all of it."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from gpututor.text import NBSP, duration, percent
from gpututor.watch.meaning import Verdict, verdict
from gpututor.watch.source import Device, Reading

LAST_MINUTES_S = 180.0
"""Our choice: three minutes fill a line of 90 characters with two seconds each."""

LONGEST = 2_000
"""Readings kept at most; 3 minutes of 10 a second."""


@dataclass(slots=True)
class Gauge:
    """One quantity over the whole watch: mean, lowest and highest of what could be read."""

    n: int = 0
    total: float = 0.0
    lowest: float = float("inf")
    highest: float = float("-inf")

    def note(self, value: float | None) -> None:
        """Take one value; a missing one isn't counted."""
        if value is not None:
            self.n += 1
            self.total += value
            self.lowest, self.highest = min(self.lowest, value), max(self.highest, value)

    @property
    def mean(self) -> float | None:
        """The mean, or None without a value."""
        return self.total / self.n if self.n else None


@dataclass(slots=True)
class DeviceSummary:
    """One GPU over the whole watch."""

    name: str
    busy_share: Gauge = field(default_factory=Gauge)
    memory_bytes: Gauge = field(default_factory=Gauge)
    power_w: Gauge = field(default_factory=Gauge)
    slowed: Counter[str] = field(default_factory=Counter)
    verdicts: Counter[Verdict] = field(default_factory=Counter)


class History:
    """The readings of one watch; memory stays bounded however long it goes on."""

    def __init__(self) -> None:
        self.readings: deque[Reading] = deque(maxlen=LONGEST)
        self.devices: dict[str, DeviceSummary] = {}
        self.cpu_share = Gauge()
        self.n = 0
        self._began_s: float | None = None
        self._ends_s = 0.0

    def note(self, reading: Reading) -> None:
        """Take one reading."""
        self.n += 1
        self._began_s = reading.time_s if self._began_s is None else self._began_s
        self._ends_s = reading.time_s
        self.readings.append(reading)
        while self.readings[0].time_s < reading.time_s - LAST_MINUTES_S:
            self.readings.popleft()
        self.cpu_share.note(reading.cpu.busy_share)
        for device in reading.devices:
            summary = self.devices.setdefault(device.key, DeviceSummary(device.name))
            summary.name = device.name
            summary.busy_share.note(device.kernel_time_share)
            summary.memory_bytes.note(device.memory_used_bytes)
            summary.power_w.note(device.power_w)
            summary.slowed.update(reason.words for reason in device.clock_reasons or () if reason.slows)
            summary.verdicts[verdict(device, reading.cpu)] += 1

    @property
    def took_s(self) -> float:
        """From the first reading to the last."""
        return 0.0 if self._began_s is None else self._ends_s - self._began_s

    @property
    def first(self) -> int:
        """The number, from 0, of the oldest reading that is still kept."""
        return self.n - len(self.readings)

    def gpu_shares(self, key: str) -> list[float | None]:
        """The kernel time share of a GPU at the last minutes' ticks, oldest first; None where it wasn't read."""
        return [next((d.kernel_time_share for d in r.devices if d.key == key), None) for r in self.readings]

    def cpu_shares(self) -> list[float | None]:
        """The CPU's busy share at the same ticks."""
        return [r.cpu.busy_share for r in self.readings]

    def smoothed(self, device: Device, n: int = 5) -> Device:
        """The device with its kernel time share averaged over `n` ticks, so that a verdict doesn't flicker."""
        known = [share for share in self.gpu_shares(device.key)[-n:] if share is not None]
        if device.kernel_time_share is None or not known:
            return device
        return replace(device, kernel_time_share=sum(known) / len(known))

    def lines(self) -> Iterator[str]:
        """The whole watch in a few lines: how long, each GPU, and how often the CPU was busy while it idled."""
        readings = "1 reading" if self.n == 1 else f"{self.n} readings"
        cpu = f"; CPU {percent(self.cpu_share.mean)} busy" if self.cpu_share.n else ""
        long = f" {duration(self.took_s * 1e9)}," if self.took_s else ""
        yield f"Watched{long} {readings}{cpu}."
        for key, summary in self.devices.items():
            yield _line(key, summary)


def _line(key: str, summary: DeviceSummary) -> str:
    busy, parts = summary.busy_share, []
    if busy.mean is None:
        parts.append("utilization never known")
    else:
        parts.append(
            f"a kernel ran {percent(busy.mean)} of the time ({percent(busy.lowest)} to {percent(busy.highest)})"
        )
    if summary.memory_bytes.n:
        parts.append(f"at most {summary.memory_bytes.highest / 2**30:.1f}{NBSP}GiB")
    if summary.power_w.mean is not None:
        parts.append(f"{summary.power_w.mean:.0f}{NBSP}W on average")
    n = sum(summary.verdicts.values())
    n_loader = summary.verdicts[Verdict.LOADER]
    if n_loader:
        parts.append(f"in {n_loader} of {n} readings the CPU was busy while it idled: the loader")
    if summary.slowed:
        words, times = summary.slowed.most_common(1)[0]
        parts.append(f"its clocks were held in {times} of {n} ({words})")
    return f"{key} {summary.name}: {'; '.join(parts)}."
