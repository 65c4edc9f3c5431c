"""An explained trace as one HTML file: no scripts, no requests, light and dark as the reader's system is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpututor.charts import strip_svg
from gpututor.explain.explained import Explained
from gpututor.explain.words import classes_said, cores_said, graphs_said, head_lines, windows_rows
from gpututor.ledger import rows, waits
from gpututor.page import findings, gauges, legend_of, source_line, waterfall
from gpututor.page.alone import alone, without_links
from gpututor.page.parts import escape
from gpututor.text import duration, percent

STYLE = """
.windows { overflow-x: auto }
.windows table { border-collapse: collapse; font-size: .95rem }
.windows th, .windows td { padding: .25rem 1.2rem .25rem 0; text-align: right }
.windows th { color: var(--gt-soft); font-weight: 400 }
.windows :is(th, td):first-child { text-align: left }
"""
HEADS = ("window", "length", "busy", "idle", "communication", "idle in the loader")


def page(several: Sequence[Explained], preface: Sequence[str] = ()) -> str:
    """The whole file; several traces (ranks, or before and after) stand one after the other behind the preface."""
    body = "".join(f'<p class="gt gt-lead">{escape(sentence)}</p>' for sentence in preface)
    body += "".join(part for one in several for part in parts(one))
    return alone(f"{several[0].name}: where the GPU's time goes", body, STYLE)


def parts(one: Explained) -> Iterator[str]:
    """The blocks of one trace from top to bottom, as HTML text."""
    title, *lines = head_lines(one)
    told = "".join(f'<p class="gt-note">{escape(line)}</p>' for line in lines)
    yield f'<header class="gt gt-head"><h1>{escape(one.name)}</h1><p class="gt-lead">{escape(title)}</p>{told}</header>'
    yield gauges(one.window.ledger).text
    yield _section("Where the time goes", waterfall(rows(one.window.ledger)))
    yield _section("One step" if one.window.timeline.steps else "The whole trace", strip(one))
    yield _section("What to change", without_links(findings(one.findings).text))
    yield _section("The two windows", _windows(one))
    sentences = [
        classes_said(one),
        cores_said(one),
        graphs_said(one),
        *(f"Lost: {loss}." for loss in one.timeline.losses),
    ]
    listed = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences if sentence)
    yield _section("What else it says", f'<ul class="gt-notes-list">{listed}</ul>') if listed else ""


def _section(title: str, inside: str) -> str:
    return f'<section class="gt"><h2>{escape(title)}</h2>{inside}</section>'


def _windows(one: Explained) -> str:
    head = "".join(f"<th>{escape(each)}</th>" for each in HEADS)
    told = "".join(
        f"<tr><td>{escape(name)}</td><td>{escape(long)}</td>"
        + "".join(f"<td>{escape(percent(share))}</td>" for share in shares)
        + "</tr>"
        for name, long, *shares in windows_rows(one)
    )
    note = f'<p class="gt-note">The two windows differ: {escape(one.disagreement)}.</p>' if one.disagreement else ""
    return f'<div class="windows"><table><tr>{head}</tr>{told}</table></div>{note}'


def strip(one: Explained) -> str:
    """One step in the middle as a picture; the whole window where there are no steps."""
    timeline = one.window.timeline
    shown = timeline.step(len(timeline.steps) // 2) if timeline.steps else timeline
    idle = waits(shown, one.device)
    line = source_line(shown.label, duration(shown.duration_ns))
    return f'<div class="gt"><p class="gt-note">{line}</p>{legend_of(idle)}{strip_svg(shown, idle, height_px=72)}</div>'
