"""Record a training loop on the simulated GPU: the same call as on a real one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpututor.errors import NoSteps
from gpututor.model.tape import Sync, Tape
from gpututor.recording import StepFunction, call
from gpututor.simgpu import simulated_gpu
from gpututor.simgpu.not_computed import NotComputed

if TYPE_CHECKING:
    from gpututor.cards import Machine


def tape_steps(
    step: StepFunction,
    *,
    n_steps: int = 10,
    warmup: int = 3,
    machine: str | Machine | None = None,
    n_samples: int | None = None,
    what: str = "",
    numerics: bool = True,
    clock: str = "virtual",
) -> Tape:
    """What `n_steps` calls of `step(k)` did on the simulated GPU, after `warmup` calls that are not kept.

    `step` is called with k from 0; it may return its loss as a number or a tensor, or nothing.
    `n_samples` is what one step works through. The card is synchronized at the very end, so that
    a step that never waits is still accounted whole. On a "paced" clock the host's time is this computer's.

    Raises:
        NoSteps: `n_steps` is not positive, or the steps ran out (`StopIteration`) before the first kept one.
        StepFailed: a step raised; the original error is its cause.
    """
    if n_steps < 1:
        raise NoSteps(f"{n_steps} steps were asked for; a recording needs at least one")
    losses: list[float | None] = []
    with simulated_gpu(machine, numerics=numerics, what=what, clock=clock) as sim:
        for k in range(warmup):
            if not _call(step, k, []):
                raise NoSteps(f"the steps ran out in warm-up step {k}, before any was recorded; is the loader empty?")
        sim.account(Sync("synchronize before recording"))
        first = len(sim.tape.entries)
        for k in range(warmup, warmup + n_steps):
            n_before = len(sim.tape.entries)
            sim.begin_step(n_samples)
            if not _call(step, k, losses):
                del sim.tape.entries[n_before:]  # the step that never came, and the marks of looking for it
                break
        sim.account(Sync("synchronize after recording"))
        sim.end_run()
        if not losses:
            raise NoSteps("the steps ran out before the first one that was to be recorded; is the loader empty?")
        return Tape(what, sim.tape.entries[first:], losses, sim.tape.n_cards, clock)


def _call(step: StepFunction, k: int, losses: list[float | None]) -> bool:
    """Run one step and note its loss; False when there are no more steps."""
    try:
        losses.append(number_of(call(step, k)))
    except StopIteration:
        return False
    return True


def number_of(loss: Any) -> float | None:
    """A loss as a plain number, read without the device noticing."""
    if loss is None:
        return None
    host = getattr(loss, "host", loss)
    if host is None or isinstance(host, NotComputed):
        return None
    return float(host.detach()) if hasattr(host, "detach") else float(host)
