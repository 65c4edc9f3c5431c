"""Lesson 16's public threads, each beside the same ratio from a run, on cards like the asker's where they are known."""

from __future__ import annotations

from dataclasses import replace

from gpututor.cards import Machine
from gpututor.lookup import machine_named
from gpututor.model.exchange import RanksExchange
from gpututor.page.lessons.several import ETHERNET, NVLINK, WITHOUT_NVLINK, Several, boxes
from gpututor.references import Reference, reference
from gpututor.replay import read_tape, step_ns


def threads(found: Several) -> list[tuple[Reference, float | None]]:
    """Each thread with our ratio, None where it wasn't run."""
    titan, small, v100 = machine_named("TITAN-RTX"), machine_named("RTX-3060"), boxes(machine_named())
    bridged = replace(titan, n_cards=2, name="two TITAN RTX, bridged", joined_by="nvlink-bridge")
    without = replace(titan, n_cards=2, name="two TITAN RTX", joined_by="pcie-geforce")
    pair = replace(small, n_cards=2, name="two RTX 3060")
    apart = replace(machine_named("GTX-1080Ti"), n_cards=4, name="four GTX 1080 Ti by way of the host")
    apart = replace(apart, joined_by=WITHOUT_NVLINK)
    dgx = machine_named("DGX-1")
    rows = (
        ("two cards, NVLink off to on", ("pair-ddp", without), ("pair-ddp", bridged)),
        ("DataParallel to DDP", ("pair-dp", bridged), ("pair-ddp", bridged)),
        ("two cards without NVLink to one", ("pair-ddp", pair), ("pair-one", small)),
        ("AlexNet, four cards to one", ("alexnet-dp", apart), ("alexnet-one", apart)),
        ("a server's eight cards to one", ("alike", v100[NVLINK]), ("one", v100[ETHERNET])),
        ("DDP paper, one bucket to small ones", ("paper-whole", dgx), ("paper-small", dgx)),
    )
    ratios: list[tuple[Reference, float | None]] = []
    for name, (above, above_on), (below, below_on) in rows:
        known = found.has(above, below)
        ratio = _ns(found, above, above_on) / _ns(found, below, below_on) if known else None
        ratios.append((reference(name), ratio))
    known = found.has("each", "last")
    bytes_ratio = _exchanged(found, "each") / _exchanged(found, "last") if known else None
    return [*ratios, (reference("bytes, exchange each to last"), bytes_ratio)]


def _ns(found: Several, key: str, on: Machine) -> float:
    alone = on if found.told[key]["x"] != 1 else replace(on, n_cards=1)
    path = found.tapes[key]
    return step_ns(path, alone)


def _exchanged(found: Several, key: str) -> int:
    """Bytes of a step's collectives."""
    return sum(e.n_bytes for e in read_tape(found.tapes[key]).entries if type(e) is RanksExchange)
