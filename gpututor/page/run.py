"""The run panel: what stands above and below the buttons while an experiment runs, and before it ever did."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import marimo as mo

from gpututor.page.parts import escape, html, markup
from gpututor.page.runner import UNDER_WAY, Phase, Shown


def run_buttons(
    phase: Phase,
    start: Callable[[], object],
    stop: Callable[[], object],
    *,
    label: str,
    open_to_run: bool = True,
) -> list[mo.ui.button]:
    """The run button, and Stop beside it while a run is under way. Keep the list in a name of its own cell.

    `label` says what will happen ("Train 300 steps"); `open_to_run` is False until the guess is made.
    """
    under_way = phase in UNDER_WAY
    go = mo.ui.button(
        label=label if phase in ("ready", *UNDER_WAY) else "Run again",
        kind="success",
        disabled=under_way or not open_to_run,
        on_click=lambda _: start(),
    )
    return [go, mo.ui.button(label="Stop", on_click=lambda _: stop())] if under_way else [go]


def run_panel(
    buttons: Sequence[object],
    progress: object,
    *,
    machine: object = None,
    hint: str = "",
    trouble: str | None = None,
    title: str = "Run it",
) -> mo.Html:
    """The card with the machine (a picker or a line of text), the buttons, the progress line and a hint.

    `trouble` is what `Runner.trouble` or `Store.trouble` says.
    """
    left = "" if machine is None else f"<div>{escape(machine) if isinstance(machine, str) else markup(machine)}</div>"
    row = mo.hstack(list(buttons), justify="start", gap=0.5, wrap=True)
    foot = f'<p class="gt-note">{escape(hint)}</p>' if hint else ""
    bad = f'<p class="gt-failed" role="alert">{escape(trouble)}</p>' if trouble else ""
    return html(
        f'<section class="gt gt-card gt-run"><h2 class="gt-small">{escape(title)}</h2>'
        f'<div class="gt-runrow">{left}<div>{markup(row)}</div></div>{markup(progress)}{foot}{bad}</section>'
    )


def progress_line(run: Shown, what: str = "step") -> mo.Html:
    """One line under the buttons, with a bar while it runs; it also says so when nothing has run yet."""
    share = run.k / run.n if run.n else 0.0
    bar = (
        f'<progress max="1" value="{share:.3f}" aria-label="Progress of the run"></progress>'
        if run.phase == "running"
        else ""
    )
    sentence = " ".join(part for part in _parts(run, what) if part)
    return html(f'<div class="gt gt-progress gt-{run.phase}" role="status">{bar}<span>{escape(sentence)}</span></div>')


def _parts(run: Shown, what: str) -> tuple[str, ...]:
    """What the line says, sentence by sentence; some may be empty."""
    if run.phase == "ready":
        return ("Not run yet.",)
    if run.phase == "queued":
        return ("Waiting until another experiment is done.", run.note)
    if run.phase == "running":
        left = f" · about {max(1, round(run.left_s))} s left" if run.left_s is not None else ""
        return (f"{what} {run.k:,} of {run.n:,}{left}" if run.k else "Starting.", run.note)
    if run.phase == "done":
        return (
            f"{run.n:,} {what}{'' if run.n == 1 else 's'} done." if run.n else "Done on an earlier visit.",
            run.note,
        )
    if run.phase == "stopped":
        where = f"Stopped after {run.k:,} of {run.n:,} {what}s." if run.n else "Stopped."
        return (where, run.note, "What ran so far is kept." if run.k else "")
    return (run.note or "It failed.", "The rest of the page still works; run it again when you like.")


def ghost(text: str) -> mo.Html:
    """One quiet line where results will be; not empty charts."""
    return html(f'<p class="gt gt-ghost">{escape(text)}</p>')
