"""What ranks send to one another: the numbers, kept until their receiver's turn."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING

import torch

from gpututor.model.exchange import RanksExchange
from gpututor.simgpu.cards.numbers import fill, numbers

if TYPE_CHECKING:
    from gpututor.simgpu.cards.distributed import World


class Mail:
    """Messages that were sent and not yet received, by sender and receiver."""

    def __init__(self) -> None:
        self._sent: dict[tuple[int, ...], deque[torch.Tensor | None]] = defaultdict(deque)

    def send(self, world: World, exchange: RanksExchange, tensor: torch.Tensor) -> None:
        """Keep what the tensor holds now; the sender goes on."""
        seat = world.own
        seat.session.account(exchange)
        world.meeting.come(seat.rank, exchange)
        host = numbers(tensor)
        self._sent[exchange.ranks].append(None if host is None else host.detach().clone())

    def receive(self, world: World, exchange: RanksExchange, tensor: torch.Tensor) -> None:
        """Fill the tensor with what was sent, and let others have their turn until then."""
        seat, sent = world.own, self._sent[exchange.ranks]
        seat.session.account(exchange)
        if not world.meeting.come(seat.rank, exchange):
            what = f"receive from rank {exchange.ranks[0]} (a receive waits where it is called: let sends come first)"
            world.turns.wait_until(lambda: bool(sent), what)
        fill(tensor, sent.popleft())
