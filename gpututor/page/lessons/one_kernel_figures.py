"""Lesson 1's figures beside its model: three gauges, SMs, limits, what others measured, and money."""

from __future__ import annotations

from collections.abc import Mapping

import marimo as mo

from gpututor.lookup import machine_named
from gpututor.one_kernel import roof
from gpututor.page.expected import expected_table
from gpututor.page.figures import figure, gauge_table
from gpututor.page.lessons.one_kernel import beside_table, waves_of
from gpututor.page.sms import SmPicture, sm_pictures
from gpututor.page.workloads import limits_table, useful_money
from gpututor.replay import Played
from gpututor.text import dollars
from gpututor.timeline import Label, Origin

RENTED = machine_named()
LABEL = Label(Origin.SIMULATED, RENTED.card.name, RENTED.name)


def three_gauges(played: Mapping[str, Played]) -> mo.Html:
    """Busy, SM fill and MFU of each program."""
    return figure(
        "Three gauges, one scale",
        LABEL,
        gauge_table(
            [(name, each.ledger) for name, each in played.items()],
            marks={name: f"{each.ledger.n_kernels:,} kernels" for name, each in played.items()},
        ),
        note="Busy is what nvidia-smi shows, there in whole percent.",
        wide=True,
    )


def sms(played: Mapping[str, Played]) -> mo.Html:
    """Which SMs have work during the first kernel of each."""
    return figure(
        "The SMs during one kernel",
        LABEL,
        sm_pictures([SmPicture(name, each.sm_shares, each.in_words) for name, each in waves_of(played).items()]),
        note="A kernel comes in blocks, and a block runs on one SM from begin to end. Each square is an SM, filled as "
        "high as the share of the kernel's time in which it has a block.",
        wide=True,
    )


def limits(played: Mapping[str, Played]) -> mo.Html:
    """What a kernel of each takes, beside the least that its bytes and its FLOP allow."""
    roofs = {name: roof(each) for name, each in played.items()}
    return figure(
        "One kernel: limits and time",
        LABEL,
        limits_table([(name, r.number_format, r.bytes_ns, r.flop_ns, r.took_ns) for name, r in roofs.items()]),
        note=" · ".join(f"{name}: {1 / r.reached_share:.3g} times its limit" for name, r in roofs.items()) + ".",
        wide=True,
    )


def money(played: Mapping[str, Played]) -> mo.Html:
    """What useful arithmetic gets of an hour."""
    return figure(
        f"Of every {dollars(RENTED.usd_per_hour)}, useful arithmetic gets",
        LABEL,
        useful_money([(name, each.ledger) for name, each in played.items()], RENTED.usd_per_hour or 0.0),
        note=f"{RENTED.name} at {dollars(RENTED.usd_per_hour)} an hour, {RENTED.price_basis}. Beside it, the account "
        "that takes most of the rest. What memory-bound time costs isn't wasted: it moves the data.",
        wide=True,
    )


def elsewhere(played: Mapping[str, Played]) -> mo.Html | None:
    """What others measured of the two products; nothing where neither was run."""
    compared = beside_table(played)
    if not compared:
        return None
    return figure(
        "What others measured",
        LABEL,
        expected_table(compared),
        note="The model's rates were fitted on products of that table, so this checks the fit. Its shapes are others.",
    )
