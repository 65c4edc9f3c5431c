"""The form of most experiments: one training job in several variants, each really trained for some steps.

A lesson says what its variants are; running them, on the simulated card or on what this computer has, is the same
for all. Every variant gets a fresh simulated machine, so nothing of one is left in the memory or the queue of the next.
"""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from gpututor.errors import ExperimentError, GpututorError
from gpututor.experiments.environment import environment
from gpututor.experiments.measured import OUT_OF_MEMORY, Bench, this_bench
from gpututor.lab.lock import measuring
from gpututor.lookup import machine_named
from gpututor.progress import Progress, Stopped

if TYPE_CHECKING:
    import torch

    from gpututor.cards import Machine
    from gpututor.model.tape import Tape
    from gpututor.simgpu.session import Session

Step = Callable[[int], Any]
"""Trains step number k and gives its loss, a scalar tensor left on the device (reading it would wait), or None.

One with a method `held_out()` is asked, after the run and not as part of it, for the loss on samples it never saw; one
with `noted()` for numbers by name, which are kept with its point; one with `done()` may then give back what it has.
One with `about(k)` says how many samples step k learns from, and which part of its arithmetic isn't on padding.
"""

MACHINE = "p3.2xlarge"
N_WARMUP = 2  # steps before the counting begins: they fill the memo of shapes and make the optimizer's state


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to do the job. `make(device)` builds model, data and optimizer there and gives the step.

    `key` names its file, `label` is what a reader sees, `x` its place on a level axis (a batch, a width), and
    `n_samples` how many samples a step learns from. `n_steps`, `n_warmup` and `n_kept` take the place of the
    sweep's. With `numerics` False the simulated card follows shapes only, for a variant whose arithmetic would take a
    laptop minutes. With `n_cards` the simulated machine has as many for it. With `n_ranks` it is trained by as many
    processes, each with a card of its own: `make` is called in each, and the losses are their means. `environ` stands
    in the environment meanwhile.
    """

    key: str
    label: str
    make: Callable[[torch.device], Step]
    x: float | None = None
    n_samples: int | None = None
    n_steps: int | None = None
    n_warmup: int | None = None
    numerics: bool = True
    n_kept: int | None = None
    n_cards: int = 1
    n_ranks: int = 1
    environ: Mapping[str, str] = field(default_factory=dict)


def simulate(
    progress: Progress,
    variants: Sequence[Variant],
    *,
    what: str,
    machine: str = MACHINE,
    n_steps: int = 20,
    n_kept: int = 6,
    n_warmup: int = N_WARMUP,
    clock: str = "virtual",
) -> dict[str, Any]:
    """Train each variant for `n_steps` on `machine`'s simulated card; the tape of the last `n_kept` goes into a file.

    Gives "points", a dict a variant with key, label, x, n_samples, losses (a number or None a step), step_ns (mean
    wall time of a kept step), held_out (a loss or None), noted (numbers by name), memory_bytes (peak), and "trouble", a
    sentence where it could not run; "tapes", file names by key; "machine", "what", "clock" and "torch". The card is
    waited for before the kept steps and after them. With clock "paced" the host's time is this computer's, and one such
    experiment runs at a time. A run stopped half-way hands back the variants it finished.

    Raises:
        ExperimentError: there is nothing to run.
        MachineBusy: with a paced clock, another measurement is running on this machine.
    """
    counts = _counts(variants, n_steps, n_warmup)
    import torch

    from gpututor.model import tape_file

    points: list[dict[str, Any]] = []
    tapes: dict[str, str] = {}
    data: dict[str, Any] = {"what": what, "machine": machine, "clock": clock, "torch": torch.__version__}
    data |= {"points": points, "tapes": tapes}
    alone: AbstractContextManager[object] = measuring(what) if clock == "paced" else nullcontext()
    with alone:
        for variant, n_before in zip(variants, counts, strict=False):
            tell = _teller(progress, n_before, counts[-1], variant.label, data if points else None)
            try:
                point, tape = _simulated(variant, machine, _Plan(variant, n_steps, n_kept, n_warmup), clock, tell)
            except Stopped:
                if not points:
                    raise
                break
            if tape is not None:
                tapes[variant.key] = f"{variant.key}.tape.gz"
                tape_file.save(tape, progress.results_dir / tapes[variant.key])
            points.append(point)
            if variant.numerics:  # shapes alone hold no numbers, and looking for them takes a fifth of a second
                gc.collect()  # the variant's tensors, before the next one allocates its own
    return data


def _counts(variants: Sequence[Variant], n_steps: int, n_warmup: int) -> list[int]:
    """Steps done before each variant begins, warm-up included, and after the last."""
    if not variants or n_steps < 1:
        raise ExperimentError(
            f"{len(variants)} variants of {n_steps} steps were to be run; that takes at least one of each"
        )
    counts = [0]
    for each in variants:
        counts.append(counts[-1] + (each.n_steps or n_steps) + _warmup(each, n_warmup))
    return counts


def _warmup(variant: Variant, n_warmup: int) -> int:
    return n_warmup if variant.n_warmup is None else variant.n_warmup


class _Plan:
    """Which steps of a variant warm up, which train unrecorded, and which are kept."""

    def __init__(self, variant: Variant, n_steps: int, n_kept: int, n_warmup: int) -> None:
        self.n_warmup, n_all = _warmup(variant, n_warmup), variant.n_steps or n_steps
        self.n_kept = min(variant.n_kept or n_kept, n_all)
        self.first_kept, self.end = self.n_warmup + n_all - self.n_kept, self.n_warmup + n_all


def _teller(progress: Progress, n_before: int, n_all: int, note: str, partial: object) -> Callable[[int], None]:
    return lambda k: progress.tick(n_before + k, n_all, note, partial)


def _about(variant: Variant) -> dict[str, Any]:
    return {"key": variant.key, "label": variant.label, "x": variant.x, "n_samples": variant.n_samples}


def _simulated(
    variant: Variant, machine: str, plan: _Plan, clock: str, tell: Callable[[int], None]
) -> tuple[dict[str, Any], Tape | None]:
    """One variant's point and tape; without a tape, and with a sentence, when the card's memory is too small for it."""
    import torch

    from gpututor.model.tape import Tape
    from gpututor.simgpu import simulated_gpu

    told: dict[str, Any] = {**_about(variant), "losses": [], "step_ns": None, "memory_bytes": None, "trouble": None}
    told |= {"held_out": None, "noted": {}}
    if variant.n_ranks > 1:
        return _on_ranks(variant, machine, plan, tell, told)
    losses: list[Any] = []
    on = _with_cards(machine, variant.n_cards)
    with (
        environment(variant.environ),
        simulated_gpu(on, numerics=variant.numerics, what=variant.label, clock=clock) as sim,
        ExitStack() as afterwards,
    ):
        try:
            step = variant.make(torch.device("simgpu"))
            about = getattr(step, "about", lambda _k: (variant.n_samples,))
            afterwards.callback(getattr(step, "done", bool))
            for k in range(plan.first_kept):
                losses.append(step(k))
                tell(k + 1)
            _wait(sim)  # so that nothing before runs into the first kept step
            first, began_ns = len(sim.tape.entries), sim.host_ns
            for k in range(plan.first_kept, plan.end):
                sim.begin_step(*about(k))
                losses.append(step(k))
                tell(k + 1)
            _wait(sim)
            sim.end_run()
        except torch.OutOfMemoryError as error:
            return told | {"trouble": str(error).partition("\n")[0], "memory_bytes": sim.memory.peak_bytes}, None
        tape = Tape(variant.label, sim.tape.entries[first:], [], n_cards=sim.tape.n_cards, clock=clock)
        told |= {"step_ns": (sim.host_ns - began_ns) / plan.n_kept, "memory_bytes": sim.memory.peak_bytes}
        told["losses"] = [_number(loss) if variant.numerics else None for loss in losses[plan.n_warmup :]]
        if variant.numerics:
            told |= {"held_out": _held_out(step), "noted": getattr(step, "noted", dict)()}
        tape.losses = told["losses"][-plan.n_kept :]
    return told, tape


def _on_ranks(
    variant: Variant, machine: str, plan: _Plan, tell: Callable[[int], None], told: dict[str, Any]
) -> tuple[dict[str, Any], Tape | None]:
    """The same for a variant that several processes train together."""
    import torch

    from gpututor.experiments.rank_steps import on_ranks

    try:
        done = on_ranks(
            variant.make,
            _with_cards(machine, variant.n_ranks),
            variant.n_ranks,
            what=variant.label,
            numerics=variant.numerics,
            n_samples=variant.n_samples,
            first_kept=plan.first_kept,
            end=plan.end,
            tell=tell,
        )
    except torch.OutOfMemoryError as error:
        return told | {"trouble": str(error).partition("\n")[0]}, None
    losses = [_number(loss) for loss in done.losses[plan.n_warmup :]]
    return told | {
        "losses": losses if variant.numerics else [None] * len(losses),
        "step_ns": done.step_ns,
        "memory_bytes": done.memory_bytes,
        "held_out": done.held_out,
    }, done.tape


def _with_cards(machine: str, n_cards: int) -> Machine:
    """The machine with so many cards of its kind; as it is where one is enough."""
    found = machine_named(machine)
    return found if n_cards == 1 else replace(found, n_cards=n_cards, usd_per_hour=None)


def _held_out(step: Step) -> float | None:
    asked = getattr(step, "held_out", None)
    return None if asked is None else _number(asked())


def _wait(sim: Session) -> None:
    from gpututor.model.tape import Sync

    sim.account(Sync("synchronize"))


def _number(loss: Any) -> float | None:
    if loss is None:
        return None
    value = float(loss)
    return value if abs(value) < float("inf") else None  # also drops NaN, which JSON doesn't know


def measure(
    progress: Progress,
    variants: Sequence[Variant],
    *,
    what: str,
    device: str = "cuda",
    n_steps: int = 20,
    n_warmup: int = N_WARMUP,
    bench: Bench | None = None,
) -> dict[str, Any]:
    """Train each variant on this computer's GPU (`device` "cuda") or processor ("cpu"), and time its steps.

    Gives "points" as `simulate` does, where step_ns is the median wall time of a step with the device waited for at
    its end; "timelines", file names by key, of the last steps as torch.profiler saw them (GPU only); "device",
    "gpu" (its name, None on the processor), "card" and "torch". Stopped half-way it hands back what it finished.

    Raises:
        ExperimentError: there is no such device, or nothing to run.
        MachineBusy: another measurement is running on this machine.
    """
    from gpututor.experiments.own_device import OnCpu, OnGpu

    counts = _counts(variants, n_steps, n_warmup)
    import torch

    place = OnCpu() if device == "cpu" else OnGpu(bench or this_bench(), progress)
    points: list[dict[str, Any]] = []
    data = {"what": what, "torch": torch.__version__, "points": points, **place.about}
    with measuring(what):
        for variant, n_before in zip(variants, counts, strict=False):
            tell = _teller(progress, n_before, counts[-1], variant.label, data if points else None)
            told = {**_about(variant), "losses": [], "step_ns": None, "memory_bytes": None, "trouble": None}
            try:
                seen = place.run(variant, variant.n_steps or n_steps, _warmup(variant, n_warmup), tell)
                told |= {"losses": [_number(loss) for loss in seen.losses], "step_ns": statistics.median(seen.walls_ns)}
            except Stopped:
                if not points:
                    raise
                break
            except GpututorError as error:
                told["trouble"] = str(error)
            except Exception as error:
                if OUT_OF_MEMORY not in (type(error).__name__, type(error.__cause__).__name__):
                    raise
                told["trouble"] = f"{variant.label} does not fit into the free memory of this {device}"
            points.append(told)
            gc.collect()
    return data
