"""A finding on a card: its share, what proves it, what to change, what to expect and how sure that is."""

from __future__ import annotations

import marimo as mo

from gpututor.causes import Finding
from gpututor.charts import css_fill
from gpututor.charts.colours import HOST_COLOUR
from gpututor.page.course import is_ready, lesson
from gpututor.page.links import address
from gpututor.page.parts import escape, html, markdown
from gpututor.text import percent


def finding(found: Finding) -> mo.Html:
    """The card of one finding, marked in its account's colour; lines that it has nothing to say on are left out."""
    mark = css_fill(found.account) if found.account else HOST_COLOUR
    number = "" if found.share is None else f"<b>{escape(percent(found.share))} <small>of the time</small></b>"
    listed = "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in _lines(found) if text)
    return html(
        f'<section class="gt gt-card gt-finding" style="--gt-mark:{mark}">'
        f"<h3><span>{escape(found.cause.value)}</span>{number}</h3><dl>{listed}</dl></section>"
    )


def _lines(found: Finding) -> tuple[tuple[str, str], ...]:
    """Name and HTML text of each line, empty where there is nothing to say."""
    proof = "".join(f"<li>{escape(one.text)}</li>" for one in found.evidence)
    sure = f"{found.confidence.words.capitalize()}: {found.confidence.reason}"
    return (
        ("Evidence", f"<ul>{proof}</ul>" if proof else ""),
        ("Change", markdown(found.change) if found.change else ""),
        ("Expect", escape(found.gain.text) if found.gain else ""),
        ("How sure", escape(sure)),
        ("Lesson", _lesson(found.lesson)),
    )


def _lesson(number: int | None) -> str:
    """A link to the lesson about this cause; its name alone while it isn't written yet."""
    if number is None:
        return ""
    about = lesson(number)
    words = escape(f"{about.number} · {about.title}")
    return f'<a href="{escape(address(about))}">{words}</a>' if is_ready(about) else f"{words} (coming)"


def findings(found: tuple[Finding, ...]) -> mo.Html:
    """The cards of several findings one under the other, in the order given."""
    return html('<div class="gt gt-findings">', *(finding(each) for each in found), "</div>")
