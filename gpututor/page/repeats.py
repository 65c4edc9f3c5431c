"""Runs of one configuration as bars, with a flag where a change began and the room that a step usually has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gpututor.charts.runs import Bar, Kind, Repeats, Room, Turn
from gpututor.history import Entry
from gpututor.history.changes import Change, band_of, signed
from gpututor.history.drawing import words_of
from gpututor.text import duration

FLAGS = 3  # our choice: more of them hide the bars; every change that lasted stands below the chart


def lasted(change: Change) -> bool:
    """Whether it is more than one odd run that came and went."""
    return change.n_runs > 1 or not change.over


def kind_of(change: Change) -> Kind:
    """What a flag is of."""
    return "over" if change.over else "slower" if change.slower else "faster"


def bar_of(run: Entry) -> Bar:
    """A run as a bar."""
    return Bar(run.number or 0, run.step_ns or 0.0, run.accounts_ns, words_of(run))


def repeats(
    shown: Sequence[Entry], turned: Sequence[Change], runs: Sequence[Entry], *, n_flags: int = FLAGS
) -> Repeats:
    """The chart of the runs that are `shown`, of all that there are; `turned` are the changes among them."""
    place = {run.number: k for k, run in enumerate(shown)}
    kept = [change for change in turned if lasted(change) and change.since.number in place]
    flags = [_flag(change, place[change.since.number]) for change in kept[-n_flags:]]
    spoken = f"step times of {len(shown)} runs, from {duration(shown[0].step_ns)} to {duration(shown[-1].step_ns)}"
    return Repeats(tuple(map(bar_of, shown)), tuple(_rooms(turned, place, runs)), tuple(flags), spoken)


def _flag(change: Change, at: int) -> Turn:
    more = f" {change.account.account.value}" if change.account else ""
    return Turn(at, f"{change.when}: {signed(change.share)}", more, kind_of(change))


def _rooms(turned: Sequence[Change], place: Mapping[int | None, int], runs: Sequence[Entry]) -> Iterator[Room]:
    """The room that each change was held against, as far as it was in force; without changes that of the last runs."""
    n, first = len(place), 0
    for k, change in enumerate(turned):
        end = n if k + 1 == len(turned) else place.get(change.until.number, -1) + 1
        if end > first:
            yield Room(first, end, change.band.low, change.band.high)
        first = max(first, end if change.over else place.get(change.since.number, 0))
    band = None if turned else band_of(runs)
    if band is not None:
        yield Room(0, n, band.low, band.high)
