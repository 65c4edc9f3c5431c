"""What a recorder hands back, whichever GPU it watched, and how it calls a reader's step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpututor.errors import GpututorError, StepFailed
from gpututor.timeline import Activity, Timeline

if TYPE_CHECKING:
    from gpututor.model.tape import Tape

StepFunction = Callable[[int], Any]

OUR_WAIT = "gpututor: wait for the end of the recording"
NEXT_BATCH = "gpututor: next batch"


@dataclass(frozen=True, slots=True)
class Recording:
    """Some training steps as a timeline.

    `losses` has one entry a step, None where a step gave none. `notes` is what a reader
    must know to judge the numbers. A simulated recording has its `tape`, to be priced on other machines.
    """

    timeline: Timeline
    losses: tuple[float | None, ...]
    notes: tuple[str, ...] = ()
    tape: Tape | None = None


def call(step: StepFunction, k: int) -> Any:
    """What `step(k)` gives back.

    Raises:
        StopIteration: there are no more steps.
        StepFailed: the step raised; the original error is its cause.
    """
    try:
        return step(k)
    except (StopIteration, GpututorError):
        raise
    except Exception as error:
        raise StepFailed(f"step {k} raised {type(error).__name__}: {error}") from error


def as_number(loss: Any) -> float | None:
    """A step's loss as a number, or None where it gave none or something else.

    Reading a tensor waits for the GPU, so this is for after the recording.
    """
    if hasattr(loss, "detach"):
        loss = loss.detach()
    try:
        return float(loss)
    except (TypeError, ValueError, RuntimeError):
        return None


def never_waits(timeline: Timeline, n_ours: int = 1) -> bool:
    """Whether the recorded steps never waited for the GPU, the recorder's own `n_ours` waits at the end left out."""
    lo, hi = timeline.window_ns
    waits = (s for s in timeline.on(Activity.SYNC, Activity.COPY_CALL) if lo <= s.start_ns < hi)
    return sum(1 for _ in waits) <= n_ours


NEVER_WAITS = (
    "the step never waits for the GPU, so the host runs ahead of it and a timer around the step "
    "measures launching alone; the recorder waited once, at the end of the last step, so that the window "
    "holds all of the work"
)


def ran_out(n_done: int, n_asked: int) -> str:
    """The note for a loop that ended early."""
    return f"the loop ended after {n_done} of {n_asked} steps, so the recording has {n_done}"
