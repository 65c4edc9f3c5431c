"""Lesson 16's figures beside its curve: steps by link, ways to spread, buckets, losses, money, and what others saw."""

from __future__ import annotations

from typing import Any

import marimo as mo

from gpututor.experiments.several_cards import COUNTS, MOST, N_MICRO, SEQUENCES
from gpututor.links import wiring
from gpututor.page.figures import figure
from gpututor.page.lessons.several import ETHERNET, PCIE, Several
from gpututor.page.lessons.several_threads import threads
from gpututor.page.lessons.tiny_tables import Row, table
from gpututor.page.line_figure import line_figure
from gpututor.page.parts import escape
from gpututor.page.threads import threads_table
from gpututor.results import StoredResult
from gpututor.text import dollars, duration, percent

CARDS = (1, *COUNTS)


def _cards(n: int) -> str:
    return "1 card" if n == 1 else f"{n} cards"


def steps(found: Several, on: object) -> mo.Html:
    """GPT-2's step by link and number of cards; `on` is the control that chooses the card."""
    rows: list[Row] = [(link, [duration(found.step_ns(n, link)) for n in CARDS]) for link in found.boxes]
    by_host = "" if wiring(found.boxes[PCIE]).cards.peer_access else "Over PCIe these cards talk by way of the host. "
    return figure(
        f"GPT-2, {SEQUENCES} sequences a step, whatever the number of cards",
        found.label("GPT-2 by its shapes, fp32"),
        on,
        table("Joined by", [_cards(n) for n in CARDS], rows),
        note=f"NVLink and PCIe: one box. {by_host}"
        f"Ethernet: a box for each card, {_rate(found)} gigabits a second. DistributedDataParallel, AdamW.",
        wide=True,
    )


def _rate(found: Several) -> str:
    return wiring(found.boxes[ETHERNET]).network.name.removeprefix("ethernet-").removesuffix("g")


def speed_up(found: Several) -> object:
    """Times as fast as one card, over the number of cards."""
    return line_figure(
        "Times as fast as one card",
        found.label("GPT-2 by its shapes, fp32"),
        found.lines(),
        x_title="cards",
        y_title="times as fast",
        note=found.fastest_said,
        wide=True,
    )


def ways(found: Several) -> mo.Html | None:
    """Ways to spread the job over eight cards; nothing where some weren't run."""
    named = {
        "DataParallel": ("dp-8", 1),
        "DDP, one bucket": ("bucket-1000", 1),
        "DDP": (found.key(MOST), 1),
        f"DDP, {N_MICRO} backward passes": ("each", N_MICRO),
        "the same with no_sync": ("last", N_MICRO),
    }
    if not found.has(*(key for key, _ in named.values())):
        return None
    rows: list[Row] = []
    for name, (key, n_parts) in named.items():
        times = [found.ns(key, link) for link in found.boxes]
        rows.append((name, ["—" if ns is None else duration(ns / n_parts) for ns in times]))
    return figure(
        f"Eight cards, time for {SEQUENCES} sequences",
        found.label("GPT-2 by its shapes, fp32"),
        table("The way", list(found.boxes), rows),
        note=f"DataParallel is one process and can't leave its box. {found.one_process_said}",
        wide=True,
    )


def buckets(found: Several) -> object | None:
    """A step on eight cards over the size of DDP's buckets; nothing where they weren't run."""
    lines = found.buckets()
    if len(lines[ETHERNET]) <= 1:
        return None
    return line_figure(
        "Eight cards: a step by the size of a bucket",
        found.label("GPT-2 by its shapes, fp32"),
        lines,
        x_title="megabytes of gradients that travel together",
        y_title="one step (ms)",
        log_x=True,
        note="25 is what DDP takes unless you say otherwise. Small ones travel early and pay for each start; one large "
        "one waits for the last gradient.",
        wide=True,
    )


def learning(found: Several) -> object:
    """Losses over seconds, and a table of all ways."""
    rows: list[Row] = []
    for key in (key for key in found.told if key.startswith("learn-")):
        held, losses, step_ns = found.held_out(key), found.losses(key), found.ns(key, found.near)
        shown = f"{losses[-1]:.3f}", "—" if held is None else f"{held:.3f}"
        rows.append((found.told[key]["label"], (f"{len(losses)}", duration(step_ns), *shown)))
    return line_figure(
        "The same pictures, seen by one card or by several",
        found.label("a small network on drawn shapes"),
        found.learning_lines(),
        table("The way", ("Steps", "One step", "Last loss", "Loss, unseen pictures"), rows),
        x_title="seconds of training on this card",
        y_title="loss",
        note=f"Joined by {found.near}. Losses are really computed, on this computer's processor.",
        wide=True,
    )


def cost(found: Several) -> mo.Html:
    """What a million tokens cost, by link and number of cards."""
    usd = found.usd(1, ETHERNET)
    if usd is None:
        return figure("Money", found.label("GPT-2"), "<p>There is no price for this card.</p>")
    rows: list[Row] = []
    for link in found.boxes:
        cells = [f"{dollars(found.usd(n, link) or 0)}, {percent(found.times(n, link) / n)}" for n in CARDS]
        rows.append((link, cells))
    price = dollars(found.card.usd_per_card_hour or 0)
    return figure(
        "A million tokens, and the share of the cards' speed that you get (scaling efficiency)",
        found.label("GPT-2 by its shapes, fp32"),
        table("Joined by", [_cards(n) for n in CARDS], rows),
        note=f"Every card at {price} an hour ({found.card.name}, {found.card.price_basis}), however it is joined.",
        wide=True,
    )


def elsewhere(found: Several) -> mo.Html:
    """Public threads beside this run."""
    return figure(
        "What others ran into",
        '<span class="gt-tag gt-simulated">Simulated</span> each on cards like the asker\'s',
        threads_table(threads(found)),
        wide=True,
    )


def really(measured: StoredResult | None) -> mo.Html | None:
    """The losses of one process and of two, as torchrun ran them here; nothing before both are there."""
    data: dict[str, Any] = measured.data if measured is not None and isinstance(measured.data, dict) else {}
    points = data.get("points", [])
    if len(points) < 2:
        return None
    one, two = points[0]["losses"], points[1]["losses"]
    chosen = sorted({0, len(one) // 4, len(one) // 2, len(one) - 1})
    rows: list[Row] = [
        (f"step {k + 1}", (f"{one[k]:.6f}", f"{two[k]:.6f}", f"{abs(one[k] - two[k]):.1g}")) for k in chosen
    ]
    where = data["gpu"] or data.get("host") or "this computer's processor"
    times = points[0]["step_ns"] / points[1]["step_ns"]
    return figure(
        "One process and two: the same losses",
        f'<span class="gt-tag gt-measured">Measured</span> {escape(where)} · torch {escape(data["torch"])}',
        table("Loss", (points[0]["label"], points[1]["label"], "Apart"), rows),
        note=f"Started by torchrun, meeting on this computer only. Two are {times:.2f} times as fast as one. Sums in "
        "another order differ in the last digit, and training makes that grow.",
        wide=True,
    )
