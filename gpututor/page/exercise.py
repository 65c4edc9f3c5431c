"""An exercise on the page: task, editor, button, what the answer does, verdict, hints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import marimo as mo

from gpututor.exercises.form import MOST_HINTS, NOT_ANSWERED, Case, Check, Exercise, Judged, State
from gpututor.exercises.keeping import given, keep_case, keep_given, keep_judged, kept_judged
from gpututor.page.parts import escape, html, markdown, markup, shown
from gpututor.page.turn import checked
from gpututor.page.workloads import against_limit
from gpututor.store import Store

MARK: dict[State, str] = {"unanswered": "", "wrong": "Not yet. ", "partial": "In part. ", "right": "Right. "}
EDITOR_LINES = 6


def editor_control(starter: str, kept: str | None, keep: Callable[[str], None], *, lines: int = 5) -> mo.ui.code_editor:
    """An editor with the reader's last version, or the starter; `keep` gets every change."""
    return mo.ui.code_editor(
        value=starter if kept is None else kept,
        language="python",
        min_height=22 * lines,
        on_change=keep,
        show_copy_button=False,
        label="Your function",
    )


def exercise(
    number: str, task: str, editor: object, button: object, outcome: object, hints: Sequence[str] = ()
) -> mo.Html:
    """The card of one exercise; `task` and the hints (at most three, from a question to a near-answer) are Markdown."""
    count = min(len(hints), MOST_HINTS)
    folded = "".join(
        f"<details><summary>Hint {k} of {count}</summary>{markdown(hint)}</details>"
        for k, hint in enumerate(hints[:MOST_HINTS], 1)
    )
    return html(
        f'<section class="gt gt-card gt-exercise"><h2 class="gt-small">Exercise {escape(number)}</h2>'
        f"{markdown(task)}<div>{markup(editor)}</div><div>{markup(button)}</div>{markup(outcome)}"
        + (f'<div class="gt-hints">{folded}</div></section>' if folded else "</section>")
    )


def verdict(state: State, text: str, picture: object = None) -> mo.Html:
    """First the picture of what the answer does, then one sentence on it, the first miss if there is one."""
    drawn = f"<div>{markup(picture)}</div>" if picture is not None else ""
    return html(
        f'<div class="gt gt-verdict gt-{state}" role="status">{drawn}<p><b>{MARK[state]}</b>{escape(text)}</p></div>'
    )


def answer_control(one: Exercise, store: Store, case: Case) -> Any:
    """What the answer is given with: a field, options or an editor, holding what the reader gave last time.

    The case and every change are kept in the reader's progress file, where `gpututor check` finds them.
    """
    keep_case(store, one, case)
    last = given(store, one)
    kept = None if last is None else last.answer

    def keep(value: Any) -> None:
        keep_given(store, one, value, case)

    if one.kind == "number":
        return mo.ui.text(value=str(kept or ""), placeholder=one.unit, on_change=keep, label="Your answer")
    if one.kind == "code":
        return editor_control(one.starter, kept, keep, lines=max(EDITOR_LINES, one.starter.count("\n") + 2))
    options = case.get("options") or one.options
    return mo.ui.radio(list(options), value=kept if kept in options else None, on_change=keep)


def check_button() -> mo.ui.run_button:
    """The button that has an answer judged."""
    return mo.ui.run_button(label="Check")


def exercise_card(one: Exercise, control: Any, check: mo.ui.run_button, case: Case, store: Store) -> object:
    """The card of an exercise: task, control and button; below them what the answer does, then the verdict, then hints.

    The judge is asked when the button was pressed; what it says is kept, and stands there at the next visit for as
    long as the answer is the same. Whatever goes wrong becomes one sentence.
    """

    def with_outcome(outcome: object) -> mo.Html:
        return exercise(f"{one.number} · {one.title}", one.asked(case), control, check, outcome, one.hints)

    def tell(place: str) -> None:
        mo.output.replace(with_outcome(verdict("unanswered", f"Waiting to be checked. {place}")))

    def card() -> object:
        judged = _judged(one, control.value, bool(check.value), case, store, tell)
        picture = _picture(one, judged, case)
        return with_outcome(html(verdict(judged.state, judged.text, picture), _checks(judged.checks)))

    return shown(card)


def _judged(one: Exercise, answer: Any, asked: bool, case: Case, store: Store, tell: Callable[[str], None]) -> Judged:
    if not asked:
        kept = kept_judged(store, one)
        same = kept is not None and kept.given.answer == answer and not one.is_untouched(answer)
        return kept.judged if kept is not None and same else NOT_ANSWERED
    judged = checked(one, answer, case, store, tell)
    keep_judged(store, one, answer, case, judged)
    return judged


def _picture(one: Exercise, judged: Judged, case: Case) -> object:
    """What the answer does: code as a line through the true points, a number against its limit; None without either."""
    if not judged.theirs:
        return None
    if one.kind == "number":
        answer, limit = judged.theirs[0][1], case.get("limit")
        return against_limit(answer, *limit) if limit and answer is not None else None
    from gpututor.charts import answer_picture  # here, because it loads altair

    return answer_picture(judged.theirs, judged.ours, x_title=one.x_title, kind=one.picture)


def _checks(checks: Sequence[Check]) -> str:
    """What was looked at, line by line, with its part of the marks; nothing where there is only one thing."""
    if not checks:
        return ""
    lines = "".join(
        f'<li class="gt-{"holds" if each.holds else "fails"}"><span>{"yes" if each.holds else "no"}</span>'
        f"{escape(each.words)}<small>{100 * each.share:.0f} of 100</small></li>"
        for each in checks
    )
    return f'<ul class="gt gt-checks">{lines}</ul>'
