"""The top of a lesson: where it stands in the course, its question, and what earlier lessons left behind."""

from __future__ import annotations

from collections.abc import Sequence

import marimo as mo

from gpututor.page.course import LESSONS, Lesson, lesson
from gpututor.page.parts import escape, html, markdown
from gpututor.text import percent


def header(which: Lesson | int, lead: str, *, hero: str = "", needs: str = "no GPU needed") -> mo.Html:
    """Place line, title and lead of a lesson; `lead` is one or two sentences of plain text, `hero` its picture."""
    this = lesson(which) if isinstance(which, int) else which
    dots = "".join(f'<i class="{_place(k.number, this.number)}"></i>' for k in LESSONS)
    after = f" · after lesson {this.number - 1}, {escape(lesson(this.number - 1).title)}" if this.number > 1 else ""
    return html(
        f'<header class="gt gt-head"><p class="gt-place"><span class="gt-dots" aria-hidden="true">{dots}</span>'
        f"<span>Lesson {this.number} of {len(LESSONS)} · {this.minutes} minutes · {escape(needs)}{after}</span></p>"
        f'<h1>{escape(this.title)}</h1><p class="gt-lead">{escape(lead)}</p>{hero}</header>'
    )


def _place(k: int, now: int) -> str:
    return "now" if k == now else "past" if k < now else "later"


def unknown_bar(known_share: float, known: str, unknown: str = "?") -> str:
    """The question as a picture, for `hero`: the known share in blue, the rest hatched."""
    words = f"{percent(known_share)} {escape(known)}"
    return (
        f'<div class="gt-hero" role="img" aria-label="{words}, the rest not known yet">'
        f'<i style="width:{100 * known_share:.1f}%"></i><b>{words}</b><u>{escape(unknown)}</u></div>'
    )


def recall(questions: Sequence[tuple[str, str]]) -> mo.Html:
    """Questions from earlier lessons with folded answers: think, then open. Shown while a run is under way."""
    items = "".join(
        f"<details><summary>{escape(question)}</summary>{markdown(answer)}</details>" for question, answer in questions
    )
    return html(f'<section class="gt gt-recall"><h2 class="gt-small">From memory</h2>{items}</section>')
