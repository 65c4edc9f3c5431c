"""A point beside our prediction of it: the error, and which part of the prediction carries it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from gpututor.bench.accuracy.points import Point
from gpututor.bench.accuracy.resolve import Asked, Skip, resolve
from gpututor.cards import Machine
from gpututor.errors import GpututorError
from gpututor.ledger import Account
from gpututor.predict import Prediction, predict
from gpututor.text import percent
from gpututor.timeline import Activity
from gpututor.workloads.setting import Job, Setting, Step, Workload

GIB = 2**30
ROOM_BYTES = 1024 * GIB  # a card that nothing fills, for what our accounting finds too big for the real one
UNITS = {
    "img": "img",
    "image": "img",
    "images": "img",
    "imgs": "img",
    "seq": "seq",
    "sequence": "seq",
    "sentence": "seq",
}
UNITS |= {"sequences": "seq", "sentences": "seq", "samples": "sample", "tok": "tok", "token": "tok", "tokens": "tok"}
UNITS |= {"mel": "frame", "mels": "frame", "frames": "frame"}
ITEMS = {"item", "items"}  # what NVIDIA's programs for speech call frames or samples

# What a reader calls the kinds of kernels.
KERNELS = {
    "gemm": "matrix products",
    "convolution": "convolutions",
    "elementwise": "elementwise kernels",
    "reduction": "norms, softmax and other reductions",
    "rnn step": "recurrent layers",
    "attention": "fused attention",
    "collective": "communication",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One point with what we say to it.

    `predicted` and `measured` are in the point's unit. `error` is predicted over measured time, less 1; `off_points`
    is what predicted utilization is above the measured, in percentage points. One of them is None, both where the row
    was skipped, with the reason in `skipped`. `accounts` and `kernels` are shares of the predicted step.
    """

    point: Point
    asked: Asked | None = None
    predicted: float | None = None
    error: float | None = None
    off_points: float | None = None
    skipped: str | None = None
    notes: tuple[str, ...] = ()
    accounts: Mapping[Account, float] = field(default_factory=lambda: MappingProxyType({}))
    kernels: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def size(self) -> float:
        """How far off, for sorting: a share for times, and percentage points over 100 for utilization."""
        return abs(self.error) if self.error is not None else abs(self.off_points or 0) / 100

    @property
    def suspects(self) -> str:
        """The largest accounts but the useful one, and the kind of kernels that takes most of the step.

        What is large can carry a large error; a suspicion, not a proof.
        """
        parts = [f"{name} {percent(share)}" for name, share in list(self.largest.items())[:2]]
        kinds = [f"{name} {percent(share)} of the step" for name, share in list(self.kernels.items())[:1]]
        return "; ".join((", ".join(parts), *kinds)) if parts or kinds else ""

    @property
    def largest(self) -> dict[str, float]:
        """The three largest accounts but the useful one, as shares of the step, from the largest down."""
        lost = ((a.value, share) for a, share in self.accounts.items() if a is not Account.USEFUL and share > 0.005)
        return dict(sorted(lost, key=lambda pair: -pair[1])[:3])


Predictor = Callable[[Workload, Setting, Machine, str | None], Prediction]


def rows_of(points: Iterable[Point], predicting: Predictor = predict) -> Iterator[Row]:
    """One row a point, in order, each when it is asked for; a point that can't be predicted says why."""
    for point in points:
        yield row_of(point, predicting)


def row_of(point: Point, predicting: Predictor = predict) -> Row:
    """The row of one point."""
    asked = resolve(point)
    if isinstance(asked, Skip):
        return Row(point, skipped=asked.reason)
    if not (point.is_utilization or point.unit == "ms" or point.step_ms or _counts_alike(point, asked.workload)):
        counted = f"the point counts {point.unit}, {asked.workload.name} counts {asked.workload.unit}"
        return Row(point, asked, skipped=f"{counted}, and the point has no step time")
    try:
        prediction, notes = _with_room(asked, predicting)
    except GpututorError as refused:
        return Row(point, asked, skipped=str(refused))
    ledger = prediction.ledger
    said = asked.notes + notes
    accounts = MappingProxyType({account: ledger.share(account) for account in Account})
    row = Row(point, asked, notes=said, accounts=accounts, kernels=kernel_shares(prediction))
    if point.is_utilization:
        percents = 100 * ledger.gpu_util_share
        return replace(row, predicted=percents, off_points=percents - point.measured)
    predicted, error, more = compared(point, prediction)
    return replace(row, predicted=predicted, error=error, notes=said + more)


