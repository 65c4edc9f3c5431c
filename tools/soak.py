"""Let the NVML sampler run for long while a fake driver fails in every way, and say what gave way.

    python tools/soak.py --seconds 3600

Failures, hangs, lost GPUs, a library closed by others, values that can't be, forks, and stops come at random from a
seed. Needs Linux and gcc. Ends with status 1 where a wrong value, a thread or too much memory is left.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from gpututor.measure.nvml import METRICS, Reading, Sampler, load, save  # noqa: E402

MOST_GROWN_BYTES = 10 * 2**20
"""What a soak may leak. Source: our own promise, an hour without a leak above 10 MB."""

THREAD = "gpututor-nvml"

# What the fake answers; anything else that is read is wrong. Counters only grow.
RIGHT = {
    "kernel_time_share": 0.37,
    "kernel_time_samples_share": 0.37,
    "memory_time_share": 0.12,
    "memory_used_bytes": 10240.0 * 2**20,
    "power_w": 123.456,
    "power_now_w": 123.456,
    "temperature_c": 55.0,
    "sm_clock_hz": 1.41e9,
    "memory_clock_hz": 2.619e9,
    "clock_reasons": 4.0,
    "pcie_gen": 5.0,
    "pcie_lanes": 16.0,
    "sm_share": 0.12,
    "occupancy_share": 0.13,
    "tensor_share": 0.15,
    "dram_share": 0.20,
    "pcie_tx_bytes_per_s": 100.0 * 2**20,
    "pcie_rx_bytes_per_s": 100.0 * 2**20,
}
ALSO_RIGHT = {"memory_used_bytes": 10752.0 * 2**20}  # by the older call, which counts the driver's own part
AT_LEAST = {"energy_j": 5000.0, "held_by_power_s": 0.0, "held_by_sw_heat_s": 0.0, "held_by_hw_heat_s": 0.0,
            "held_by_brake_s": 0.0}  # fmt: skip

DEVICES = (
    "UtilizationRates PowerUsage Temperature ClockInfo MemoryInfo_v2 MemoryInfo CurrentClocksEventReasons Samples "
    "TotalEnergyConsumption FieldValues CurrPcieLinkGeneration CurrPcieLinkWidth HandleByUUID UUID Name"
)
OTHERS = ("nvmlGpmSampleGet", "nvmlGpmMetricsGet", "nvmlInitWithFlags", "nvmlDeviceGetCount_v2")
FUNCTIONS = (*(f"nvmlDeviceGet{name}" for name in DEVICES.split()), *OTHERS)
CODES = (1, 2, 3, 4, 6, 7, 9, 10, 13, 15, 16, 17, 18, 20, 21, 25, 27, 999, 12345)
SENSELESS = (
    "power_mw=4294967295",
    "util=4294967295",
    "clock=0",
    "temp=4294967295",
    "gen=0",
    "memutil=250",
    "power_mw=0",
)


@dataclass
class Soaked:
    """What happened: how often each thing was done, and every wrong thing that was seen."""

    seconds: float = 0.0
    done: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    n_values: int = 0
    n_missing: int = 0
    grown_bytes: int = 0
    n_threads_left: int = 0
    n_files_left: int = 0
    cpu_share: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether nothing gave way."""
        return not self.wrong and not self.n_threads_left and self.grown_bytes <= MOST_GROWN_BYTES


