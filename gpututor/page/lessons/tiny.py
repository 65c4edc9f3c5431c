"""What a run of lesson 10 found on a machine: its numbers, and sentences that follow them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpututor.cards import Machine
from gpututor.charts import running_mean
from gpututor.experiments.per_op import HostSplit
from gpututor.experiments.tiny_kernels import BATCHES, CROWDS, SIZES, THREADS_BATCHES
from gpututor.experiments.ways import Way
from gpututor.page.kept import Kept
from gpututor.page.lessons.splits import Steps
from gpututor.references import Reference, reference
from gpututor.text import dollars, duration, percent
from gpututor.timeline import Label, Origin

SMOOTH = 20  # steps in a mean of losses; as many are left out at the start
HELPS = 1.05  # as fast as it is, or less than a twentieth faster: no help that one would notice
NAMED = {way.value: way.key for way in Way}
FASTER = (Way.SCRIPT, Way.COMPILED, Way.GRAPH, Way.BOTH)


@dataclass(frozen=True, slots=True)
class Tiny:
    """Each variant of a run on one machine, by key: a mean step, its label, its losses, its loss on unseen samples."""

    machine: Machine
    steps: Mapping[str, HostSplit]
    labels: Mapping[str, str]
    losses: Mapping[str, tuple[float | None, ...]]
    held_out: Mapping[str, float | None]

    def has(self, *keys: str) -> bool:
        """Whether all of these were run."""
        return all(key in self.steps for key in keys)

    def label(self, what: str) -> Label:
        """What a figure must say that shows several variants."""
        card = self.machine.card
        return Label(Origin.SIMULATED, card.name, self.machine.name, what, n_sms=card.n_sms)

    @property
    def batches(self) -> list[int]:
        """The batches at which every way was run, in order."""
        return [n for n in BATCHES if self.has(*(f"{way.key}-{n}" for way in Way))]

    def at(self, way: Way, batch: int) -> HostSplit:
        """A mean step of ResNet-50."""
        return self.steps[f"{way.key}-{batch}"]

    def times(self, way: Way, batch: int) -> float:
        """How many times as fast as the step as it is."""
        return self.at(Way.EAGER, batch).step_ns / self.at(way, batch).step_ns

    def usd(self, way: Way, batch: int, n_steps: int) -> float | None:
        """What so many steps cost on this machine; None without a price."""
        rate = self.machine.usd_per_hour
        return None if rate is None else n_steps * self.at(way, batch).step_ns / 3600e9 * rate

    def graph_said(self, n_steps: int) -> str:
        """What so many steps of one sample take as a graph, cost where there is a price, and spare."""
        usd = self.usd(Way.GRAPH, 1, n_steps)
        took = duration(n_steps * self.at(Way.GRAPH, 1).step_ns)
        cost = "" if usd is None else f" and costs {dollars(usd)}"
        return f"{took}{cost}, {percent(max(0.0, 1 - 1 / self.times(Way.GRAPH, 1)))} less"

    def paid_steps_ns(self) -> dict[int, tuple[float, float]]:
        """By batch, above one: a step as it is and a compiled one."""
        ways = (Way.EAGER, Way.COMPILED)
        pairs = {n: [self.at(way, n).step_ns for way in ways] for n in self.batches if n > 1}
        return {n: (plain, compiled) for n, (plain, compiled) in pairs.items()}

    # --- compiling ---------------------------------------------------------------------------------------------------

    def once_ns(self, way: Way) -> float | None:
        """What the first steps take beyond what they take later; None where they were not run."""
        first = self.steps.get(f"first-{way.key}")
        return None if first is None else max(0.0, first.n_steps * (first.step_ns - self.at(way, 1).step_ns))

    def paid_after(self, way: Way, batch: int) -> float | None:
        """Steps until a run in this way is ahead of one as it is; None if it never is."""
        once_ns = self.once_ns(way)
        saved_ns = self.at(Way.EAGER, batch).step_ns - self.at(way, batch).step_ns
        return None if once_ns is None or self.times(way, batch) < HELPS else once_ns / saved_ns

    def compiling_ns(self, mode: str) -> float:
        """What compiling takes in the eight batches of eight sizes."""
        split = self.steps[f"ragged-{mode}"]
        return split.start_up_ns * split.n_steps

    # --- pictures ----------------------------------------------------------------------------------------------------

    def lines(self) -> dict[str, list[tuple[float, float | None]]]:
        """Times as fast as it is over the batch, for each other way."""
        return {way.value: [(n, self.times(way, n)) for n in self.batches] for way in FASTER}

    def learned_lines(self) -> dict[str, list[tuple[float, float | None]]]:
        """Loss over seconds on this card for four ways, after what happens only once; thinned."""
        found: dict[str, list[tuple[float, float | None]]] = {}
        for way in (Way.EAGER, Way.COMPILED, Way.GRAPH, Way.BOTH):
            key = f"learned-{way.key}"
            if self.has(key):
                step_s = self.steps[key].step_ns / 1e9
                means = running_mean([loss for loss in self.losses[key] if loss is not None], SMOOTH)[SMOOTH:]
                found[way.value] = [(k * step_s, loss) for k, loss in means[::2]]
        return found

    # --- sentences ---------------------------------------------------------------------------------------------------

    def helps_until(self, way: Way) -> int | None:
        """The largest batch at which the way still helps; None if it does at none."""
        return max((n for n in self.batches if self.times(way, n) >= HELPS), default=None)

    @property
    def script_said(self) -> str:
        """What TorchScript saves, or that it saves nothing."""
        eager, script = self.at(Way.EAGER, 1), self.at(Way.SCRIPT, 1)
        if self.times(Way.SCRIPT, 1) < 1.01:
            return "Here that changes nothing: the card is what the step waits for."
        return (
            f"Python's {duration(eager.python_ns)} in the step become {duration(script.python_ns)}, and the step is "
            f"{percent(1 - script.step_ns / eager.step_ns)} shorter. Framework, autograd and launches all stay."
        )

    @property
    def until_said(self) -> str:
        """Up to which batch each way helps."""
        last = self.batches[-1]
        parts = []
        for way in FASTER:
            until = self.helps_until(way)
            if until is None:
                parts.append(f"{way.value} nowhere")
            else:
                parts.append(f"{way.value} up to {until}" + (" and beyond" if until == last else ""))
        return "; ".join(parts)

    @property
    def fused_said(self) -> str:
        """Whether compiled code still helps where the card is busy, and why."""
        last = self.batches[-1]
        eager, compiled = self.at(Way.EAGER, last), self.at(Way.COMPILED, last)
        if self.times(Way.COMPILED, last) < HELPS:
            return f"With {last} pictures none of them helps any more: the card is the longer of the two."
        if self.times(Way.GRAPH, last) >= HELPS:
            return f"With {last} pictures this card still waits for its host at times, so sparing the host still helps."
        return (
            f"With {last} pictures the card works all the time, and launching faster is worth nothing. Compiled code "
            f"still gains: fewer trips to memory, so the card's own work falls from {duration(eager.card_ns)} to "
            f"{duration(compiled.card_ns)}."
        )

    @property
    def same_loss_said(self) -> str:
        """Whether all ways learned the same."""
        known = [self.losses[key] for way in Way if (key := f"learned-{way.key}") in self.losses]
        worst = max(
            (abs(a - b) for other in known for a, b in zip(known[0], other, strict=False) if a and b), default=0
        )
        return (
            "The losses are the same in every way, to the last digit."
            if worst == 0
            else f"The losses differ by {worst:.2g} at most: sums are taken in another order."
        )

    @property
    def small_said(self) -> str:
        """Whether TorchScript helps the small network."""
        eager, script = (self.steps[f"learned-{way.key}"] for way in (Way.EAGER, Way.SCRIPT))
        if eager.step_ns > 1.02 * script.step_ns:
            return f"TorchScript spares the small network {duration(eager.step_ns - script.step_ns)} a step."
        return "TorchScript is no faster here: it spares Python, and keeps more for its own backward pass."

    @property
    def crowd_said(self) -> str:
        """What more molecules a step cost, and how busy the card is with them."""
        few, many = (self.steps[f"crowd-{n}"] for n in (CROWDS[0], CROWDS[-1]))
        more = f"{CROWDS[-1]:,} molecules take {duration(many.step_ns)}, one takes {duration(few.step_ns)}"
        if many.step_ns < 1.5 * few.step_ns:
            return f"{more}: until the card is full, the others are free."
        return (
            f"{more}: {many.step_ns / few.step_ns:.1f} times as long for {CROWDS[-1] / CROWDS[0]:,.0f} times as many."
        )

    @property
    def compiled_anew_said(self) -> str:
        """What changing sizes cost a compiler, from dearest to cheapest."""
        fixed, open_ = self.compiling_ns("fixed"), self.compiling_ns("open")
        return (
            f"{len(SIZES)} sizes compiled one by one take {duration(fixed)}, {fixed / open_:.0f} times as long as once "
            "with sizes left open, or padded to one."
        )

    # --- others ------------------------------------------------------------------------------------------------------

    def threads(self) -> list[tuple[Reference, float | None]]:
        """Each public thread of the lesson with the same ratio from this run, None where it wasn't run."""
        rows: list[tuple[Reference, float | None]] = []
        for n in THREADS_BATCHES:
            keys = f"adam-{Way.EAGER.key}-{n}", f"adam-{Way.GRAPH.key}-{n}"
            ratio = self.steps[keys[0]].step_ns / self.steps[keys[1]].step_ns if self.has(*keys) else None
            rows.append((reference(f"eager to graph, batch {n}"), ratio))
        if self.batches:
            rows.append((reference("eager to TorchScript"), self.times(Way.SCRIPT, self.batches[0])))
        if self.has(*(f"crowd-{n}" for n in CROWDS)) and self.batches:
            resnet = self.at(Way.EAGER, self.batches[-1]).busy_share
            rows.append(
                (reference("busy, pictures to molecules"), resnet / self.steps[f"crowd-{CROWDS[1]}"].busy_share)
            )
        return rows


def tiny_of(kept: Kept, on: Machine) -> Tiny:
    """What a run, finished or stopped half-way, has on a machine; without a run there are no variants."""
    told = [each for each in kept.data["points"] if each["key"] in kept.tapes] if kept.tapes else []
    return Tiny(
        on,
        Steps({each["key"]: kept.tapes[each["key"]] for each in told}, on),
        {each["key"]: each["label"] for each in told},
        {each["key"]: tuple(each["losses"]) for each in told},
        {each["key"]: each.get("held_out") for each in told},
    )
