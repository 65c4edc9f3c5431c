"""A tape that was played, as a timeline."""

from __future__ import annotations

from collections.abc import Sequence

from gpututor.errors import TimelineError
from gpututor.model.tape import Player
from gpututor.timeline import Label, Span, Step, Timeline


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
    rows, placed = player.queue.placed(spans)
    return Timeline(rows, tuple(placed), (begins[0][0], end_ns), label, steps if player.begins else ())
