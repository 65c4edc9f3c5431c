"""What an instructor gets: how the class did, exercise by exercise, which mistakes recur, and what to look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpututor.grading.exports import number
from gpututor.grading.feedback_page import WORDS, code
from gpututor.grading.pages import escape, page
from gpututor.text import NBSP

MOST_AT_ONCE = 4  # learners named beside a mistake; more are shown when asked for
N_STEPS = 10  # of points, in the picture of how they spread
SIMILAR_SAYS = (
    "These pairs of answers share more than the task and the rest of the class explain. That can have many reasons, "
    "learning together among them. Look at them before you think anything of it."
)


def class_page(results: Mapping[str, Any]) -> str:
    """The report on the class, as HTML."""
    about, summary = results["class"], results["summary"]
    parts = (
        f"<h1>{escape(about['title'])}</h1>",
        _about(about),
        "".join(f'<p class="warn">{escape(each)}</p>' for each in results["warnings"]),
        _figures(summary),
        _spread(results["learners"], summary["marks"]),
        "<h2>The exercises</h2>",
        _key(summary),
        f'<div class="cards">{"".join(map(_exercise, summary["exercises"]))}</div>',
        _look_at(results),
        _late(summary),
        _overrides(summary),
        _similar(results),
        _learners(results["learners"]),
        f'<p class="soft small">Judged by {escape(results["grader"])}, isolation: {escape(results["isolation"])}.</p>',
    )
    return page(f"{about['title']}: the class", "".join(parts))


def _about(about: Mapping[str, Any]) -> str:
    due = f"{escape(about['deadline_local'])} ({escape(about['timezone'])})"
    return f'<p class="soft">Lessons {escape(about["lessons"])} · due {due} · late work: {escape(about["late"])}</p>'


def _figures(summary: Mapping[str, Any]) -> str:
    mean, median = summary["mean_points"], summary["median_points"]
    shown = [
        (f"{summary['n_graded']} of {summary['n_learners']}", "handed in and graded"),
        ("–" if mean is None else f"{number(mean)} of {summary['marks']}", "points on average"),
        ("–" if median is None else number(median), "points, the median"),
        (f"{len(summary['late'])}", "late"),
    ]
    return f'<div class="figures">{"".join(f"<div><b>{escape(a)}</b>{escape(b)}</div>" for a, b in shown)}</div>'


def _spread(learners: Sequence[Mapping[str, Any]], marks: int) -> str:
    """How many have how many points, in ten steps."""
    graded = [one["points"] for one in learners if one["state"] == "graded"]
    if not graded:
        return ""
    steps = [0] * N_STEPS
    for points in graded:
        steps[min(N_STEPS - 1, int(N_STEPS * points / marks))] += 1
    columns = "".join(
        f'<div><span>{n or ""}</span><i style="height:{4 * n / max(steps):.2f}rem"></i>'
        f'<span class="soft">{number(k * marks / N_STEPS)}</span></div>'
        for k, n in enumerate(steps)
    )
    said = f"learners by points, in steps of {number(marks / N_STEPS)}"
    return f'<div class="spread" role="img" aria-label="{said}">{columns}</div><p class="soft small">{said}</p>'


def _key(summary: Mapping[str, Any]) -> str:
    met = [state for state in WORDS if any(one["states"][state] for one in summary["exercises"])]
    parts = (f'<span><i class="f-{state.split()[-1]}"></i>{WORDS[state]}</span>' for state in met)
    return f'<div class="key">{"".join(parts)}</div>'


def _exercise(one: Mapping[str, Any]) -> str:
    states = {state: one["states"][state] for state in WORDS if one["states"][state]}
    bar = "".join(f'<i class="f-{state.split()[-1]}" style="flex:{n}"></i>' for state, n in states.items())
    counts = ", ".join(f"{n}{NBSP}{WORDS[state].lower()}" for state, n in states.items())
    mean = "" if one["mean_points"] is None else f"{number(one['mean_points'])} of {one['marks']} on average"
    mistakes = "".join(
        f"<li><b>{each['n']}×</b> {escape(each['text'])}"
        + (f'<br><span class="soft small">Hint given: {code(each["hint"])}</span>' if each["hint"] else "")
        + f"{_who(each['ids'])}</li>"
        for each in one["mistakes"]
    )
    more = (
        f'<p class="soft small">{one["n_other_mistakes"]} more of other kinds.</p>' if one["n_other_mistakes"] else ""
    )
    return (
        f'<section class="card"><div class="head"><h3>{escape(one["number"])} · {escape(one["title"])}</h3>'
        f'<span class="points">{mean}</span></div><div class="bar" role="img" aria-label="{escape(counts)}">{bar}</div>'
        f'<p class="soft small">{counts}{_data(one)}</p>{f"<ul>{mistakes}</ul>" if mistakes else ""}{more}</section>'
    )


def _who(ids: Sequence[str]) -> str:
    """The learners of a mistake: a few at once, many when asked for."""
    if len(ids) <= MOST_AT_ONCE:
        return f'<br><span class="soft small">{escape(", ".join(ids))}</span>'
    return f'<details class="small"><summary>{len(ids)} learners</summary>{escape(", ".join(ids))}</details>'


def _data(one: Mapping[str, Any]) -> str:
    """Whose data the answers are about, where that isn't the same for all."""
    own, other = one["n_on_own_data"], one["n_on_other_data"]
    said = f" · {own} on data that only the learner's file vouches for" if own else ""
    return said + (f" · {other} brought data that differ from ours, and were judged by ours" if other else "")


