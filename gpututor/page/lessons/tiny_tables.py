"""The tables of lesson 10: whose time a kernel takes on the host, what each way costs at first. HTML text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gpututor.charts import css_fill
from gpututor.experiments.per_op import HostSplit
from gpututor.experiments.tiny_kernels import CROWDS, MODES, SIZES
from gpututor.experiments.ways import Way
from gpututor.ledger import Account
from gpututor.page.lessons.tiny import Tiny
from gpututor.page.parts import escape
from gpututor.text import dollars, duration, percent

PARTS: tuple[tuple[str, str, Callable[[HostSplit], float]], ...] = (
    ("Python", css_fill(Account.BLOCKING_SYNC), lambda split: split.python_ns),
    ("framework", css_fill(Account.LAUNCH_OVERHEAD), lambda split: split.framework_ns),
    ("autograd", css_fill(Account.WAITING_FOR_INPUT), lambda split: split.autograd_ns),
    ("the launch call", css_fill(Account.EXPOSED_COPY), lambda split: split.launch_ns),
)
"""Whose time it is, its colour, and how much of a step's."""

Row = tuple[str, Sequence[str]]


def question_picture(n_ops: int = 3) -> str:
    """The question as a picture: a few ops one after the other on the host, each with a kernel and a hatched rest."""
    op = (
        '<span style="display:grid;grid-template-rows:1.6rem .55rem;gap:.35rem;flex:1">'
        '<b style="border-radius:4px;border:1px solid var(--gt-line);display:grid;place-items:center;'
        'background:repeating-linear-gradient(-45deg, var(--gt-track) 0 7px, transparent 7px 14px)">?</b>'
        f'<i style="width:22%;margin-left:76%;border-radius:3px;background:{css_fill(Account.USEFUL)}"></i></span>'
    )
    return (
        '<div role="img" aria-label="Ops one after the other on the host, each with a short kernel on the card; where '
        'the host\'s time goes is the question" style="margin-top:1rem;display:grid;grid-template-columns:4rem 1fr;'
        'gap:.8rem;align-items:start"><span style="display:grid;grid-template-rows:1.6rem .55rem;gap:.35rem;'
        'align-items:center;font-size:.9rem"><span>host</span><span>card</span></span>'
        f'<span style="display:flex;gap:.25rem">{op * n_ops}</span></div>'
    )


def split_table(tiny: Tiny, batch: int) -> str:
    """The host's time for a kernel in each way as a bar, split by whose it is."""
    rows = [(way.value, tiny.at(way, batch)) for way in Way]
    longest_ns = max(split.host_ns_per_kernel for _, split in rows)
    legend = "".join(f'<span><i style="background:{fill}"></i>{who}</span>' for who, fill, _ in PARTS)
    return (
        f'<div class="gt-legend">{legend}</div><table class="gt-ledger gt-useful">'
        '<caption class="gt-hidden">The host\'s time for a kernel, by way</caption><thead class="gt-hidden"><tr>'
        '<th scope="col">Way</th><th scope="col">Bar</th><th scope="col">For a kernel</th><th scope="col">Step</th>'
        f"</tr></thead><tbody>{''.join(_bar(name, split, longest_ns) for name, split in rows)}</tbody></table>"
    )


def _bar(name: str, split: HostSplit, longest_ns: float) -> str:
    bars, at = "", 0.0
    for _, fill, ns_of in PARTS:
        width = 100 * ns_of(split) / split.n_kernels / longest_ns
        bars += f'<i style="left:{at:.2f}%;width:{width:.2f}%;min-width:0;background:{fill}"></i>' if width else ""
        at += width
    words = f"step {duration(split.step_ns)}, card {percent(split.busy_share)} busy, {split.n_kernels:.0f} kernels"
    return (
        f'<tr class="gt-gauge"><th scope="row">{escape(name)}</th><td class="gt-bar"><div>{bars}</div></td>'
        f'<td class="gt-num">{escape(duration(split.host_ns_per_kernel))}</td>'
        f'<td class="gt-why">{escape(words)}</td></tr>'
    )


def once_table(tiny: Tiny, batch: int, n_samples: int) -> str:
    """What each way takes once, when that has paid, and what so many samples cost."""
    rate = tiny.machine.usd_per_hour
    rows: list[Row] = []
    for way in Way:
        step_ns, once_ns = tiny.at(way, batch).step_ns, tiny.once_ns(way)
        usd = "—" if rate is None else dollars(n_samples / batch * step_ns / 3600e9 * rate)
        rows.append((way.value, (_once(way, once_ns), duration(step_ns), _paid(tiny, way, batch), usd)))
    return table("The way", ("Once, at first", "One step", "Paid after", "An epoch of ImageNet"), rows)


def _once(way: Way, once_ns: float | None) -> str:
    if way is Way.EAGER:
        return "—"
    return "not run" if once_ns is None else duration(once_ns)


def _paid(tiny: Tiny, way: Way, batch: int) -> str:
    if way is Way.EAGER:
        return "—"
    n = tiny.paid_after(way, batch)
    return "never" if n is None else f"{max(1.0, n):,.0f} steps"


def learned_table(tiny: Tiny) -> str:
    """The small network in each way: a step, the last loss, the loss on what it never saw."""
    rows: list[Row] = []
    for way in Way:
        key = f"learned-{way.key}"
        if tiny.has(key):
            last, held = tiny.losses[key][-1], tiny.held_out[key]
            shown = ("—" if loss is None else f"{loss:.5f}" for loss in (last, held))
            rows.append((way.value, (duration(tiny.steps[key].step_ns), *shown)))
    return table("The way", ("One step", "Last loss", "Loss, unseen molecules"), rows)


def crowds_table(tiny: Tiny) -> str:
    """The same network with more molecules a step."""
    rows: list[Row] = []
    for n in CROWDS:
        split = tiny.steps[f"crowd-{n}"]
        rate = f"{1e9 * n / split.step_ns:,.0f}"
        rows.append((tiny.labels[f"crowd-{n}"], (duration(split.step_ns), percent(split.busy_share), rate)))
    return table("A step of", ("One step", "Busy", "Molecules a second"), rows)


def sizes_table(tiny: Tiny) -> str:
    """What compiling takes when molecules differ in size, by how it is asked for."""
    least_ns = min(tiny.compiling_ns(mode) for mode in MODES)
    rows: list[Row] = [
        (label, (duration(tiny.compiling_ns(mode)), f"{tiny.compiling_ns(mode) / least_ns:.0f}"))
        for mode, (label, _) in MODES.items()
    ]
    return table("Compiled", (f"Compiling, {len(SIZES)} batches", "Times as long as the least"), rows)


def table(first: str, titles: Sequence[str], rows: Sequence[Row]) -> str:
    """A table whose cells tell their titles on a narrow page."""
    head = f'<th scope="col">{escape(first)}</th>' + "".join(
        f'<th scope="col">{escape(title)}</th>' for title in titles
    )
    lines = ""
    for name, cells in rows:
        told = "".join(
            f'<td><span class="gt-only-narrow">{escape(title)}</span>{escape(cell)}</td>'
            for title, cell in zip(titles, cells, strict=True)
        )
        lines += f'<tr><th scope="row">{escape(name)}</th>{told}</tr>'
    return (
        f'<table class="gt-expect gt-points"><caption class="gt-hidden">{escape(first)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"
    )
