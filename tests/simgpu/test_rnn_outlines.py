"""The results' shapes of recurrent layers with numerics off: a formula, held against torch's own step by step."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from torch import nn

from gpututor.simgpu.recurrent import rnn_outlines

CELLS = {nn.LSTM: ("lstm", 2), nn.GRU: ("gru", 1), nn.RNN: ("rnn_tanh", 1)}
STEPS, BATCH, WIDTH, HIDDEN = 3, 4, 5, 7


def outline(tensors):
    return [(tuple(t.shape), t.stride(), t.dtype) for t in tensors]


WAYS = [
    (cell, *rest)
    for cell, *rest in product(CELLS, (1, 2), *((False, True),) * 3)
    if cell is nn.LSTM or not rest[-1]  # torch projects the state of an LSTM alone
]


@pytest.mark.parametrize(("cell", "layers", "both", "first", "projected"), WAYS)
def test_results_are_shaped_and_laid_out_as_torchs(cell, layers, both, first, projected):
    name, n_states = CELLS[cell]
    more = {"proj_size": 2} if projected else {}
    net = cell(WIDTH, HIDDEN, layers, bidirectional=both, batch_first=first, device="meta", **more)
    batch = STEPS if first else BATCH  # the first two sizes are 3 and 4 either way
    x = torch.empty(3, 4, WIDTH, device="meta")
    wide = [2 if projected else HIDDEN, HIDDEN][:n_states]
    states = [torch.empty(layers * (1 + both), batch, width, device="meta") for width in wide]
    rest = [True, layers, 0.0, False, both, first]

    torchs = getattr(torch.ops.aten, name).input(x, states if n_states == 2 else states[0], net._flat_weights, *rest)
    assert outline(rnn_outlines(x, states, rest, packed=False)) == outline(torchs)


@pytest.mark.parametrize("cell", CELLS, ids=lambda c: c.__name__)
@pytest.mark.parametrize("both", [False, True])
def test_packed_results_are_shaped_as_torchs(cell, both):
    name, n_states = CELLS[cell]
    net = cell(WIDTH, HIDDEN, bidirectional=both, device="meta")
    x, sizes = torch.empty(4 + 3 + 2, WIDTH, device="meta"), torch.tensor([4, 3, 2])
    states = [torch.empty(1 + both, 4, HIDDEN, device="meta")] * n_states
    rest = [True, 1, 0.0, False, both]

    torchs = getattr(torch.ops.aten, name).data(
        x, sizes, states if n_states == 2 else states[0], net._flat_weights, *rest
    )
    assert outline(rnn_outlines(x, states, rest, packed=True)) == outline(torchs)
