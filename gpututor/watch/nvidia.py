"""NVIDIA's GPUs as the sampler reads them, and which processes hold their memory.

A card is numbered as CUDA programs started here would number it; where that can't be told, by its place in the list.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from gpututor.measure.nvml import Device as Gpu
from gpututor.measure.nvml import Reading, Sampler, Series
from gpututor.measure.nvml.library import Library, open_library
from gpututor.measure.nvml.processes import Processes as Answer
from gpututor.measure.nvml.processes import processes as ask_processes
from gpututor.watch.source import Device, GpuProcess

START_WAITS_S = 0.3
"""Our choice: a driver without persistence takes seconds to wake; until then the watch shows the CPU and says so."""

KEEP_BYTES = 2_000_000
"""Our choice: a quarter of an hour of samples; only those since the last tick are looked at."""

PROCESSES_EVERY_S = 5.0
"""Our choice: this call took 4.5 ms and holds the driver's lock meanwhile. Source: flightlessmango/MangoHud#2104."""

SAME_NAMES = ("memory_used_bytes", "power_w", "sm_clock_hz", "temperature_c")
BUSY = ("kernel_time_samples_share", "kernel_time_share")
"""Every sample that the driver kept, where it keeps them; else its gauge, which says the same more coarsely."""


class Sampling(Protocol):
    """The part of the sampler that is looked at here."""

    @property
    def reason(self) -> str | None:
        """Why there is nothing to read."""

    def latest(self) -> tuple[Reading, ...]:
        """The newest values of each GPU."""

    def series(self, name: str, device: int | str = 0) -> Series:
        """What is kept of one metric."""

    def stop(self) -> bool:
        """No more."""


class Processes:
    """Which processes hold memory of a GPU; asked now and then, because the question is a slow one."""

    def __init__(
        self,
        library: Library | str,
        *,
        clock_s: Callable[[], float] = time.monotonic,
        ask: Callable[[Library, Gpu], Answer] = ask_processes,
    ) -> None:
        self._library, self._clock_s, self._ask = library, clock_s, ask
        self._known: dict[str, tuple[float, Answer]] = {}  # when it was asked, and the answer

    def of(self, gpu: Gpu) -> Answer:
        """The processes on this GPU, or why they aren't known."""
        if isinstance(self._library, str):
            return Answer(None, self._library)
        asked_s, answer = self._known.get(gpu.uuid, (float("-inf"), None))
        if answer is None or self._clock_s() - asked_s >= PROCESSES_EVERY_S:
            answer = self._ask(self._library, gpu)
            self._known[gpu.uuid] = self._clock_s(), answer
        return answer

    def close(self) -> None:
        """Let go of the driver."""
        if not isinstance(self._library, str):
            self._library.close()


class NvidiaGpus:
    """All GPUs that CUDA programs see here."""

    def __init__(self, sampler: Sampling | None = None, processes: Processes | None = None) -> None:
        if sampler is None:
            started = Sampler(keep_bytes=KEEP_BYTES)
            started.start(START_WAITS_S)
            sampler = started
        self._sampler = sampler
        self._processes = processes or Processes(open_library())
        self._looked_ns = 0

    @property
    def why_none(self) -> str | None:
        """Why there is no GPU; None where there is one."""
        return None if self._sampler.latest() else self._sampler.reason

    def read(self) -> tuple[Device, ...]:
        """All GPUs now, with the mean of what was sampled since the last call."""
        readings = self._sampler.latest()
        devices = tuple(self._device(place, reading) for place, reading in enumerate(readings))
        self._looked_ns = max((reading.at_ns for reading in readings), default=self._looked_ns)
        return devices

    def close(self) -> None:
        """Let go of the driver."""
        self._processes.close()
        self._sampler.stop()

    def _device(self, place: int, reading: Reading) -> Device:
        gpu, values = reading.device, reading.values
        reasons = {name: reading.reasons[name] for name in SAME_NAMES if name in reading.reasons}
        share = self._mean(BUSY, reading, reasons, "kernel_time_share")
        sm_share = self._mean(("sm_share",), reading, reasons, "sm_busy_share")
        if reading.clocks is None:
            reasons["clock_reasons"] = reading.reasons.get("clock_reasons", "no reason given")
        holders = self._processes.of(gpu)
        if holders.found is None:
            reasons["processes"] = holders.reason or "no reason given"
        total = gpu.facts.get("memory_total_bytes")
        used = values.get("memory_used_bytes")
        return Device(
            f"gpu{place if gpu.cuda_index is None else gpu.cuda_index}",
            gpu.name,
            kernel_time_share=share,
            sm_busy_share=None if sm_share is None else min(1.0, sm_share),
            memory_used_bytes=None if used is None else int(used),
            memory_total_bytes=None if total is None else int(total),
            power_w=values.get("power_w"),
            power_limit_w=gpu.facts.get("power_limit_w"),
            sm_clock_hz=values.get("sm_clock_hz"),
            sm_clock_max_hz=gpu.facts.get("sm_clock_highest_hz"),
            temperature_c=values.get("temperature_c"),
            clock_reasons=reading.clocks,
            processes=None
            if holders.found is None
            else tuple(GpuProcess(p.host_pid, p.name, p.used_bytes) for p in holders.found),
            reasons=reasons,
        )

    def _mean(self, names: Sequence[str], reading: Reading, reasons: dict[str, str], to: str) -> float | None:
        """The mean of the first of these metrics that has values since the last look, else its newest value."""
        for name in names:
            series = self._sampler.series(name, reading.device.uuid)
            new = [
                value
                for at_ns, value in zip(reversed(series.times_ns), reversed(series.values), strict=False)
                if at_ns > self._looked_ns
            ]
            if new:
                return sum(new) / len(new)
        known = [reading.values[name] for name in names if reading.values.get(name) is not None]
        if known:
            return known[0]
        reasons[to] = reading.reasons.get(names[-1], "no reason given")
        return None
