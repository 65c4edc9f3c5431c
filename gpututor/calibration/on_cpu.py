"""This machine's host without a GPU: operators of a training step on the CPU, beside those of a recorded server."""

from __future__ import annotations

import math
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from gpututor.calibration.operators import Server, amounts_ns, medians_us, ratio_of, recorded_server
from gpututor.errors import CalibrationFailed
from gpututor.expect.accuracy import together
from gpututor.text import percent
from gpututor.trace.events import sorted_out
from gpututor.trace.opening import opened

N_ROUNDS, N_STEPS, N_WARMUP = 9, 5, 10  # some seconds in all on a machine with nothing else to do
BUDGET_S = 25.0  # on a busy one fewer rounds have to do
ALONE = 0.9
"""Our choice: where the thread had the processor for less than this share of the time, others were at work too."""

Telling = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Round:
    """One profiled round: the middle time of each amount in microseconds, the thread's own time and the clock's.

    `unwatched_ns` is the thread's time for as many steps without the profiler.
    """

    amounts_us: Mapping[str, float]
    thread_ns: int
    wall_ns: int
    unwatched_ns: int


@dataclass(frozen=True, slots=True)
class HostFound:
    """This host's `times` as in data/hosts.toml, how far it may be off, and how it was found."""

    times: float
    error_share: float
    how: str
    warnings: tuple[str, ...] = ()


def measured(
    tell: Telling,
    profiling: Callable[[], Iterator[Round]] | None = None,
    clock_s: Callable[[], float] = time.monotonic,
) -> HostFound:
    """This machine's host by the operators that run here as they do beside a GPU.

    An estimate, under three assumptions: that the profiler slows these operators down alike on both machines, that the
    others (launches, allocations) follow them, and that the amounts in data/hosts.toml are the recorded server's.

    Raises:
        CalibrationFailed: torch's profiler recorded none of the operators.
    """
    rounds: list[Round] = []
    end_s = clock_s() + BUDGET_S
    for one in profiling() if profiling else profiled():
        rounds.append(one)
        tell("operators on the CPU", len(rounds), N_ROUNDS)
        if clock_s() > end_s:
            break
    return host_of(rounds, recorded_server())


def host_of(rounds: Sequence[Round], server: Server) -> HostFound:
    """The host that these rounds show.

    Its `times` is how long operators take here over how long they take on the recorded server, both with the profiler
    on, times how long a step takes here without it over with it. Its error puts together the spread over operators
    (of their mean), the spread over rounds, and all that the profiler adds: the step holds kernels too, which aren't
    slowed down.

    Raises:
        CalibrationFailed: no round has an operator that the server's record has.
    """
    ratios = [ratio for one in rounds if (ratio := ratio_of(one.amounts_us, server)) is not None]
    if not ratios:
        raise CalibrationFailed(
            "torch's profiler recorded none of the operators to compare; is this torch a release that gpututor knows?"
        )
    times = median(each.times for each in ratios)
    spread, operators = (
        median(getattr(each, name) for each in ratios) for name in ("spread_share", "mean_error_share")
    )
    repeats = math.expm1(median(abs(math.log(each.times / times)) for each in ratios))
    unwatched = min(1.0, median(one.unwatched_ns / one.thread_ns for one in rounds))
    how = (
        f"{ratios[0].n_operators} operators of a training step on the CPU take {times:.3g} times as long as on a "
        f"recorded V100 server, four of five within {percent(spread)} of it, their mean within {percent(operators)}; "
        f"rounds differ by {percent(repeats)}; without the profiler a step takes {percent(unwatched)} as long"
    )
    error_share = together(operators, repeats, 1 / unwatched - 1)
    return HostFound(times * server.times * unwatched, error_share, how, tuple(_disturbed(rounds)))


def _disturbed(rounds: Sequence[Round]) -> Iterator[str]:
    share = median(one.thread_ns / one.wall_ns for one in rounds)
    if share < ALONE:
        yield (
            f"this thread had the processor for only {percent(share)} of the time, so other programs were at work; "
            "close them and measure again"
        )


def profiled() -> Iterator[Round]:
    """Rounds of training steps on the CPU under torch's profiler."""
    from torch.profiler import ProfilerActivity, profile

    from gpututor.calibration.network import training_step

    with one_thread():
        step = training_step("cpu")
        for _ in range(N_WARMUP):
            step()
        for _ in range(N_ROUNDS):
            unwatched_ns, _ = _timed(step)
            with _quiet(), profile(activities=[ProfilerActivity.CPU]) as profiler:
                thread_ns, wall_ns = _timed(step)
            yield Round(medians_us(_recorded(profiler)), thread_ns, wall_ns, unwatched_ns)


def _timed(step: Callable[[], object]) -> tuple[int, int]:
    """Nanoseconds that the steps of a round take this thread, and by the clock."""
    began = time.thread_time_ns(), time.perf_counter_ns()
    for _ in range(N_STEPS):
        step()
    return time.thread_time_ns() - began[0], time.perf_counter_ns() - began[1]


def _recorded(profiler: object) -> Mapping[str, Sequence[int]]:
    with tempfile.TemporaryDirectory(prefix="gpututor-") as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))  # type: ignore[attr-defined]
        return amounts_ns(sorted_out(opened(path).events).host)


@contextmanager
def _quiet() -> Iterator[None]:
    """A block in which the process's stderr is thrown away: torch's profiler reports there from C++ on each start."""
    sys.stderr.flush()
    try:
        kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    except OSError:  # no stderr, so nothing to keep quiet
        yield
        return
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


@contextmanager
def one_thread() -> Iterator[None]:
    """A block in which torch computes with one thread: with several, waking them up is timed too."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
