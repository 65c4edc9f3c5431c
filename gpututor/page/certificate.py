"""The certificate: what was answered, when, and with what score, as a page to print.

It claims what is kept and no more: who judged stands on it in plain words, and so does how little was done.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from gpututor import __version__
from gpututor.exercises.keeping import Standing
from gpututor.exercises.submission import MAX_NAME
from gpututor.page.paper import paper
from gpututor.page.parts import escape
from gpututor.page.standing import OfCourse, OfLesson
from gpututor.page.whole_course import points
from gpututor.store import ANYBODY
from gpututor.text import NBSP, percent

TITLE = "Where a GPU's time goes"
KIND = "certificate"
MOST_LETTERS = 90  # of an answer: two lines of its column
WORDS = {
    "right": "right",
    "partial": "in part",
    "wrong": "not yet",
    "not checked": "not checked",
    "not answered": "not answered",
}
JOINERS = "\u200c\u200d"  # not to be seen, but part of names in several scripts
SELF_GRADED = (
    "Self-graded: gpututor judged these answers where they were given, and nobody looked on. Whoever has the progress "
    "file can change it. An instructor who wants to rely on the points takes the answers (gpututor submit) and has "
    "them judged anew (gpututor grade)."
)
STYLE = """
@page { margin: 12mm 14mm }
.name { font: 600 17pt/1.2 Lora, Georgia, serif; margin: 5mm 0 2mm; overflow-wrap: anywhere }
.figures { display: flex; flex-wrap: wrap; gap: 2mm 12mm; margin: 3mm 0 }
.figures b { display: block; font: 600 15pt/1.2 Lora, Georgia, serif; font-variant-numeric: tabular-nums }
.stand { border-left: 2pt solid #14181d; padding-left: 3mm; margin: 3mm 0 4mm }
table { font-size: 8.2pt; line-height: 1.25 }
th, td { padding: .7mm 3mm .7mm 0 }
td:last-child, thead th:last-child { padding-right: 0; text-align: right }
td:last-child, .when { white-space: nowrap; font-variant-numeric: tabular-nums }
td { overflow-wrap: anywhere }
tbody { break-inside: avoid }
.lesson th, .lesson td { border-top: .8pt solid #6a727b; font-weight: 700 }
.lesson td { font-weight: 400 }
tbody tr:not(.lesson) th { padding-left: 3mm }
footer { border-top: 1pt solid #14181d; margin-top: 4mm; padding-top: 2mm }
@media screen and (max-width: 640px) {
  thead { position: absolute; clip-path: inset(50%) }
  table, tbody { display: block }
  tr { display: grid; grid-template-columns: 1fr auto; column-gap: 1rem; padding: .35rem 0;
    border-top: 1px solid #c9ced4 }
  tr.lesson { border-top: 1.5px solid #6a727b }
  th, td, .lesson th, .lesson td { border: 0; padding: 0 }
  tbody tr:not(.lesson) th { padding-left: 0 }
  th { grid-row: 1 } td:last-child { grid-row: 1; grid-column: 2 }
  td:not(:last-child) { grid-column: 1 / -1 }
}
"""


@dataclass(frozen=True, slots=True)
class Graded:
    """What an instructor's grades say of one learner: points and marks by exercise, and in all, lateness taken off."""

    class_title: str
    learner_id: str
    learner_name: str
    points: float
    marks: float
    by_exercise: Mapping[str, tuple[float, float]]
    handed_in_at: str | None
    grader: str


def certificate(now: OfCourse, name: str, learner: str, made_at: str, graded: Graded | None = None) -> str:
    """The page as HTML. `name` is as typed, `learner` whose progress it is, and `made_at` the time now in UTC."""
    who = shown_name(name) or (graded.learner_name if graded else "")
    body = (
        f'<h1>{escape(TITLE)}</h1><p class="soft">What was done in this course on GPU utilization, lesson by lesson</p>'
        f'<div class="name"><bdi>{escape(who) or "Without a name"}</bdi></div>{_figures(now, graded)}'
        f"<p>{escape(in_a_sentence(now, graded))}</p>"
        f'<p class="stand">{escape(who_graded(graded))}</p>{_table(now, graded)}{_left_out(now, graded)}'
        f"<footer>{_foot(learner, made_at)}</footer>"
    )
    return paper(f"{TITLE}: {who or 'a certificate'}", KIND, STYLE, body)


def shown_name(name: str) -> str:
    """A name as typed, on one line, without letters that nobody can see.

    >>> shown_name("  Ada\\n Lovelace \\u202e")
    'Ada Lovelace'
    """
    seen = "".join(letter for letter in " ".join(name.split()) if letter.isprintable() or letter in JOINERS)
    return " ".join(seen.split())[:MAX_NAME]


def in_a_sentence(now: OfCourse, graded: Graded | None = None) -> str:
    """What was done, how much that is of all there is, and between which times."""
    times = now.times
    if not times and graded is not None:
        return "No guess, run or answer is kept here: the points are those of the grades alone."
    if not times:
        return "Nothing has been done yet: no guess, no run and no answer are kept. This page certifies nothing."
    n_all, n_answered = len(now.exercises), now.n_answered
    some = f"{n_answered} of {n_all} exercises were answered, {_n_right(now, graded)} of them in full"
    if not n_answered:
        some = f"none of {n_all} exercises was answered"
    n_coming = len(now.lessons) - len(now.ready)
    missing = f"; {n_coming} lessons of the course were not there yet" if n_coming else ""
    between = f"Between {when(times[0])} and {when(times[-1])} UTC"
    return f"{between}, {len(now.runs)} of {len(now.ready)} lessons were run and {some}{missing}."


def who_graded(graded: Graded | None) -> str:
    """Who judged, and what that is worth."""
    if graded is None:
        return SELF_GRADED
    handed = f"handed in {when(graded.handed_in_at)} UTC" if graded.handed_in_at else "with nothing handed in"
    return (
        f"Graded by an instructor: the points are those of “{graded.class_title}” for {graded.learner_id}, {handed}, "
        f"as the file of grades says (judged by {graded.grader}). The answers below are those kept now, which may be "
        "newer. This page is no proof by itself: ask whoever taught the class."
    )


def when(at: str) -> str:
    """A kept time in UTC, to the minute; what is no time is shown as it is.

    >>> when("2026-11-30T14:03:22+00:00").replace(NBSP, " ")
    '30 Nov 2026 14:03'
    """
    try:
        time = datetime.fromisoformat(at)
    except ValueError:
        return at[:20]
    return f"{time.day}{NBSP}{time:%b}{NBSP}{time:%Y} {time:%H:%M}"


def _figures(now: OfCourse, graded: Graded | None) -> str:
    earned, marks = (graded.points, graded.marks) if graded else (now.earned, now.marks)
    share = f", {percent(earned / marks)}" if marks else ""
    shown = [
        (f"{points(earned)} of {points(marks)}", f"points{share}"),
        (f"{_n_right(now, graded)} of {len(now.exercises)}", "exercises right"),
        (f"{len(now.runs)} of {len(now.ready)}", "lessons run"),
    ]
    return f'<div class="figures">{"".join(f"<div><b>{escape(a)}</b>{escape(b)}</div>" for a, b in shown)}</div>'


def _n_right(now: OfCourse, graded: Graded | None) -> int:
    if graded is None:
        return now.n_right
    return sum(earned >= marks for earned, marks in graded.by_exercise.values())


def _table(now: OfCourse, graded: Graded | None) -> str:
    heads = ("Lesson or exercise", "Guess or answer", "When (UTC)", "Result", "Points")
    head = "".join(f'<th scope="col">{each}</th>' for each in heads)
    done = [each for each in now.ready if _is_begun(each, graded)]
    if not done:
        return ""
    bodies = "".join(f"<tbody>{_lesson(each, graded)}</tbody>" for each in done)
    widths = "".join(f'<col style="width:{share}%">' for share in (26.5, 31.5, 14.5, 18, 9.5))
    return f"<table><colgroup>{widths}</colgroup><thead><tr>{head}</tr></thead>{bodies}</table>"


def _is_begun(each: OfLesson, graded: Graded | None) -> bool:
    is_graded = graded is not None and any(one.one.number in graded.by_exercise for one in each.exercises)
    return bool(each.guesses or each.run or each.n_answered or is_graded)


def _lesson(each: OfLesson, graded: Graded | None) -> str:
    guess = next(iter(each.guesses.values()), None)
    said = f"“{_short(str(guess.answer))}”" if guess else "no guess"
    run = f"run {when(each.run.at)}" if each.run else "not run"
    if each.run and each.run.state != "done":
        run += ", stopped early"
    head = (
        f'<tr class="lesson"><th scope="row">{each.lesson.number} · {escape(each.lesson.title)}</th>'
        f'<td>{escape(said)}</td><td class="when">{escape(when(guess.at)) if guess else ""}</td>'
        f"<td>{escape(run)}</td><td>{escape(_sum(each, graded))}</td></tr>"
    )
    return head + "".join(_exercise(one, graded) for one in each.exercises)


def _sum(each: OfLesson, graded: Graded | None) -> str:
    """A lesson's points; with grades, of those of its exercises that are in them."""
    if graded is None:
        return f"{points(each.earned)} of {each.marks}" if each.exercises else ""
    found = [graded.by_exercise[one.one.number] for one in each.exercises if one.one.number in graded.by_exercise]
    return f"{points(sum(p for p, _ in found))} of {points(sum(m for _, m in found))}" if found else ""


def _exercise(one: Standing, graded: Graded | None) -> str:
    at = when(one.given.at) if one.given and one.given.at else ""
    return (
        f'<tr><th scope="row">{escape(one.one.number)} {escape(one.one.title)}</th><td>{escape(_answer(one))}</td>'
        f'<td class="when">{escape(at)}</td><td>{escape(WORDS[one.state])}</td>'
        f"<td>{escape(_earned(one, graded))}</td></tr>"
    )


def _answer(one: Standing) -> str:
    """An answer on a line: code as its length and the begin of its hash, by which a file can be told to hold it."""
    if one.given is None:
        return "—"
    text = str(one.given.answer)
    if one.one.kind != "code":
        return _short(text) + (f" {one.one.unit}" if one.one.unit and text.strip()[-1:].isdigit() else "")
    n_lines = len(text.strip().splitlines())
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{n_lines} line{'' if n_lines == 1 else 's'} of code, SHA-256 {digest[:8]}…"


def _short(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= MOST_LETTERS else plain[: MOST_LETTERS - 1] + "…"


def _earned(one: Standing, graded: Graded | None) -> str:
    if graded is not None:
        found = graded.by_exercise.get(one.one.number)
        return f"{points(found[0])} of {points(found[1])}" if found else "not graded"
    if one.state == "not answered":
        return f"0 of {one.one.marks}"
    return f"{points(one.earned or 0)} of {one.one.marks}"


def _left_out(now: OfCourse, graded: Graded | None) -> str:
    """The lessons in which nothing is kept, by name, so that no gap is hidden."""
    none = [f"{each.lesson.number}{NBSP}{each.lesson.title}" for each in now.ready if not _is_begun(each, graded)]
    if not none or len(none) == len(now.ready):
        return ""
    return f'<p class="soft" style="margin-top:3mm">Nothing done in: {escape(", ".join(none))}.</p>'


def _foot(learner: str, made_at: str) -> str:
    whose = "without an id" if learner == ANYBODY else f"for “{learner}”"
    return escape(f"Made {when(made_at)} UTC by gpututor {__version__} from the progress kept {whose}.")
