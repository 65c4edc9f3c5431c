"""The end of a lesson: the sentence to keep, the way on, and what only instructors see."""

from __future__ import annotations

import marimo as mo

from gpututor import readers
from gpututor.page.course import LESSONS, Lesson, lesson, next_ready
from gpututor.page.links import address
from gpututor.page.parts import escape, html, markdown


def takeaway(text: str) -> mo.Html:
    """The lesson in one sentence of plain text."""
    return html(f'<section class="gt gt-take"><h2 class="gt-small">Take away</h2><p>{escape(text)}</p></section>')


def next_lesson(after: Lesson | int) -> mo.Html:
    """The link to the next lesson that is there, with what is still to come before it; after the last, to the start."""
    number = after if isinstance(after, int) else after.number
    if number >= len(LESSONS):
        return html(_link(lesson(0), "The end of the course", "Back to the start", "See where your time goes now."))
    following = next_ready(number)
    if following is None:
        soon = f"Coming · lesson {number + 1}, {lesson(number + 1).title}"
        return html(_link(lesson(0), soon, "Back to the start", "See which lesson answers your question."))
    n_left_out = following.number - number - 1
    coming = f" · {n_left_out} before it still to come" if n_left_out else ""
    return html(_link(following, f"Next · lesson {following.number}{coming}", following.title, following.question))


def _link(to: Lesson, above: str, title: str, tease: str) -> str:
    return (
        f'<a class="gt gt-next" href="{escape(address(to))}"><span><small>{escape(above)}</small>'
        f"<b>{escape(title)}</b><em>{escape(tease)}</em></span>"
        '<span class="gt-arrow" aria-hidden="true">→</span></a>'
    )


def instructor_notes(text: str) -> mo.Html:
    """Notes in Markdown, folded. Show them only where `is_instructor()`."""
    return html(f'<details class="gt gt-notes"><summary>For instructors</summary>{markdown(text)}</details>')


def ending(after: Lesson | int, sentence: str, notes: str) -> mo.Html:
    """The end of a lesson in one: take-away, the way on, and for instructors their notes."""
    parts: list[object] = [takeaway(sentence), next_lesson(after)]
    return html('<div class="gt gt-ending">', *parts, instructor_notes(notes) if is_instructor() else "", "</div>")


def is_instructor() -> bool:
    """Whether the page was opened with `instructor=1` in its address, in a class by who teaches it."""
    return readers.teaches("instructor" in mo.query_params())
