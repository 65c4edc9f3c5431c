"""Ways to make a trained network smaller: weights set to zero one by one or in a pattern, channels taken out, 8 bits.

Written plainly, so that one can read what is done. Weights count by their size; nothing here is the last word on which
ones to leave out.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from gpututor.jobs.small_readers import Plain
from gpututor.simgpu.private.operators import PRODUCT_OF_BYTES

MOST = 127  # the largest number that 8 bits hold on both sides of zero
GROUP, KEPT = 4, 2  # the pattern of sparse tensor cores: two of four weights in a row are zero


def layers(net: nn.Module) -> Iterator[nn.Conv2d | nn.Linear]:
    """Layers with weights worth leaving out: all but those that read the picture itself, or say the answer."""
    found = [each for each in net.modules() if isinstance(each, nn.Conv2d | nn.Linear)]
    yield from found[1:-1]


# --- zeros -----------------------------------------------------------------------------------------------------------


def largest(weight: Tensor, share: float) -> Tensor:
    """A mask that keeps the `share` of weights with the largest values; ones and zeros.

    >>> largest(torch.tensor([[3.0, -4.0], [0.5, 1.0]]), 0.5).tolist()
    [[1.0, 1.0], [0.0, 0.0]]
    """
    n_kept = max(1, round(share * weight.numel()))
    mask = torch.zeros(weight.numel(), device=weight.device)
    mask[weight.detach().abs().flatten().topk(n_kept).indices] = 1.0
    return mask.view_as(weight)


def two_of_four(weight: Tensor) -> Tensor:
    """A mask that keeps the two larger of every four weights in a row, channels in being the row.

    A number of channels that no four divides has none left out: the card's pattern doesn't fit it.

    >>> two_of_four(torch.tensor([[3.0, -4.0, 0.5, 1.0]])).tolist()
    [[1.0, 1.0, 0.0, 0.0]]
    """
    if weight.shape[1] % GROUP:
        return torch.ones_like(weight)
    rows = weight.detach().abs().movedim(1, -1)
    fours = rows.reshape(-1, GROUP)
    mask = torch.zeros_like(fours).scatter_(1, fours.topk(KEPT, dim=1).indices, 1.0)
    return mask.view(rows.shape).movedim(-1, 1).contiguous()


class Masks:
    """Masks on the weights of a network. `hold` sets what they leave out to zero, again after each update."""

    def __init__(self, net: nn.Module, *, share: float | None = None) -> None:
        self.pairs = [
            (layer.weight, two_of_four(layer.weight) if share is None else largest(layer.weight, share))
            for layer in layers(net)
        ]
        self.hold()

    def hold(self) -> None:
        """Zero where the masks are."""
        with torch.no_grad():
            for weight, mask in self.pairs:
                weight.mul_(mask)

    @property
    def zero_share(self) -> float:
        """The share of these weights that is zero."""
        kept, whole = sum(float(mask.sum()) for _, mask in self.pairs), sum(mask.numel() for _, mask in self.pairs)
        return 1 - kept / whole


# --- channels --------------------------------------------------------------------------------------------------------


def without_channels(net: nn.Module, smaller: nn.Module) -> None:
    """Give `smaller`, whose blocks have fewer channels inside, the weights of `net`'s largest channels there.

    Blocks are taken in order; what lies outside of them is copied.
    """
    blocks = [[m for m in each.modules() if isinstance(m, Plain)] for each in (net, smaller)]
    inside = {id(p) for each in blocks for block in each for p in (*block.parameters(), *block.buffers())}
    with torch.no_grad():
        for theirs, ours in zip(_state(net), _state(smaller), strict=True):
            if id(theirs) not in inside:
                ours.copy_(theirs)
        for theirs_block, ours_block in zip(*blocks, strict=True):
            _take(theirs_block.path, ours_block.path)


def _state(net: nn.Module) -> list[Tensor]:
    return [*net.parameters(), *net.buffers()]


def _weights(path: nn.Sequential) -> tuple[Tensor, Tensor]:
    """The weights of a block's two convolutions."""
    first, second = (each.weight for each in path if isinstance(each, nn.Conv2d))
    return first, second


