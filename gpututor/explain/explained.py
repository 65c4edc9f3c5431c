"""What `explain` finds out about one trace."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from gpututor import timeline_file
from gpututor.causes import Awaited, Finding, find_causes
from gpututor.errors import TimelineError
from gpututor.explain.late import awaited, collectives
from gpututor.explain.repeating import with_steps
from gpututor.explain.typical import Typical, typical_of
from gpututor.explain.windows import Window, on_gpu_of, span_of, window_of
from gpututor.ledger import Tally, TwoWindows
from gpututor.ledger.device import devices
from gpututor.model.uncollected import uncollected
from gpututor.timeline import COMPUTING, Activity, Timeline, covered_ns
from gpututor.trace import read
from gpututor.trace.kernels import MATRIX, kernel_class
from gpututor.trace.opening import Source


@dataclass(frozen=True, slots=True)
class Explained:
    """A trace explained, for one of its GPUs.

    `span` is the window from the first to the last GPU event, `steps` that of the steps; either is None where there is
    none. `how` says how the steps were found. The findings are those of the steps where there are some.
    """

    name: str
    timeline: Timeline
    device: int | None
    n_devices: int
    span: Window | None
    steps: Window | None
    how: str
    typical: Typical
    findings: tuple[Finding, ...]
    disagreement: str | None

    @property
    def window(self) -> Window:
        """The window that is explained: the steps, or the span where there are none."""
        chosen = self.steps or self.span
        assert chosen is not None
        return chosen

    def kernel_classes(self) -> dict[str, int]:
        """Nanoseconds of kernels in the window by class, most first. Kernels that run at the same time both count."""
        lo, hi = self.window.timeline.window_ns
        spent = Counter[str]()
        for s in on_gpu_of(self.window.timeline, self.device):
            if s.activity in COMPUTING or s.activity is Activity.COLLECTIVE:
                spent[kernel_class(s.name, s.activity)] += max(0, min(s.end_ns, hi) - max(s.start_ns, lo))
        return {name: ns for name, ns in spent.most_common() if ns}

    def tensor_core_ns(self) -> dict[str, int]:
        """Nanoseconds of matrix kernels "on" tensor cores, "off" them, or "unknown" where their name doesn't say."""
        lo, hi = self.window.timeline.window_ns
        spent = {"on": 0, "off": 0, "unknown": 0}
        for s in on_gpu_of(self.window.timeline, self.device):
            if s.activity is Activity.KERNEL and s.work is not None and s.work.kind in MATRIX:
                told = "unknown" if s.work.tensor_core is None else "on" if s.work.tensor_core else "off"
                spent[told] += max(0, min(s.end_ns, hi) - max(s.start_ns, lo))
        return spent

    def graph_share(self) -> float | None:
        """Share of the window's busy time in which something ran that a CUDA or HIP graph started; None without any.

        Busy is everything on the GPU, copies and communication too, as in `Window.busy_share`.
        """
        timeline = self.window.timeline
        on_gpu = on_gpu_of(timeline, self.device)
        of_graphs = [s for s in on_gpu if s.work is not None and s.work.from_graph]
        from_graph_ns = covered_ns(of_graphs, timeline.window_ns)
        return from_graph_ns / covered_ns(on_gpu, timeline.window_ns) if from_graph_ns else None


def explain(source: Source, *, device: int | None = None, what: str = "") -> Explained:
    """Read a trace, or a saved timeline, and explain one GPU: the one asked for, or that with the most kernels.

    Raises:
        NoKernels: the program launched nothing on a GPU.
        TimelineError: the file is damaged beyond repair, no trace of a GPU, or has no such GPU; in one sentence.
    """
    with uncollected():
        path = Path(source) if isinstance(source, (str, os.PathLike)) else None
        if path is not None and timeline_file.is_one(path):
            timeline = timeline_file.load(path)
            return replace(explained(timeline, device=device), name=path.name)
        return explained(read(source, what=what), device=device)


def explained(timeline: Timeline, *, device: int | None = None) -> Explained:
    """As `explain`, of a timeline that is there already.

    Raises:
        TimelineError: it has no such GPU.
    """
    present = devices(timeline)
    if device is None and len(present) > 1:
        device = busiest(timeline)
    if device is not None and present and device not in present:
        raise TimelineError(f"GPU {device} was asked for, but the trace has {', '.join(map(str, present))}")
    chosen = device if len(present) > 1 or device is not None else None
    spanned, tally = span_of(timeline, chosen), Tally(timeline, chosen)
    stepped, how = with_steps(timeline, chosen)
    if spanned is not None:
        tally.within((min(spanned.window_ns[0], stepped.window_ns[0]), max(spanned.window_ns[1], stepped.window_ns[1])))
    span = window_of(spanned, chosen, tally) if spanned else None
    steps = window_of(stepped, chosen, tally) if stepped.steps or span is None else None
    window = steps or span
    assert window is not None
    return Explained(
        timeline.label.what,
        timeline,
        chosen,
        len(present) or 1,
        span,
        steps,
        how,
        typical_of(window.timeline, window.ledger),
        find_causes(window.timeline, window.ledger, awaited=_awaited(timeline, chosen, present)),
        TwoWindows(steps.ledger, span.ledger).disagreement if steps and span else None,
    )


def _awaited(timeline: Timeline, device: int | None, present: list[int]) -> Awaited | None:
    """When this GPU waited for the others of the same trace."""
    if device is None or len(present) < 2:
        return None
    ranks = [collectives(timeline, each) for each in present]
    return awaited(ranks, [f"GPU {each}" for each in present], present.index(device), one_clock=True)


def busiest(timeline: Timeline) -> int | None:
    """The GPU with the most kernels."""
    counts = Counter(timeline.lanes[s.lane].device for s in timeline.on(Activity.KERNEL))
    return counts.most_common(1)[0][0] if counts else None
