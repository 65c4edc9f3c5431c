"""What a tape notes of data that go from card to card, and of threads and processes that drive several cards."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PeerCopy:
    """A copy from one card to another; both cards' current streams wait for it, the host doesn't."""

    name: str
    source: int
    target: int
    n_bytes: int
    phase: str = "no_grad"


@dataclass(frozen=True, slots=True)
class CardsExchange:
    """A collective among cards of one process, in each card's current stream (what DataParallel does)."""

    kind: str
    n_bytes: int
    cards: tuple[int, ...]
    phase: str = "no_grad"


SEND, RECEIVE = "send", "receive"


@dataclass(frozen=True, slots=True)
class RanksExchange:
    """A collective among ranks, each a process of its own: it joins the card's communication stream.

    It starts when the last of `ranks` has come to it. `number` is the rank's own count of collectives. Of the kinds
    `SEND` and `RECEIVE` it is a message, and `ranks` are its sender and its receiver.
    """

    kind: str
    n_bytes: int
    ranks: tuple[int, ...]
    number: int
    card: int
    phase: str = "no_grad"


@dataclass(frozen=True, slots=True)
class WaitExchange:
    """The card's current stream goes on only after collective `number`; with `host` the rank's thread too."""

    number: int
    card: int
    host: bool = False


@dataclass(frozen=True, slots=True)
class Threads:
    """From here each card has a thread of its own, until `Threads(())`; with `interpreter` they share Python's lock."""

    cards: tuple[int, ...]
    interpreter: bool = False


CardsEntry = PeerCopy | CardsExchange | RanksExchange | WaitExchange | Threads
