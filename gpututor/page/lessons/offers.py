"""A job on one machine: how long it takes, what it costs, and where the ledger says that the time goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from gpututor.cards import Machine
from gpututor.ledger import Account
from gpututor.replay import Played, SameMachine, play_file, step_ns
from gpututor.text import dollars, duration, percent


@dataclass(frozen=True, slots=True)
class Most:
    """Where most of a step's time goes: an account with its share, None where it is useful work."""

    account: Account | None
    share: float
    busy_share: float


def _one_card_of(machine: Machine) -> Machine:
    """The machine without what one card's work doesn't feel, so that sizes of one kind are one to a cache."""
    host = replace(machine.host, name=machine.host.cpu, n_cpus=1, note="", sources={})
    return replace(
        machine, name=host.name, host=host, n_cards=1, usd_per_hour=None, price_basis="", note="", sources={}
    )


@lru_cache(maxsize=512)  # what a page asks again and again; the runs themselves would fill memory
def _most(path: Path, changed_ns: int, on: SameMachine) -> Most:
    ledger = play_file(path, on.machine).ledger
    most = max((each for each in Account if each is not Account.BUSY_UNSPLIT), key=ledger.share)
    return Most(None if most is Account.USEFUL else most, ledger.share(most), ledger.gpu_util_share)


@dataclass(frozen=True, slots=True)
class Offer:
    """A job on one machine; `trouble` is a sentence where its card's memory is too small."""

    machine: Machine
    path: Path
    trouble: str
    n_samples: int
    of_step: int

    @property
    def step_ns(self) -> float:
        """A mean step on one card, in nanoseconds; this is quick, where `most` takes a whole ledger.

        Raises:
            TimelineError: its tape is gone or damaged.
        """
        return step_ns(self.path, _one_card_of(self.machine))

    @property
    def whole_ns(self) -> float:
        """Nanoseconds for all of the samples on one card; infinite where they don't fit."""
        return float("inf") if self.trouble else self.step_ns * self.n_samples / self.of_step

    @property
    def usd(self) -> float | None:
        """What they cost when each card of the machine works as this one does; None without a price."""
        rate = self.machine.usd_per_card_hour
        return None if rate is None or self.trouble else rate * self.whole_ns / 3600e9

    @property
    def usd_alone(self) -> float | None:
        """What they cost when the other cards idle: the machine is rented as a whole."""
        return None if self.usd is None else self.usd * self.machine.n_cards

    @property
    def played(self) -> Played:
        """The run on this machine, span by span.

        Raises:
            TimelineError: its tape is gone or damaged.
        """
        return play_file(self.path, self.machine)

    @property
    def most(self) -> Most:
        """Where most of the time of one card goes.

        Raises:
            TimelineError: its tape is gone or damaged.
        """
        return _most(self.path, self.path.stat().st_mtime_ns, SameMachine(_one_card_of(self.machine)))

    @property
    def gib(self) -> float:
        """Memory of its card."""
        return self.machine.card.memory_bytes / 2**30


def by_the_hour(offers: Sequence[Offer]) -> Offer:
    """The machine whose hour is cheapest, a part of a machine counted as a part."""
    return min(offers, key=lambda one: one.machine.usd_per_card_hour or 0)


def fastest(offers: Sequence[Offer]) -> Offer:
    """The machine on which the job is over first."""
    return min(offers, key=lambda one: one.whole_ns)


def why_said(offer: Offer) -> str:
    """What the ledger says of where this machine's time goes, in a sentence."""
    most, card = offer.most, offer.machine.card.name
    told = f"On {offer.machine.name} the {card} is busy {percent(most.busy_share)} of the time"
    if most.account is None:
        return f"{told}, mostly with useful arithmetic."
    return f"{told}. Most of it, {percent(most.share)}, goes to “{most.account.value}”."


def offer_said(offer: Offer) -> str:
    """Time and money of a job on one machine."""
    return f"{duration(offer.whole_ns)} and {dollars(offer.usd)}"


def compared_said(rented: Sequence[Offer]) -> str:
    """The cheapest hour, the cheapest machine for the job and the fastest one, and what the job takes on each.

    `rented` begins with the cheapest for the job.
    """
    hour, cheap, quick = by_the_hour(rented), rented[0], fastest(rented)
    rate = dollars(hour.machine.usd_per_card_hour)
    told = f"The cheapest hour is {hour.machine.name}'s, at {rate}; this job takes {offer_said(hour)} there."
    if cheap is hour:
        told += " Here it is the cheapest for the job as well."
    else:
        told += f" On {cheap.machine.name} it takes {offer_said(cheap)}"
        told += ", and nowhere is it quicker." if quick is cheap else "."
    return told if quick is cheap else f"{told} The fastest, {quick.machine.name}, takes {offer_said(quick)}."
