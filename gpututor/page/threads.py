"""What people reported in public threads, beside the same thing done here, as ratios with a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from gpututor.page.parts import escape
from gpututor.references import Reference

Verdict = Literal["so here too", "the same way, less", "the same way, more", "not so here", "not run"]
NO_EFFECT = 1.1  # a ratio nearer to one than this is within what a run repeats
NEAR = 0.05  # ratios this close are the same, small as the effect may be
ALIKE = 2.5  # other computers, years and versions: within this factor we call two ratios alike


def verdict(theirs: float, ours: float | None) -> Verdict:
    """Whether our ratio says what theirs says; both are above one where there is an effect.

    Somebody who saw no effect says one.

    >>> verdict(15.4, 12.0), verdict(4.3, 1.3), verdict(3.4, 0.8), verdict(1.5, 20.0), verdict(2.0, None)
    ('so here too', 'the same way, less', 'not so here', 'the same way, more', 'not run')
    >>> verdict(1.0, 1.02), verdict(1.0, 1.5), verdict(1.09, 1.06)
    ('so here too', 'not so here', 'so here too')
    """
    if ours is None:
        return "not run"
    if abs(ours - theirs) <= NEAR * theirs:
        return "so here too"
    if theirs == 1.0:
        return "so here too" if ours < NO_EFFECT else "not so here"
    if ours < NO_EFFECT:
        return "not so here"
    if ours * ALIKE < theirs:
        return "the same way, less"
    return "the same way, more" if ours > theirs * ALIKE else "so here too"


def threads_table(rows: Sequence[tuple[Reference, float | None]]) -> str:
    """One line a thread: what was compared, their ratio, ours (None where it wasn't run), and the verdict; as HTML."""
    lines = "".join(_line(theirs, ours) for theirs, ours in rows)
    return (
        '<table class="gt-expect"><caption class="gt-hidden">Public threads beside this computer</caption>'
        '<thead><tr><td></td><th scope="col">They saw</th><th scope="col">Here</th><th scope="col">So it is</th></tr>'
        f"</thead><tbody>{lines}</tbody></table>"
    )


def _line(theirs: Reference, ours: float | None) -> str:
    return (
        f'<tr><th scope="row">{escape(theirs.what)}<small>{escape(theirs.source)} · {escape(theirs.note)}</small></th>'
        f"<td>{_narrow('They saw')}{_times(theirs.value)}</td><td>{_narrow('Here')}<b>{_times(ours)}</b></td>"
        f"<td>{verdict(theirs.value, ours)}</td></tr>"
    )


def _narrow(title: str) -> str:
    """A column's title where a phone shows no head of the table."""
    return f'<span class="gt-only-narrow">{title}</span>'


def _times(ratio: float | None) -> str:
    """A ratio as text.

    >>> _times(0.83), _times(1.09), _times(3.39), _times(15.4), _times(321.0), _times(None)
    ('0.83', '1.09', '3.4', '15', '321', '—')
    """
    if ratio is None:
        return "—"
    return f"{ratio:.2f}" if ratio < 1.5 else f"{ratio:.1f}" if ratio < 10 else f"{ratio:,.0f}"
