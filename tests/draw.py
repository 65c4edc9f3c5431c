"""Draw a timeline as text: one character is one microsecond, a run of equal characters one span.

    draw(host="PaPbII..", gpu="..aa.bb.")

| row | characters |
|---|---|
| `host…` | `I` input, `P` python, `D` dispatch, `L` launch, `S` sync, `C` copy call |
| `host…` | `X` pause, `U` start-up, `W` communication wait |
| `gpu…` | `#` kernel, `M` collective, `Z` memset, `O` copy within the GPU |
| `copy…` | `>` to the GPU, `<` to the host |
| `link…` | `T` transfer |

Everywhere `.` is nothing. A lower-case letter links two rows: on a host row it is a launch call, on a gpu row the
kernel which that call started. A host row may be a tuple of rows, which then lie over one another on the same
thread: `host=("IIII", ".DD.")`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from gpututor.timeline import Activity, KernelWork, Label, Lane, LaneKind, Origin, Span, Step, Timeline

HOST = {
    "I": Activity.INPUT,
    "P": Activity.PYTHON,
    "D": Activity.DISPATCH,
    "L": Activity.LAUNCH,
    "S": Activity.SYNC,
    "C": Activity.COPY_CALL,
    "X": Activity.PAUSE,
    "U": Activity.STARTUP,
    "W": Activity.COMM_WAIT,
}
GPU = {"#": Activity.KERNEL, "M": Activity.COLLECTIVE, "Z": Activity.MEMSET, "O": Activity.COPY_ON_GPU}
COPY = {">": Activity.COPY_TO_GPU, "<": Activity.COPY_TO_HOST}
LINK = {"T": Activity.TRANSFER}
ROWS = {
    "host": (LaneKind.HOST, HOST),
    "gpu": (LaneKind.STREAM, GPU),
    "copy": (LaneKind.COPY, COPY),
    "link": (LaneKind.LINK, LINK),
}
US = 1_000
MS = 1_000_000


def draw(
    *,
    window: tuple[int, int] | None = None,
    steps: str = "",
    n_samples: int | None = None,
    work: KernelWork | Sequence[KernelWork | None] | None = None,
    label: Label | None = None,
    devices: dict[str, int] | None = None,
    unit_ns: int = US,
    **rows: str | tuple[str, ...],
) -> Timeline:
    """The timeline drawn in `rows`, all of one length.

    `window` is in characters, the whole length without it. `steps` is a row in which each run of one character is
    a step of `n_samples`. `work` is what every kernel had to do, or one for each kernel in the order of rows and time.
    """
    layers = {name: (row,) if isinstance(row, str) else row for name, row in rows.items()}
    lengths = {len(row) for layer in layers.values() for row in layer} | ({len(steps)} if steps else set())
    if len(lengths) != 1:
        raise ValueError(f"rows of {sorted(lengths)} characters were drawn; they must be equally long")
    (length,) = lengths
    lanes, spans = [], []
    for name, layer in layers.items():
        kind, meaning = next(value for prefix, value in ROWS.items() if name.startswith(prefix))
        lanes.append(Lane(kind, name, (devices or {}).get(name)))
        for row in layer:
            spans += _spans(row, len(lanes) - 1, kind, meaning, unit_ns)
    start, end = window or (0, length)
    return Timeline(
        tuple(lanes),
        tuple(_with_work(spans, work)),
        (start * unit_ns, end * unit_ns),
        label or Label(Origin.SIMULATED),
        tuple(Step(a * unit_ns, b * unit_ns, n_samples) for _, a, b in _runs(steps)),
    )


def _runs(row: str) -> list[tuple[str, int, int]]:
    out, at = [], 0
    for mark, run in groupby(row):
        end = at + len(list(run))
        if mark != ".":
            out.append((mark, at, end))
        at = end
    return out


def _spans(row: str, lane: int, kind: LaneKind, meaning: dict[str, Activity], unit_ns: int) -> list[Span]:
    linked = Activity.LAUNCH if kind is LaneKind.HOST else Activity.KERNEL
    spans = []
    for mark, start, end in _runs(row):
        if mark.islower() and kind in (LaneKind.HOST, LaneKind.STREAM):
            spans.append(Span(lane, linked, mark, start * unit_ns, end * unit_ns, ord(mark)))
        elif mark in meaning:
            spans.append(Span(lane, meaning[mark], mark, start * unit_ns, end * unit_ns))
        else:
            raise ValueError(f"{mark!r} has no meaning on a {kind.value} row; known there: {' '.join(meaning)}")
    return spans


def _with_work(spans: list[Span], work: KernelWork | Sequence[KernelWork | None] | None) -> list[Span]:
    kernels = [k for k, span in enumerate(spans) if span.activity is Activity.KERNEL]
    works = [work] * len(kernels) if work is None or isinstance(work, KernelWork) else list(work)
    if len(works) != len(kernels):
        raise ValueError(f"{len(works)} works were given for {len(kernels)} kernels")
    for k, one in zip(kernels, works, strict=True):
        s = spans[k]
        spans[k] = Span(s.lane, s.activity, s.name, s.start_ns, s.end_ns, s.launch, one)
    return spans
