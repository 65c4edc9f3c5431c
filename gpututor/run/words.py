"""Phrases that every form of the report shares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpututor.expect.accuracy import in_words
from gpututor.ledger import LONGEST_PERIOD_S, SHORTEST_PERIOD_S
from gpututor.text import NBSP, duration
from gpututor.timeline import NS_PER_S

if TYPE_CHECKING:
    from gpututor.run.outcome import Outcome


def bytes_in_words(n_bytes: int | None) -> str:
    """An amount of memory in the binary unit that fits.

    >>> bytes_in_words(80 * 2**30), bytes_in_words(5 * 2**20), bytes_in_words(None)
    ('80.0\\xa0GiB', '5.0\\xa0MiB', 'not known')
    """
    if n_bytes is None:
        return "not known"
    if n_bytes >= 2**30:
        return f"{n_bytes / 2**30:.1f}{NBSP}GiB"
    if n_bytes >= 2**20:
        return f"{n_bytes / 2**20:.1f}{NBSP}MiB"
    return f"{n_bytes / 2**10:.1f}{NBSP}KiB" if n_bytes else "nothing"


def how_many_steps(outcome: Outcome) -> str:
    """How many steps the ledger holds, how long each takes, and how many before them it leaves out."""
    ledger = outcome.ledger
    if ledger is None:
        return "no ledger"
    if ledger.step_ns is None:
        return f"one window of {duration(ledger.window_ns)}"
    n_left_out = outcome.ended.told.get("n_left_out", 0)
    left_out = f", {n_left_out} before left out" if n_left_out else ""
    return f"{ledger.n_steps:,} step{'s' if ledger.n_steps != 1 else ''} of {duration(ledger.step_ns)}{left_out}"


def how_far_to_trust(outcome: Outcome) -> str | None:
    """The room around step time and utilization in one sentence; None for what wasn't predicted, or has no steps."""
    if outcome.band is None or outcome.util_band is None:
        return None
    return f"{in_words(outcome.band, outcome.util_band)}."


def what_nvidia_smi_shows(outcome: Outcome) -> str | None:
    """The range of GPU-Util from sample to sample, and how much a sample sees, in a sentence; None without a ledger."""
    samples, ledger = outcome.gpu_util_samples, outcome.ledger
    if not samples or ledger is None:
        return None
    low, high = min(samples), max(samples)
    range_in_words = f"{low}{NBSP}% whenever you look" if low == high else f"{low} to {high}{NBSP}% as you watch"
    seen = f"1/6{NBSP}s to 1{NBSP}s by card"
    if ledger.step_ns:
        n_least, n_most = (period_s * NS_PER_S / ledger.step_ns for period_s in (SHORTEST_PERIOD_S, LONGEST_PERIOD_S))
        seen += f", here {_steps(n_least)} to {_steps(n_most)} steps"
    return f"nvidia-smi would show {range_in_words}; each of its samples looks back over {seen}."


def _steps(n: float) -> str:
    """A number of steps with two digits that count."""
    return f"{n:,.0f}" if n >= 10 else f"{n:.2g}"
