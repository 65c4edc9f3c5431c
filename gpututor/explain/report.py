"""An explained trace as text for a terminal, 80 columns or more."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from gpututor.explain.explained import Explained
from gpututor.explain.words import classes_said, cores_said, graphs_said, head_lines, windows_rows
from gpututor.run.report import finding, waterfall
from gpututor.text import percent


def show(one: Explained, console: Console) -> None:
    """Print the report."""
    console.print(Group(*parts(one, console.width)))


def parts(one: Explained, width: int) -> Iterator[RenderableType]:
    """The report's blocks from top to bottom."""
    first, *others = head_lines(one)
    yield Text("")
    yield Text(first, style="bold")
    yield from (Text(line) for line in others)
    yield Text("")
    yield _windows(one)
    if one.disagreement:
        yield Text(f"The two windows differ: {one.disagreement}.")
    yield Text("")
    yield waterfall(one.window.ledger, width)
    yield Text("")
    yield from (finding(found) for found in one.findings)
    if classes := classes_said(one):
        yield Text(classes)
    if cores := cores_said(one):
        yield Text(cores)
    if graphs := graphs_said(one):
        yield Text(graphs)
    yield from (Padding(Text(f"Lost: {loss}.", style="dim"), (0, 0, 0, 0)) for loss in one.timeline.losses)


def _windows(one: Explained) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    for k, title in enumerate(("", "length", "busy", "idle", "communication", "idle in the loader")):
        table.add_column(title, justify="right" if k else "left", no_wrap=True)
    for name, long, *shares in windows_rows(one):
        table.add_row(name, long, *(percent(share) for share in shares))
    return table
