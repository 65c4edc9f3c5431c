"""What a learner gets: points and why, exercise by exercise. Of hidden cases only how many there are and held."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from gpututor.exercises.form import Exercise
from gpututor.grading.exports import number
from gpututor.grading.pages import escape, page
from gpututor.text import NBSP

WORDS = {
    "right": "Right",
    "partial": "In part",
    "wrong": "Not yet",
    "unanswered": "Not answered",
    "not judged": "Not judged",
}
WHOSE = {
    "own": "Judged on the data of your own run, as your file holds them.",
    "differs": "Your data differ from ours, so this was judged by ours.",
}


def feedback(title: str, exercises: Sequence[Exercise], learner: Mapping[str, Any], *, comments: bool = True) -> str:
    """The page of one learner, as HTML."""
    titles = {one.number: one.title for one in exercises}
    lessons: dict[int, list[Mapping[str, Any]]] = {}
    for each in learner["exercises"]:
        lessons.setdefault(int(each["number"].partition(".")[0]), []).append(each)
    cards = "".join(
        f'<h2>Lesson {lesson}</h2><div class="cards">{"".join(_card(each, titles[each["number"]]) for each in several)}'
        "</div>"
        for lesson, several in lessons.items()
    )
    body = (
        f"<h1>{escape(title)}</h1><p>{escape(learner['name'])} · {escape(learner['id'])}</p>"
        f'<div class="figures"><div><b>{number(learner["points"])} of {learner["marks"]}</b>points</div></div>'
        f"{_time(learner)}{cards}"
    )
    return page(f"{title}: {learner['name']}", body)


def _time(learner: Mapping[str, Any]) -> str:
    """When it came, by whose clock, and what that costs."""
    if learner["file"] is None:
        why = learner["notes"] or ["Nothing was handed in under your id."]
        return "".join(f'<p class="warn">{escape(each)}</p>' for each in why)
    by = "by your own computer's clock" if learner["is_self_reported_time"] else "by the school's clock"
    moment = learner["handed_in_at"].replace("T", " ").replace("+00:00", f"{NBSP}UTC")
    said = f'<p class="soft">Handed in {escape(moment)}, {by}, in {escape(learner["file"])}.</p>'
    days = learner["late_days"]
    if days:
        count = f"{number(100 * learner['kept_share'])}{NBSP}%"
        due = learner["due"].replace("T", " ").replace("+00:00", f"{NBSP}UTC")
        when = f"{days} day{'' if days == 1 else 's'} late (it was due {escape(due)})"
        said += f'<p class="warn">That is {when}: {count} of the points judged count.</p>'
    return said


def _card(each: Mapping[str, Any], title: str) -> str:
    state = each["state"]
    is_by_hand = bool(each["override"]) and each["override"]["points"] is not None
    word, css = ("By hand", "") if is_by_hand else (WORDS[state], state.split()[-1])
    own = f'<p class="soft small">{WHOSE[each["case"]]}</p>' if each["case"] in WHOSE and state != "unanswered" else ""
    text = "" if state == "unanswered" else f"<p>{escape(each['text'])}</p>"
    return (
        f'<section class="card"><div class="head"><h3>{escape(each["number"])} · {escape(title)}</h3>'
        f'<span class="points {css}">{word} · {number(each["points"])} of {each["marks"]}</span>'
        f"</div>{text}{_checks(each)}{_hidden(each)}{_hint(each)}{own}{_by_hand(each)}</section>"
    )


def _checks(each: Mapping[str, Any]) -> str:
    if not each["checks"]:
        return ""
    lines = "".join(
        f'<li><b class="{"right" if holds else "wrong"}">{"yes" if holds else "no"}</b> {escape(words)} '
        f'<span class="soft">({100 * share:.0f}{NBSP}%)</span></li>'
        for words, holds, share in each["checks"]
    )
    return f'<ul class="checks">{lines}</ul>'


def _hidden(each: Mapping[str, Any]) -> str:
    n, n_passed = each["hidden"]
    if not n:
        return ""
    return (
        f'<p class="small">Also tried on {n} hidden case{"" if n == 1 else "s"}, with other data or another card: '
        f"{n_passed} of {n} held. They decide the points.</p>"
    )


def _hint(each: Mapping[str, Any]) -> str:
    return f'<p class="note">A hint: {code(each["hint_text"])}</p>' if each["hint_text"] else ""


def code(text: str) -> str:
    """A text of ours, with what stands between backticks as code.

    >>> code("`a<b` it is")
    '<code>a&lt;b</code> it is'
    """
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _by_hand(each: Mapping[str, Any]) -> str:
    override = each["override"]
    if not override:
        return ""
    points = override["points"]
    what = "A comment" if points is None else f"Points given by hand ({number(each['judged_points'])} were judged)"
    who = f" by {escape(override['by'])}" if override["by"] else ""
    return f'<p class="note">{what}{who}: {escape(override["comment"]) or "no comment."}</p>'