class Soak:
    """One sampler and one fake driver, with a thing done to either every `every_s`."""

    def __init__(self, driver: Any, folder: Path, seed: int, interval_s: float, every_s: float) -> None:
        self.driver, self.folder = driver, folder
        self.random = random.Random(seed)
        self.every_s = every_s
        self.sampler = Sampler(interval_s)
        self.interval_s = interval_s
        self.soaked = Soaked()
        self.things: tuple[tuple[int, Callable[[], None]], ...] = (
            (30, self.fail), (12, self.heal), (6, self.slow), (2, self.hang), (6, self.senseless), (2, self.lose),
            (3, self.forget), (4, self.fork), (6, self.restart), (3, self.keep), (2, self.abandon),
        )  # fmt: skip

    def run(self, seconds: float) -> Soaked:
        """Soak for so long, and take stock."""
        end = time.monotonic() + seconds
        began, cpu_began = time.monotonic(), time.process_time()
        settled_after = time.monotonic() + min(60.0, seconds / 4)
        process, before, files = psutil.Process(), 0, 0
        weights, things = zip(*self.things, strict=True)
        self.sampler.start()
        while time.monotonic() < end:
            self.random.choices(things, weights)[0]()
            self.look()
            if not before and time.monotonic() > settled_after:
                gc.collect()
                before, files = process.memory_info().rss, process.num_fds()
            time.sleep(self.every_s)
        self.driver.says()
        self.sampler.stop(wait_s=10)
        self._wait_for_threads()
        self.sampler = Sampler()
        gc.collect()
        soaked = self.soaked
        soaked.seconds = time.monotonic() - began
        soaked.grown_bytes = process.memory_info().rss - before
        soaked.n_files_left = process.num_fds() - files
        soaked.n_threads_left = len(threads())
        soaked.cpu_share = (time.process_time() - cpu_began) / soaked.seconds
        if self.driver.n_asked_after_loss:
            soaked.wrong.append(f"a lost GPU was asked {self.driver.n_asked_after_loss} times more")
        if self.driver.n_bad_handles:
            soaked.wrong.append(f"{self.driver.n_bad_handles} handles were none")
        return soaked

    def look(self) -> None:
        """Every value must be the fake's or missing with a reason."""
        for reading in self.sampler.latest():
            self._right(reading)
        self.sampler.summary()

    def _right(self, reading: Reading) -> None:
        for name, value in reading.values.items():
            if value is None:
                self.soaked.n_missing += 1
                if not reading.reasons.get(name):
                    self._wrong(f"{name} is missing without a reason")
            else:
                self.soaked.n_values += 1
                if not right(name, value):
                    self._wrong(f"{name} is {value!r}")

    def _wrong(self, what: str) -> None:
        if len(self.soaked.wrong) < 50:
            self.soaked.wrong.append(what)

    # --- what is done ---

    def fail(self) -> None:
        """One to four functions fail, for one GPU or all."""
        rules = [
            f"{self.random.choice(('', '0.', '1.'))}{self.random.choice(FUNCTIONS)}={self.random.choice(CODES)}"
            for _ in range(self.random.randint(1, 4))
        ]
        self._say("fail", ";".join(rules))

    def heal(self) -> None:
        """All is well."""
        self._say("heal", "")

    def slow(self) -> None:
        """One function takes up to 30 ms."""
        self._say("slow", f"{self.random.choice(FUNCTIONS)}.us={self.random.randint(100, 30_000)}")

    def hang(self) -> None:
        """One function takes a third of a second."""
        self._say("hang", f"{self.random.choice(FUNCTIONS)}.us=300000")

    def senseless(self) -> None:
        """One value can't be."""
        self._say("senseless", self.random.choice(SENSELESS))

    def lose(self) -> None:
        """A GPU falls off the bus."""
        self._say("lose", f"{self.random.choice((0, 1))}.lost=1")

    def forget(self) -> None:
        """Another part of the program closes the library once too often."""
        self.soaked.done["forget"] += 1
        self.driver.forget()

    def restart(self) -> None:
        """The sampler stops and starts."""
        self.soaked.done["restart"] += 1
        if not self.sampler.stop(wait_s=5):
            self._wrong("a thread did not end in 5 s")
        self.sampler.start()

    def abandon(self) -> None:
        """The sampler is forgotten while it runs, and another begins."""
        self.soaked.done["abandon"] += 1
        self.sampler = Sampler(self.interval_s)
        self._wait_for_threads()
        self.sampler.start()

    def keep(self) -> None:
        """What was sampled is saved, and read back the same."""
        self.soaked.done["keep"] += 1
        sampled = self.sampler.sampled()
        for series in sampled.series:
            wrong = [value for value in series.values if not right(series.metric, value)]
            if wrong:
                self._wrong(f"{series.metric} was {wrong[0]!r}")
        save(sampled, self.folder / "soak.jsonl")
        if load(self.folder / "soak.jsonl") != sampled:
            self._wrong("a saved run was read back differently")

    def fork(self) -> None:
        """A child opens the driver for itself, and ends in good time."""
        self.soaked.done["fork"] += 1
        pid = os.fork()
        if not pid:
            os._exit(_as_child(self.sampler))
        trouble = _reaped(pid, wait_s=20)
        if trouble:
            self._wrong(f"a forked child {trouble}")

    def _say(self, what: str, script: str) -> None:
        self.soaked.done[what] += 1
        self.driver.says(script)

    def _wait_for_threads(self) -> None:
        end = time.monotonic() + 10
        while threads() and time.monotonic() < end:
            gc.collect()
            time.sleep(0.05)


def _as_child(sampler: Sampler) -> int:
    """Exit status of a forked child that samples for itself."""
    try:
        if sampler.reason is None or not sampler.stop():
            return 3
        own = sampler.start(wait_s=5)
        readings = own.latest()
        ended = own.stop(wait_s=5)
        values = [(name, value) for reading in readings for name, value in reading.values.items()]
        return 0 if ended and all(value is None or right(name, value) for name, value in values) else 4
    except BaseException:  # noqa: BLE001  # nothing of a child may run on in the parent's code
        return 5


def _reaped(pid: int, wait_s: float) -> str | None:
    """What went wrong with a child that should end with status 0 by itself; None where nothing did."""
    end = time.monotonic() + wait_s
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return f"ended with status {status}" if status else None
        time.sleep(0.01)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    return f"hung for {wait_s:g} s"


def right(name: str, value: float) -> bool:
    """Whether the fake said so."""
    if name in AT_LEAST:
        return value >= AT_LEAST[name]
    return any(abs(value - told) <= 1e-9 * told for told in (RIGHT[name], ALSO_RIGHT.get(name, RIGHT[name])))


def threads() -> list[threading.Thread]:
    """The sampler's threads that are alive."""
    return [thread for thread in threading.enumerate() if thread.name == THREAD]


def main() -> int:
    """Build the fake, soak, print one JSON object."""
    from tests.measure.fake_nvml.driver import FakeDriver, build

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--interval", type=float, default=0.2, help="seconds between two rounds of the sampler")
    parser.add_argument("--every", type=float, default=0.5, help="seconds between two things done to it")
    chosen = parser.parse_args()
    assert set(RIGHT) | set(AT_LEAST) == set(METRICS)
    with tempfile.TemporaryDirectory() as folder:
        driver = FakeDriver(build(Path(folder)))
        with driver.in_place():
            soak = Soak(driver, Path(folder), chosen.seed, chosen.interval, chosen.every)
            soaked = soak.run(chosen.seconds)
    print(json.dumps(vars(soaked) | {"passed": soaked.passed}, indent=2))
    return 0 if soaked.passed else 1


if __name__ == "__main__":
    sys.exit(main())
