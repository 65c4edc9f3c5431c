"""What a run of lesson 14 found on a machine: padding and time by what lies in a batch together, and the losses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from gpututor.cards import Machine
from gpututor.charts import running_mean
from gpututor.experiments.length_plans import Way, lengths_in, plan
from gpututor.experiments.per_op import HostSplit
from gpututor.experiments.ragged import COUNTED, MODES, N_RANKS, long_plan, long_texts, short_plan, short_texts
from gpututor.jobs.lengths import MOST, drawn, padding_share
from gpututor.model.tape import HostWork, Player, Pricer
from gpututor.page.kept import Kept
from gpututor.page.lessons.ragged_cards import DEALT, Shared, n_texts, shared_by
from gpututor.page.lessons.splits import Steps
from gpututor.replay import SameMachine, read_tape
from gpututor.text import dollars, percent
from gpututor.timeline import NS_PER_S, Label, Origin

SMOOTH = 12  # steps in a mean of losses
ALIKE = 1.05  # a twentieth is no difference that one would notice
BILLION = 1e9
SIZES = (1, 2, 4, 8, 16, 32, 64)
N_DRAWN = 4096
ONCE = ("cudnn.benchmark", "torch.compile")  # what the host does once for a shape, as tapes have it


@lru_cache(maxsize=64)
def _begins_ns(path: Path, changed_ns: int, on: SameMachine) -> tuple[int, ...]:
    """When each step of a run begins on the host, and when the last ends."""
    player = Player(Pricer(on.machine))
    for entry in read_tape(path).entries:
        player.play(entry)
    return (*(at for at, _ in player.begins), player.end_ns or player.queue.host_ns)


@dataclass(frozen=True)
class Ragged:
    """A run's variants on one machine, by key; without a run there are none."""

    machine: Machine
    tapes: Mapping[str, Path]
    told: Mapping[str, Mapping[str, Any]]

    @cached_property
    def steps(self) -> Mapping[str, HostSplit]:
        """A mean step of each variant."""
        return Steps(self.tapes, self.machine)

    def has(self, *keys: str) -> bool:
        """Whether all of these were run."""
        return all(key in self.tapes for key in keys)

    def label(self, what: str) -> Label:
        """What a figure must say that shows several variants."""
        card = self.machine.card
        return Label(Origin.SIMULATED, card.name, self.machine.name, what, n_sms=card.n_sms)

    # --- lengths -----------------------------------------------------------------------------------------------------

    @property
    def lengths(self) -> Sequence[int]:
        """Those of the texts that GPT-2 reads."""
        return long_texts(n_texts(read_tape(self.tapes["gpt2-shuffled"])))

    @property
    def short_lengths(self) -> Sequence[int]:
        """Those of the texts that the LSTM reads."""
        return short_texts(n_texts(read_tape(self.tapes["lstm-shuffled"])))

    def batches(self, way: Way) -> list[list[int]]:
        """The lengths in each of GPT-2's batches."""
        return lengths_in(long_plan(way, len(self.lengths)), self.lengths)

    def padding(self, way: Way) -> float:
        """The part of GPT-2's positions that is padding."""
        if way is Way.FIXED:
            return 1 - sum(self.lengths) / (len(self.lengths) * MOST)
        return 0.0 if way is Way.PACKED else padding_share(self.batches(way))

    def short_padding(self, way: Way) -> float:
        """The same of the LSTM's."""
        lengths = self.short_lengths
        if way is Way.FIXED:
            return 1 - sum(lengths) / (len(lengths) * max(lengths))
        return 0.0 if way is Way.PACKED else padding_share(lengths_in(short_plan(way, len(lengths)), lengths))

    @property
    def asked(self) -> float | None:
        """The padding in batches as they come; None where they weren't read."""
        return self.padding(Way.SHUFFLED) if self.has("gpt2-shuffled") else None

    # --- time --------------------------------------------------------------------------------------------------------

    def whole_ns(self, key: str) -> float:
        """Nanoseconds for all texts."""
        return self.steps[key].step_ns * self.steps[key].n_steps

    def times(self, slow: str, fast: str) -> float | None:
        """How many times as long one variant takes for all texts as another; None where one wasn't run."""
        return self.whole_ns(slow) / self.whole_ns(fast) if self.has(slow, fast) else None

    def usd(self, key: str) -> float | None:
        """What a billion words cost with GPT-2; None without a price."""
        price = self.machine.usd_per_hour
        return None if price is None else self.whole_ns(key) / 3600e9 * price * BILLION / sum(self.lengths)

    @property
    def money_said(self) -> str:
        """What sorting saves; empty without a price."""
        as_they_come, sorted_ = (self.usd(f"gpt2-{way.key}") for way in (Way.SHUFFLED, Way.BUCKETED))
        if as_they_come is None or sorted_ is None:
            return ""
        return f"Of {dollars(as_they_come)} for a billion words, sorting saves {dollars(as_they_come - sorted_)}."

    @property
    def both(self) -> bool:
        """Whether each network was run in every way that it can be."""
        gpt2 = (f"gpt2-{way.key}" for way in Way if way is not Way.PACKED)
        return self.has(*gpt2, *(f"lstm-{way.key}" for way in Way))

    @property
    def packed_said(self) -> str:
        """What packing saves the LSTM beside what sorting saves it."""
        packed = self.times("lstm-shuffled", "lstm-packed") or 0.0
        sorted_ = self.times("lstm-shuffled", "lstm-bucketed") or 0.0
        none = percent(self.short_padding(Way.SHUFFLED))
        if packed < ALIKE:
            said = f"Packing takes all {none} of padding out of its arithmetic and hardly a moment of its time"
        else:
            said = f"Packing takes {none} of padding out of its arithmetic, and it is {packed:.1f} times as fast"
        if sorted_ < ALIKE:
            return f"{said}. Nor does sorting help here: its host sets the pace."
        return f"{said}. Sorting makes it {sorted_:.1f} times as fast: fewer steps."

    @property
    def budget_said(self) -> str:
        """What a budget of tokens does to either network, beside sorting alone."""
        gpt2, lstm = (self.times(f"{net}-bucketed", f"{net}-tokens") or 0.0 for net in ("gpt2", "lstm"))
        memory = self.told["gpt2-bucketed"]["memory_bytes"] / self.told["gpt2-tokens"]["memory_bytes"]
        saved = f"With a budget of tokens GPT-2 needs {percent(1 / memory)} of the memory"
        fast = "in the same time" if 1 / ALIKE < gpt2 < ALIKE else f"at {gpt2:.1f} times the speed"
        if lstm * ALIKE < 1:
            return f"{saved}, {fast}. The LSTM it slows down: few long texts take as many steps as many."
        return f"{saved}, {fast}."

    # --- what is learned ---------------------------------------------------------------------------------------------

    def losses(self, key: str) -> Sequence[float]:
        """The loss that each step reported."""
        return [loss for loss in self.told[key]["losses"] if loss is not None]

    def held_out(self, key: str) -> float | None:
        """The loss of a word in texts that it never saw."""
        value = self.told[key].get("held_out")
        return None if value is None else float(value)

    @property
    def learned(self) -> bool:
        """Whether the LSTM learned in every way, and once with the padding in its loss."""
        return self.has(*(f"lstm-{way.key}" for way in Way), f"lstm-{COUNTED}")

    def learning_lines(self) -> dict[str, list[tuple[float, float | None]]]:
        """Milliseconds on this machine, and the mean loss of the last batches then."""
        found: dict[str, list[tuple[float, float | None]]] = {}
        for key in ("lstm-shuffled", "lstm-packed", "lstm-bucketed", f"lstm-{COUNTED}"):
            same = key.replace(COUNTED, Way.SHUFFLED.key)  # the same kernels
            means, step_ns = running_mean(list(self.losses(key)), SMOOTH), self.steps[same].step_ns
            found[self.told[key]["label"]] = [(k * step_ns / 1e6, loss) for k, loss in means[SMOOTH - 1 :]]
        return found

    @property
    def apart(self) -> float:
        """By how much the packed and the filled-up texts' losses differ at most, over the first half of the steps."""
        filled, packed = self.losses("lstm-shuffled"), self.losses("lstm-packed")
        half = max(1, len(filled) // 2)
        return max(abs(a - b) for a, b in zip(filled[:half], packed[:half], strict=True))

    @property
    def apart_said(self) -> str:
        """The same in words."""
        return "less than a hundred-thousandth" if self.apart < 1e-5 else f"{self.apart:.1g}"

    # --- shapes that change ------------------------------------------------------------------------------------------

    @property
    def shaped(self) -> bool:
        """Whether the convolutions were run in every mode."""
        return self.has(*(f"frames-{mode}" for mode in MODES))

    def since_ns(self, mode: str) -> list[int]:
        """Nanoseconds since the run began, at the begin of each step and at the end of the last."""
        path = self.tapes[f"frames-{mode}"]
        begins = _begins_ns(path, path.stat().st_mtime_ns, SameMachine(self.machine))
        return [at - begins[0] for at in begins]

    def once(self, mode: str) -> tuple[int, int]:
        """Nanoseconds of it that were searching or compiling, and how often that was."""
        entries = read_tape(self.tapes[f"frames-{mode}"]).entries
        found = [e.long_ns for e in entries if type(e) is HostWork and e.name in ONCE]
        return sum(found), len(found)

    def shape_lines(self) -> dict[str, list[tuple[float, float | None]]]:
        """Batches, and seconds since the first."""
        chosen = ("plain", "search", "search-rounded", "compiled")
        return {MODES[m][0]: [(k, ns / NS_PER_S) for k, ns in enumerate(self.since_ns(m))] for m in chosen}

    # --- several cards -----------------------------------------------------------------------------------------------

    def shared(self, how: str, box: Machine | None = None) -> Shared | None:
        """Batches dealt to cards in this way, to those of a box (or to `N_RANKS` of this card); None if it wasn't run.

        A box that nobody rents costs nothing; links are as lesson 16 has them.
        """
        way, together = DEALT[how]
        key = f"ddp-{way.key}"
        if not self.has(key):
            return None
        usd = self.machine.usd_per_card_hour
        box = box or replace(
            self.machine,
            name=f"{N_RANKS} of {self.machine.name}",
            n_cards=N_RANKS,
            usd_per_hour=None if usd is None else N_RANKS * usd,
        )
        path = self.tapes[key]
        return shared_by(path, path.stat().st_mtime_ns, SameMachine(box), way, together, box.n_cards)

    @property
    def straggling_said(self) -> str:
        """What the cards wait when batches of like length are dealt as they come, and at once."""
        apart, at_once = (self.shared(how) for how in list(DEALT)[1:3])
        if apart is None or at_once is None:
            return ""
        said = f"they stand idle for {percent(apart.idle_share)} of their time"
        if at_once.step_ns * ALIKE > apart.step_ns:
            return f"Here {said}, and dealing changes little: the exchange itself takes most of that."
        return (
            f"Here {said}. Dealt so that all get neighbours in length at once, it is {percent(at_once.idle_share)}, "
            f"and they read {at_once.words_per_s / apart.words_per_s:.1f} times as fast."
        )


def padding_lines() -> dict[str, list[tuple[float, float | None]]]:
    """Texts in a batch, and the part that is padding, as they come and sorted; from the lengths alone."""
    lengths = drawn(N_DRAWN)
    return {
        name: [(n, padding_share(lengths_in(plan(way, lengths, batch=n), lengths))) for n in SIZES]
        for name, way in (("as they come", Way.SHUFFLED), ("neighbours in length", Way.BUCKETED))
    }


def ragged_of(kept: Kept, on: Machine) -> Ragged:
    """What a run, finished or stopped half-way, has on a machine."""
    told = [each for each in kept.data["points"] if each["key"] in kept.tapes] if kept.tapes else []
    by_key = {each["key"]: each for each in told}
    return Ragged(on, {key: kept.tapes[key] for key in by_key}, by_key)
