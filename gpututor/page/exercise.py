"""An exercise on the page: task, editor, button, what the answer does, verdict, hints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import marimo as mo

from gpututor.page.parts import escape, html, markdown, markup

State = Literal["unanswered", "wrong", "right"]
MARK: dict[State, str] = {"unanswered": "", "wrong": "Not yet. ", "right": "Right. "}
MOST_HINTS = 3


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
