"""What is remembered of an op once it has been seen with the same forms: results' forms and its account."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
import torch.utils.deterministic

from gpututor.model.host import PHASES
from gpututor.model.kernels import Attention, Conv, Gemm, RnnStep
from gpututor.model.lowering import hangs_on_determinism, lower
from gpututor.model.spec import HostKind, OpCall, OpCost, TensorMeta
from gpututor.model.tape import TapeOp
from gpututor.simgpu import tuning
from gpututor.simgpu.forms import DTYPE_NAME, Form
from gpututor.simgpu.keys import careful_key, quick_key
from gpututor.simgpu.precision.half_products import function_on_cpu
from gpututor.simgpu.private.tensors import fp32_precision, schema_of
from gpututor.simgpu.tensor import SimTensor

FILLING: Any = torch.utils.deterministic  # a module whose attribute is a property
DETACH = torch.ops.aten.detach.default
PRODUCTS = (Gemm, Conv, RnnStep, Attention)
"""Kernels that TF32 makes quicker."""


EMPTY = torch.ops.aten.empty.memory_format
_empty = torch.empty  # the same for the CPU; torch reads its arguments in half the time that it takes for the op's


WHOLE_LISTS = frozenset({"List[int]", "Optional[List[int]]", "List[bool]"})
"""Types of lists in an op's schema whose items are whole numbers, or all booleans."""


class OpPlans(dict[Any, "Plan"]):
    """The plans of one op, by the forms and whole numbers that it was called with."""

    __slots__ = ("key_of", "op", "whole_lists")

    def __init__(self, op: Any) -> None:
        super().__init__()
        self.op = op  # kept alive, since it is looked up by its address
        kinds = {str(a.type) for a in schema_of(op).arguments}
        self.whole_lists = {kind for kind in kinds if "List[" in kind} <= WHOLE_LISTS  # none of tensors or fractions
        self.key_of = quick_key if self.whole_lists else careful_key


class Plan:
    """How to account and wrap one op on tensors of given forms."""

    __slots__ = (
        "alias",
        "call",
        "card",
        "compute",
        "convolves",
        "cost",
        "entries",
        "form",
        "inplace",
        "name",
        "named",
        "op",
        "outs",
        "precision",
        "returns_nothing",
        "single",
        "switched",
        "watched",
    )

    def __init__(self, name: str, op: Any = None) -> None:
        self.name = name
        self.op = op
        self.compute: Any = None if op is None else _empty if op is EMPTY else function_on_cpu(op)
        self.named: dict[str, Any] | None = None  # the CPU op's arguments by name, where all stand in the plan's key
        self.outs: tuple[Form | None, ...] | None = ()
        self.single = True
        self.form: Form | None = None  # of the result, where there is just one tensor
        self.alias: int | None = None  # the argument whose memory the results share
        self.inplace = False
        self.returns_nothing = False
        self.card = 0
        self.watched = False  # with numerics off it may make or spoil a known value
        self.cost: OpCost | None = None
        self.entries: list[TapeOp | None] = [None] * len(PHASES)
        self.call: OpCall | None = None  # of an op whose kernels a program's switches may change at any time
        self.convolves = False
        self.precision = ""  # the switch of torch's that decides over TF32, where it is a product in fp32
        self.switched: dict[tuple[int, bool, bool, bool], TapeOp] = {}  # entries by phase and switches

    def settle(
        self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], outs: tuple[Form | None, ...], view: bool
    ) -> None:
        """Note what the op costs on tensors of these forms, for now and for later calls."""
        self.cost = cost_of(op, args, kwargs, outs, view)
        self.convolves = any(isinstance(k, Conv) for k in self.cost.kernels)
        if self.convolves or any(isinstance(k, PRODUCTS) and k.number_format == "fp32" for k in self.cost.kernels):
            self.call = call_of(op, args, kwargs, outs)
            self.precision = precision_of(self.call.name)
        elif self.op is not None and hangs_on_determinism(call := call_of(op, args, kwargs, outs)):
            self.call = call

    def entry(self, phase: int) -> TapeOp:
        """The tape's entry for a caller of this phase; one that hangs on a switch is not kept in `entries`."""
        if self.call is not None:
            return self._as_allowed_now(self.call, phase)
        known = self.entries[phase]
        if known is None:
            assert self.cost is not None
            known = self.entries[phase] = TapeOp(self.name, self.cost.host, PHASES[phase], self.cost.kernels)
        return known

    def _as_allowed_now(self, call: OpCall, phase: int) -> TapeOp:
        tf32 = bool(self.precision and fp32_precision("cuda", self.precision) == "tf32")
        deterministic, filled = determinism()
        key = (phase, tf32, deterministic, filled)
        known = self.switched.get(key)
        if known is None:
            cost = lower(replace(call, tf32=tf32, deterministic=deterministic, filled=filled))
            known = self.switched[key] = TapeOp(self.name, cost.host, PHASES[phase], cost.kernels)
        if self.convolves and tuning.is_on():
            tuning.search(self, known.kernels, phase)
        return known


