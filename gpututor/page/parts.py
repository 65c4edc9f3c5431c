"""HTML from parts, the guard that keeps a page alive, and the Markdown a lesson writes."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape

import marimo as mo

__all__ = ["coded", "escape", "html", "markdown", "markup", "shown", "told", "trouble_line"]


def markup(part: object) -> str:
    """A part as HTML text: strings are HTML already, everything else is shown by marimo."""
    return part if isinstance(part, str) else mo.as_html(part).text


def html(*parts: object) -> mo.Html:
    """The parts one after the other as something that marimo shows."""
    return mo.Html("".join(markup(part) for part in parts))


def told(*parts: object) -> mo.Html:
    """Prose (`mo.md`) and the figures that go with it, as one; prose keeps the narrow column beside a wide figure."""
    return html(*(f'<div class="gt-told">{markup(part)}</div>' for part in parts if part is not None))


def markdown(text: str) -> str:
    """Markdown, formulas included, as HTML text."""
    return mo.md(text).text


def coded(text: str) -> str:
    """A line of text as HTML, with what stands between backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def trouble_line(sentence: str | None) -> mo.Html | None:
    """What went wrong, so that nobody overlooks it; nothing without trouble."""
    return html(f'<p class="gt gt-failed" role="alert">{escape(sentence)}</p>') if sentence else None


def shown(make: Callable[[], object]) -> object:
    """What `make` gives, or one sentence in its place when it fails, so that the cells below stay alive."""
    try:
        return make()
    except Exception as error:  # noqa: BLE001  whatever it is, the reader gets a sentence and the rest of the page
        why = escape(f"{type(error).__name__}: {error}")
        return html(
            f'<p class="gt gt-failed" role="alert">This part of the page could not be drawn ({why}). '
            "Everything else works.</p>"
        )
