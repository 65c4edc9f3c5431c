"""The front page: three ways in, what this machine is, the ledger as a way to find a lesson, and pages to print."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import marimo as mo

from gpututor import readers
from gpututor.causes import KNOWN, cause_of
from gpututor.ledger import MEANING, Account, Row
from gpututor.page.course import LESSONS, Lesson, Rung, is_ready
from gpututor.page.links import address
from gpututor.page.parts import coded, escape, html, markup
from gpututor.page.waterfall import table
from gpututor.store import Store, file_key

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


def gpu_fact(names: Sequence[str], reason: str | None) -> tuple[str, str, str]:
    """The line on the GPUs that were found, or on why there are none; on a server for a class they are the server's."""
    served = readers.in_a_class()
    whose = "Server's GPU" if served else "GPU"
    if names:
        runs = "Each lesson runs on a simulated card, as for everybody, and then measures on "
        return (
            whose,
            ", ".join(names),
            runs + ("the server's, one reader at a time." if served else "yours if you like."),
        )
    you = "You need none: the lessons run on simulated cards, and say so."
    return whose, "none found", you if served else f"{you} Here {reason}."


def kept_where() -> str:
    """Where a reader's progress is kept, and who sees it."""
    if not readers.in_a_class():
        return "Your progress stays on this machine."
    return (
        "Your progress is kept on the class's server, under your own address; whoever teaches the class sees it, and "
        "nobody else."
    )


def class_notes() -> str:
    """How learners are kept apart, for whoever teaches."""
    if readers.in_a_class():
        return (
            "Every learner has an address of their own (`gpututor workshop keys`), so guesses, runs and answers are "
            "kept apart; nothing has to be added to it. The page `/workshop` shows who is where and who waits for a "
            "run, and `gpututor workshop collect` saves everybody's answers."
        )
    return (
        "When many share one server, let `gpututor workshop` give each learner an address of their own. On a machine "
        "that people use in turn, `…&learner=their-name` in the address is enough: guesses and results are then kept "
        "apart."
    )


NAME_OF = ("00", "name")
"""Where the progress file has the name that a learner typed for the certificate."""


def name_control(store: Store) -> mo.ui.text:
    """The field for the name on the certificate; what is typed is kept at once."""
    from gpututor.exercises.submission import MAX_NAME

    kept = store.get(*NAME_OF)
    return mo.ui.text(
        value=kept if isinstance(kept, str) else "",
        on_change=lambda name: store.put(*NAME_OF, name[:MAX_NAME]),
        label="Your name",
    )


def papers(store: Store, name: mo.ui.text) -> mo.Html:
    """The two pages to print: the cheat sheet, and the certificate with the name in the field.

    Each is made when its button is pressed, the certificate from what is kept then.
    """

    def sheet() -> bytes:
        from gpututor.page.cheat_sheet import as_html

        return as_html().encode()

    def certificate() -> bytes:
        from gpututor.page.certificate import certificate as made
        from gpututor.page.standing import standing_of

        typed = store.get(*NAME_OF)
        return made(standing_of(store), typed if isinstance(typed, str) else "", store.learner, store.time()).encode()

    cheat = mo.download(sheet, filename="where-a-gpus-time-goes.html", label="Cheat sheet, to print")
    paper = mo.download(
        certificate, filename=f"certificate-{file_key(store.learner)}.html", label="Certificate, to print"
    )
    return html(
        '<section class="gt gt-papers"><div><h3>Cheat sheet</h3><p>Symptom, gauge, cause, fix and lesson, on one page.'
        f"</p>{markup(cheat)}</div><div><h3>Certificate</h3><p>What you did, when, and your points so far. It says "
        f"that nobody looked on.</p>{markup(name)}{markup(paper)}</div></section>"
    )


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
    """What somebody sees of a row, as HTML; of one that no cause is about, what it means."""
    if row.account is None or row.account is Account.USEFUL:
        return ""
    cause = cause_of(row.account)
    seen = KNOWN[cause].symptom if cause else MEANING[row.account]
    return f"<small>{coded(seen[:1].upper() + seen[1:])}.</small>"


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
