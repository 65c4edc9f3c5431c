"""The front page: three ways in, what this machine is, and the ledger as the table of contents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import marimo as mo

from gpututor.ledger import Row
from gpututor.page.course import LESSONS, Lesson, Rung, is_ready
from gpututor.page.links import address
from gpututor.page.parts import escape, html
from gpututor.page.sheet import ROWS
from gpututor.page.waterfall import table
from gpututor.store import Store, file_key

SYMPTOM = {topic: see for topic, see, *_ in ROWS if not isinstance(topic, Rung)}
RUNG_OF_ROW = {"wall": Rung.WALL, "busy": Rung.BUSY, "sm_fill": Rung.SM_FILL, "mfu": Rung.MFU}


@dataclass(frozen=True, slots=True)
class Door:
    """A way in: where it leads, for whom it is, its title and one line more."""

    href: str
    who: str
    title: str
    tease: str


def front_header(title: str, lead: str) -> mo.Html:
    """Title and lead of the front page."""
    return html(f'<header class="gt gt-head"><h1>{escape(title)}</h1><p class="gt-lead">{escape(lead)}</p></header>')


def doors(items: Sequence[Door]) -> mo.Html:
    """The ways in side by side; the first, which most people want, is blue."""
    links = "".join(
        f'<a href="{escape(door.href)}" class="gt-door{"" if k else " first"}"><small>{escape(door.who)}</small>'
        f"<b>{escape(door.title)}</b><em>{escape(door.tease)}</em></a>"
        for k, door in enumerate(items)
    )
    return html(f'<nav class="gt gt-doors" aria-label="Ways in">{links}</nav>')


def facts(items: Sequence[tuple[str, str, str]]) -> mo.Html:
    """Lines of name, value and a remark, such as the card of this machine and the reader's progress."""
    lines = "".join(
        f"<div><dt>{escape(name)}</dt><dd><b>{escape(value)}</b> {escape(remark)}</dd></div>"
        for name, value, remark in items
    )
    return html(f'<dl class="gt gt-facts">{lines}</dl>')


def save_answers(store: Store) -> mo.download | None:
    """The button that hands the reader's answers over as one file, made when it is pressed; None without an answer."""
    from gpututor.exercises import submission  # here, because it loads every exercise

    if not submission.has_answers(store):
        return None

    def made() -> bytes:
        return submission.to_text(submission.collect(store)).encode("ascii")

    return mo.download(made, filename=f"answers-{file_key(store.learner)}.json", label="Save my answers")


def ledger_map(rows: Sequence[Row], is_done: Callable[[Lesson], bool]) -> str:
    """The ledger's rows (`ledger.rows(ledger, empty=True)`), each with its symptom and lessons: the table of contents.

    Lessons that are done have a ring; those that aren't written yet are named without a link. Rows without time and
    without a lesson are left out.
    """
    chips = {row.name: _chips(row, is_done) for row in rows}
    shown = [row for row in rows if row.ns or row.kind == "gauge" or chips[row.name]]
    return table(shown, lambda row: _symptom(row) + chips[row.name], "Symptom and lessons", "gt-map")


def _symptom(row: Row) -> str:
    seen = SYMPTOM.get(row.account) if row.account else None
    return f"<small>{escape(seen[:1].upper() + seen[1:])}.</small>" if seen else ""


def _chips(row: Row, is_done: Callable[[Lesson], bool]) -> str:
    topic = row.account or RUNG_OF_ROW.get(row.name)
    return " ".join(_chip(each, is_done(each)) for each in LESSONS if topic in each.topics)


def _chip(each: Lesson, done: bool) -> str:
    words = f"{each.number}<span> {escape(each.title)}</span>"
    if not is_ready(each):
        return f'<span class="gt-chip coming" title="{escape(each.question)} Coming.">{words}</span>'
    state = '<span class="gt-hidden">, done</span>' if done else ""
    return (
        f'<a href="{escape(address(each))}" class="gt-chip{" done" if done else ""}" '
        f'title="{escape(each.question)}">{words}{state}</a>'
    )
