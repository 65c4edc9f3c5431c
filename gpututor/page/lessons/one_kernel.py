"""What lesson 1 shows of single kernels: how they fill the card, with more rows too, and what others measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gpututor.cards import Card
from gpututor.exercises import ex01
from gpututor.expect import Band, Difference, compare
from gpututor.experiments.gauge import FP16, FP32
from gpututor.model.costs.walk import block_bytes_per_s
from gpututor.model.spec import KernelSpec
from gpututor.one_kernel import (
    Alone,
    Waves,
    alone,
    fill_by_rows,
    first_kernel,
    first_span,
    rows_for_free,
    waves,
    with_rows,
)
from gpututor.references import reference
from gpututor.replay import Played, read_tape
from gpututor.text import duration

MEASURED = {FP32: "V100 large matmul, fp32", FP16: "V100 large matmul, fp16"}


def waves_of(played: Mapping[str, Played]) -> dict[str, Waves]:
    """By program: how the blocks of its first kernel fall to the SMs."""
    return {name: waves(first_span(each.timeline)[1], each.machine.card) for name, each in played.items()}


@dataclass(frozen=True, slots=True)
class Rows:
    """The softmax's kernel on a card, with as many rows as one likes: `filled` has SM fill by rows, up to `most`."""

    kernel: KernelSpec
    card: Card
    most: int
    filled: list[tuple[int, float | None]]

    def with_rows(self, n: int) -> Alone:
        """The kernel with so many rows, alone on the card."""
        return alone(with_rows(self.kernel, n), self.card)

    def said(self, n: int) -> str:
        """What so many rows make of the card, what they take, and what that rests on."""
        here, one = self.with_rows(n), self.with_rows(1)
        threads = with_rows(self.kernel, 1).threads_per_block
        return (
            f"{waves(here.work, self.card).in_words} Time: {duration(here.duration_ns)}, for a single row "
            f"{duration(one.duration_ns)}. Up to {rows_for_free(self.kernel, self.card, self.most)} rows take no "
            f"longer, if the {threads:,} threads of a block draw no more than {block_bytes_per_s(threads) / 1e9:.3g} "
            "GB/s: fitted on V100 and RTX 3090, assumed for other cards."
        )


def rows_of(tape: Path, card: Card) -> Rows:
    """The first kernel of a tape on a card, filled up to four waves.

    Raises:
        TimelineError: the tape is gone or damaged.
    """
    kernel, most = first_kernel(read_tape(tape)), 4 * card.n_sms
    return Rows(kernel, card, most, fill_by_rows(kernel, card, most + card.n_sms // 2))


def beside_table(played: Mapping[str, Played]) -> list[tuple[str, Difference]]:
    """The rates of the two products beside those that others measured; only of those that were run."""
    compared = []
    for name, key in MEASURED.items():
        if name in played:
            seen = reference(key)
            band = Band(min(seen.values), seen.value, max(seen.values), seen.unit, seen.source)
            took_ns, work = first_span(played[name].timeline)
            compared.append((name, compare(band, 1e9 * (work.flop or 0.0) / took_ns)))
    return compared


def moved_by_adding(adding: Played) -> ex01.Moved:
    """What the kernel that adds two arrays moved, and how fast the card's memory is."""
    took_ns, work = first_span(adding.timeline)
    return ex01.by_adding(work.moved_bytes or 0.0, took_ns, adding.machine.card.bandwidth_bytes_per_s)
