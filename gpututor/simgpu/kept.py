"""What an op that runs whole keeps on the card for its backward pass, beyond its own inputs and results."""

from __future__ import annotations

from math import prod
from typing import Any

import torch

from gpututor.simgpu.forms import Form, form_of
from gpututor.simgpu.memory import block_of
from gpututor.simgpu.session import current
from gpututor.simgpu.tensor import SimTensor, new

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
BESIDE_GATES = {"lstm": 1, "gru": 1, "rnn_tanh": 0, "rnn_relu": 0}
"""Per hidden unit and time step: an LSTM's cell state, and the part of a GRU's candidate that comes from the state."""

CELL_WORKSPACE = {"lstm": 4, "gru": 5}
"""Per hidden unit. Source: PyTorch, aten/src/ATen/native/cuda/RNN.cu (GRU: 5 numbers a unit; LSTM: its 4 gates)."""

_spaces: dict[tuple[int, int], Form] = {}

BYTES = {"float32": 4, "float64": 8, "float16": 2, "bfloat16": 2}


def of_attention(q_shape: tuple[int, ...]) -> int:
    """Bytes of the log-sum-exp of each row in fp32, which fused attention keeps instead of the weights.

    Source: the results of aten._scaled_dot_product_flash_attention; its random state of 16 bytes is left out.
    """
    return 4 * prod(q_shape[:-1])


def of_rnn(facts: dict[str, Any]) -> int:
    """Bytes of a recurrent layer's reserve space in training; 0 otherwise.

    cuDNN tells its size only to a program that asks (cudnnGetRNNTempSpaceSizes). Assumed is what the formulas of the
    backward pass need: the gates and what stands in `BESIDE_GATES` of each time step, and the outputs
    of all layers but the last.
    """
    if not facts["train"]:
        return 0
    mode, layers, directions = facts["mode"], facts["layers"], facts["directions"]
    runs = facts.get("runs") or ((facts["batch"], facts["seq"]),)
    units = sum(batch * n for batch, n in runs) * directions * facts["hidden"]
    numbers = units * (layers * (GATES[mode] + BESIDE_GATES[mode]) + layers - 1)
    return int(numbers) * BYTES.get(facts["dtype"], 4)


def of_cell(facts: dict[str, Any]) -> int:
    """Bytes of a single LSTM or GRU cell's workspace."""
    return int(facts["batch"] * facts["hidden"] * CELL_WORKSPACE[facts["mode"]] * BYTES.get(facts["dtype"], 4))


def space(n_bytes: int, card: int) -> SimTensor:
    """So many bytes of the card as a tensor, to be saved for backward like any other."""
    form = _spaces.get((n_bytes, card))
    if form is None:
        form = _spaces[n_bytes, card] = form_of(torch.Size((n_bytes,)), (1,), torch.uint8, card)
    session = current.session
    host = torch.empty(n_bytes, dtype=torch.uint8) if session.numerics else None
    return new(form, host, block_of(n_bytes, session.memories[card]))
