"""A trace of the reader's own on a lesson's page: a place to drop it, and what it says."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import marimo as mo

from gpututor.errors import TimelineError
from gpututor.ledger import rows
from gpututor.page import findings, gauges, trouble_line, waterfall
from gpututor.page.parts import escape, html
from gpututor.readers import in_a_class

if TYPE_CHECKING:
    from gpututor.explain.explained import Explained

ODD_IN_NAMES = re.compile(r"[^\w.-]|^\.*$")
MOST_LETTERS = 100
MOST_BYTES = 200 * 10**6  # our limit: more than that is for the command, which needs no browser to hold it


def trace_control() -> mo.ui.file:
    """A place to drop a trace; its value is a list of at most one file."""
    return mo.ui.file(
        filetypes=[".json", ".gz"], kind="area", max_size=MOST_BYTES, label="Drop a trace of torch.profiler here"
    )


def trace_panel(files: Sequence[Any]) -> mo.Html:
    """What the trace says; before there is one, where it would go; where it can't be explained, one sentence why."""
    if not files:
        where = "on the class's server, which keeps nothing of it" if in_a_class() else "on this machine"
        command = "<code>gpututor explain FILE</code>"
        return html(f'<p class="gt gt-note">It is read {where}. For large ones: {command}.</p>')
    from gpututor.explain.explained import explain

    try:
        with tempfile.TemporaryDirectory(prefix="gpututor-trace-") as folder:
            name = str(files[0].name)
            path = Path(folder) / (ODD_IN_NAMES.sub("_", name)[-MOST_LETTERS:] or "trace")
            path.write_bytes(files[0].contents)
            return _panel(explain(path, what=name or path.name))
    except TimelineError as error:
        told = trouble_line(f"{error}.")
        assert told is not None
        return told


def _panel(one: Explained) -> mo.Html:
    from gpututor.explain.report_html import strip
    from gpututor.explain.words import classes_said, head_lines

    lines = _notes((*head_lines(one), classes_said(one)))
    lost = _notes([f"Lost: {loss}." for loss in one.timeline.losses])
    ledger = one.window.ledger
    return html(lines, gauges(ledger), waterfall(rows(ledger)), strip(one), findings(one.findings), lost)


def _notes(lines: Sequence[str]) -> str:
    return "".join(f'<p class="gt gt-note">{escape(line)}</p>' for line in lines if line)
