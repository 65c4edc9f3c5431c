"""Lesson 13's small readers of digits: what they learn, what is left after they were made smaller, and after more."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

BATCH = 64
LEARNING_RATE, RATE_AGAIN = 3e-3, 1e-3
N_LEARNED, N_AGAIN = 100, 40
MANY_ZEROS = 0.9


class Way(Enum):
    """What a small reader is; the value is what a reader sees."""

    PLAIN = "ordinary convolutions"
    INVERTED = "inverted bottlenecks"
    ZEROS = "nine of ten weights zero"
    PATTERN = "two of every four weights zero"
    CHANNELS = "half the channels taken out"
    BITS = "8 bits"

    @property
    def key(self) -> str:
        """Names its files."""
        return self.name.lower()

    @property
    def learns(self) -> bool:
        """Whether it begins with nothing; the others begin with what the first one has learned."""
        return self in (Way.PLAIN, Way.INVERTED)


class Learner:
    """A network that reads digits, one step at a time; every way sees the same pictures in the same order.

    The first one leaves what it learned in `start`. One in 8 bits is only asked, since rounding has no gradient.
    """

    def __init__(self, way: Way, start: dict[str, Any], device: torch.device) -> None:
        import torch

        from gpututor.jobs import digits

        torch.manual_seed(0)
        self.way, self.start = way, start
        self.net, self.masks = _made(way, start, device)
        rate = LEARNING_RATE if way.learns else RATE_AGAIN
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=rate)
        pictures, kinds = digits.to_learn()
        order = torch.randperm(len(kinds), generator=torch.Generator().manual_seed(1))
        self.pictures, self.kinds = pictures[order].to(device), kinds[order].to(device)
        self.at_once = None if way.learns else accuracy(self.net, device)
        self.device = device

    def __call__(self, k: int) -> Tensor:
        """Train on batch number `k`, or only ask in 8 bits; the loss stays on the device."""
        import torch
        from torch.nn import functional

        at = k * BATCH % (len(self.kinds) - BATCH)
        x, y = self.pictures[at : at + BATCH], self.kinds[at : at + BATCH]
        if self.way is Way.BITS:
            self.net.eval()
            with torch.no_grad():
                return functional.cross_entropy(self.net(x), y)
        self.net.train()
        loss = functional.cross_entropy(self.net(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        if self.masks is not None:
            self.masks.hold()
        return loss.detach()

    def held_out(self) -> float:
        """The loss on pictures that it never saw."""
        import torch
        from torch.nn import functional

        from gpututor.jobs import digits

        pictures, kinds = (each.to(self.device) for each in digits.unseen())
        self.net.eval()
        with torch.no_grad():
            return float(functional.cross_entropy(self.net(pictures), kinds))

    def noted(self) -> dict[str, float]:
        """Shares of unseen digits read right, at once after it was made smaller and now; multiply-adds and weights."""
        import torch

        from gpututor.jobs.small_readers import multiplications

        if self.way is Way.PLAIN:
            self.start.update({name: value.detach().cpu() for name, value in self.net.state_dict().items()})
        now = accuracy(self.net, self.device)
        with torch.no_grad():
            n = multiplications(self.net, self.pictures[:1])
        weights = [p for p in self.net.parameters() if p.dim() > 1]
        n_zeros = sum(p.numel() - int(torch.count_nonzero(p)) for p in weights)
        return self._torchs_own() | {
            "accuracy": now,
            "at_once": now if self.at_once is None else self.at_once,
            "multiplications": float(n),
            "weights": float(sum(p.numel() for p in weights)),
            "zero_share": n_zeros / sum(p.numel() for p in weights),
        }

    def _torchs_own(self) -> dict[str, float]:
        """The share that torch.ao's int8 network reads right, on this processor; empty where there is none."""
        import torch

        from gpututor.jobs import digits
        from gpututor.jobs.small_readers import reader
        from gpututor.jobs.torch_ao import on_processor

        if self.way is not Way.BITS:
            return {}
        net = reader()
        net.load_state_dict(dict(self.start) or net.state_dict())
        theirs = on_processor(net, digits.to_learn()[0][: 8 * BATCH])
        return {} if theirs is None else {"torch_ao": accuracy(theirs, torch.device("cpu"))}


def _made(way: Way, start: Mapping[str, Any], device: torch.device) -> tuple[nn.Module, Any]:
    """The network on the device, made smaller from what the first one has learned; and its masks, if it has any."""
    from gpututor.jobs import slimming
    from gpututor.jobs.small_readers import reader

    net = reader(inverted=way is Way.INVERTED)
    masks = None
    if not way.learns:
        net.load_state_dict(dict(start) or net.state_dict())
    if way is Way.CHANNELS:
        whole, net = net, reader(inner_share=0.5)
        slimming.without_channels(whole, net)
    net = net.to(device)
    if way in (Way.ZEROS, Way.PATTERN):
        masks = slimming.Masks(net, share=1 - MANY_ZEROS if way is Way.ZEROS else None)
    if way is Way.BITS:
        slimming.in_8_bits(net)
    return net, masks


def accuracy(net: nn.Module, device: torch.device) -> float:
    """The share of unseen digits that it reads right."""
    import torch

    from gpututor.jobs import digits

    pictures, kinds = (each.to(device) for each in digits.unseen())
    net.eval()
    with torch.no_grad():
        return float((net(pictures).argmax(1) == kinds).float().mean())
