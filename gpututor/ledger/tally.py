"""What all windows of one GPU's timeline share, found out once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpututor.cards import Card
from gpututor.intervals import merged, overlap_ns
from gpututor.ledger import busy
from gpututor.ledger.accounts import Account
from gpututor.ledger.device import SHOWN_BY_NVIDIA_SMI, State, Stretch, spans_of, stretches
from gpututor.ledger.idle import Host
from gpututor.ledger.piece import Piece
from gpututor.timeline import Span, Timeline

_COPY_ACCOUNT = {
    State.COMMUNICATING: Account.EXPOSED_COMMUNICATION,
    State.COPYING_IN: Account.EXPOSED_COPY,
    State.COPYING_OUT: Account.BLOCKING_SYNC,
}


class Tally:
    """What is the same for every window of one GPU's timeline, found out once: stretches, and whose idle time is whose.

    Raises:
        TimelineError: several GPUs and none chosen.
    """

    def __init__(self, timeline: Timeline, device: int | None = None) -> None:
        self.spans = spans_of(timeline, device)
        self._host = Host(timeline, self.spans)
        self._window_ns = (0, 0)
        self._cut: list[Stretch] = []
        self._pieces: list[Piece] = []
        self._splits: dict[tuple[int, int | None], tuple[Card | None, dict[tuple[object, ...], busy.Split]]] = {}
        self._shown: list[tuple[int, int]] | None = None

    def within(self, window_ns: tuple[int, int]) -> tuple[list[Stretch], list[Piece]]:
        """The window's stretches, and its pieces that aren't computing."""
        lo, hi = window_ns
        first, last = self._window_ns
        if lo < first or hi > last or not self._cut:
            if self._cut:
                lo, hi = min(lo, first), max(hi, last)
            self._window_ns = (lo, hi)
            self._cut = stretches(self.spans, (lo, hi))
            self._pieces = _not_busy(self._host, self._cut)
        if window_ns == self._window_ns:
            return self._cut, self._pieces
        lo, hi = window_ns
        cut = [s for s in self._cut if s.start_ns < hi and s.end_ns > lo]
        for k in {0, len(cut) - 1}:
            cut[k] = Stretch(max(cut[k].start_ns, lo), min(cut[k].end_ns, hi), cut[k].state, cut[k].running)
        pieces = [p for p in self._pieces if p.start_ns < hi and p.end_ns > lo]
        for k in {0, len(pieces) - 1} if pieces else ():
            pieces[k] = Piece(max(pieces[k].start_ns, lo), min(pieces[k].end_ns, hi), pieces[k].account)
        return cut, pieces

    def splits(self, kernels: Mapping[int, Span], card: Card | None, n_sms: int | None) -> dict[int, busy.Split]:
        """Each kernel's split; equal kernels are computed once."""
        _, known = self._splits.setdefault((id(card), n_sms), (card, {}))  # the card is kept, so its id stays its own
        out: dict[int, busy.Split] = {}
        for k, span in kernels.items():
            duration_ns = span.end_ns - span.start_ns
            if duration_ns:
                key = (span.activity, id(span.work), duration_ns)
                found = known.get(key)
                if found is None:
                    found = known[key] = busy.split(span, card, n_sms)
                out[k] = found
        return out

    def shown_ns(self, window_ns: tuple[int, int]) -> int:
        """Nanoseconds of the window that nvidia-smi would call busy."""
        if self._shown is None:
            shown = [s for s in self.spans if s.activity in SHOWN_BY_NVIDIA_SMI]
            self._shown = merged([(s.start_ns, s.end_ns) for s in shown])
        return overlap_ns(self._shown, [window_ns])


def _not_busy(host: Host, cut: Sequence[Stretch]) -> list[Piece]:
    """Every stretch that isn't computing, with its account, neighbours of one account joined."""
    out: list[Piece] = []
    last_ns, last_account = 0, None
    for stretch in cut:
        if stretch.state is State.COMPUTING:
            continue
        if stretch.state is State.IDLE:
            pieces = host.explain(stretch.start_ns, stretch.end_ns)
        else:
            pieces = [Piece(stretch.start_ns, stretch.end_ns, _COPY_ACCOUNT[stretch.state])]
        for piece in pieces:
            start_ns, end_ns, account = piece
            if account is last_account and start_ns == last_ns:
                out[-1] = Piece(out[-1].start_ns, end_ns, account)
            else:
                out.append(piece)
            last_ns, last_account = end_ns, account
    return out
