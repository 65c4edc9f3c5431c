"""Messages from one rank to another. The sender goes on at once, the receiver waits for what it asked for.

Assumed: a message is on its way when its sender has come to it, whether it is awaited or not, and takes the time that a
link needs for a collective of two cards. On a real card a large message waits for its receiver, and messages in both
directions go at once; here they are one after the other on a rank's communication stream.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping
from typing import TYPE_CHECKING

from gpututor.errors import RanksDisagree
from gpututor.model.collectives import exchange_ns
from gpututor.model.exchange import RECEIVE, SEND, RanksExchange

if TYPE_CHECKING:
    from gpututor.model.cards_player import CardsPlayer

Pair = tuple[int, ...]  # sender and receiver


class Messages:
    """Those on their way among the ranks of `players`, in the order in which they were sent."""

    def __init__(self, cards_per_machine: int, players: Mapping[int, CardsPlayer]) -> None:
        self._cards_per_machine, self._players = cards_per_machine, players
        self._sent: dict[Pair, deque[tuple[int, int]]] = defaultdict(deque)  # bytes, and when its sender came
        self._waiting: dict[Pair, RanksExchange] = {}

    def come(self, rank: int, exchange: RanksExchange) -> list[int]:
        """`rank` sends or asks for a message; the ranks that may go on.

        Raises:
            RanksDisagree: the receiver asks for another size than was sent.
        """
        pair, player = exchange.ranks, self._players[rank]
        if exchange.kind == SEND:
            came_ns = player.came_ns[exchange.number]
            player.finish(exchange, came_ns, came_ns + self._long_ns(exchange))
            self._sent[pair].append((exchange.n_bytes, came_ns))
            waiting = self._waiting.pop(pair, None)
            if waiting is None:
                return [rank]
            self._deliver(waiting)
            return [rank, pair[1]]
        if not self._sent[pair]:
            self._waiting[pair] = exchange
            return []
        self._deliver(exchange)
        return [rank]

    def _deliver(self, asked: RanksExchange) -> None:
        n_bytes, sent_ns = self._sent[asked.ranks].popleft()
        source, target = asked.ranks
        if n_bytes != asked.n_bytes:
            raise RanksDisagree(
                f"rank {source} sends {n_bytes:,} bytes and rank {target} receives {asked.n_bytes:,}; on real cards "
                "both would wait for ever, so let both tensors have the same size and dtype"
            )
        player = self._players[target]
        start_ns = max(sent_ns, player.came_ns[asked.number])
        player.finish(asked, start_ns, start_ns + self._long_ns(asked))

    def _long_ns(self, exchange: RanksExchange) -> int:
        pricer = next(iter(self._players.values())).pricer
        n_machines = len({rank // self._cards_per_machine for rank in exchange.ranks})
        return exchange_ns(SEND, exchange.n_bytes, pricer.team(2, n_machines))


MESSAGES = (SEND, RECEIVE)