def _take(theirs: nn.Sequential, ours: nn.Sequential) -> None:
    """Conv, norm, activation, conv, norm: channels between the two convolutions are chosen by the first one's rows."""
    (whole_first, whole_second), (first, second) = _weights(theirs), _weights(ours)
    kept = whole_first.abs().flatten(1).sum(1).topk(len(first)).indices.sort().values
    first.copy_(whole_first[kept])
    second.copy_(whole_second[:, kept])
    for place, chosen in ((1, kept), (4, slice(None))):
        for mine, other in zip(_state(ours[place]), _state(theirs[place]), strict=True):
            mine.copy_(other[chosen] if other.dim() else other)


# --- bits ------------------------------------------------------------------------------------------------------------


def rounded(x: Tensor, largest_value: Tensor) -> Tensor:
    """`x` in 255 steps from minus the largest value to it, as the numbers that the steps stand for.

    >>> rounded(torch.tensor([0.0, 1.0, 127.0, -126.6]), torch.tensor(127.0)).tolist()
    [0.0, 1.0, 127.0, -127.0]
    """
    scale = largest_value.clamp(min=1e-12) / MOST
    return (x / scale).round().clamp(-MOST, MOST) * scale


def in_8_bits(net: nn.Module) -> None:
    """Let the network compute as with int8 from now on: weights by output channel, what goes in by its largest value.

    Sums stay exact, as they do in the 32 bits that int8 units add up in; norms stay in fp32.
    """

    def round_input(_layer: nn.Module, given: tuple[Tensor, ...]) -> tuple[Tensor]:
        return (rounded(given[0], given[0].abs().max()),)

    with torch.no_grad():
        for layer in layers(net):
            weight = layer.weight
            weight.copy_(rounded(weight, weight.abs().flatten(1).amax(1).view(-1, *[1] * (weight.dim() - 1))))
            layer.register_forward_pre_hook(round_input)


class Int8Linear(nn.Module):
    """A linear layer whose product runs on numbers of 8 bits: each row of what goes in is rounded by its largest value.

    The product is torch's own (on cards by way of cuBLAS); what comes before and after it are
    ordinary operators. torchao's int8 for linear layers does the same, and has a compiler join them.
    """

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        weight = linear.weight.detach()
        scale = weight.abs().amax(1).clamp(min=1e-12) / MOST
        self.register_buffer("weight", (weight / scale[:, None]).round().to(torch.int8))
        self.register_buffer("scale", scale)
        self.bias = linear.bias

    def forward(self, x: Tensor) -> Tensor:
        """The same as the linear layer's, in the dtype of `x`, but for rounding."""
        rows = x.reshape(-1, x.shape[-1])
        step = rows.abs().amax(1, keepdim=True).clamp(min=1e-6) / MOST
        whole = (rows / step).round().to(torch.int8)
        sums = PRODUCT_OF_BYTES(whole, self.get_buffer("weight").t())
        out = sums.to(x.dtype) * step * self.get_buffer("scale")
        if self.bias is not None:
            out = out + self.bias
        shaped: Tensor = out.view(*x.shape[:-1], -1)
        return shaped


def linears_in_8_bits(net: nn.Module) -> int:
    """Put an `Int8Linear` in the place of every linear layer whose sizes 8-bit products take; how many those were.

    Source: aten/src/ATen/native/cuda/Blas.cpp, `_int_mm_out_cuda`: more than 16 rows, and columns in multiples of 8.
    """
    count = 0
    for parent in list(net.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, nn.Linear) and child.in_features % 8 == child.out_features % 8 == 0:
                setattr(parent, name, Int8Linear(child))
                count += 1
    return count
