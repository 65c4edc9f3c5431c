"""The host's clock and the card's queues: when each launch, kernel, copy and wait happens.

Kernels of one stream run in order, one after the other. Kernels of several streams of one card
overlap where their thread blocks fit on its SMs together, and else take turns; torch makes its streams
non-blocking, so the default one doesn't wait for them. The host runs ahead of a card by at
most `QUEUE_DEPTH` launches, and waits only where a program waits: a synchronization, a blocking copy, a full
queue. Every time is whole nanoseconds, and the same calls give the same times on every machine.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from gpututor.model.chains import LONG, Chains
from gpututor.model.crowd import CROWD, start_in
from gpututor.model.lanes import COMPUTE, COPY_IN, COPY_OUT, ENGINE, LANES_PER_CARD, MAIN, NO_KERNEL, lanes
from gpututor.model.priced import PricedGraph, PricedOp, SpanSink
from gpututor.timeline import Activity, KernelWork, Lane, Span

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

GRAPH_GAP_NS = 500
"""Between two kernels of a graph, which the card starts without the host.
Source: NVIDIA, "Getting Started with CUDA Graphs" (2019): a kernel of 2.9 µs on a V100 takes 3.8 µs launched by a
stream and 3.4 by a graph, gap included.
"""

GRAPH_REPLAY = "graph replay"


class Queue:
    """Clocks of one host and its cards, advanced call by call.

    With `sink` every stretch of work is also handed over as a `Span`; without it only the
    clocks move, which is what a running program needs. Streams are numbered: the default
    streams of the cards first, then those that the program makes.
    """

    def __init__(
        self,
        sync_ns: int,
        sink: SpanSink | None = None,
        *,
        n_cards: int = 1,
        n_sms: int = 1,
        launch_latency_ns: int = LAUNCH_LATENCY_NS,
        kernel_gap_ns: int = KERNEL_GAP_NS,
    ) -> None:
        self.host_ns = 0
        self.stream = 0  # the current one
        self.main_lane = MAIN
        self.stream_ns: list[int] = [0] * n_cards
        self.stream_card: list[int] = list(range(n_cards))
        self.n_launches = 0
        self.kernel_ns = [0] * n_cards  # of all kernels of each card; those of several streams may overlap
        self._n_cards, self._n_sms, self._sync_ns, self._sink = n_cards, n_sms, sync_ns, sink
        self._latency_ns, self._gap_ns = launch_latency_ns, kernel_gap_ns
        self._engine_ns: dict[int, int] = {}  # by lane
        self._chains = Chains(launch_latency_ns, kernel_gap_ns)
        self._pending: list[deque[int]] = [deque(maxlen=QUEUE_DEPTH) for _ in range(n_cards)]
        self._crowd: list[deque[tuple[int, int, float]]] = [deque(maxlen=CROWD) for _ in range(n_cards)]
        self._shared = [False] * n_cards  # whether more than the default stream was used there
        self._last: list[tuple[int, KernelWork] | None] = [None] * n_cards  # the newest kernel before it was

    @property
    def summed_kernel_ns(self) -> int:
        """What all kernels of all cards take; those of several streams may overlap."""
        return sum(self.kernel_ns)

    def op(self, op: PricedOp) -> None:
        """The host runs one framework op; its kernels join the current stream."""
        sink = self._sink
        if sink is None:
            self.op_unseen(op)
            return
        t, lane = self.host_ns, op.host_lane
        if op.python_ns:
            sink.append(Span(lane, Activity.PYTHON, "Python", t, t + op.python_ns))
            t += op.python_ns
        n = len(op.kernels)
        part, rest = divmod(op.dispatch_ns, n + 1)
        for k, (name, long_ns, work) in enumerate(op.kernels):
            before = part + (rest if k == 0 else 0)
            if before:
                sink.append(Span(lane, Activity.DISPATCH, op.name, t, t + before))
            t += before
            t = self._launch(t, lane, op.launch_ns, name, long_ns, work)
        if part:
            sink.append(Span(lane, Activity.DISPATCH, op.name, t, t + part))
            t += part
        self.host_ns = t

    def op_unseen(self, op: PricedOp) -> None:
        """The same without spans, which is what every op of a running program goes through."""
        kernels, t = op.kernels, self.host_ns + op.before_ns
        if not kernels:
            self.host_ns = t + op.after_ns
            return
        n, before_ns, stream = len(kernels), op.each_ns, self.stream
        card, ready = self.stream_card[stream], self.stream_ns[stream]
        pending, shared = self._pending[card], self._shared[card]
        latency_ns, gap_ns, summed_ns = self._latency_ns, self._gap_ns, 0
        if n >= LONG and not shared and self._op_in_a_chain(op, t, before_ns, stream, card):
            return
        for _, long_ns, work in kernels:
            t += before_ns
            if len(pending) == QUEUE_DEPTH and pending[0] > t:  # the one that `append` pushes out
                t = pending[0]
            start = t + latency_ns
            if ready and ready + gap_ns > start:
                start = ready + gap_ns
            if shared:
                start = self._when_there_is_room(card, start, long_ns, work)
            ready = start + long_ns
            pending.append(ready)
            summed_ns += long_ns
        self.kernel_ns[card] += summed_ns
        if not shared:
            self._last[card] = (start, work)
        self.stream_ns[stream] = ready
        self.n_launches += n
        self.host_ns = t + op.after_ns

    def _op_in_a_chain(self, op: PricedOp, t: int, before_ns: int, stream: int, card: int) -> bool:
        """The same for many kernels at once, on a card with one stream; False where the launch queue may be full."""
        n, pending = len(op.kernels), self._pending[card]
        n_out = len(pending) + n - QUEUE_DEPTH
        if n_out > 0 and (n_out > len(pending) or pending[n_out - 1] > t):
            return False
        ends, summed_ns = self._chains.ends_ns(op, before_ns, self.stream_ns[stream], t)
        pending.extend(ends)
        self.kernel_ns[card] += summed_ns
        self.stream_ns[stream], self._last[card] = ends[-1], (ends[-1] - op.kernels[-1][1], op.kernels[-1][2])
        self.n_launches += n
        self.host_ns = t + n * before_ns + op.after_ns
        return True

    def _launch(self, t: int, lane: int, launch_ns: int, name: str, long_ns: int, work: KernelWork) -> int:
        """Put one kernel into the current stream at host time `t`; gives the host time after the call."""
        called, stream = t, self.stream
        card = self.stream_card[stream]
        pending = self._pending[card]
        t += launch_ns
        if len(pending) == QUEUE_DEPTH:
            t = max(t, pending[0])  # `append` pushes it out
        ready = self.stream_ns[stream]
        start = max(t + self._latency_ns, ready + self._gap_ns if ready else 0)
        if self._shared[card]:
            start = self._when_there_is_room(card, start, long_ns, work)
        else:
            self._last[card] = (start, work)
        end = start + long_ns
        self.stream_ns[stream] = end
        pending.append(end)
        self.n_launches += 1
        self.kernel_ns[card] += long_ns
        sink = self._sink
        if sink is not None:
            k = self.n_launches
            sink.append(Span(lane, Activity.LAUNCH, f"launch {name}", called, t, k))
            kind = NO_KERNEL.get(work.kind, Activity.KERNEL)
            sink.append(Span(self.lane_of(stream), kind, name, start, end, k, work))
        return t

    def replay(self, graph: PricedGraph) -> None:
        """One launch call; then the card runs the graph's kernels in the current stream, one after another."""
        called, stream, sink = self.host_ns + graph.before_ns, self.stream, self._sink
        card = self.stream_card[stream]
        pending = self._pending[card]
        t = called + graph.launch_ns
        if len(pending) == QUEUE_DEPTH:
            t = max(t, pending[0])  # `append` pushes it out
        if sink is not None and graph.before_ns:
            sink.append(Span(MAIN, Activity.DISPATCH, graph.name, self.host_ns, called))
        self.n_launches += 1
        k, lane, ready = self.n_launches, self.lane_of(stream), self.stream_ns[stream]
        if sink is not None:
            sink.append(Span(MAIN, Activity.LAUNCH, GRAPH_REPLAY, called, t, k))
        start = end = max(t + self._latency_ns, ready + self._gap_ns if ready else 0)
        gap_ns = min(GRAPH_GAP_NS, self._gap_ns)
        for name, long_ns, work in graph.work:
            if self._shared[card]:
                start = self._when_there_is_room(card, start, long_ns, work)
            else:
                self._last[card] = (start, work)
            end = start + long_ns
            self.kernel_ns[card] += long_ns
            if sink is not None:
                engine = ENGINE.get(work.kind)
                where = lane if engine is None else engine + LANES_PER_CARD * card
                sink.append(Span(where, NO_KERNEL.get(work.kind, Activity.KERNEL), name, start, end, k, work))
            start = end + gap_ns
        self.stream_ns[stream] = end
        pending.append(end)
        self.host_ns = t

    def _when_there_is_room(self, card: int, start: int, long_ns: int, work: KernelWork) -> int:
        """The first time from `start` at which the SMs that this kernel needs are free of other streams' kernels."""
        return start_in(self._crowd[card], start, long_ns, self._need(work))

    def copy(self, name: str, to_gpu: bool, n_bytes: int, copy_ns: int, call_ns: int, blocking: bool) -> None:
        """A copy between host and card in the current stream; a blocking one holds the host until it is done."""
        stream = self.stream
        engine = (COPY_IN if to_gpu else COPY_OUT) + LANES_PER_CARD * self.stream_card[stream]
        called = self.host_ns
        t = called + call_ns
        ready = self.stream_ns[stream]
        start = max(t + self._latency_ns, ready + self._gap_ns if ready else 0, self._engine_ns.get(engine, 0))
        end = start + copy_ns
        self.stream_ns[stream] = self._engine_ns[engine] = end
        self.n_launches += 1
        self.host_ns = max(t, end + self._sync_ns) if blocking else t
        if self._sink is None:
            return
        activity = Activity.COPY_TO_GPU if to_gpu else Activity.COPY_TO_HOST
        work = KernelWork(kind="copy", moved_bytes=float(n_bytes))
        k = self.n_launches
        waits = Activity.SYNC if not to_gpu else Activity.COPY_CALL
        self._sink.append(Span(self.main_lane, waits if blocking else Activity.LAUNCH, name, called, self.host_ns, k))
        self._sink.append(Span(engine, activity, name, start, end, k, work))

    def synchronize(self, name: str, streams: Sequence[int] | None = None) -> None:
        """The host waits until these streams (all by default) have finished what was launched so far."""
        called = self.host_ns
        which = range(len(self.stream_ns)) if streams is None else streams
        done = max(self.stream_ns[k] for k in which)
        self.host_ns = max(called, done) + self._sync_ns
        if streams is None:
            for pending in self._pending:
                pending.clear()
        if self._sink is not None:
            self._sink.append(Span(self.main_lane, Activity.SYNC, name, called, self.host_ns))

    def host_work(self, activity: Activity, name: str, long_ns: int) -> None:
        """The host does something of its own for `long_ns` nanoseconds."""
        if self._sink is not None and long_ns:
            self._sink.append(Span(self.main_lane, activity, name, self.host_ns, self.host_ns + long_ns))
        self.host_ns += long_ns

    def use_stream(self, k: int, card: int = 0) -> None:
        """Later kernels and copies join stream `k`, which lies on `card` if it is a new one."""
        while len(self.stream_ns) <= k:
            self.stream_ns.append(0)
            self.stream_card.append(card)
        if k >= self._n_cards and not self._shared[self.stream_card[k]]:
            self._share(self.stream_card[k])
        self.stream = k

    def _share(self, card: int) -> None:
        """From now on kernels of this card's streams have to fit on its SMs together."""
        self._shared[card] = True
        newest = self._last[card]
        if newest is not None:
            start, work = newest
            self._crowd[card].append((start, self.stream_ns[card], self._need(work)))

    def _need(self, work: KernelWork) -> float:
        """The share of a card's SMs that a kernel has blocks for."""
        return 1.0 if work.n_blocks is None else min(1.0, work.n_blocks / self._n_sms)

    def stream_waits_until(self, k: int, t_ns: int) -> None:
        """Stream `k` starts nothing more before `t_ns` (an event or another stream it waits for)."""
        self.stream_ns[k] = max(self.stream_ns[k], t_ns)

    def event_ns(self, k: int) -> int:
        """When an event recorded now in stream `k` will be reached."""
        return max(self.host_ns, self.stream_ns[k] if k < len(self.stream_ns) else 0)

    def lane_of(self, stream: int) -> int:
        """The row of the timeline on which this stream's kernels lie."""
        if stream < self._n_cards:
            return COMPUTE + LANES_PER_CARD * stream
        return 2 + LANES_PER_CARD * self._n_cards + stream - self._n_cards

    def placed(self, spans: Sequence[Span]) -> tuple[tuple[Lane, ...], Sequence[Span]]:
        """The rows of the timeline, and the spans on them."""
        return lanes(self.stream_card), spans

    @property
    def end_ns(self) -> int:
        """When host and cards have finished everything so far."""
        return max(self.host_ns, *self.stream_ns)
