"""What a run costs, and how much of that buys waiting."""

from __future__ import annotations

import math

import marimo as mo

from gpututor.cards import Machine
from gpututor.charts import WORDS, css_fill
from gpututor.ledger import IDLE, Account, Ledger
from gpututor.page.parts import escape, html
from gpututor.replay import Played
from gpututor.text import dollars


def money(ledger: Ledger, usd: float | None, per: str, price: str) -> mo.Html:
    """One sentence and one bar in the ledger's colours for `usd` US dollars spent at this ledger's shares.

    `per` says what the sum buys ("One epoch of 75,000 pairs, 2 h 10 min."), `price` on what it rests ("p3.2xlarge at
    $3.06 an hour, on demand, us-east-1, November 2026."). Without a price (`usd` None) it says so.
    """
    foot = f'<p class="gt-note">{escape(per)} {escape(price)}</p>'
    if usd is None:
        return html(f'<section class="gt gt-money"><p>There is no price for this machine.</p>{foot}</section>')
    idle_share = ledger.idle_ns / ledger.window_ns
    parts = [(Account.BUSY_UNSPLIT, ledger.busy_share)] + [(account, ledger.share(account)) for account in IDLE]
    shown = [(account, share) for account, share in parts if share]
    bar = "".join(
        f'<i style="width:{100 * share:.2f}%;background:{css_fill(account)}" '
        f'title="{escape(WORDS[account])} {dollars(usd * share)}"></i>'
        for account, share in shown
    )
    spoken = ", ".join(f"{WORDS[account]} {dollars(usd * share)}" for account, share in shown)
    lost, whole = (dollars(usd * idle_share), dollars(usd))
    if not math.isclose(idle_share, 0) and lost == whole:
        lost = f"almost {whole}"
    return html(
        f'<section class="gt gt-money"><p><b>{escape(lost)}</b> of every <b>{escape(whole)}</b> buys waiting.</p>'
        f'<div class="gt-stack" role="img" aria-label="{escape(spoken)}">{bar}</div>{foot}</section>'
    )


def price_of(machine: Machine) -> str:
    """What an hour of a machine costs and on what basis, as one sentence; empty without a price."""
    if machine.usd_per_hour is None:
        return ""
    return f"{machine.name} at {dollars(machine.usd_per_hour)} an hour, {machine.price_basis}."


def spent(played: Played | None, usd: float | None, per: str) -> mo.Html:
    """`money` for a run as its machine did it; nothing for one that its machine couldn't do."""
    if played is None:
        return html()
    return money(played.ledger, usd, per, price_of(played.machine))
