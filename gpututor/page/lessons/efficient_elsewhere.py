"""Lesson 13 on other machines: a card of each generation, and public threads beside the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import marimo as mo

from gpututor.experiments.efficient_ways import (
    ASKED_BATCH,
    BATCHES,
    Bytes,
    Net,
    Order,
    Slim,
    ask_key,
    bytes_key,
    layer_key,
    slim_key,
    train_key,
)
from gpututor.lookup import machine_named
from gpututor.page.figures import figure
from gpututor.page.kept import Kept
from gpututor.page.lessons.efficient import Paper, paper_of
from gpututor.page.lessons.tiny_tables import Row, table
from gpututor.page.threads import threads_table
from gpututor.references import Reference, reference

CARDS = ("p2.xlarge", "P100-SXM2", "p3.2xlarge", "g4dn.xlarge", "A100-SXM4-80GB", "H100-SXM")
"""Machines with a card of each generation, the oldest first."""
OTHERS = (*CARDS, "g5.xlarge")


@dataclass(frozen=True, slots=True)
class Everywhere:
    """The same run on several machines, by name."""

    found: Mapping[str, Paper]

    def __getitem__(self, name: str) -> Paper:
        return self.found[name]

    @property
    def cards(self) -> list[Paper]:
        """A card of each generation."""
        return [self.found[name] for name in CARDS]

    @property
    def whole(self) -> bool:
        """Whether all that cards are compared by was run."""
        one = self.found[CARDS[0]]
        return one.asked and one.ordered and one.slimmed and one.bytes_run and one.has(layer_key(True))


def everywhere(kept: Kept) -> Everywhere:
    """The run on a card of each generation and on those that threads name."""
    return Everywhere({name: paper_of(kept, machine_named(name)) for name in OTHERS})


def threads(rented: Paper, others: Everywhere) -> list[tuple[Reference, float | None]]:
    """Each public thread with the same ratio from the run, None where it wasn't run."""
    a100, a10 = others["A100-SXM4-80GB"], others["g5.xlarge"]

    def one_photo(net: Net) -> str:
        return train_key(net, 1, Order.FP32)

    first, last = (train_key(Net.RESNET50, ASKED_BATCH, order) for order in (Order.FP16, Order.FP16_LAST))
    as_it_is = slim_key(Slim.AS_IT_IS)
    small, usual = Net.EFFICIENTNET, Net.RESNET50
    large = BATCHES[-1]
    rows = {
        "B0 to ResNet-50, V100": rented.ratio(train_key(small), train_key(usual)),
        "B0 to ResNet-50, A100": a100.ratio(train_key(small, large), train_key(usual, large)),
        "ResNet-50 to B0, fp32": rented.ratio(train_key(usual, order=Order.FP32), train_key(small, order=Order.FP32)),
        "B0 to ResNet-50, training": rented.ratio(one_photo(Net.EFFICIENTNET), one_photo(Net.RESNET50)),
        "B0 to ResNet-50, asked": rented.ratio(ask_key(Net.EFFICIENTNET), ask_key(Net.RESNET50)),
        "whole to depthwise, one layer": rented.ratio(layer_key(False), layer_key(True)),
        "channels first to last, V100": rented.ratio(first, last),
        "channels first to last, A100": a100.ratio(first, last),
        "channels last to first, fp32": rented.ratio(
            train_key(usual, order=Order.FP32_LAST), train_key(usual, order=Order.FP32)
        ),
        "weights to zeros": rented.ratio(slim_key(Slim.ZEROS), as_it_is),
        "masks left on": rented.ratio(slim_key(Slim.MASKED, 1), slim_key(Slim.AS_IT_IS, 1)),
        "fewer channels, one photo": rented.ratio(slim_key(Slim.HALVED, 1), slim_key(Slim.AS_IT_IS, 1)),
        "fp16 to int8, A10": a10.ratio(bytes_key(Bytes.INT8), bytes_key(Bytes.HALVES)),
    }
    return [(reference(name), ratio) for name, ratio in rows.items()]


def cards_figure(others: Everywhere) -> mo.Html | None:
    """A card of each generation: what less FLOP, the order of channels, and smaller networks bring there."""
    if not others.whole:
        return None
    rows: list[Row] = []
    for found in others.cards:
        bound = found.pattern_at_best(bytes_key(Bytes.COMPILED))
        int8 = f"{found.bytes_times(Bytes.INT8_COMPILED):.2f}" if found.multiplies_bytes else "no unit"
        cells = (
            f"{found.times(Net.EFFICIENTNET):.1f}",
            f"{found.gain(Net.RESNET50, Order.FP16_LAST, Order.FP16):.2f}",
            f"{found.slim_times(Slim.HALVED):.2f}",
            f"{found.slim_times(Slim.ZEROS):.2f}",
            int8,
            f"at most {bound:.2f}" if bound > 1 else "no unit",
        )
        rows.append((f"{found.machine.card.name}, {found.machine.card.architecture}", cells))
    titles = (
        "EfficientNet-B0",
        "Channels last",
        "Half the channels",
        "Zeros",
        "int8, ViT",
        "2:4, ViT",
    )
    return figure(
        "Times as fast, by generation",
        '<span class="gt-tag gt-simulated">Simulated</span> six cards, each in a machine that one can rent or buy',
        table("The card", titles, rows),
        note="EfficientNet-B0 beside ResNet-50, the others beside the same without, int8 compiled both times.",
        wide=True,
    )


def threads_figure(rented: Paper, others: Everywhere) -> mo.Html | None:
    """Public threads beside this run; nothing where the variants for them weren't run."""
    if not others.whole:
        return None
    return figure(
        "What others ran into",
        rented.label("this run; other cards where a thread names one"),
        threads_table(threads(rented, others)),
        note="No two are the same program, so a ratio within two and a half counts as so here too.",
        wide=True,
    )
