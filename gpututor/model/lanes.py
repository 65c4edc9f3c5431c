"""The rows of a simulated timeline: two host threads, and of each card a stream and two copy engines."""

from __future__ import annotations

from collections.abc import Sequence

from gpututor.timeline import Activity, Lane, LaneKind

MAIN, AUTOGRAD = 0, 1
COMPUTE, COPY_IN, COPY_OUT = 2, 3, 4
"""Lanes of the first card; the next card's follow, three by three, and then the streams that a program made."""
LANES_PER_CARD = 3
ENGINE = {"copy to GPU": COPY_IN, "copy to host": COPY_OUT}

NO_KERNEL = {
    "copy on GPU": Activity.COPY_ON_GPU,
    "memset": Activity.MEMSET,
    "collective": Activity.COLLECTIVE,
    "copy to GPU": Activity.COPY_TO_GPU,  # these two inside a graph; else `Queue.copy` takes them
    "copy to host": Activity.COPY_TO_HOST,
}
"""Kinds of work in a stream that a timeline tells apart from kernels."""


def lanes(streams: Sequence[int] = (0,)) -> tuple[Lane, ...]:
    """The rows of a simulated timeline; `streams` says on which card each stream lies, default streams first."""
    n_cards = max(streams) + 1
    rows = [Lane(LaneKind.HOST, "main thread"), Lane(LaneKind.HOST, "autograd thread")]
    for card in range(n_cards):
        of = f" of GPU {card}" if n_cards > 1 else ""
        rows += [
            Lane(LaneKind.STREAM, f"default stream{of}", card),
            Lane(LaneKind.COPY, "copies to the GPU" if n_cards == 1 else f"copies to GPU {card}", card),
            Lane(LaneKind.COPY, f"copies to the host{' from GPU ' + str(card) if of else ''}", card),
        ]
    rows += [Lane(LaneKind.STREAM, f"stream {k}", card) for k, card in enumerate(streams) if k >= n_cards]
    return tuple(rows)
