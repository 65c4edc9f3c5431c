"""What a run of lesson 16 found for a card, joined with others in three ways; and sentences that follow the numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gpututor.cards import Machine
from gpututor.charts import running_mean
from gpututor.exercises.ex16 import case_rarely
from gpututor.exercises.form import Case
from gpututor.experiments.several_cards import BUCKETS_MB, COUNTS, LENGTH, MOST, N_MICRO, SEQUENCES
from gpututor.links import wiring
from gpututor.model.collectives import Team, exchange_ns
from gpututor.model.exchange import RanksExchange
from gpututor.page.kept import Kept
from gpututor.replay import Played, play_file, read_tape, step_ns
from gpututor.text import duration
from gpututor.timeline import Label, Origin

NVLINK, PCIE, ETHERNET = "NVLink", "PCIe", "Ethernet"
WITHOUT_NVLINK = "pcie-virtual"  # how cards with NVLink talk where it is switched off or hidden from them
TOKENS = SEQUENCES * LENGTH
MILLION = 1e6
SMOOTH = 8  # steps in a mean of losses
ALIKE = 1.03  # a thirtieth is no difference that one would notice


def boxes(card: Machine) -> dict[str, Machine]:
    """Eight of this machine's cards joined in each way there is, by name: one box twice, and a network of boxes.

    All are taken to cost what the cards cost one by one.
    """
    usd = card.usd_per_card_hour
    alone = replace(card, n_cards=1, usd_per_hour=usd)
    one_box = replace(alone, n_cards=MOST, usd_per_hour=None if usd is None else MOST * usd)
    usual = replace(one_box, name=f"one box of {MOST}")
    found = {}
    if wiring(usual).cards.kind == NVLINK:
        found[NVLINK] = replace(usual, name=f"one box of {MOST}, NVLink")
        usual = replace(usual, joined_by=WITHOUT_NVLINK)
    found[PCIE] = replace(usual, name=f"one box of {MOST}, PCIe")
    return {**found, ETHERNET: alone}


@dataclass(frozen=True, slots=True)
class Several:
    """A run's variants on one machine's card, alone and joined with others; without a run there are none."""

    card: Machine
    boxes: Mapping[str, Machine]
    tapes: Mapping[str, Path]
    told: Mapping[str, Mapping[str, Any]]

    def has(self, *keys: str) -> bool:
        """Whether all of these were run."""
        return all(key in self.tapes for key in keys)

    @property
    def whole(self) -> bool:
        """Whether GPT-2 was run on every count of cards, a process each."""
        return self.has("one", *(f"ddp-{n}" for n in COUNTS))

    def machine(self, key: str, link: str) -> Machine:
        """Where a variant runs: one card needs no link."""
        n = self.told[key]["x"]
        return self.boxes[ETHERNET] if n == 1 else self.boxes[link]

    def played(self, key: str, link: str) -> Played:
        """The variant on cards joined like this."""
        return play_file(self.tapes[key], self.machine(key, link))

    def ns(self, key: str, link: str) -> float | None:
        """Nanoseconds of a step; None where it wasn't run, or one process would need cards of several boxes."""
        if not self.has(key) or (key.startswith(("dp-", "learn-dp")) and link == ETHERNET):
            return None
        return step_ns(self.tapes[key], self.machine(key, link))

    def label(self, what: str) -> Label:
        """What a figure must say that shows several variants."""
        card = self.card.card
        return Label(Origin.SIMULATED, card.name, "1 to 8 cards", what, n_sms=card.n_sms)

    # --- scaling -----------------------------------------------------------------------------------------------------

    def key(self, n: int) -> str:
        """The variant of GPT-2 on `n` cards."""
        return "one" if n == 1 else f"ddp-{n}"

    def step_ns(self, n: int, link: str) -> float:
        """Nanoseconds of GPT-2's step on `n` cards."""
        found = self.ns(self.key(n), link)
        assert found is not None
        return found

    def times(self, n: int, link: str) -> float:
        """How many times as fast as one card."""
        return self.step_ns(1, link) / self.step_ns(n, link)

    def usd(self, n: int, link: str) -> float | None:
        """What a million tokens cost on `n` cards; None without a price."""
        price = self.card.usd_per_card_hour
        return None if price is None else n * price * self.step_ns(n, link) / 3600e9 * MILLION / TOKENS

    def lines(self) -> dict[str, list[tuple[float, float | None]]]:
        """Cards, and times as fast as one, for each link and for one that would cost nothing."""
        counts = (1, *COUNTS)
        found: dict[str, list[tuple[float, float | None]]] = {
            link: [(n, self.times(n, link)) for n in counts] for link in self.boxes
        }
        return {**found, "if talking cost nothing": [(n, n) for n in counts]}

    def best(self, link: str) -> int:
        """The fastest number of cards."""
        return min((1, *COUNTS), key=lambda n: self.step_ns(n, link))

    @property
    def n_bytes(self) -> int:
        """Bytes of all gradients, which every step exchanges."""
        entries = read_tape(self.tapes[self.key(MOST)]).entries
        return sum(e.n_bytes for e in entries if type(e) is RanksExchange and e.kind == "all_reduce")

    def exchange_ns(self, n: int, link: str) -> int:
        """Nanoseconds of exchanging all gradients among `n` cards in one go, with nothing else going on."""
        box = self.boxes[link]
        return exchange_ns("all_reduce", self.n_bytes, Team(n, -(-n // box.n_cards), wiring(box)))

    def buckets(self) -> dict[str, list[tuple[float, float | None]]]:
        """Megabytes of a bucket, and milliseconds of a step on eight cards, for each link."""
        known = sorted((int(key.removeprefix("bucket-")), key) for key in self.tapes if key.startswith("bucket-"))
        rows = sorted([*known, (25, self.key(MOST))])
        return {link: [(mb, (self.ns(key, link) or 0) / 1e6) for mb, key in rows] for link in self.boxes}

    # --- sentences ---------------------------------------------------------------------------------------------------

    @property
    def fastest_said(self) -> str:
        """How many cards are fastest, for each link."""
        parts = [f"{self.best(link)} {_with(link)}" for link in self.boxes]
        return f"Fastest of 1, 2, 4 and 8: {', '.join(parts)}."

    @property
    def slower_said(self) -> str:
        """Where eight cards are slower than two, if anywhere."""
        worse = [link for link in self.boxes if self.step_ns(MOST, link) > ALIKE * self.step_ns(2, link)]
        if not worse:
            return f"On this {self.card.card.name} eight are nowhere slower than two: its own work takes longer."
        return " ".join(
            f"{_with(link, True)} eight take {duration(self.step_ns(MOST, link))} and two "
            f"{duration(self.step_ns(2, link))}."
            for link in worse
        )

    @property
    def ethernet_said(self) -> str:
        """Eight boxes beside one card alone."""
        times = self.times(MOST, ETHERNET)
        eight, one = duration(self.step_ns(MOST, ETHERNET)), duration(self.step_ns(1, ETHERNET))
        if times < 1 / ALIKE:
            return f"Eight take {eight}, one alone {one}. You pay for eight, and wait longer than with one."
        return f"Eight take {eight}, one alone {one}: {times:.1f} times as fast, for eight times the price."

    @property
    def overlap_said(self) -> str:
        """What small buckets save, where they save most."""
        saved_ns = {
            link: (self.ns(f"bucket-{BUCKETS_MB[-1]}", link) or 0) - self.step_ns(MOST, link) for link in self.boxes
        }
        link = max(saved_ns, key=lambda each: saved_ns[each] / self.step_ns(MOST, each))
        if saved_ns[link] < (ALIKE - 1) * self.step_ns(MOST, link):
            return "Here that saves next to nothing: too little work is left to hide it under."
        return f"{_with(link, True)} that saves {duration(saved_ns[link])} of a step on eight cards."

    @property
    def one_process_said(self) -> str:
        """DataParallel beside DDP on eight cards, by the best link."""
        old, new = self.ns(f"dp-{MOST}", self.near), self.step_ns(MOST, self.near)
        if old is None:
            return ""
        if old <= ALIKE * new:
            return f"{_with(self.near, True)} it keeps up here: its one host has little to do beside these kernels."
        return f"{_with(self.near, True)} it takes {duration(old - new)} longer than DDP."

    def no_sync_said(self, link: str = ETHERNET) -> str:
        """What one exchange for several backward passes saves."""
        each, last = self.ns("each", link), self.ns("last", link)
        if each is None or last is None:
            return ""
        return (
            f"{_with(link, True)} {N_MICRO} backward passes take {duration(each)} with an exchange after each, "
            f"and {duration(last)} with one at the end. That is {self.step_ns(1, link) * N_MICRO / last:.1f} times as "
            "fast as one card."
        )

    # --- learning ----------------------------------------------------------------------------------------------------

    @property
    def near(self) -> str:
        """The link that is best where there is a choice."""
        return next(iter(self.boxes))

    def losses(self, key: str) -> Sequence[float]:
        """The loss of each step."""
        return [loss for loss in self.told[key]["losses"] if loss is not None]

    def held_out(self, key: str) -> float | None:
        """The loss on pictures that it never saw."""
        value = self.told[key].get("held_out")
        return None if value is None else float(value)

    def learning_lines(self) -> dict[str, list[tuple[float, float | None]]]:
        """Seconds and loss of one card, eight that share its batch, and eight that have it each."""
        found: dict[str, list[tuple[float, float | None]]] = {}
        for key in ("learn-one", "learn-ddp-8", "learn-wide"):
            step_ns = self.ns(key, self.near) or 0
            means = running_mean(list(self.losses(key)), SMOOTH if key != "learn-wide" else 1)
            found[self.told[key]["label"]] = [(k * step_ns / 1e9, loss) for k, loss in means]
        return found

    @property
    def apart_said(self) -> str:
        """By how much losses differ between ways that share a batch, over the first half of the steps."""
        ways = [self.losses(key) for key in self.told if key.startswith("learn-") and key != "learn-wide"]
        half = len(ways[0]) // 2
        apart = max(abs(a - b) for other in ways[1:] for a, b in zip(ways[0][:half], other[:half], strict=True))
        return "less than a millionth" if apart < 1e-6 else f"{apart:.1g}"

    @property
    def small_said(self) -> str:
        """How long the small network's step is on one card and on eight."""
        one, eight = self.ns("learn-one", self.near) or 0, self.ns("learn-ddp-8", self.near) or 0
        if eight > ALIKE * one:
            return (
                f"And for so small a network eight cards are the slower ones by any link: {duration(eight)} a step, "
                f"{duration(one)} on one. Its host sets the pace, and DDP gives it more to do."
            )
        return f"A step takes {duration(eight)} on eight cards, {duration(one)} on one."

    def rarely_case(self) -> Case:
        """The case of exercise 16.1, over Ethernet; empty where it wasn't run."""
        once, several = self.ns(self.key(MOST), ETHERNET), self.ns("last", ETHERNET)
        return case_rarely(once, several, N_MICRO, ETHERNET, self.card.card.name)


def _with(link: str, first: bool = False) -> str:
    """The link with its word: with NVLink, over PCIe. `first` in a sentence, it has a capital."""
    word = "with" if link == NVLINK else "over"
    return f"{word.capitalize() if first else word} {link}"


def several_of(kept: Kept, card: Machine) -> Several:
    """What a run, finished or stopped half-way, has for this machine's card."""
    told = [each for each in kept.data["points"] if each["key"] in kept.tapes] if kept.tapes else []
    by_key = {each["key"]: each for each in told}
    return Several(card, boxes(card), {key: kept.tapes[key] for key in by_key}, by_key)
