"""Simulated GPUs whose paced runs go on in other processes, as they publish themselves."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from gpututor import live
from gpututor.live import LiveRun
from gpututor.watch.source import Device, GpuProcess

NOT_SIMULATED = "power, clocks and temperature of a card are not simulated"
FIRST_LOOK = "the first look at this run; a share needs two"
STANDS_STILL = "this CPU computes in the card's place, and the card's clock stands still meanwhile"
_MISSING = dict.fromkeys(("power_w", "power_limit_w", "sm_clock_hz", "temperature_c", "clock_reasons"), NOT_SIMULATED)
SHORTEST_NS = 20_000_000
"""Our choice: a share of less than 20 ms of the card's clock would be noise; the look before stays the base."""


class SimulatedGpus:
    """The cards of all paced runs, each under its own key ("sim0") as long as the run goes on."""

    why_none: str | None = None

    def __init__(self, runs: Callable[[], tuple[LiveRun, ...]] = live.running) -> None:
        self._runs = runs
        self._keys: dict[tuple[int, int], str] = {}
        self._before: dict[str, tuple[int, int]] = {}  # clock and busy time at the last look, by key

    def read(self) -> tuple[Device, ...]:
        """The cards now; a run that ended gives its key back."""
        runs = self._runs()
        cards = {(run.pid, k): run for run in runs for k in range(len(run.cards))}
        for gone in self._keys.keys() - cards.keys():
            self._before.pop(self._keys.pop(gone), None)
        return tuple(self._device(run, k, self._key(pid, k)) for (pid, k), run in cards.items())

    def close(self) -> None:
        """Nothing is held."""

    def _key(self, pid: int, k: int) -> str:
        if (pid, k) not in self._keys:
            taken = set(self._keys.values())
            self._keys[pid, k] = next(key for key in map("sim{}".format, count()) if key not in taken)
        return self._keys[pid, k]

    def _device(self, run: LiveRun, k: int, key: str) -> Device:
        card, reasons = run.cards[k], dict(_MISSING)
        share, why_not = self._share(key, run.clock_ns, card.busy_ns)
        if why_not:
            reasons["kernel_time_share"] = why_not
        what = f"{run.what or 'a run'}, process {run.pid}"
        return Device(
            key,
            card.name,
            simulated=True,
            doing=f"{what}, step {run.n_steps}" if run.n_steps else what,
            kernel_time_share=share,
            memory_used_bytes=card.memory_used_bytes,
            memory_total_bytes=card.memory_total_bytes,
            processes=(GpuProcess(run.pid, run.what or None, card.memory_used_bytes),),
            reasons=reasons,
        )

    def _share(self, key: str, clock_ns: int, busy_ns: int) -> tuple[float | None, str | None]:
        before = self._before.get(key)
        if before is None or clock_ns < before[0]:
            self._before[key] = clock_ns, busy_ns
            return None, FIRST_LOOK
        took_ns = clock_ns - before[0]
        if took_ns < SHORTEST_NS:
            return None, STANDS_STILL
        self._before[key] = clock_ns, busy_ns
        return min(1.0, max(0.0, (busy_ns - before[1]) / took_ns)), None
