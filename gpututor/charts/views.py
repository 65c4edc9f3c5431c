"""Windows of a timeline that are worth a look, each with the words on its button."""

from __future__ import annotations

from gpututor.charts.lanes import Idle
from gpututor.ledger import Account, Piece
from gpututor.timeline import Activity, Timeline

A_FEW = 16  # kernels; as many names as fit side by side
WORDS = {
    Account.WAITING_FOR_INPUT: "waiting for input",
    Account.EXPOSED_COPY: "a copy",
    Account.BLOCKING_SYNC: "a sync",
    Account.EXPOSED_COMMUNICATION: "communication",
    Account.START_UP: "start-up",
    Account.PAUSE: "a pause",
}


def _length_ns(piece: Piece) -> int:
    return piece.end_ns - piece.start_ns


def views(
    timeline: Timeline, idle: Idle, least_share: float = 0.005, *, launches_at: float = 0.5
) -> dict[str, tuple[int, int]]:
    """Names and windows: a few launches, the longest wait of each account worth it, and the whole step, or all.

    An account is worth it when its longest wait takes `least_share` of the window. The launches are those in the middle
    of all, or at another share of them.
    """
    lo, hi = timeline.window_ns
    out: dict[str, tuple[int, int]] = {}
    kernels = sorted(s.start_ns for s in timeline.on(Activity.KERNEL) if lo <= s.start_ns < hi)
    if len(kernels) > A_FEW:
        first = int(launches_at * (len(kernels) - A_FEW - 1))
        out["a few launches"] = (kernels[first], kernels[first + A_FEW])
    for account, words in WORDS.items():
        longest = max((p for p in idle if p.account is account), key=_length_ns, default=None)
        if longest and _length_ns(longest) >= least_share * (hi - lo):
            margin = (_length_ns(longest)) // 4
            out[words] = (max(lo, longest.start_ns - margin), min(hi, longest.end_ns + margin))
    out["the whole step" if len(timeline.steps) < 2 else "all of it"] = (lo, hi)
    return out
