"""The host's clock and the card's queues: when each launch, kernel, copy and wait happens.

One GPU. Kernels of one stream run in order, one after the other. The host runs ahead of
the card by at most `QUEUE_DEPTH` launches, and waits only where a program waits: a
synchronization, a blocking copy, a full queue. Every time is whole nanoseconds, and the same
calls give the same times on every machine.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from gpututor.timeline import Activity, KernelWork, Lane, LaneKind, Span

QUEUE_DEPTH = 1024
"""Launches that may wait on one card before the next launch call blocks.

Source: commonly observed depth of CUDA's launch queue (1,022 to 1,024 pending launches
before cudaLaunchKernel blocks); NVIDIA does not document it.
"""

LAUNCH_LATENCY_NS = 1_000
"""From the end of the launch call to the kernel's start on an idle card.

Source: V100-SXM2 trace of torch.profiler (public PyTorch trace with ns timestamps), median
0.9 µs; 2,034 launches onto an idle A100: 8 µs from the call's start, of which the call took 6.
"""

KERNEL_GAP_NS = 800
"""Between two kernels of one stream that are both queued already.

Source: the same V100 trace, 4,345 gaps: 0.6 (10th percentile), 0.8 (median); H100 1.4.
"""

NO_KERNEL = {"copy on GPU": Activity.COPY_ON_GPU, "memset": Activity.MEMSET}
"""Kinds of work in a stream that nvidia-smi's GPU-Util or its copy engine counts apart from kernels."""

MAIN, AUTOGRAD, COMPUTE, COPY_IN, COPY_OUT = range(5)
"""Indexes of the lanes every simulated run has; further streams follow."""


def lanes(n_streams: int = 1) -> tuple[Lane, ...]:
    """The rows of a simulated timeline: two host threads, two copy engines, `n_streams` streams."""
    fixed = (
        Lane(LaneKind.HOST, "main thread"),
        Lane(LaneKind.HOST, "autograd thread"),
        Lane(LaneKind.STREAM, "default stream", 0),
        Lane(LaneKind.COPY, "copies to the GPU", 0),
        Lane(LaneKind.COPY, "copies to the host", 0),
    )
    return fixed + tuple(Lane(LaneKind.STREAM, f"stream {k}", 0) for k in range(1, n_streams))


@dataclass(frozen=True, slots=True)
class PricedOp:
    """One framework op on one machine: host nanoseconds around its launches, and its kernels."""

    name: str
    host_lane: int
    python_ns: int
    dispatch_ns: int
    launch_ns: int  # each
    kernels: tuple[tuple[str, int, KernelWork], ...]  # name, duration in ns, work


class SpanSink(Protocol):
    """Where finished spans go; a list's `append` fits."""

    def append(self, span: Span, /) -> None:
        """Take one finished span."""


