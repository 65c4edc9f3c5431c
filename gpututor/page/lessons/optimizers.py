"""What a run of lesson 12 found on a machine: updates in three ways, whole steps, a table's rows, what is learned."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpututor.cards import Machine
from gpututor.charts import running_mean
from gpututor.experiments.optimizers import (
    ALSO,
    BATCHES,
    COMPARED,
    LEARNED,
    N_NUMBERS,
    PIECES,
    ROWS,
    deep_key,
    pieces_key,
    resnet_key,
    rows_key,
)
from gpututor.experiments.per_op import HostSplit
from gpututor.jobs.rules import Rule, Way
from gpututor.page.kept import Kept
from gpututor.page.lessons.splits import UPDATE, Steps
from gpututor.text import duration, percent
from gpututor.timeline import Label, Origin

SMOOTH = 20  # steps in a mean of losses; as many are left out at the start
FASTER = 1.05  # less than a twentieth faster is no help that one would notice
NUMBER_BYTES = 4  # of a parameter in fp32
FEW, MANY = PIECES[0], PIECES[-1]
DRAWN = ((Rule.SGD, Way.FUSED), (Rule.MOMENTUM, Way.FUSED), (Rule.ADAM, Way.LOOP), (Rule.ADAM, Way.FUSED))

How = tuple[Rule, Way]


def words(how: How) -> str:
    """A rule and its way as a reader sees them.

    >>> words((Rule.ADAM, Way.LOOP)), words((Rule.SGD, Way.FUSED))
    ('Adam in a loop', 'SGD, fused')
    """
    rule, way = how
    return f"{rule.value} in {way.value}" if way is Way.LOOP else f"{rule.value}, {way.value}"


@dataclass(frozen=True, slots=True)
class Turns:
    """Each variant of a run on one machine, by key; `rests` are mean steps without their update."""

    machine: Machine
    steps: Mapping[str, HostSplit]
    rests: Mapping[str, HostSplit]
    losses: Mapping[str, tuple[float | None, ...]]
    held_out: Mapping[str, float | None]
    memory_bytes: Mapping[str, int]

    def has(self, *keys: str) -> bool:
        """Whether all of these were run."""
        return all(key in self.steps for key in keys)

    def label(self, what: str) -> Label:
        """What a figure must say that shows several variants."""
        card = self.machine.card
        return Label(Origin.SIMULATED, card.name, self.machine.name, what, n_sms=card.n_sms)

    def usd(self, ns: float) -> float | None:
        """What so much of this machine's time costs; None without a price."""
        rate = self.machine.usd_per_hour
        return None if rate is None else ns / 3600e9 * rate

    # --- the update alone --------------------------------------------------------------------------------------------

    def update(self, way: Way, n_pieces: int, rule: Rule = Rule.ADAM) -> HostSplit:
        """An update of the same parameters in so many tensors."""
        return self.steps[pieces_key(rule, way, n_pieces)]

    def ratio(self, slow: str, fast: str) -> float | None:
        """How many times as long one step takes as another; None where one wasn't run."""
        return self.steps[slow].step_ns / self.steps[fast].step_ns if self.has(slow, fast) else None

    @property
    def times(self) -> float | None:
        """How many times as long a loop takes over the most tensors as over one; None where that wasn't run."""
        return self.ratio(pieces_key(Rule.ADAM, Way.LOOP, MANY), pieces_key(Rule.ADAM, Way.LOOP, FEW))

    @property
    def cut(self) -> list[int]:
        """Numbers of tensors for which every way was run."""
        return [n for n in PIECES if self.has(*(pieces_key(Rule.ADAM, way, n) for way in Way))]

    def update_lines(self) -> dict[str, list[tuple[float, float | None]]]:
        """Number of tensors and milliseconds of Adam's update, by way."""
        return {way.value: [(n, self.update(way, n).step_ns / 1e6) for n in self.cut] for way in Way}

    @property
    def compared(self) -> bool:
        """Whether every rule was run in every way."""
        return self.has(*(pieces_key(rule, way, COMPARED) for rule in Rule for way in Way))

    def kernels_a_tensor(self, rule: Rule) -> float:
        """How many kernels a loop launches for each tensor."""
        return self.update(Way.LOOP, COMPARED, rule).n_kernels / COMPARED

    def state_bytes(self, rule: Rule) -> float:
        """Bytes that the optimizer keeps for each parameter, beyond the parameter and its gradient."""
        peak = self.memory_bytes[pieces_key(rule, Way.FUSED, COMPARED)]
        return max(0.0, peak / N_NUMBERS - 2 * NUMBER_BYTES)

    def extra_bytes(self, rule: Rule) -> float:
        """Bytes for each parameter that foreach needs on top while it updates."""
        keys = (pieces_key(rule, way, COMPARED) for way in (Way.FOREACH, Way.LOOP))
        foreach, loop = (self.memory_bytes[key] for key in keys)
        return max(0.0, (foreach - loop) / N_NUMBERS)

    @property
    def ways_said(self) -> str:
        """How the three ways compare over many tensors and over one."""
        loop, each, fused = (self.update(way, MANY).step_ns for way in Way)
        one = min(self.update(way, FEW).step_ns for way in (Way.FOREACH, Way.FUSED))
        many = (
            f"Over {MANY:,} tensors `foreach` takes {duration(each)} and `fused` {duration(fused)}, where the loop "
            f"takes {duration(loop)}."
        )
        if one * FASTER < self.update(Way.LOOP, FEW).step_ns:
            return f"{many} Over one tensor the better of them still gains: fewer walks through the same bytes."
        return f"{many} Over one tensor neither gains anything."

    # --- whole steps -------------------------------------------------------------------------------------------------

    def deep(self, how: How) -> HostSplit:
        """A step of the deep network."""
        return self.steps[deep_key(*how)]

    @property
    def rest_ns(self) -> float:
        """What a step of the deep network takes without its update."""
        return self.rests[deep_key(Rule.ADAM, Way.FUSED)].step_ns

    def update_share(self, how: How) -> float:
        """The part of the deep network's step that is gone without the update."""
        return max(0.0, 1 - self.rest_ns / self.deep(how).step_ns)

    def resnet_share(self, way: Way, batch: int) -> float:
        """The same for ResNet-50 with so many pictures."""
        key = resnet_key(way, batch)
        return max(0.0, 1 - self.rests[key].step_ns / self.steps[key].step_ns)

    @property
    def hidden_said(self) -> str:
        """Why many pictures hide the update, or that they don't here."""
        few, many = (self.resnet_share(Way.LOOP, n) for n in BATCHES)
        told = f"Of ResNet-50's step the loop takes {percent(few)} with {BATCHES[0]} pictures and {percent(many)} with "
        if many < few / 2:
            return told + f"{BATCHES[1]}: the host runs ahead of a busy card, and nobody waits for the loop."
        return told + f"{BATCHES[1]}."

    # --- rows of a table ---------------------------------------------------------------------------------------------

    @property
    def sizes(self) -> list[int]:
        """Tables that were updated in both ways."""
        return [n for n in ROWS if self.has(rows_key(n, sparse=False), rows_key(n, sparse=True))]

    def table_step(self, n_rows: int, *, sparse: bool) -> HostSplit:
        """A step of the table's job."""
        return self.steps[rows_key(n_rows, sparse=sparse)]

    def rows_lines(self) -> dict[str, list[tuple[float, float | None]]]:
        """Rows and milliseconds of a step."""
        return {
            name: [(n, self.table_step(n, sparse=sparse).step_ns / 1e6) for n in self.sizes]
            for name, sparse in (("Adam, every row", False), ("SparseAdam, the named rows", True))
        }

    @property
    def sparse_said(self) -> str:
        """From which size on the named rows alone are faster."""
        gains = {
            n: self.table_step(n, sparse=False).step_ns / self.table_step(n, sparse=True).step_ns for n in self.sizes
        }
        faster = [n for n, gain in gains.items() if gain > FASTER]
        if not faster:
            return "Here it is nowhere faster: walking through the whole table costs this card less than picking rows."
        first, last = faster[0], self.sizes[-1]
        if first == last:
            where = f"at {last:,} rows, {gains[last]:.1f} times"
        else:
            where = "at every size" if first == self.sizes[0] else f"from {first:,} rows on"
            where += f", {gains[last]:.1f} times at {last:,}"
        slower = min(gains.values()) * FASTER < 1
        below = " A smaller table it updates more slowly: more kernels, and a wait." if slower else ""
        return f"It is faster {where}.{below}"

    @property
    def sparse_loss_said(self) -> str:
        """What both have learned on the smallest table; empty where that wasn't run."""
        pair = [self.held_out.get(rows_key(ROWS[0], sparse=sparse)) for sparse in (False, True)]
        if None in pair:
            return ""
        dense, sparse = (each or 0.0 for each in pair)
        return (
            f"On {ROWS[0]:,} rows their losses on unseen samples are {dense:.2f} and {sparse:.2f}. They needn't agree: "
            "Adam goes on moving a row that is named no more, SparseAdam leaves it."
        )

    # --- what is learned ---------------------------------------------------------------------------------------------

    @property
    def learned(self) -> bool:
        """Whether every rule was trained, and the other ways were timed."""
        return self.has(*(deep_key(*how) for how in (*LEARNED, *ALSO)))

    @property
    def hows(self) -> list[How]:
        """Rules and their ways, rule by rule."""
        every = {*LEARNED, *ALSO}
        return [(rule, way) for rule in Rule for way in Way if (rule, way) in every]

    def means(self, rule: Rule) -> list[tuple[int, float]]:
        """Steps, and the mean of the last losses then."""
        known = [loss for loss in self.losses[deep_key(rule, Way.FUSED)] if loss is not None]
        return [(int(k), mean) for k, mean in running_mean(known, SMOOTH)[SMOOTH - 1 :]]

    @property
    def target(self) -> float:
        """The lowest loss that every rule reaches."""
        return max(min(mean for _, mean in self.means(rule)) for rule in Rule)

    def steps_to_target(self, rule: Rule) -> int:
        """Steps until the mean loss is at most the target."""
        return next(k for k, mean in self.means(rule) if mean <= self.target)

    def until_ns(self, how: How) -> float:
        """The same on this machine's clock."""
        return self.steps_to_target(how[0]) * self.deep(how).step_ns

    def needs(self) -> dict[str, tuple[int, float]]:
        """By rule, fused: steps to the target, and a step's nanoseconds."""
        return {rule.value: (self.steps_to_target(rule), self.deep((rule, Way.FUSED)).step_ns) for rule in Rule}

    def learning_lines(self) -> dict[str, Sequence[tuple[float, float]]]:
        """Seconds and mean loss; a rule learns the same in every way, at the pace of that way."""
        return {
            words(how): [(k * self.deep(how).step_ns / 1e9, mean) for k, mean in self.means(how[0])[::2]]
            for how in DRAWN
        }

    @property
    def same_said(self) -> str:
        """Whether the ways of a rule agree, step by step."""
        worst = max(
            abs(a - b)
            for rule, way in ALSO
            for a, b in zip(self.losses[deep_key(rule, way)], self.losses[deep_key(rule, Way.FUSED)], strict=False)
            if a is not None and b is not None
        )
        n = len(self.losses[deep_key(*ALSO[0])])
        digits = "the last digit" if worst == 0 else f"{max(0, math.floor(-math.log10(worst)))} digits"
        return f"The first {n} losses of loop, foreach and fused agree to {digits}: one curve, at three paces."

    @property
    def first_said(self) -> str:
        """Who is first by steps, who by the clock, and what a loop does to that."""
        by_steps = min(Rule, key=self.steps_to_target)
        by_clock = min(self.hows, key=self.until_ns)
        adam, plain = (Rule.ADAM, Way.LOOP), (Rule.SGD, Way.FUSED)
        n_adam, n_plain = self.steps_to_target(Rule.ADAM), self.steps_to_target(Rule.SGD)
        ahead = "behind" if self.until_ns(adam) > self.until_ns(plain) else "still ahead of"
        return (
            f"Counted in steps {by_steps.value} is first, with {self.steps_to_target(by_steps)}. On the clock it is "
            f"{words(by_clock)}, after {duration(self.until_ns(by_clock))}. Adam needs {n_adam} steps and SGD "
            f"{n_plain}; in a loop Adam takes {duration(self.until_ns(adam))}, {ahead} SGD's "
            f"{duration(self.until_ns(plain))}."
        )


def turns_of(kept: Kept, on: Machine) -> Turns:
    """What a run, finished or stopped half-way, has on a machine; without a run there are no variants."""
    told = [each for each in kept.data["points"] if each["key"] in kept.tapes] if kept.tapes else []
    tapes = {each["key"]: kept.tapes[each["key"]] for each in told}
    return Turns(
        on,
        Steps(tapes, on),
        Steps(tapes, on, without=UPDATE),
        {each["key"]: tuple(each["losses"]) for each in told},
        {each["key"]: each.get("held_out") for each in told},
        {each["key"]: each["memory_bytes"] for each in told},
    )