def _look_at(results: Mapping[str, Any]) -> str:
    """What somebody must look at: files that don't count, code that did what no answer does."""
    files = "".join(
        f"<li><b>{escape(each['file'])}</b>{_whose(each)}: {escape(each['what'])}</li>" for each in results["files"]
    )
    incidents = "".join(
        f"<li><b>{escape(each['name'])}</b> ({escape(each['id'])}), {escape(each['number'])}: the answer "
        f"{escape(each['what'])}</li>"
        for each in results["summary"]["incidents"]
    )
    nothing = ", ".join(map(escape, results["summary"]["nothing"]))
    said = f"<p>Nothing handed in: {nothing}.</p>" if nothing else ""
    said += f"<h3>Files</h3><ul>{files}</ul>" if files else ""
    said += f"<h3>Answers that misbehaved</h3><ul>{incidents}</ul>" if incidents else ""
    return f"<h2>To look at</h2>{said or '<p>Nothing.</p>'}"


def _whose(each: Mapping[str, Any]) -> str:
    return f" ({escape(each['learner_id'])})" if each["learner_id"] else ""


def _late(summary: Mapping[str, Any]) -> str:
    rows = [
        (each["name"], each["id"], each["late_days"], f"{number(100 * each['kept_share'])}{NBSP}%", _when(each))
        for each in summary["late"]
    ]
    return _table("Late", ("name", "id", "days>", "counts>", "handed in (UTC)"), rows)


def _when(each: Mapping[str, Any]) -> str:
    moment = each["handed_in_at"].replace("T", " ").replace("+00:00", "")
    return f"{moment}, self-reported time" if each["is_self_reported_time"] else moment


def _overrides(summary: Mapping[str, Any]) -> str:
    rows = [
        (
            each["name"],
            each["number"],
            number(each["judged"]),
            "" if each["points"] is None else number(each["points"]),
            each["comment"],
            ", ".join(filter(None, (each["by"], each["at"][:16].replace("T", " ")))),
        )
        for each in summary["overrides"]
    ]
    return _table("By hand", ("name", "exercise", "judged>", "given>", "comment", "by"), rows)


def _similar(results: Mapping[str, Any]) -> str:
    if not results["similar"]:
        return ""
    names = {one["id"]: one["name"] for one in results["learners"]}
    cards = "".join(
        f'<section class="card"><div class="head"><h3>{escape(each["number"])} · {escape(names[each["ids"][0]])} and '
        f"{escape(names[each['ids'][1]])}</h3><span>{each['n_shared']} pieces, {100 * each['share']:.0f}{NBSP}% of the "
        f'shorter one</span></div><details><summary>The lines</summary><div class="two">'
        f"{''.join(f'<pre>{escape(lines)}</pre>' for lines in each['lines'])}</div></details></section>"
        for each in results["similar"]
    )
    return f'<h2>Alike</h2><p class="soft">{SIMILAR_SAYS}</p><div class="cards">{cards}</div>'


def _learners(learners: Sequence[Mapping[str, Any]]) -> str:
    """Everybody, with a way to the feedback page."""
    lines = "".join(
        f'<tr><td>{escape(one["name"])}</td><td class="n">{number(one["points"])}</td>'
        f'<td><a href="{escape(one["feedback"])}">feedback</a></td><td>{escape(one["id"])}</td>'
        f"<td>{escape(one['group'])}</td><td>{escape(one['state'])}</td></tr>"
        for one in learners
    )
    head = '<th>name</th><th class="n">points</th><th></th><th>id</th><th>group</th><th>state</th>'
    return "<h2>Everybody</h2>" + _scroll("Everybody", head, lines)


def _table(title: str, heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table with its title, or nothing without rows; a heading that ends in > is set to the right."""
    if not rows:
        return ""
    css = [' class="n"' if head.endswith(">") else "" for head in heads]
    head = "".join(f"<th{c}>{escape(each.rstrip('>'))}</th>" for each, c in zip(heads, css, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{c}>{escape(cell)}</td>" for cell, c in zip(row, css, strict=True)) + "</tr>"
        for row in rows
    )
    return f"<h2>{title}</h2>" + _scroll(title, head, body)


def _scroll(title: str, head: str, body: str) -> str:
    """A table that scrolls sideways on a narrow screen, by keys as well."""
    region = f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(title)}">'
    return f"{region}<table><tr>{head}</tr>{body}</table></div>"
