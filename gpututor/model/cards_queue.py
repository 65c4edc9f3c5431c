"""The clocks of a host with several cards: copies from card to card, collectives, and a thread for each card.

A collective's kernel holds a few SMs of each card from the moment its own stream comes to it, also while it waits for
the other cards; kernels that run meanwhile have the rest of the SMs and take longer in proportion. While it moves data
they lose a further share of their pace, which belongs to the link. While several threads drive cards, each has its own
clock, and one that gets data from another card is never earlier than the thread that sent them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from msgspec import structs

from gpututor.model.lanes import lanes
from gpututor.model.priced import PricedOp, SpanSink
from gpututor.model.queue import KERNEL_GAP_NS, LAUNCH_LATENCY_NS, Queue
from gpututor.timeline import Activity, KernelWork, Lane, LaneKind, Span

EXTRA_LANES = 1 << 20
"""Lanes with such numbers and above get their place behind the others when the timeline is made."""


class CardsQueue(Queue):
    """A queue that also knows links between cards and threads that drive one card each."""

    def __init__(
        self,
        sync_ns: int,
        sink: SpanSink | None = None,
        *,
        n_cards: int = 1,
        n_sms: int = 1,
        launch_latency_ns: int = LAUNCH_LATENCY_NS,
        kernel_gap_ns: int = KERNEL_GAP_NS,
        link_name: str = "link",
    ) -> None:
        gaps = {"launch_latency_ns": launch_latency_ns, "kernel_gap_ns": kernel_gap_ns}
        super().__init__(sync_ns, sink, n_cards=n_cards, n_sms=n_sms, **gaps)
        self.extra_lanes: dict[int, Lane] = {}
        self.talk_ns = [0] * n_cards  # the clock of each card's communication stream
        self._talks: list[deque[tuple[int, int, float]]] = [deque() for _ in range(n_cards)]
        self._link_ns = [0] * n_cards
        self._link_name = link_name
        self._threads: dict[int, int] = {}  # clock by card, while threads drive cards
        self._thread: int | None = None

    # --- threads ----------------------------------------------------------------------------------------------

    def start_threads(self, cards: Sequence[int]) -> None:
        """A thread for each of these cards, all from now on; later work is that of the current stream's card."""
        self._threads = dict.fromkeys(cards, self.host_ns)
        self._thread = self.stream_card[self.stream]
        self._threads.setdefault(self._thread, self.host_ns)

    def join_threads(self) -> None:
        """The host goes on when the last of the threads is done."""
        if self._thread is not None:
            self._threads[self._thread] = self.host_ns
            self.host_ns = max(self._threads.values())
        self._threads, self._thread = {}, None

    def use_stream(self, k: int, card: int = 0) -> None:
        """As for one card; and while threads drive the cards, the thread of stream `k`'s card goes on."""
        super().use_stream(k, card)
        if self._thread is not None and self.stream_card[k] != self._thread:
            self._threads[self._thread] = self.host_ns
            self._thread = self.stream_card[k]
            self.host_ns = self._threads.setdefault(self._thread, self.host_ns)

    def _not_before(self, cards: Sequence[int]) -> None:
        """The threads of these cards are no earlier than the one that gives them data."""
        for card in cards:
            if card in self._threads:
                self._threads[card] = max(self._threads[card], self.host_ns)

    # --- work -------------------------------------------------------------------------------------------------

    def _launch(self, t: int, lane: int, launch_ns: int, name: str, long_ns: int, work: KernelWork) -> int:
        card = self.stream_card[self.stream]
        if self._talks[card]:
            ready = self.stream_ns[self.stream]
            start = max(t + launch_ns + self._latency_ns, ready + self._gap_ns if ready else 0)
            long_ns = self._beside_talk(card, start, long_ns)
        return super()._launch(t, lane, launch_ns, name, long_ns, work)

    def op_unseen(self, op: PricedOp) -> None:
        """As for one card; kernels beside a collective take longer."""
        if not self._talks[self.stream_card[self.stream]] or not op.kernels:
            super().op_unseen(op)
            return
        part, rest = divmod(op.dispatch_ns, len(op.kernels) + 1)
        t = self.host_ns + op.python_ns + rest
        for name, long_ns, work in op.kernels:
            t = self._launch(t + part, op.host_lane, op.launch_ns, name, long_ns, work)
        self.host_ns = t + part

    def _beside_talk(self, card: int, start: int, long_ns: int) -> int:
        """How long a kernel takes that would take `long_ns` with all SMs, from `start`."""
        talks = self._talks[card]
        while talks and talks[0][1] <= start:
            talks.popleft()
        at, left = start, float(long_ns)
        for begin, end, share in talks:
            alone_ns = max(0, begin - at)
            if left <= alone_ns:
                break
            left -= alone_ns
            at = max(at, begin)
            done = (end - at) * (1 - share)
            if left <= done:
                return at + round(left / (1 - share)) - start
            left -= done
            at = end
        return at + round(left) - start

    def peer_copy(
        self, name: str, source: int, target: int, n_bytes: int, link_ns: int, call_ns: int, lane: int
    ) -> None:
        """A copy from the current stream of card `source` to that of card `target`, named by stream numbers."""
        called = self.host_ns
        self.host_ns = called + call_ns
        cards = (self.stream_card[source], self.stream_card[target])
        ready = max(self.stream_ns[source], self.stream_ns[target])
        free = max(self._link_ns[card] for card in cards)
        start = max(self.host_ns + self._latency_ns, ready + self._gap_ns if ready else 0, free)
        end = start + link_ns
        self.stream_ns[source] = self.stream_ns[target] = end
        for card in cards:
            self._link_ns[card] = end
        self.n_launches += 1
        self._not_before(cards)
        if self._sink is not None:
            k, work = self.n_launches, KernelWork(kind="peer copy", moved_bytes=float(n_bytes))
            self._sink.append(Span(lane, Activity.LAUNCH, name, called, self.host_ns, k))
            for card in cards:
                self._sink.append(Span(self._link_lane(card), Activity.TRANSFER, name, start, end, k, work))

    def cards_exchange(
        self, name: str, streams: Sequence[int], long_ns: int, call_ns: int, lane: int, work: KernelWork
    ) -> None:
        """A collective in these streams, one of each card: all start when the last is ready."""
        called = self.host_ns
        self.host_ns = called + call_ns * len(streams)
        ready = max(self.stream_ns[k] for k in streams)
        start = max(self.host_ns + self._latency_ns, ready + self._gap_ns if ready else 0)
        self.n_launches += 1
        if self._sink is not None:
            self._sink.append(Span(lane, Activity.LAUNCH, f"launch {name}", called, self.host_ns, self.n_launches))
        for stream in streams:
            self.stream_ns[stream] = start + long_ns
            self._on_lanes(self.lane_of(stream), self.stream_card[stream], name, start, start + long_ns, work)
        self._not_before([self.stream_card[k] for k in streams])

    # --- collectives among processes: this queue is one of them ------------------------------------------------

    def come_to_exchange(self, name: str, card: int, call_ns: int, lane: int) -> int:
        """This process launches a collective that waits for its current stream; gives when its kernel is there."""
        called = self.host_ns
        self.host_ns = called + call_ns
        self.n_launches += 1
        if self._sink is not None:
            self._sink.append(Span(lane, Activity.LAUNCH, f"launch {name}", called, self.host_ns, self.n_launches))
        ready = max(self.talk_ns[card], self.stream_ns[self.stream])
        return max(self.host_ns + self._latency_ns, ready + self._gap_ns if ready else 0)

    def run_exchange(
        self, name: str, card: int, came: int, start: int, end: int, work: KernelWork, beside_share: float = 0.0
    ) -> None:
        """The collective that this process came to at `came` runs from `start`, the last one's coming, to `end`.

        Meanwhile other kernels lose `beside_share` of the pace that its SMs leave them.
        """
        self.talk_ns[card] = end
        held = min(0.9, (work.n_blocks or 0) / self._n_sms)
        if start > came:
            self._talks[card].append((came, start, held))
        if end > start:
            self._talks[card].append((start, end, 1 - (1 - held) * (1 - beside_share)))
        lane = self._extra(1, card, Lane(LaneKind.STREAM, f"communication stream of GPU {card}", card))
        if self._sink is not None and start > came:
            waits = KernelWork(kind="waiting for ranks", n_blocks=work.n_blocks, blocks_per_sm=1)
            self._sink.append(Span(lane, Activity.COLLECTIVE, f"{name}, waiting", came, start, self.n_launches, waits))
        self._on_lanes(lane, card, name, start, end, work)

    def host_waits_until(self, t_ns: int, name: str) -> None:
        """The process's thread waits for other ranks."""
        self.host_work(Activity.COMM_WAIT, name, max(0, t_ns - self.host_ns) + self._sync_ns)

    def _on_lanes(self, lane: int, card: int, name: str, start: int, end: int, work: KernelWork) -> None:
        """The collective's kernel on its stream, and its bytes on the card's link."""
        if self._sink is None:
            return
        self._sink.append(Span(lane, Activity.COLLECTIVE, name, start, end, self.n_launches, work))
        if work.moved_bytes:
            sent = KernelWork(kind="sent to other cards", moved_bytes=work.moved_bytes)
            self._sink.append(Span(self._link_lane(card), Activity.TRANSFER, name, start, end, self.n_launches, sent))

    # --- lanes ------------------------------------------------------------------------------------------------

    def thread_lane(self, card: int, autograd: bool) -> int:
        """The row of the thread that drives a card."""
        what = "autograd thread" if autograd else "thread"
        return self._extra(2 + autograd, card, Lane(LaneKind.HOST, f"{what} of GPU {card}", card))

    def _link_lane(self, card: int) -> int:
        return self._extra(0, card, Lane(LaneKind.LINK, f"{self._link_name} of GPU {card}", card))

    def _extra(self, kind: int, card: int, lane: Lane) -> int:
        number = EXTRA_LANES + 4 * card + kind
        self.extra_lanes.setdefault(number, lane)
        return number

    def finish_talk(self, name: str, streams: Sequence[int] | None) -> None:
        """The host waits for the communication of the cards of these streams (of all cards by default)."""
        cards = range(self._n_cards) if streams is None else {self.stream_card[k] for k in streams}
        late_ns = max(self.talk_ns[card] for card in cards) - self.host_ns
        if late_ns > 0:
            self.host_work(Activity.SYNC, name, late_ns)

    def placed(self, spans: Sequence[Span]) -> tuple[tuple[Lane, ...], Sequence[Span]]:
        """The rows of the timeline, links and threads last, and the spans on them."""
        rows = lanes(self.stream_card)
        where = {number: len(rows) + k for k, number in enumerate(sorted(self.extra_lanes))}
        extra = tuple(self.extra_lanes[number] for number in where)
        return rows + extra, [s if s.lane < EXTRA_LANES else structs.replace(s, lane=where[s.lane]) for s in spans]

    @property
    def end_ns(self) -> int:
        """When host, cards and links have finished everything so far."""
        return max(super().end_ns, *self.talk_ns)