def determinism() -> tuple[bool, bool]:
    """Whether a program asks for deterministic algorithms now, and whether new memory is filled, which goes with it.

    cuDNN alone can be asked too, by `torch.backends.cudnn.deterministic`; that fills nothing.
    Source: aten/src/ATen/native/Convolution.cpp, where `deterministic` is either of both.
    """
    if not torch.are_deterministic_algorithms_enabled():
        return torch.backends.cudnn.deterministic, False
    return True, FILLING.fill_uninitialized_memory


def short_name(op: Any) -> str:
    """`aten.add.Tensor` as people say it: "add"."""
    return str(schema_of(op).name).removeprefix("aten::")


def outline(arg: Any) -> Any:
    """An argument as the cost model takes it: tensors by shape, lists as tuples, torch's own objects by name."""
    kind = type(arg)
    if kind is SimTensor:
        return arg.form.outline
    if isinstance(arg, torch.Tensor):
        return TensorMeta(tuple(arg.shape), tuple(arg.stride()), DTYPE_NAME.get(arg.dtype, str(arg.dtype)))
    if kind is list or kind is tuple:
        return tuple(outline(a) for a in arg)
    if arg is None or kind in (int, float, bool, str):
        return arg
    return str(arg)


def precision_of(name: str) -> str:
    """Which of torch's switches decides over TF32 in an op of this name."""
    return "conv" if "convolution" in name else "rnn" if ".rnn." in name else "matmul"


def may_round(name: str) -> bool:
    """Whether an op in fp32 may use TF32 now: cuDNN's ops by default, products only where a program allows it.

    Read is what all of torch's switches come to: `allow_tf32`, `set_float32_matmul_precision` and `fp32_precision`.
    Source: PyTorch, "CUDA semantics", TensorFloat-32: `cudnn.allow_tf32` is True by default, `matmul.allow_tf32` False.
    """
    return bool(fp32_precision("cuda", precision_of(name)) == "tf32")


def call_of(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], outs: tuple[Form | None, ...]) -> OpCall:
    """The op and its tensors as the cost model takes them."""
    name = str(op)
    return OpCall(
        name=name,
        args=tuple(outline(a) for a in args),
        kwargs=tuple((k, outline(v)) for k, v in kwargs.items()),
        outs=tuple(form.outline for form in outs if form is not None),
        tf32=may_round(name),
    )


def cost_of(
    op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], outs: tuple[Form | None, ...], view: bool
) -> OpCost:
    """What the op costs: nothing but a little host time for a view, else what the cost model says."""
    if op is DETACH:
        return OpCost(HostKind.FREE)  # autograd's own bookkeeping, which costs a CUDA program no op
    if view:
        return OpCost(HostKind.VIEW)
    return lower(call_of(op, args, kwargs, outs))
