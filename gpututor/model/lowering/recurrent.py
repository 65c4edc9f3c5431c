"""Recurrent layers as one cuDNN call.

For each layer and direction: one product that feeds the whole sequence's input, then for each time step the
recurrent product and a kernel that applies the gates. A single step (seq 1, a decoder's loop) has nothing to pipeline,
so its recurrent product is an ordinary one. Where torch asks some card for cuDNN's persistent kernel, the card decides
(costs/rnn_layer.py). The products of two directions run side by side: cuDNN's RNN calls launch in more than one
stream (release notes of cuDNN 7.6.5, limitations). Layers follow each other here: with up to 192 units, four layers
take four times as long as one (xwang233/code-snippet at 2c053c8, cudnn-rnn-bench-62143). cuDNN's kernel for such small
layers alone (CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H, torch 1.12 and later) is not modelled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from gpututor.errors import KernelSpecError
from gpututor.model.costs.rates import power_of_two_in
from gpututor.model.kernels import Gemm, RnnLayer, RnnStep, RowReduce
from gpututor.model.lowering.shape import REDUCE_THREADS, Rule, walk
from gpututor.model.spec import HostKind, KernelSpec, OpCall, OpCost
from gpututor.model.tensors import FORMAT, ITEMSIZE_BYTES

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
# Arithmetic of the gates for one hidden unit, counted from the formulas (a sigmoid as 3, a tanh as 1, sums of the two
# products and two biases included).
GATE_FLOP = {"lstm": 4 * 3 + 3 * 3 + 2 + 4, "gru": 3 * 3 + 2 * 3 + 1 + 5, "rnn_tanh": 4, "rnn_relu": 4}
# Numbers moved for one hidden unit: both products' gates, states in and out, and what training keeps.
GATE_NUMBERS = {"lstm": 2 * 4 + 1 + 2 + 5, "gru": 2 * 3 + 1 + 1 + 4, "rnn_tanh": 3, "rnn_relu": 3}


@dataclass(frozen=True, slots=True)
class Sizes:
    """A recurrent call's sizes."""

    mode: str
    seq: int
    batch: int
    input: int
    hidden: int
    layers: int
    directions: int
    form: str
    itemsize: int
    tf32: bool
    may_persist: bool = False  # the program leaves cuDNN's algorithm to torch, and the batch has one length
    runs: tuple[tuple[int, int], ...] = ()  # of a packed batch: how many sentences go on, and for how many steps

    @property
    def width(self) -> int:
        """Results of all gates for one sentence at one step."""
        return GATES[self.mode] * self.hidden

    def gemm(self, name: str, m: int, n: int, k: int) -> Gemm:
        """A product among this call's tensors."""
        moved_bytes = (m * k + k * n + m * n) * self.itemsize
        return Gemm(name, m, n, k, moved_bytes, self.form, 1, self.tf32, power_of_two_in(self.hidden, n, k))

    @property
    def rows(self) -> int:
        """Words of all sentences together; without padding where they are packed."""
        return sum(batch * n for batch, n in self.runs) if self.runs else self.seq * self.batch

    def gates(self, name: str, batch: int) -> tuple[KernelSpec, ...]:
        """The kernel that applies the gates for one time step of `batch` sentences."""
        n = batch * self.hidden
        return walk(name, n, GATE_NUMBERS[self.mode] * n * self.itemsize, GATE_FLOP[self.mode] * n, self.form)

    def inputs(self) -> list[int]:
        """The input width of every layer and direction, in order."""
        later = self.hidden * self.directions
        return [self.input if layer == 0 else later for layer in range(self.layers) for _ in range(self.directions)]

    def recurrent(self, backward: bool, batch: int) -> KernelSpec:
        """The recurrent product of one time step of `batch` sentences."""
        if self.seq > 1:
            at_once, gates = self.directions, GATES[self.mode]
            return RnnStep("rnn step", gates, batch, self.hidden, self.form, backward, self.tf32, at_once)
        n, k = (self.hidden, self.width) if backward else (self.width, self.hidden)
        return self.gemm("rnn hidden", batch, n, k)

    def steps(self, backward: bool) -> tuple[KernelSpec, ...]:
        """The kernels of all time steps of one layer in one direction."""
        if self.is_persistent_somewhere():
            gates = GATES[self.mode]
            name = "rnn layer backward" if backward else "rnn layer"
            return (RnnLayer(name, self.mode, gates, self.seq, self.batch, self.hidden, self.form, backward),)
        return self.steps_one_by_one(backward)

    def steps_one_by_one(self, backward: bool) -> tuple[KernelSpec, ...]:
        """The same as a product and the gates for each step; going back the gates come first.

        A packed batch has as many steps as its longest sentence; those that have ended are left out of the later ones.
        """
        kernels: list[KernelSpec] = []
        for batch, n in (self.runs or ((self.batch, self.seq),))[:: -1 if backward else 1]:
            gates, product = self.gates(f"rnn gates{' backward' * backward}", batch), self.recurrent(backward, batch)
            kernels += ((*gates, product) if backward else (product, *gates)) * n
        return tuple(kernels)

    def is_persistent_somewhere(self) -> bool:
        """Whether torch asks for a persistent kernel on a card that is good at it, by the rules that name no card.

        Source: pytorch/pytorch aten/src/ATen/native/cudnn/RNN.cpp, get_algo and use_persist_common_heuristics. A single
        step is left to an ordinary product here.
        """
        alone = self.may_persist and self.seq > 1 and self.layers == self.directions == 1
        fits = self.hidden <= 1024 and self.batch % 8 == 0 and self.batch <= 128
        return alone and fits and self.form == "fp16" and self.hidden % 128 == self.input % 128 == 0


