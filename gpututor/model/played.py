"""A tape that was played, as a timeline."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from msgspec import structs

from gpututor.errors import TimelineError
from gpututor.model.tape import Player
from gpututor.timeline import ON_HOST, Label, Span, Step, Timeline


def timeline_of(player: Player, spans: list[Span], label: Label, losses: Sequence[float | None]) -> Timeline:
    """The timeline of everything played: the window runs from the first step to the end of the last.

    Raises:
        TimelineError: nothing was played.
    """
    end_ns = player.end_ns if player.end_ns is not None else player.queue.end_ns
    begins = player.begins or [(0, None)]
    if end_ns <= begins[0][0]:
        raise TimelineError("the run did nothing on host or card, so there is no time to account for")
    ends = [at for at, _ in begins[1:]] + [end_ns]
    steps = tuple(
        Step(start, end, n, losses[k] if k < len(losses) else None)
        for k, ((start, n), end) in enumerate(zip(begins, ends, strict=True))
    )
    rows, placed = player.queue.placed(without_padding(player, spans))
    return Timeline(rows, tuple(placed), (begins[0][0], end_ns), label, steps if player.begins else ())


def without_padding(player: Player, spans: Sequence[Span]) -> Sequence[Span]:
    """The spans of a player; kernels of steps that told how much of their arithmetic is padding say what was useful.

    A kernel belongs to the step that launched it, though it may run in the next one's time.
    """
    if all(share is None for share in player.useful_shares):
        return spans
    begins, shares = [at for at, _ in player.begins], player.useful_shares
    called = {s.launch: s.start_ns for s in spans if s.launch is not None and s.activity in ON_HOST}

    def told(span: Span) -> Span:
        work, k = span.work, bisect_right(begins, called.get(span.launch or 0, span.start_ns)) - 1
        share = shares[k] if k >= 0 else None
        if work is None or not work.flop or work.useful_flop is not None or share is None:
            return span
        return structs.replace(span, work=structs.replace(work, useful_flop=share * work.flop))

    return [told(span) for span in spans]
