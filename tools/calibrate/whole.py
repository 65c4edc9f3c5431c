"""Set constants that only whole training runs show: `python -m tools.calibrate.whole`.

The runs are Lambda's logs of one card at work all the time, so a step is the sum of its kernels. Judged points and
their like (same card and task) are left out; every fit is shown with one card and with one task left out, too.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from gpututor.bench.accuracy.points import Point
from gpututor.bench.accuracy.resolve import Skip, resolve
from gpututor.cards import Card, Machine
from gpututor.model import constants
from gpututor.model.cost import price
from gpututor.model.spec import KernelSpec
from gpututor.model.tape import TapeOp
from gpututor.simgpu.recording import tape_steps
from gpututor.workloads.setting import Job, Setting, Workload
from gpututor.workloads.training import number_formats
from tools.calibrate.common import errors, fit, left_out, loss
from tools.calibrate.runs import lambdas_runs

GAP_NS = 800
TASKS = ("resnet50_AMP", "resnet50_FP32", "bert_large_squad_FP16", "bert_base_squad_FP16")
FITTED = ("walk.half_bytes_per_clock", "conv.layout_share")


@dataclass(frozen=True, slots=True)
class Run:
    """A measured run: its kernels with how often each runs in a step, its card, and seconds of a step."""

    point: Point
    card: Card
    kernels: tuple[tuple[KernelSpec, int], ...]
    n_per_step: float

    @property
    def measured_s(self) -> float:
        """Seconds of a step."""
        return self.n_per_step / self.point.measured

    @property
    def predicted_s(self) -> float:
        """Seconds of a step with the constants as they are."""
        return sum((price(kernel, self.card).duration_ns + GAP_NS) * n for kernel, n in self.kernels) / 1e9

    @property
    def pair(self) -> tuple[float, float]:
        """Predicted and measured."""
        return self.predicted_s, self.measured_s

    @property
    def task(self) -> str:
        """What ran."""
        return self.point.model


def era(point: Point) -> float:
    """The version of torch as a number that grows with time: 1.13 is 113, 2.3 is 203."""
    major, _, minor = point.framework.rpartition(" ")[2].partition(".")
    return 100 * int(major) + int(minor or 0)


@cache
def recorded(name: str, setting_key: tuple[object, ...]) -> tuple[tuple[tuple[KernelSpec, int], ...], float]:
    """The kernels of one step of a workload, and the units that it works through."""
    workload, setting, machine = _ASKED[name, setting_key]
    jobs: list[Job] = []
    with number_formats(setting):

        def step(k: int) -> object:
            if not jobs:
                jobs.append(workload.build(setting, "simgpu"))
            return jobs[0].step(k)

        n_bytes = 16 * machine.card.memory_bytes  # what doesn't fit is another question
        roomy = replace(machine, card=replace(machine.card, memory_bytes=n_bytes))
        tape = tape_steps(step, n_steps=1, warmup=2, machine=roomy, numerics=False)
    counted: Counter[KernelSpec] = Counter()
    for entry in tape.entries:
        if type(entry) is TapeOp:
            counted.update(entry.kernels)
    return tuple(counted.items()), jobs[0].n_per_step


_ASKED: dict[tuple[str, tuple[object, ...]], tuple[Workload, Setting, Machine]] = {}


def runs(wanted: Callable[[Point], bool]) -> list[Run]:
    """The runs of Lambda's logs that are wanted."""
    found = []
    for point in lambdas_runs():
        if point.n_gpus != 1 or not point.model.startswith(TASKS) or not wanted(point):
            continue
        asked = resolve(point)
        if isinstance(asked, Skip):
            continue
        s = asked.setting
        key = (s.kind, s.batch, s.precision, s.layout, tuple(sorted(s.options.items())), asked.machine.card.name[:4])
        _ASKED[asked.workload.name, key] = (asked.workload, s, asked.machine)
        kernels, n_per_step = recorded(asked.workload.name, key)
        found.append(Run(point, asked.machine.card, kernels, n_per_step))
    return found


def changed(values: Sequence[float]) -> Mapping[str, float]:
    """The fitted constants by their paths."""
    return dict(zip(FITTED, values, strict=True))


def fitted(some: Sequence[Run]) -> list[float]:
    """The constants that describe these runs best."""

    def cost(values: Sequence[float]) -> float:
        with constants.other(changed(values)):
            return loss(run.pair for run in some)

    start = [getattr(constants.group(path.partition(".")[0]), path.partition(".")[2]) for path in FITTED]
    return fit(cost, start, 60)


def fit_without(some: Sequence[Run]) -> Callable[[Run], tuple[float, float]]:
    """A fit to these runs, as a function from a run to (predicted, measured)."""
    values = fitted(some)

    def pair(run: Run) -> tuple[float, float]:
        with constants.other(changed(values)):
            return run.pair

    return pair


def main() -> None:
    """Fit on the runs of torch 1.10 and later; show all."""
    every = runs(lambda point: True)
    now = [run for run in every if era(run.point) >= 110]
    print(f"{len(every)} runs, {len(now)} of them with torch 1.10 or later")
    print(f"  as it is        {errors(run.pair for run in now)}")
    if "--fit" in sys.argv:
        values = fitted(now)
        print("  " + "  ".join(f"{path} {value:.3g}" for path, value in changed(values).items()))
        with constants.other(changed(values)):
            print(f"  fit             {errors(run.pair for run in now)}")
            show(every)
        print(f"  card left out   {errors(left_out(now, lambda run: run.card.name, fit_without))}")
        print(f"  task left out   {errors(left_out(now, lambda run: run.task, fit_without))}", flush=True)
    else:
        show(every)


def show(every: Sequence[Run]) -> None:
    """Each run's error."""
    for run in sorted(every, key=lambda run: (run.task, era(run.point) < 110, run.card.name)):
        predicted_s, measured_s = run.pair
        print(f"    {predicted_s / measured_s - 1:+6.1%}  {run.point.id}")


if __name__ == "__main__":
    main()
