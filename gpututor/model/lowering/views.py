"""Operators that move no data: they change shape or strides, reserve memory, or keep autograd's books."""

from __future__ import annotations

from gpututor.model.lowering.shape import Rule
from gpututor.model.spec import HostKind, OpCall, OpCost

FREE_NAMES = "detach detach_ alias lift_fresh lift set_ requires_grad_ record_stream _version"
VIEW_NAMES = """
view _unsafe_view _reshape_alias reshape as_strided t t_ transpose transpose_ permute expand expand_as squeeze squeeze_
unsqueeze unsqueeze_ slice select narrow split split_with_sizes chunk unbind unfold diagonal view_as view_as_real
view_as_complex real imag movedim swapaxes flatten unflatten numpy_T mT mH resize_ resize_as_ unsafe_split
unsafe_chunk unsafe_split_with_sizes result_type is_same_size
empty empty_like empty_strided new_empty new_empty_strided
"""


def _free(call: OpCall) -> OpCost:
    return OpCost(HostKind.FREE)


def _view(call: OpCall) -> OpCost:
    return OpCost(HostKind.VIEW)


RULES: dict[str, Rule] = {
    **{f"aten.{name}": _free for name in FREE_NAMES.split()},
    **{f"aten.{name}": _view for name in VIEW_NAMES.split()},
}
