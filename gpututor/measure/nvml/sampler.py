"""A thread that reads this machine's NVIDIA GPUs five times a second, and never gets in the way of the program.

What a card, driver or binding can't give is None with a reason. No failure of a driver reaches the program, no call
changes a setting, and what is kept has a bound. In a forked child the sampler stands still until it is started there.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any

from gpututor.errors import GpuNotKnown, SettingNotPossible
from gpututor.measure.nvml.devices import Device
from gpututor.measure.nvml.library import binding
from gpututor.measure.nvml.metrics import METRICS, metric
from gpututor.measure.nvml.readings import Cost, Note, Reading, Sampled, Series, Summary
from gpututor.measure.nvml.rounds import KEEP_BYTES, Rounds
from gpututor.measure.nvml.watched import WatchedGpu

INTERVAL_S = 0.2
"""Drivers average utilization over 1/6 to 1 s (nvml.h, nvmlUtilization_t), so asking more often gives repeats."""

SHORTEST_S = 0.01
"""Our choice: at 100 Hz a sampler already takes 1 % of a core."""

STOP_WAITS_S = 5.0
"""Our choice: a call that hangs for longer is left alone; its thread ends as soon as the call does."""


CPU_EVERY_NS = 1_000_000_000
"""Our choice: the sampler asks for its own processor time once a second, a call of the system that costs as well."""


class _Stop:
    """What an event does, with one lock for all waits: an event makes a new one each time, and costs twice as much.

    Setting it takes no lock that is held elsewhere, so that the collector may do it anywhere.
    """

    def __init__(self) -> None:
        self._until_set = threading.Lock()
        self._until_set.acquire()
        self.is_set = False

    def set(self) -> None:
        self.is_set = True
        with suppress(RuntimeError):  # it was set before
            self._until_set.release()

    def wait(self, seconds: float) -> None:
        """Until it is set, or for so long; only one thread may wait, and not again once it was set."""
        self._until_set.acquire(timeout=seconds)


class _Work:
    """What the thread holds: everything but the sampler itself, so that a forgotten sampler ends its thread."""

    def __init__(self, rounds: Rounds) -> None:
        self.rounds = rounds
        self.stop = _Stop()
        self.first = threading.Event()
        self.began_ns = time.perf_counter_ns()
        self.began_s = time.time()
        self.ended_ns: int | None = None
        self.n_rounds = self.n_late = 0
        self.spent_ns = self.longest_ns = self.cpu_ns = self.cpu_at_ns = 0
        self.opened_ns: int | None = None
        self.broken: str | None = None

    def now_ns(self) -> int:
        return time.perf_counter_ns() - self.began_ns

    def run(self) -> None:
        cpu_began_ns = 0
        try:
            self.rounds.open()
            due_ns = self.now_ns()
            while not self.rounds.reason and not self.stop.is_set and not self.rounds.done:
                ended_ns = self._round()
                if self.opened_ns is None:
                    self.opened_ns, cpu_began_ns = self.now_ns(), time.thread_time_ns()
                    self.cpu_at_ns = self.opened_ns
                    self.first.set()
                if ended_ns - self.cpu_at_ns >= CPU_EVERY_NS:
                    self._look_at_cpu(cpu_began_ns)
                due_ns = self._next(due_ns, ended_ns)
                self.stop.wait((due_ns - ended_ns) / 1e9)
            if self.opened_ns is not None:
                self._look_at_cpu(cpu_began_ns)
            if not self.rounds.reason and not self.rounds.done:
                self._round(last=True)
        except Exception as error:  # noqa: BLE001  # a fault of ours must not be a fault of the program that is watched
            self.broken = f"sampling ended by a fault of its own ({type(error).__name__}: {error})"
        finally:
            self.ended_ns = self.now_ns()
            self.rounds.close()
            self.first.set()

    def _look_at_cpu(self, began_ns: int) -> None:
        """Note what the thread took since it opened the driver, with the time until which that holds."""
        self.cpu_ns, self.cpu_at_ns = time.thread_time_ns() - began_ns, self.now_ns()

    def _round(self, *, last: bool = False) -> int:
        """One round; when it ended."""
        now_ns = self.now_ns()
        self.rounds.round(now_ns, time.time_ns() - now_ns, last=last)
        ended_ns = self.now_ns()
        took_ns = ended_ns - now_ns
        self.n_rounds += 1
        self.spent_ns += took_ns
        self.longest_ns = max(self.longest_ns, took_ns)
        return ended_ns

    def _next(self, due_ns: int, now_ns: int) -> int:
        """The next time on the grid; those that were missed are left out, never made up for."""
        interval_ns = self.rounds.interval_ns
        missed = max(0, now_ns - due_ns) // interval_ns
        self.n_late += missed > 0
        return due_ns + (missed + 1) * interval_ns

    def cost(self) -> Cost:
        kept = sum(s.column.kept_bytes for gpu in self.rounds.gpus for s in gpu.standings.values())
        if self.opened_ns is None:
            return Cost(0, 0, None, None, None, None, kept)
        wall_ns = self.cpu_at_ns - self.opened_ns
        cpu_share = self.cpu_ns / wall_ns if self.n_rounds > 1 and wall_ns > 0 else None
        mean_s, longest_s = self.spent_ns / self.n_rounds / 1e9, self.longest_ns / 1e9
        return Cost(self.n_rounds, self.n_late, self.opened_ns / 1e9, cpu_share, mean_s, longest_s, kept)


class Sampler:
    """Samples the GPUs that CUDA programs see here, or those of `devices`: CUDA's numbers and UUIDs.

    Use it in a with statement, or with `start` and `stop`. Where nothing can be read it still works: `reason` says why
    in one sentence, and every reading is None or empty.

    Raises:
        SettingNotPossible: an interval shorter than 10 ms.
    """

    def __init__(
        self,
        interval_s: float = INTERVAL_S,
        devices: Sequence[int | str] | None = None,
        *,
        nvml: Any = None,
        keep_bytes: int = KEEP_BYTES,
    ) -> None:
        if not interval_s >= SHORTEST_S:
            raise SettingNotPossible(
                f"a sampler that wakes every {interval_s:g} s would load the machine it measures; "
                f"take {SHORTEST_S:g} s or more"
            )
        self.interval_s = interval_s
        self._wanted = None if devices is None else tuple(devices)
        self._nvml = nvml
        self._keep_bytes = keep_bytes
        self._work: _Work | None = None
        self._thread: threading.Thread | None = None
        self._pid = 0
        self._forgotten: weakref.finalize[..., Sampler] | None = None

    def __enter__(self) -> Sampler:  # noqa: PYI034  # typing.Self came with Python 3.11
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def start(self, wait_s: float = 1.0) -> Sampler:
        """Begin anew, with the first round behind it unless the driver takes longer than `wait_s`.

        Nothing happens where it runs already. What an earlier run kept is gone. Never raises for want of a GPU.
        """
        if self.running:
            return self
        rounds = Rounds(int(self.interval_s * 1e9), self._wanted, self._nvml or _binding_here(), self._keep_bytes)
        work = self._work = _Work(rounds)
        self._pid = os.getpid()
        self._thread = threading.Thread(target=work.run, name="gpututor-nvml", daemon=True)
        if self._forgotten is not None:
            self._forgotten.detach()
        self._forgotten = weakref.finalize(self, _end, work, self._pid)
        try:
            self._thread.start()
        except RuntimeError as error:
            work.broken = f"sampling needs a thread, and this machine has no room for one ({error})"
            work.ended_ns = 0
            self._thread = None
            return self
        work.first.wait(wait_s)
        return self

    def stop(self, wait_s: float = STOP_WAITS_S) -> bool:
        """End sampling after one last round; whether the thread has ended, which a call that hangs may delay.

        Nothing happens in a forked child that did not start it.
        """
        thread = self._thread
        if thread is None or self._work is None or self._pid != os.getpid():
            return True
        self._work.stop.set()
        if thread is not threading.current_thread():
            thread.join(wait_s)
        return not thread.is_alive()

    @property
    def running(self) -> bool:
        """Whether its thread is at work in this process."""
        return self._thread is not None and self._pid == os.getpid() and self._thread.is_alive()

    @property
    def reason(self) -> str | None:
        """Why there is nothing to read, in one sentence; None where there is."""
        work = self._work
        if work is None:
            return "the sampler was not started"
        if self._pid != os.getpid():
            return "this process was forked from the one that samples; start the sampler here to read the GPUs"
        if work.broken or work.rounds.reason:
            return work.broken or work.rounds.reason
        if not work.first.is_set():
            return "the driver has not answered yet"
        lost = [gpu.lost for gpu in work.rounds.gpus]
        return "; ".join(filter(None, lost)) if lost and all(lost) else None

    @property
    def devices(self) -> tuple[Device, ...]:
        """The GPUs that are sampled."""
        return tuple(gpu.device for gpu in self._gpus())

    @property
    def notes(self) -> tuple[Note, ...]:
        """What could not be read, each way of failing once."""
        return tuple(self._work.rounds.notes.values()) if self._work else ()

    def latest(self) -> tuple[Reading, ...]:
        """The newest values of every GPU; a value too old to be believed is None."""
        work = self._work
        if work is None:
            return ()
        now_ns = work.ended_ns if work.ended_ns is not None else work.now_ns()
        return tuple(gpu.reading(now_ns) for gpu in self._gpus())

    def series(self, name: str, device: int | str = 0) -> Series:
        """All kept values of one metric of one GPU, by its place in `devices` or its UUID; empty without a GPU.

        Raises:
            MetricNotKnown: there is no metric of this name.
            GpuNotKnown: GPUs are sampled, but not this one.
        """
        unit = metric(name).unit
        gpus = self._gpus()
        if not gpus:
            return Series(name, unit, str(device), reason=self.reason)
        for place, gpu in enumerate(gpus):
            if device in {place, gpu.device.uuid}:
                return gpu.series(name)
        raise GpuNotKnown("sampled GPU", str(device), [gpu.device.uuid for gpu in gpus])

    def summary(self) -> Summary:
        """The run so far in figures."""
        work = self._work
        if work is None:
            return Summary(0.0, 0.0, self.interval_s, (), Cost(0, 0, None, None, None, None, 0), {}, (), self.reason)
        ended_ns = work.ended_ns if work.ended_ns is not None else work.now_ns()
        gpus = tuple(gpu.summary() for gpu in self._gpus())
        versions = dict(work.rounds.versions)
        return Summary(
            work.began_s, ended_ns / 1e9, self.interval_s, gpus, work.cost(), versions, self.notes, self.reason
        )

    def sampled(self) -> Sampled:
        """The summary with every series that has values, to save."""
        found = (gpu.series(name) for gpu in self._gpus() for name in METRICS)
        return Sampled(self.summary(), tuple(series for series in found if series.values))

    def _gpus(self) -> tuple[WatchedGpu, ...]:
        return self._work.rounds.gpus if self._work else ()


def _end(work: _Work, pid: int) -> None:
    """End the thread of a sampler that nobody holds any more; in a forked child its lock may be held for ever."""
    if os.getpid() == pid:
        work.stop.set()


def _binding_here() -> Any:
    """The binding, imported on the caller's thread; None where the thread is to find out why it can't be."""
    try:
        return binding()
    except Exception:  # noqa: BLE001  # said in one sentence later
        return None
