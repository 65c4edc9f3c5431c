"""One recurrent layer as a library call, the way DeepBench times cuDNN."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from gpututor.errors import SettingNotPossible
from gpututor.workloads.setting import Job, Setting, Workload
from gpututor.workloads.training import autocast, data_dtype

CELLS = {"lstm": (nn.LSTM, {}), "gru": (nn.GRU, {}), "rnn": (nn.RNN, {"nonlinearity": "relu"})}


def without_input_product(setting: Setting, device: str) -> Any:
    """A `with` block in which recurrent layers leave their input as it is, as CUDNN_SKIP_INPUT has it.

    Raises:
        SettingNotPossible: the device is a real one; torch offers no such mode.
    """
    if not setting.options["skip_input"]:
        return nullcontext()
    if not device.startswith("simgpu"):
        raise SettingNotPossible(
            f"skip_input is set, and torch can't leave out a recurrent layer's input product on {device}; "
            "only the simulated GPU can, so set skip_input to False"
        )
    from gpututor.simgpu.recurrent import skip_input

    return skip_input()


def _layer(cell: str, setting: Setting, device: str) -> Job:
    assert setting.batch is not None
    options = setting.options
    hidden, steps = int(options["hidden"]), int(options["steps"])
    kind, extra = CELLS[cell]
    with torch.device(device):
        net = kind(hidden, hidden, **extra).to(data_dtype(setting))
        x = torch.randn(steps, setting.batch, hidden, dtype=data_dtype(setting), requires_grad=True)

    def forward() -> Tensor:
        with autocast(setting, device), without_input_product(setting, device):
            out: Tensor = net(x)[0]
            return out

    def infer(k: int) -> None:
        with torch.no_grad():
            forward()

    def gradients(k: int) -> None:
        out = forward()
        torch.autograd.backward(out, torch.ones_like(out))
        net.zero_grad(set_to_none=True)

    def train(k: int) -> None:  # the forward call of training, which keeps what a backward pass needs
        forward()

    return Job({"infer": infer, "gradients": gradients, "train": train}[setting.kind], 1)


def _workload(cell: str, shown: str) -> Workload:
    """A workload for one kind of cell; "train" is the forward call alone, in its training form."""
    return Workload(
        f"{cell}_layer",
        f"one {shown} layer, forward call; skip_input leaves out the product with the input",
        "baidu-research/DeepBench at da81ba7, code/nvidia/rnn_bench.cu (one layer, CUDNN_SKIP_INPUT, input as wide as "
        "the state)",
        "call",
        16,
        lambda setting, device: _layer(cell, setting, device),
        {"hidden": 512, "steps": 25, "skip_input": False},
    )


LSTM_LAYER, GRU_LAYER, RNN_LAYER = _workload("lstm", "LSTM"), _workload("gru", "GRU"), _workload("rnn", "plain RNN")
