"""Whether a cuDNN layer runs as one persistent kernel on a card, and how long that takes.

A persistent kernel keeps the weights in the registers of all SMs. Each time step every SM reads the whole state, or
going back the gradients of all gates, computes its own units, writes them, and waits for all others.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpututor.cards import Card
from gpututor.model.constants import group
from gpututor.model.costs.rates import ITEMSIZE_BYTES, capability, power_of_two_in, product_rate
from gpututor.model.costs.rnn import rnn_step
from gpututor.model.costs.walk import floor_s, stream
from gpututor.model.kernels import RnnLayer, RnnStep, Stream
from gpututor.model.lowering.recurrent import GATE_NUMBERS, Sizes
from gpututor.model.spec import KernelSpec
from gpututor.timeline import KernelWork

CONSTANTS = group("rnn")
VOLTA, TURING, AMPERE, GA10X = 7.0, 7.5, 8.0, 8.6  # compute capabilities
MIN_SMS = 98


def is_persistent(layer: RnnLayer, card: Card) -> bool:
    """Whether torch asks cuDNN for a persistent kernel on this card.

    Source: pytorch/pytorch aten/src/ATen/native/cudnn/RNN.cpp, use_persist_device_heuristics. The rule for Volta dates
    from torch 1.0, that for later cards from 1.8. NVIDIA's containers take it for 1,024 units more often (pull request
    43165, first comment); not modelled.
    """
    at, batch, seq = capability(card), layer.batch, layer.seq
    if VOLTA <= at < AMPERE:
        in_time = (seq >= 40 and batch <= 128) or (seq >= 20 and batch <= 96) or (seq >= 10 and batch <= 32)
        return at != TURING and (batch == 8 or (batch % 16 == 0 and batch not in (80, 112))) and in_time
    if at < AMPERE or at == GA10X or card.n_sms < MIN_SMS or layer.mode == "gru":
        return False
    return batch % 8 == 0 and batch <= 128 and (layer.mode == "lstm" or batch < 96 or layer.hidden < 896)


def kernels_on(kernels: Sequence[KernelSpec], card: Card) -> tuple[KernelSpec, ...]:
    """The kernels as this card runs them: layers that it has no persistent kernel for step by step."""
    if not any(type(k) is RnnLayer for k in kernels):
        return tuple(kernels)
    found: list[KernelSpec] = []
    for kernel in kernels:
        if isinstance(kernel, RnnLayer) and not is_persistent(kernel, card):
            found += sizes_of(kernel).steps_one_by_one(kernel.backward)
        else:
            found.append(kernel)
    return tuple(found)


def sizes_of(layer: RnnLayer) -> Sizes:
    """The layer as lowering knows it, its input aside."""
    itemsize, hidden = ITEMSIZE_BYTES[layer.number_format], layer.hidden
    return Sizes(layer.mode, layer.seq, layer.batch, hidden, hidden, 1, 1, layer.number_format, itemsize, False)


def rnn_layer(layer: RnnLayer, card: Card) -> tuple[float, KernelWork]:
    """Seconds and work of a persistent kernel.

    Of reading the state, arithmetic and the gates' traffic the slowest counts; the wait for the other SMs comes on top.
    No step takes longer than cuDNN's ordinary kernels: with up to 128 sentences persistent ones are at least as fast
    (the comment in torch's rule, on tests by NVIDIA).
    """
    itemsize = ITEMSIZE_BYTES[layer.number_format]
    units = layer.batch * layer.hidden
    rate = product_rate(layer.number_format, False, power_of_two_in(layer.hidden), card)
    read_bytes = (layer.gates if layer.backward else 1) * units * itemsize
    read_s = read_bytes / (CONSTANTS.persistent_bytes_per_clock * card.boost_clock_hz)
    product_s = layer.flop / layer.seq / (rate.peak_flop_per_s * rate.sustained_share)
    gates_bytes = GATE_NUMBERS[layer.mode] * units * itemsize
    gates_s = gates_bytes / (card.bandwidth_bytes_per_s * card.bandwidth_share)
    wait_s = CONSTANTS.persistent_wait_clocks / card.boost_clock_hz
    step_s = min(wait_s + max(read_s, product_s, gates_s), _ordinary_step_s(layer, card))
    weights_bytes = layer.gates * layer.hidden**2 * itemsize
    load_s = weights_bytes / (card.bandwidth_bytes_per_s * card.bandwidth_share)
    work = KernelWork(
        "rnn step",
        float(layer.flop),
        float(weights_bytes + layer.seq * gates_bytes),
        card.n_sms,
        1,
        rate.number_format,
        rate.tensor_core,
    )
    return floor_s() + load_s + layer.seq * step_s, work


def _ordinary_step_s(layer: RnnLayer, card: Card) -> float:
    """Seconds of a step as a product and the gates, gaps aside."""
    total_s = 0.0
    for kernel in sizes_of(layer).steps_one_by_one(layer.backward)[:2]:
        if isinstance(kernel, RnnStep):
            total_s += rnn_step(kernel, card)[0]
        elif isinstance(kernel, Stream):
            total_s += stream(kernel, card)[0]
    return total_s