def compared(point: Point, prediction: Prediction) -> tuple[float, float, tuple[str, ...]]:
    """Our figure in the point's unit, predicted over measured time less 1, and a note where the units needed one."""
    if point.unit == "ms":
        step_ms = 1e3 * prediction.step_s
        return step_ms, step_ms / point.measured - 1, ()
    if same_unit(point.unit, prediction.unit):
        return prediction.per_s, point.measured / prediction.per_s - 1, ()
    assert point.step_ms is not None
    error = 1e3 * prediction.step_s / point.step_ms - 1
    note = f"the point counts {point.unit}, the workload {prediction.unit}; step times are compared"
    return point.measured / (1 + error), error, (note,)


def unit_of(text: str) -> str:
    """What a throughput counts, under one name.

    >>> unit_of("img/s"), unit_of("sequences/sec"), unit_of("tok")
    ('img', 'seq', 'tok')
    """
    counted = text.split("/", maxsplit=1)[0].strip().casefold()
    return UNITS.get(counted, counted)


def _counts_alike(point: Point, workload: Workload) -> bool:
    return same_unit(point.unit, workload.unit)


def same_unit(measured: str, counted: str) -> bool:
    """Whether a point counts what the workload counts; "items" are whatever a workload for speech counts."""
    own = unit_of(counted)
    return unit_of(measured) == own or (unit_of(measured) in ITEMS and own in ("frame", "sample"))


def kernel_shares(prediction: Prediction) -> Mapping[str, float]:
    """Time of the first card's kernels by kind over the time of the steps, from the largest down.

    Kernels that run side by side count each, so the shares can add up to more than 1.
    """
    timeline, found = prediction.timeline, Counter[str]()
    for span in timeline.spans:
        if span.activity in (Activity.KERNEL, Activity.COLLECTIVE) and timeline.lanes[span.lane].device in (0, None):
            kind = span.work.kind if span.work else "kernel"
            found[KERNELS.get(kind, kind)] += span.duration_ns
    return MappingProxyType({kind: ns / timeline.duration_ns for kind, ns in found.most_common()})


# --- memory ---------------------------------------------------------------------------------------------------------


def _with_room(asked: Asked, predicting: Predictor) -> tuple[Prediction, tuple[str, ...]]:
    """The prediction; where the card is too small by our accounting, on one like it with more memory, and a note."""
    try:
        return predicting(asked.workload, asked.setting, asked.machine, asked.torch), ()
    except Exception as error:
        if not _is_out_of_memory(error):
            raise
    card, peaks = asked.machine.card, [0]
    roomy = replace(asked.machine, card=replace(card, memory_bytes=ROOM_BYTES))
    prediction = predicting(_watched(asked.workload, peaks), asked.setting, roomy, asked.torch)
    found = f"our accounting finds {peaks[0] / GIB:.1f} GiB in use, the card has {card.memory_bytes / GIB:.0f} GiB"
    return prediction, (f"{found}; predicted as if it had more",)


def _is_out_of_memory(error: BaseException | None) -> bool:
    import torch

    while error is not None:
        if isinstance(error, torch.OutOfMemoryError | MemoryError):
            return True
        error = error.__cause__
    return False


def _watched(workload: Workload, peaks: list[int]) -> Workload:
    """The workload, noting after each step how much of the simulated card's memory was in use at most."""

    def make(setting: Setting, device: str) -> Job:
        job = workload.make(setting, device)
        return replace(job, step=_noting(job.step, peaks, device))

    return replace(workload, make=make)


def _noting(step: Step, peaks: list[int], device: str) -> Step:
    import torch

    def noted(k: int) -> Any:
        result = step(k)
        memory = getattr(torch, device.split(":", maxsplit=1)[0])
        peaks[0] = max(peaks[0], memory.max_memory_allocated())
        return result

    return noted
