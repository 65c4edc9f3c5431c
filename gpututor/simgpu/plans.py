"""What is remembered of an op once it has been seen with the same forms: results' forms and its account."""

from __future__ import annotations

from typing import Any

import torch

from gpututor.model.host import PHASES
from gpututor.model.lowering import lower
from gpututor.model.spec import HostKind, OpCall, OpCost, TensorMeta
from gpututor.model.tape import TapeOp
from gpututor.simgpu.forms import DTYPE_NAME, Form
from gpututor.simgpu.tensor import SimTensor


class Plan:
    """How to account and wrap one op on tensors of given forms."""

    __slots__ = (
        "alias",
        "card",
        "cost",
        "entries",
        "form",
        "inplace",
        "name",
        "outs",
        "returns_nothing",
        "single",
        "watched",
    )

    def __init__(self, name: str) -> None:
        self.name = name
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

    def entry(self, phase: int) -> TapeOp:
        """The tape's entry for a caller of this phase."""
        known = self.entries[phase]
        if known is None:
            assert self.cost is not None
            known = self.entries[phase] = TapeOp(self.name, self.cost.host, PHASES[phase], self.cost.kernels)
        return known


def short_name(op: Any) -> str:
    """`aten.add.Tensor` as people say it: "add"."""
    return str(op._schema.name).removeprefix("aten::")


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


def may_round(name: str) -> bool:
    """Whether an op in fp32 may use TF32: cuDNN's ops by default, products only where a program allows it.

    Source: PyTorch, "CUDA semantics", TensorFloat-32: `cudnn.allow_tf32` is True by default, `matmul.allow_tf32` False.
    """
    by_cudnn = "convolution" in name or ".rnn." in name
    return bool(torch.backends.cudnn.allow_tf32 if by_cudnn else torch.backends.cuda.matmul.allow_tf32)


def cost_of(
    op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], outs: tuple[Form | None, ...], view: bool
) -> OpCost:
    """What the op costs: nothing but a little host time for a view, else what the cost model says."""
    name = str(op)
    if name == "aten.detach.default":
        return OpCost(HostKind.FREE)  # autograd's own bookkeeping, which costs a CUDA program no op
    if view:
        return OpCost(HostKind.VIEW)
    call = OpCall(
        name=name,
        args=tuple(outline(a) for a in args),
        kwargs=tuple((k, outline(v)) for k, v in kwargs.items()),
        outs=tuple(form.outline for form in outs if form is not None),
        tf32=may_round(name),
    )
    return lower(call)
