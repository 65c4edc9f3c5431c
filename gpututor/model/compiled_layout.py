"""What torch.compile does to convolutions before it fuses: channels last where that pays, and the bias set apart.

Source: torch 2.13, torch/_inductor/graph.py (decide_layout_opt) and kernel/conv.py: on a GPU the convolution is called
without its bias, whose addition is fused with what follows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gpututor.model.fusion import Node, Part
from gpututor.model.kernels import Conv, Stream
from gpututor.model.spec import HostKind, KernelSpec

BIAS = "add bias"  # of the convolution's lowering
MEANS = frozenset({"mean", "sum"})
MOST_NODES_A_CONVOLUTION = 300
SMALL_CHANNELS = 64
# Time with channels last over that without, by kind of convolution: Inductor's own table, for inference.
TIMES = {"grouped": 1.358, "small": 0.783, "shrinking": 0.725, "other": 0.823}


def before_fusion(nodes: Sequence[Node], *, inference: bool) -> list[Node]:
    """The operators as the compiler's fusion gets them; `inference` says that no gradient will be asked for."""
    convolutions = [k for node in nodes for k in node.kernels if isinstance(k, Conv)]
    last = pays(convolutions, len(nodes), inference=inference)
    return [made for node in nodes for made in _without_bias(_last(node) if last else node)]


def pays(convolutions: Sequence[Conv], n_nodes: int, *, inference: bool) -> bool:
    """Whether Inductor puts channels last in a graph of `n_nodes` operators with these convolutions."""
    if not convolutions or n_nodes >= MOST_NODES_A_CONVOLUTION * len(convolutions):
        return False
    kinds = [_kind(one) for one in convolutions]
    if inference:
        flop = [one.flop for one in convolutions]
        return sum(TIMES[kind] * n for kind, n in zip(kinds, flop, strict=True)) <= sum(flop)
    if "grouped" in kinds or any(_shrinks(one) for one in convolutions):
        return False
    return not all(_is_small(one) for one in convolutions)


def _kind(one: Conv) -> str:
    """Which of the table's kinds it is."""
    if one.groups > 1 and one.c_in > one.groups:
        return "grouped"
    if _is_small(one):
        return "small"
    return "shrinking" if _shrinks(one) else "other"


def _is_small(one: Conv) -> bool:
    return one.c_out <= SMALL_CHANNELS and one.c_in // one.groups <= SMALL_CHANNELS


def _shrinks(one: Conv) -> bool:
    return one.filter_taps > 1 and 2 * one.c_out <= one.c_in // one.groups


def _last(node: Node) -> Node:
    """The node with channels last; the mean of a picture no longer lies together in memory."""
    if node.part is Part.ROWS and node.name in MEANS:
        return replace(node, inner=False)
    kernels = tuple(replace(k, channels_last=True) if isinstance(k, Conv) else k for k in node.kernels)
    return replace(node, kernels=kernels)


def _without_bias(node: Node) -> Iterator[Node]:
    """A convolution and the addition of its bias, which is an elementwise operator like any other."""
    bias = next((k for k in node.kernels if _is_bias(k)), None)
    if bias is None or node.part is not Part.LIBRARY or not node.reads or len(node.writes) != 1:
        yield node
        return
    yield replace(node, reads=node.reads[:-1], kernels=tuple(k for k in node.kernels if k is not bias))
    assert isinstance(bias, Stream)
    written = node.writes
    yield Node(
        "add", Part.ELEMENTS, (*written, node.reads[-1]), written, bias.n_elements, flop=bias.flop,
        number_format=bias.number_format, host=HostKind.LIGHT,
    )  # fmt: skip


def _is_bias(kernel: KernelSpec) -> bool:
    return isinstance(kernel, Stream) and kernel.name == BIAS