class Queue:
    """Clocks of one host and one card, advanced call by call.

    With `sink` every stretch of work is also handed over as a `Span`; without it only the
    clocks move, which is what a running program needs.
    """

    def __init__(self, sync_ns: int, sink: SpanSink | None = None) -> None:
        self.host_ns = 0
        self.stream = 0  # the current one
        self.stream_ns: list[int] = [0]
        self.engine_ns = {COPY_IN: 0, COPY_OUT: 0}
        self.n_launches = 0
        self.summed_kernel_ns = 0  # of all kernels; those of several streams may overlap
        self._sync_ns = sync_ns
        self._sink = sink
        self._pending: deque[int] = deque()

    # --- what a program does ---------------------------------------------------------------------------------

    def op(self, op: PricedOp) -> None:
        """The host runs one framework op; its kernels join the current stream."""
        t = self.host_ns
        sink = self._sink
        lane = op.host_lane
        if op.python_ns:
            if sink is not None:
                sink.append(Span(lane, Activity.PYTHON, "Python", t, t + op.python_ns))
            t += op.python_ns
        n = len(op.kernels)
        if not n:
            if op.dispatch_ns:
                if sink is not None:
                    sink.append(Span(lane, Activity.DISPATCH, op.name, t, t + op.dispatch_ns))
                t += op.dispatch_ns
            self.host_ns = t
            return
        part, rest = divmod(op.dispatch_ns, n + 1)
        for k, (name, long_ns, work) in enumerate(op.kernels):
            before = part + (rest if k == 0 else 0)
            if sink is not None and before:
                sink.append(Span(lane, Activity.DISPATCH, op.name, t, t + before))
            t += before
            t = self._launch(t, lane, op.launch_ns, name, long_ns, work)
        if part:
            if sink is not None:
                sink.append(Span(lane, Activity.DISPATCH, op.name, t, t + part))
            t += part
        self.host_ns = t

    def _launch(self, t: int, lane: int, launch_ns: int, name: str, long_ns: int, work: KernelWork) -> int:
        """Put one kernel into the current stream at host time `t`; gives the host time after the call."""
        called = t
        pending = self._pending
        t += launch_ns
        if len(pending) >= QUEUE_DEPTH:
            t = max(t, pending.popleft())
        ready = self.stream_ns[self.stream]
        start = max(t + LAUNCH_LATENCY_NS, ready + KERNEL_GAP_NS if ready else 0)
        end = start + long_ns
        self.stream_ns[self.stream] = end
        pending.append(end)
        self.n_launches += 1
        self.summed_kernel_ns += long_ns
        sink = self._sink
        if sink is not None:
            k = self.n_launches
            stream = COMPUTE if self.stream == 0 else COPY_OUT + self.stream
            sink.append(Span(lane, Activity.LAUNCH, f"launch {name}", called, t, k))
            sink.append(Span(stream, NO_KERNEL.get(work.kind, Activity.KERNEL), name, start, end, k, work))
        return t

    def copy(self, name: str, to_gpu: bool, n_bytes: int, copy_ns: int, call_ns: int, blocking: bool) -> None:
        """A copy between host and card in the current stream; a blocking one holds the host until it is done."""
        engine = COPY_IN if to_gpu else COPY_OUT
        called = self.host_ns
        t = called + call_ns
        ready = self.stream_ns[self.stream]
        start = max(t + LAUNCH_LATENCY_NS, ready + KERNEL_GAP_NS if ready else 0, self.engine_ns[engine])
        end = start + copy_ns
        self.stream_ns[self.stream] = self.engine_ns[engine] = end
        self.n_launches += 1
        self.host_ns = max(t, end + self._sync_ns) if blocking else t
        if self._sink is None:
            return
        activity = Activity.COPY_TO_GPU if to_gpu else Activity.COPY_TO_HOST
        work = KernelWork(kind="copy", moved_bytes=float(n_bytes))
        k = self.n_launches
        waits = Activity.SYNC if not to_gpu else Activity.COPY_CALL
        self._sink.append(Span(MAIN, waits if blocking else Activity.LAUNCH, name, called, self.host_ns, k))
        self._sink.append(Span(engine, activity, name, start, end, k, work))

    def synchronize(self, name: str, streams: Sequence[int] | None = None) -> None:
        """The host waits until these streams (all by default) have finished what was launched so far."""
        called = self.host_ns
        which = range(len(self.stream_ns)) if streams is None else streams
        done = max(self.stream_ns[k] for k in which)
        self.host_ns = max(called, done) + self._sync_ns
        if streams is None:
            self._pending.clear()
        if self._sink is not None:
            self._sink.append(Span(MAIN, Activity.SYNC, name, called, self.host_ns))

    def host_work(self, activity: Activity, name: str, long_ns: int) -> None:
        """The host does something of its own for `long_ns` nanoseconds."""
        if self._sink is not None and long_ns:
            self._sink.append(Span(MAIN, activity, name, self.host_ns, self.host_ns + long_ns))
        self.host_ns += long_ns

    def use_stream(self, k: int) -> None:
        """Later kernels and copies join stream `k`; 0 is the default stream."""
        while len(self.stream_ns) <= k:
            self.stream_ns.append(0)
        self.stream = k

    def stream_waits_until(self, k: int, t_ns: int) -> None:
        """Stream `k` starts nothing more before `t_ns` (an event or another stream it waits for)."""
        current = self.stream
        self.use_stream(k)
        self.stream_ns[k] = max(self.stream_ns[k], t_ns)
        self.stream = current

    def event_ns(self, k: int) -> int:
        """When an event recorded now in stream `k` will be reached."""
        return max(self.host_ns, self.stream_ns[k] if k < len(self.stream_ns) else 0)
