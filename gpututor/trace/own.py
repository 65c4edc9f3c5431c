"""What traces that we wrote say in fields of ours (`writing`); of others' traces, nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

from msgspec import structs

from gpututor.timeline import Activity, KernelWork, Label, Step
from gpututor.timeline_file import label_of
from gpututor.trace.categories import PAUSE_MARK, START_UP_MARK, WAIT_MARK
from gpututor.trace.records import OURS, Args

MARKS = {PAUSE_MARK: Activity.PAUSE, START_UP_MARK: Activity.STARTUP, WAIT_MARK: Activity.COMM_WAIT}
TEXTS = frozenset({"kind", "number_format", "flop_unknown", "group"})
COUNTS = frozenset({"n_blocks", "blocks_per_sm"})
_KNOWN = {field.name for field in structs.fields(KernelWork)}


@dataclass(frozen=True, slots=True)
class Told:
    """Label, window in nanoseconds, and samples and loss of each step."""

    label: Label
    window_ns: tuple[int, int]
    steps: tuple[tuple[int | None, float | None], ...]

    def fitted(self, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        """The steps with their samples and losses, where there are as many."""
        if len(steps) != len(self.steps):
            return steps
        pairs = zip(steps, self.steps, strict=True)
        return tuple(Step(step.start_ns, step.end_ns, n, loss) for step, (n, loss) in pairs)


def told_in(header: Mapping[str, object]) -> Told | None:
    """What the head of a trace of ours says; None where it is none, or damaged."""
    told: Any = header.get(OURS)
    try:
        start, end = told["window_ns"]
        steps = tuple((n, loss) for n, loss in told["steps"])
        whole = type(start) is int and type(end) is int and start < end
        right = all((n is None or type(n) is int) and (x is None or isinstance(x, int | float)) for n, x in steps)
        return Told(label_of(told["label"]), (start, end), steps) if whole and right else None
    except (KeyError, TypeError, ValueError):
        return None


def work_in(args: Args) -> KernelWork | None:
    """A kernel's work, as far as it is told in a field of ours; None where nothing is, or it is damaged."""
    told = args.ours
    if not isinstance(told, Mapping) or not told or not set(told) <= _KNOWN:
        return None
    try:  # from a file fractions come as text
        fields_told: dict[str, Any] = {
            k: float(v) if isinstance(v, str) and k not in TEXTS else v for k, v in told.items()
        }
    except ValueError:
        return None
    return KernelWork(**fields_told) if all(_right(name, value) for name, value in fields_told.items()) else None


def activity_of_mark(name: str) -> Activity | None:
    """What a mark of ours says; None for every other."""
    return next((activity for mark, activity in MARKS.items() if name.startswith(mark)), None)


def _right(name: str, value: object) -> bool:
    if name in TEXTS:
        return isinstance(value, str)
    if name in ("tensor_core", "from_graph"):
        return isinstance(value, bool)
    if name in COUNTS:
        return type(value) is int and value > 0
    return type(value) in (int, float) and isfinite(float(str(value))) and float(str(value)) >= 0