def sizes_of(call: OpCall) -> Sizes:
    """The sizes that `call` names.

    Raises:
        KernelSpecError: the mode is not known, or a size is no whole number.
    """
    mode, dtype = str(call.kwarg("mode")), str(call.kwarg("dtype", "float32"))
    if mode not in GATES:
        raise KernelSpecError(f"{call.name} has mode {mode!r}; known: {', '.join(GATES)}")
    return Sizes(
        mode=mode,
        seq=_count(call, "seq"),
        batch=_count(call, "batch"),
        input=_count(call, "input"),
        hidden=_count(call, "hidden"),
        layers=_count(call, "layers"),
        directions=_count(call, "directions"),
        form=FORMAT.get(dtype, "fp32"),
        itemsize=ITEMSIZE_BYTES.get(dtype, 4),
        tf32=call.tf32,
        may_persist=not (call.kwarg("packed", False) or call.kwarg("skip_input", False)),
        runs=cast("tuple[tuple[int, int], ...]", call.kwarg("runs", ())),
    )


def _count(call: OpCall, name: str) -> int:
    value = call.kwarg(name, 1)
    if not isinstance(value, int) or value < 0:
        raise KernelSpecError(f"{call.name} has {name} = {value!r}; it has to be a whole number from 0")
    return value


def _forward(call: OpCall) -> OpCost:
    s = sizes_of(call)
    if not (s.seq and s.batch and s.hidden):
        return OpCost(HostKind.RNN)
    kernels: list[KernelSpec] = []
    for width_in in s.inputs():
        if not call.kwarg("skip_input", False):
            kernels.append(s.gemm("rnn input", s.rows, s.width, width_in))
        kernels += s.steps(False)
    return OpCost(HostKind.RNN, tuple(kernels))


def _backward(call: OpCall) -> OpCost:
    """Steps in reverse, then for each layer the gradients of input, both weights and bias over the whole sequence."""
    s = sizes_of(call)
    if not (s.seq and s.batch and s.hidden):
        return OpCost(HostKind.RNN)
    kernels: list[KernelSpec] = []
    rows = s.rows
    for width_in in reversed(s.inputs()):
        kernels += s.steps(True)
        if not call.kwarg("skip_input", False):
            kernels.append(s.gemm("rnn input gradient", rows, width_in, s.width))
            kernels.append(s.gemm("rnn input weight gradient", s.width, width_in, rows))
        kernels.append(s.gemm("rnn hidden weight gradient", s.width, s.hidden, rows))
        moved_bytes = (rows + 1) * s.width * s.itemsize
        name, flop = "rnn bias gradient", rows * s.width
        per_block = max(1, REDUCE_THREADS // rows)
        kernels.append(RowReduce(name, s.width, rows, moved_bytes, flop, s.form, per_block, REDUCE_THREADS, split=True))
    return OpCost(HostKind.RNN, tuple(kernels))


RULES: dict[str, Rule] = {"gpututor.rnn.forward": _forward, "gpututor.rnn.backward": _backward}
