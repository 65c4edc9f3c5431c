"""Variants on the paced clock: the host's time is this computer's, so a calm stretch of each run is what is kept.

Another program that takes the processor for a moment makes a step several times as long. Every step is timed by the
session's clock, and of all stretches of `n_kept` steps the one is kept that a tenth of them undercut: noise only
adds, so the calm ones are nearest to what the job itself takes, and a tenth is not the luckiest.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from gpututor.errors import ExperimentError
from gpututor.experiments.sweeps import MACHINE, Variant
from gpututor.lab.lock import measuring
from gpututor.progress import Progress, Stopped

if TYPE_CHECKING:
    from gpututor.model.tape import Tape
    from gpututor.simgpu.session import Session

CALM_SHARE = 0.1
TELL_EVERY = 16  # steps: telling takes time that would be the host's


def simulate_calmly(
    progress: Progress,
    variants: Sequence[Variant],
    *,
    what: str,
    machine: str = MACHINE,
    n_steps: int = 96,
    n_kept: Callable[[Variant], int] = lambda variant: 8,
    n_warmup: int = 16,
    again: Collection[str] = (),
) -> dict[str, Any]:
    """Train each variant for `n_steps` on `machine`'s simulated card by this computer's clock; keep a calm stretch.

    `n_kept` says how many steps of a variant that is: few, where a step doesn't depend on its neighbours. Variants
    whose keys are in `again` are run a second time after all others, and the calmer of the two is kept, so that a busy
    moment of the computer doesn't meet just one of them.

    Gives what `sweeps.simulate` gives, with two numbers more a point: mean_step_ns over all steps, disturbed ones too,
    and lag_ns, by how much a step took longer here because the card is only simulated (loader workers had that time
    besides). step_ns is the mean of the kept stretch. Stopped half-way it hands back the variants it finished.

    Raises:
        ExperimentError: there is nothing to run.
        MachineBusy: another measurement is running on this machine.
    """
    if not variants or n_steps < 1:
        raise ExperimentError(f"{len(variants)} variants of {n_steps} steps were to be run; it takes one of each")
    import torch

    from gpututor.model import tape_file

    points: list[dict[str, Any]] = []
    tapes: dict[str, str] = {}
    data: dict[str, Any] = {"what": what, "machine": machine, "clock": "paced", "torch": torch.__version__}
    data |= {"points": points, "tapes": tapes}
    visits = [*variants, *(each for each in variants if each.key in again)]
    n_all, n_done = sum((each.n_steps or n_steps) for each in visits), 0
    with measuring(what):
        for variant in visits:
            tell = _teller(progress, n_done, n_all, variant.label, data if points else None)
            n_of_it = variant.n_steps or n_steps
            try:
                point, tape = _run(variant, machine, n_of_it, min(n_kept(variant), n_of_it), n_warmup, tell)
            except Stopped:
                if not points:
                    raise
                break
            if _calmer(point, points):
                tapes[variant.key] = f"{variant.key}.tape.gz"
                tape_file.save(tape, progress.results_dir / tapes[variant.key])
            n_done += n_of_it
            gc.collect()  # its loader's workers end with it
    return data


def _calmer(point: dict[str, Any], points: list[dict[str, Any]]) -> bool:
    """Put a point among the others, or in the place of the same variant's if it is calmer; whether it was put."""
    at = next((k for k, each in enumerate(points) if each["key"] == point["key"]), None)
    if at is None:
        points.append(point)
        return True
    if point["step_ns"] >= points[at]["step_ns"]:
        return False
    points[at] = point
    return True


def _teller(progress: Progress, n_before: int, n_all: int, note: str, partial: object) -> Callable[[int], None]:
    return lambda k: progress.tick(n_before + k, n_all, note, partial)


def _run(
    variant: Variant, machine: str, n_steps: int, n_kept: int, n_warmup: int, tell: Callable[[int], None]
) -> tuple[dict[str, Any], Tape]:
    """One variant's point, and the tape of its calm stretch."""
    import torch

    from gpututor.simgpu import simulated_gpu

    with simulated_gpu(machine, numerics=variant.numerics, what=variant.label, clock="paced") as sim:
        step = variant.make(torch.device("simgpu"))
        for k in range(n_warmup):
            step(k)
        _wait(sim)
        lag_before_ns = _lag_ns(sim)
        losses, marks_ns = [], []
        for k in range(n_steps):
            sim.begin_step(variant.n_samples)
            marks_ns.append(sim.host_ns)
            losses.append(step(n_warmup + k))
            if k % TELL_EVERY == TELL_EVERY - 1:
                tell(k + 1)
        _wait(sim)
        sim.end_run()
        marks_ns.append(sim.host_ns)
        numbers = [_number(loss) for loss in losses]
        lag_ns, memory_bytes = (_lag_ns(sim) - lag_before_ns) / n_steps, sim.memory.peak_bytes
        asked = getattr(step, "held_out", None)
        sim.stop_keeping()  # what is held out is no part of the run
        held_out = None if asked is None else _number(asked())
    first = calm_stretch(marks_ns, n_kept)
    sim.tape.losses = list(numbers)
    tape = sim.tape.steps(first, first + n_kept)
    point: dict[str, Any] = {"key": variant.key, "label": variant.label, "x": variant.x, "n_samples": variant.n_samples}
    point |= {"losses": numbers, "memory_bytes": memory_bytes, "trouble": None, "held_out": held_out, "lag_ns": lag_ns}
    point["step_ns"] = (marks_ns[first + n_kept] - marks_ns[first]) / n_kept
    point["mean_step_ns"] = (marks_ns[-1] - marks_ns[0]) / n_steps
    return point, tape


def calm_stretch(marks_ns: Sequence[float], n_kept: int) -> int:
    """Number of the step that begins the stretch of `n_kept` which a tenth of all stretches undercut.

    `marks_ns` are the beginnings of the steps, and the end of the last one.

    >>> calm_stretch([0, 1, 2, 9, 10, 11, 12], 1)       # steps of 1 1 7 1 1 1
    1
    """
    stretches = [(b - a, k) for k, (a, b) in enumerate(zip(marks_ns, marks_ns[n_kept:], strict=False))]
    return sorted(stretches)[int(CALM_SHARE * (len(stretches) - 1) + 0.5)][1]


def _wait(sim: Session) -> None:
    from gpututor.model.tape import Sync

    sim.account(Sync("synchronize"))


def _lag_ns(sim: Session) -> int:
    from gpututor.simgpu.clocks.paced import clock_of

    clock = clock_of(sim)
    return clock.lag_ns if clock is not None else 0


def _number(loss: Any) -> float | None:
    value = float(loss)
    return value if abs(value) < float("inf") else None  # also drops NaN, which JSON doesn't know
