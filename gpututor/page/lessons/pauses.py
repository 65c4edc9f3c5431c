"""What a run of lesson 15 found on a machine: an epoch with its pauses, switches, steps that grow, graphs that stay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import mean
from typing import Any

from gpututor.cards import Machine
from gpututor.charts import running_mean
from gpututor.experiments.pauses import (
    COLLECTED,
    EVERY,
    GREW,
    LEFT_ON,
    TRAINED,
    VALIDATED,
    dilated_key,
    grown_key,
    resnet_key,
    small_key,
)
from gpututor.page.kept import Kept
from gpututor.page.lessons.epochs import PARTS, Epoch, clocked, middles, step_lengths
from gpututor.page.lessons.splits import Steps
from gpututor.replay import Played, play_file
from gpututor.text import duration, percent
from gpututor.timeline import Label, Origin

SILENT, FOUND, OFTEN, TIDY = TRAINED
READING = "reading the loss"
PERIODS = (5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560)
ENOUGH = 0.95  # of the time in steps: our choice
SMOOTH = 12  # steps in a mean of losses
SLOWER = 1.05  # less than a twentieth slower is nothing that one would notice
NOISY = 12  # steps of which the middle one is drawn

SWITCHES: Mapping[str, str] = {
    "off": "nothing left on",
    "blocking": "CUDA_LAUNCH_BLOCKING=1",
    "anomaly": "set_detect_anomaly(True)",
    "deterministic": "use_deterministic_algorithms(True)",
    "unfilled": "the same, fill_uninitialized_memory off",
    "profiler": "torch.profiler, shapes and stacks",
    "emptied": "empty_cache() after each step",
}
"""The switches as a reader knows them, in the order of the table."""


@dataclass(frozen=True)
class Pauses:
    """Each variant of a run on one machine, by key."""

    machine: Machine
    steps: Mapping[str, Any]
    tapes: Mapping[str, Path]
    losses: Mapping[str, tuple[float | None, ...]]
    noted: Mapping[str, Mapping[str, float]]
    memory_bytes: Mapping[str, int | None]

    def has(self, *keys: str) -> bool:
        """Whether all of these were run."""
        return all(key in self.tapes for key in keys)

    def label(self, what: str) -> Label:
        """What a figure must say that shows several variants."""
        card = self.machine.card
        return Label(Origin.SIMULATED, card.name, self.machine.name, what, n_sms=card.n_sms)

    def usd(self, ns: float) -> float | None:
        """What so much of this machine's time costs; None without a price."""
        rate = self.machine.usd_per_hour
        return None if rate is None else ns / 3600e9 * rate

    def played(self, key: str) -> Played:
        """A variant's kept steps on this machine."""
        return play_file(self.tapes[key], self.machine)

    # --- an epoch ----------------------------------------------------------------------------------------------------

    @property
    def has_epochs(self) -> bool:
        """Whether the training was run alone, as it was found, and tidied up."""
        return self.has(SILENT, FOUND, TIDY)

    def epoch(self, key: str) -> Epoch:
        """An epoch of one training."""
        seen, parts = clocked(self.tapes[key], self.machine), dict.fromkeys(PARTS, 0.0)
        for name, ns in seen.pauses:
            if name in parts:
                parts[name] += ns
        total_ns = float(seen.total_ns)
        return Epoch(total_ns, min(self.steps[SILENT].step_ns * EVERY, total_ns), parts)

    @cached_property
    def found(self) -> Epoch:
        """An epoch as it was found."""
        return self.epoch(FOUND)

    @cached_property
    def tidy(self) -> Epoch:
        """An epoch tidied up."""
        return self.epoch(TIDY)

    @property
    def trained_share(self) -> float | None:
        """The share of an epoch, as it was found, that trains; None where that wasn't run."""
        return self.found.trained_share if self.has(SILENT, FOUND) else None

    @property
    def step_ns(self) -> float:
        """A training step alone."""
        return float(self.steps[SILENT].step_ns)

    def shares(self, epoch: Epoch) -> list[tuple[float, float | None]]:
        """Steps between two pauses, and the share of the time that trains then, by the law."""
        reading = epoch.reading_ns / EVERY
        paused_ns = sum(epoch.parts_ns.values())
        return [(n, n * self.step_ns / (n * (self.step_ns + reading) + paused_ns)) for n in PERIODS]

    def share_lines(self) -> dict[str, list[tuple[float, float | None]]]:
        """The law for both manners."""
        return {"as it was found": self.shares(self.found), "tidied up": self.shares(self.tidy)}

    def share_dots(self) -> list[tuple[float, float]]:
        """The same as it was run: steps between two pauses, and the share."""
        dots = [(float(EVERY), self.found.trained_share), (float(EVERY), self.tidy.trained_share)]
        if self.has(OFTEN):
            dots.append((EVERY / 4, self.epoch(OFTEN).trained_share))
        return dots

    def steps_for(self, epoch: Epoch, share: float = ENOUGH) -> float:
        """How many steps must lie between two pauses so that they take at most the rest of the time."""
        return share * sum(epoch.parts_ns.values()) / ((1 - share) * self.step_ns)

    @property
    def state_bytes(self) -> float:
        """What a checkpoint holds."""
        return self.noted[FOUND]["state_bytes"]

    @property
    def written_said(self) -> str:
        """What the writing thread did meanwhile."""
        written_ns = self.noted[TIDY].get("written_ns", 0.0)
        return f"A thread wrote the files meanwhile, in {duration(written_ns)} of this computer's time."

    @property
    def parts_said(self) -> str:
        """Which pause is the longest, and what tidying leaves of the pauses."""
        longest = max(PARTS, key=lambda part: self.found.parts_ns[part])
        return (
            f"The longest is the {longest}, {duration(self.found.parts_ns[longest])}. Tidied up, an epoch takes "
            f"{duration(self.tidy.total_ns)} and trains for {percent(self.tidy.trained_share)} of that."
        )

    # --- switches ----------------------------------------------------------------------------------------------------

    @property
    def left_on(self) -> list[str]:
        """Switches that were run on the small network, beside none."""
        return [switch for switch in LEFT_ON if self.has(small_key("off"), small_key(switch))]

    def ratio(self, slow: str, fast: str) -> float | None:
        """How many times as long one step takes as another; None where one wasn't run."""
        return float(self.steps[slow].step_ns / self.steps[fast].step_ns) if self.has(slow, fast) else None

    def times(self, switch: str) -> tuple[float | None, float | None]:
        """How many times as long a step takes with this switch: of the small network, and of ResNet-50."""
        small = self.ratio(small_key(switch), small_key("off"))
        return small, self.ratio(resnet_key(switch), resnet_key("off"))

    @property
    def dilated_times(self) -> float | None:
        """How many times as long dilated convolutions take where they are to be deterministic."""
        return self.ratio(dilated_key("deterministic"), dilated_key("off"))

    @property
    def switches_said(self) -> str:
        """Which switch costs most, and whether any is free here."""
        timed = {switch: self.times(switch)[0] or 1.0 for switch in self.left_on if switch != "off"}
        if not timed:
            return ""
        worst = max(timed, key=lambda switch: timed[switch])
        free = [SWITCHES[switch] for switch, times in timed.items() if times < SLOWER and switch != "unfilled"]
        told = f"Dearest for the small network is {SWITCHES[worst]}, {timed[worst]:.1f} times."
        if free:
            told += f" {'These cost' if len(free) > 1 else 'This costs'} hardly anything here: {', '.join(free)}."
        return told

    # --- steps that grow ---------------------------------------------------------------------------------------------

    @property
    def has_grown(self) -> bool:
        """Whether each way to keep the losses was run."""
        return self.has(*map(grown_key, GREW))

    def lengths_ns(self, way: str) -> list[int]:
        """The length of each step in order."""
        return step_lengths(self.tapes[grown_key(way)], self.machine)

    def growth_lines(self) -> dict[str, Sequence[tuple[float, float]]]:
        """Steps so far, and a step's milliseconds, for each way."""
        named = {"sum(losses) / len(losses)": "all", "a page rewritten": "report", "a running mean": "last"}
        return {
            name: [(k, ns / 1e6) for k, ns in middles(self.lengths_ns(way), NOISY)[::4]]
            for name, way in named.items()
            if self.has(grown_key(way))
        }

    @cached_property
    def growth(self) -> tuple[float, float]:
        """Nanoseconds of a step at the begin, and what each further one adds, where all losses are averaged."""
        lengths = self.lengths_ns("all")
        n = len(lengths) // 4
        first, last = mean(lengths[:n]), mean(lengths[-n:])
        each = (last - first) / (len(lengths) - n)
        return first - each * n / 2, each

    @property
    def doubled_after(self) -> float:
        """After how many steps a step takes twice as long; infinite where it doesn't grow."""
        first, each = self.growth
        return first / each if each > 0 else float("inf")

    @property
    def growth_said(self) -> str:
        """How fast the steps grow."""
        first, each = self.growth
        if each <= 0:
            return "Here no step got longer than the one before."
        return (
            f"Each step is {duration(each)} longer than the one before. It began at {duration(first)}; after "
            f"{self.doubled_after:.0f} steps it takes twice that."
        )

    # --- collections and graphs --------------------------------------------------------------------------------------

    @property
    def collections_ns(self) -> dict[str, float]:
        """How long a collection took, in the middle, for each way that was run."""
        return {key: self._collection_ns(key) for key in COLLECTED if self.has(key)}

    def _collection_ns(self, key: str) -> float:
        lengths = sorted(ns for _, ns in clocked(self.tapes[key], self.machine).pauses)
        return float(lengths[len(lengths) // 2]) if lengths else 0.0

    @property
    def graphs_bytes(self) -> tuple[int, int] | None:
        """The peak of memory of a validation with graphs, and without; None where one wasn't run or didn't fit."""
        kept, none = (self.memory_bytes.get(key) for key in VALIDATED)
        return None if not kept or not none else (kept, none)

    # --- what is learned ---------------------------------------------------------------------------------------------

    def learning_lines(self) -> dict[str, Sequence[tuple[float, float]]]:
        """Seconds and mean loss of the trainings, each at its own pace."""
        named = {"as it was found": FOUND, "tidied up": TIDY}
        lines: dict[str, Sequence[tuple[float, float]]] = {}
        for name, key in named.items():
            step_ns = float(self.steps[key].step_ns)
            known = [loss for loss in self.losses[key] if loss is not None]
            lines[name] = [(k * step_ns / 1e9, loss) for k, loss in running_mean(known, SMOOTH)[SMOOTH - 1 :: 3]]
        return lines

    @property
    def same_losses_said(self) -> str:
        """Whether all trainings learn the same, step by step."""
        pairs = zip(self.losses[FOUND], self.losses[TIDY], strict=False)
        worst = max((abs(a - b) for a, b in pairs if a is not None and b is not None), default=0.0)
        return (
            "Step by step the losses are the same."
            if worst < 1e-4
            else f"Step by step the losses differ by {worst:.2g} at most: reading them moved something."
        )

    def held(self, key: str) -> dict[int, float]:
        """Held-out losses by the step after which they were found."""
        return {int(name[5:]): loss for name, loss in self.noted.get(key, {}).items() if name.startswith("held ")}


def pauses_of(kept: Kept, on: Machine) -> Pauses:
    """What a run, finished or stopped half-way, has on a machine; without a run there are no variants."""
    told = [each for each in kept.data["points"] if each["key"] in kept.tapes] if kept.tapes else []
    tapes = {each["key"]: kept.tapes[each["key"]] for each in told}
    return Pauses(
        on,
        Steps(tapes, on),
        tapes,
        {each["key"]: tuple(each["losses"]) for each in told},
        {each["key"]: each.get("noted", {}) for each in told},
        {each["key"]: each["memory_bytes"] for each in (kept.data["points"] if kept.tapes else [])},
    )
