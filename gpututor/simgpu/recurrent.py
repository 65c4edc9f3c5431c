"""What a recurrent layer's account says: its sizes, what it keeps, and the shapes of its results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Any

import torch

from gpututor.simgpu import kept
from gpututor.simgpu.forms import DTYPE_NAME
from gpututor.simgpu.note import Note


def rnn_note(facts: dict[str, Any]) -> Note:
    """A recurrent layer's account: its sizes say all."""
    note = Note("gpututor.rnn.forward", "gpututor.rnn.backward", (), facts)
    note.extra_bytes = kept.of_rnn(facts)
    return note


_skipping: list[dict[str, Any]] = [{}]  # what every call's account says on top


@contextmanager
def skip_input() -> Iterator[None]:
    """A `with` block in which recurrent layers are accounted as cuDNN's CUDNN_SKIP_INPUT: no product with the input.

    Values are still those of the ordinary layer. For predictions of kernel benchmarks that are timed so.
    """
    _skipping.append({"skip_input": True})
    try:
        yield
    finally:
        _skipping.pop()


def runs_of(batch_sizes: torch.Tensor) -> tuple[tuple[int, int], ...]:
    """How many sentences of a packed batch go on, and for how many steps: (3, 1), (2, 3), … for `[3, 2, 2, 2, …]`."""
    return tuple((int(batch), len(list(same))) for batch, same in groupby(batch_sizes.tolist()))


def rnn_facts(
    mode: str, x: Any, hx: Sequence[Any], rest: Sequence[Any], batch_sizes: torch.Tensor | None
) -> dict[str, Any]:
    """Shapes of a recurrent layer for the cost model; `batch_sizes` are those of a packed batch."""
    packed = batch_sizes is not None
    if batch_sizes is not None:
        _, n_layers, _, train, bidirectional = rest[:5]
        seq, batch = len(batch_sizes), hx[0].shape[1]
    else:
        _, n_layers, _, train, bidirectional, batch_first = rest[:6]
        seq, batch = (x.shape[1], x.shape[0]) if batch_first else (x.shape[0], x.shape[1])
    return {
        "mode": mode,
        "seq": seq,
        "batch": batch,
        "input": x.shape[-1],
        "hidden": hx[0].shape[-1],
        "layers": n_layers,
        "directions": 2 if bidirectional else 1,
        "dtype": DTYPE_NAME[x.dtype],
        "packed": packed,
        "train": bool(train),
        **({} if batch_sizes is None else {"runs": runs_of(batch_sizes)}),
        **_skipping[-1],
    }


def rnn_outlines(x: Any, states: Sequence[Any], rest: Sequence[Any], packed: bool) -> tuple[torch.Tensor, ...]:
    """The results of a recurrent layer on torch's meta device; torch would find them step after step, in a second."""
    width = states[0].shape[-1] * (2 if rest[4] else 1)
    if not packed and rest[5]:  # batch first, a view of what was written step after step
        out = x.new_empty((x.shape[1], x.shape[0], width)).transpose(0, 1)
    else:
        out = x.new_empty((*x.shape[:-1], width))
    return (out, *(x.new_empty(state.shape) for state in states))
