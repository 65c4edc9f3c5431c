"""The index of the course on the front page: every lesson by part, how far the reader is, and what comes next."""

from __future__ import annotations

import marimo as mo

from gpututor.page.course import PARTS, START, Part
from gpututor.page.links import address
from gpututor.page.parts import escape, html
from gpututor.page.standing import OfCourse, OfLesson
from gpututor.text import NBSP

HEADS = ("Lesson", "Minutes", "State", "Exercises", "Points")
MARK = {"coming": "", "not begun": "", "begun": "some", "guessed": "some", "run": "most", "all right": "all"}
"""How far the round mark of a lesson is filled."""


def course_index(now: OfCourse) -> mo.Html:
    """Every lesson with its question, minutes and state; the next one to do is marked, those to come have no link."""
    following = now.next
    parts = "".join(_part(part, now, following) for part in PARTS)
    head = "".join(f'<th scope="col">{name}</th>' for name in HEADS)
    return html(
        f'<table class="gt gt-wide gt-index"><caption>{escape(in_all(now))}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{_start()}</tbody>{parts}</table>"
    )


def in_all(now: OfCourse) -> str:
    """The reader's progress in one line.

    Lessons that are still to come are counted apart: nothing in them can be done.
    """
    n_coming = len(now.lessons) - len(now.ready)
    coming = f" {n_coming} more {'is' if n_coming == 1 else 'are'} still to come." if n_coming else ""
    return (
        f"{len(now.runs)} of {len(now.ready)} lessons run, {now.n_right} of {len(now.exercises)} exercises right, "
        f"{points(now.earned)} of {now.marks} points.{coming}"
    )


def points(earned: float) -> str:
    """Points without zeros at their end.

    >>> points(7.5), points(10.0), points(3.333)
    ('7.5', '10', '3.33')
    """
    return f"{earned:.2f}".rstrip("0").rstrip(".")


def _start() -> str:
    return _row(START.number, START.title, START.question, "here", ("", "this page", "", ""))


def _part(part: Part, now: OfCourse, following: OfLesson | None) -> str:
    lines = "".join(_line(now.lessons[each.number - 1], following) for each in part.lessons)
    head = f'<tr class="gt-part"><th scope="rowgroup" colspan="5">{escape(part.title)} <em>{escape(part.about)}</em>'
    return f"<tbody>{head}</th></tr>{lines}</tbody>"


def _line(each: OfLesson, following: OfLesson | None) -> str:
    this = each.lesson
    if not each.is_ready:
        return _row(this.number, this.title, this.question, "coming", ("", "coming", "", ""))
    is_next = following is not None and following.lesson is this
    title = f'<a href="{escape(address(this))}">{escape(this.title)}</a>'
    state = f'<i class="gt-standing {MARK[each.state]}" aria-hidden="true"></i>{each.state}'
    n = len(each.exercises)
    cells = (
        f"{this.minutes}<span>{NBSP}min</span>",
        state + ("<b>next</b>" if is_next else ""),
        f"{each.n_right} of {n}<span> right</span>" if n else "",
        f"{points(each.earned)} of {each.marks}<span> points</span>" if n else "",
    )
    return _row(this.number, title, this.question, "next" if is_next else "", cells, is_html=True)


def _row(
    number: int, title: str, question: str, kind: str, cells: tuple[str, str, str, str], *, is_html: bool = False
) -> str:
    """One line; `title` is HTML where `is_html`, and `cells` always are."""
    name = title if is_html else escape(title)
    shown = "".join(f"<td>{cell}</td>" for cell in cells)
    return (
        f'<tr class="{kind}"><th scope="row"><div><u>{number:02d}</u><span>{name}</span><em>{escape(question)}</em>'
        f"</div></th>{shown}</tr>"
    )
