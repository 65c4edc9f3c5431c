"""Lesson 14's public threads, each beside the same ratio from a run, on a card like the asker's."""

from __future__ import annotations

from dataclasses import replace

from gpututor.cards import Machine
from gpututor.lookup import machine_named
from gpututor.page.lessons.ragged import Ragged
from gpututor.page.lessons.ragged_cards import DEALT
from gpututor.references import Reference, reference

AS_THEY_COME, APART, AT_ONCE, _ = DEALT


def on(found: Ragged, machine: Machine) -> Ragged:
    """The same run on another machine."""
    return replace(found, machine=machine)


def threads(found: Ragged) -> list[tuple[Reference, float | None]]:
    """Each thread with our ratio, None where it wasn't run."""
    v100, h100, pascal = (on(found, machine_named(name)) for name in ("p3.2xlarge", "H100-SXM", "TITAN-Xp"))
    pair = replace(machine_named("RTX-5090"), n_cards=2, name="two RTX 5090", joined_by="pcie-geforce")
    sixteen = on(found, machine_named("H100-SXM"))
    changing = pascal.times("resnet-changing", "resnet-fixed")
    return [
        (reference("shuffled to bucketed, V100"), v100.times("gpt2-shuffled", "gpt2-bucketed")),
        (reference("shuffled to bucketed, H100"), h100.times("gpt2-shuffled", "gpt2-bucketed")),
        (reference("fixed batch to token budget, memory"), _memory(found)),
        (reference("two cards, shuffled to neighbours"), _faster(found, AT_ONCE, AS_THEY_COME, pair)),
        (reference("long answers on one rank"), _faster(sixteen, AT_ONCE, APART)),
        (reference("new sizes with cudnn.benchmark"), changing),
    ]


def _faster(found: Ragged, fast: str, slow: str, box: Machine | None = None) -> float | None:
    """How many times as many words a second; None where it wasn't run."""
    one, other = found.shared(fast, box), found.shared(slow, box)
    return None if one is None or other is None else one.words_per_s / other.words_per_s


def _memory(found: Ragged) -> float | None:
    """Peak memory of sorted batches over that within a budget."""
    if not found.has("gpt2-bucketed", "gpt2-tokens"):
        return None
    sorted_, budget = (found.told[f"gpt2-{way}"]["memory_bytes"] for way in ("bucketed", "tokens"))
    return float(sorted_ / budget)
