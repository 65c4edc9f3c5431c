"""What a run of lesson 19 found on a machine: the mystery job and the reader's attempt, to the same loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from gpututor.cards import Machine
from gpututor.experiments import capstone
from gpututor.experiments.capstone import ASKED, MYSTERY, YOUR_START, YOURS
from gpututor.jobs.levers import Choices, Launch, Layers
from gpututor.jobs.rules import Rule
from gpututor.page.kept import Kept
from gpututor.replay import Played, play_file
from gpututor.store import Store
from gpututor.text import duration, percent

RAISED_SHARE = 0.8  # the lesson's goal
MOST_ATTEMPTS = 12  # of those that a reader's page remembers
LESSON = "19"

Curve = list[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Training:
    """One training as a machine does it: its usual steps, and those that only its beginning has, where it has any.

    `looked` are pairs of steps and loss on unseen sentences; `reached` says whether the last one is at the target.
    """

    label: str
    choices: Choices
    n_steps: int
    n_start: int
    n_seen: int
    looked: tuple[tuple[int, float], ...]
    reached: bool
    usual: Played
    start: Played | None

    @property
    def machine(self) -> Machine:
        """What it is priced on."""
        return self.usual.machine

    @property
    def step_ns(self) -> float:
        """Mean wall time of a usual step."""
        return self.usual.step_ns

    @property
    def busy_share(self) -> float:
        """Share of the usual steps' time in which a kernel runs: what nvidia-smi shows once it is going."""
        return self.usual.ledger.gpu_util_share

    @property
    def whole_busy_share(self) -> float:
        """The same for the whole training, warming up and capturing included."""
        parts = [(self._start_ns, self.start.ledger.gpu_util_share)] if self.start else []
        parts.append(((self.n_steps - self.n_start) * self.step_ns, self.busy_share))
        whole_ns = sum(ns for ns, _ in parts)
        return sum(ns * share for ns, share in parts) / whole_ns if whole_ns else 0.0

    @property
    def _start_ns(self) -> float:
        return self.n_start * self.start.step_ns if self.start else 0.0

    def after_ns(self, n_steps: int) -> float:
        """When so many steps are done; those of the beginning come first."""
        early = min(n_steps, self.n_start)
        return early * (self.start.step_ns if self.start else 0.0) + (n_steps - early) * self.step_ns

    @property
    def run_ns(self) -> float:
        """The whole training."""
        return self.after_ns(self.n_steps)

    @property
    def held_out(self) -> float | None:
        """The last loss on unseen sentences, None where none was looked at."""
        return self.looked[-1][1] if self.looked else None

    def usd(self) -> float | None:
        """What the whole training costs; None without a price."""
        rate = self.machine.usd_per_hour
        return None if rate is None else self.run_ns / 3600e9 * rate

    def line(self) -> Curve:
        """Seconds on this machine, and loss on unseen sentences."""
        return [(self.after_ns(k) / 1e9, loss) for k, loss in self.looked]


@dataclass(frozen=True, slots=True)
class Raising:
    """The mystery job, and the attempt where it ran; `trouble` says why it didn't."""

    mystery: Training | None
    yours: Training | None
    target: float
    trouble: str = ""

    @property
    def times(self) -> float | None:
        """How many times as fast the attempt is there; None where it isn't."""
        if self.mystery is None or self.yours is None or not self.yours.reached:
            return None
        return self.mystery.run_ns / self.yours.run_ns

    @property
    def verdict_said(self) -> str:
        """Whether the attempt is there, and what it lacks."""
        yours = self.yours
        if yours is None:
            return self.trouble or "Your attempt has not done a step yet."
        if yours.held_out is None:
            return "It was stopped before anybody looked at what it has learned."
        after = f"After {yours.n_seen:,} sentences, {duration(yours.run_ns)}, it stands at {yours.held_out:.2f}"
        if not yours.reached:
            return f"{after}; {self.target:.2f} is asked for. As long as it isn't there, nothing was saved."
        if yours.busy_share < RAISED_SHARE:
            return f"{after}: there. But the card is busy for {percent(yours.busy_share)} only."
        return f"{after}: there, and the card is busy for {percent(yours.busy_share)}."

    @property
    def next_said(self) -> str:
        """What holds this attempt up most, and which kind of lever answers it."""
        yours = self.yours
        if yours is None:
            return "Choose otherwise above, and train again."
        if yours.choices.rule is Rule.SGD and not yours.reached:
            return "It learns too little from a step: a larger batch takes fewer steps, so each has to go further."
        if yours.choices.layers is Layers.WORDS:
            return "Most of its kernels are one word's: as long as it is called word by word, a batch hides nothing."
        if yours.choices.launch is Launch.EAGER and yours.busy_share < RAISED_SHARE:
            return "The host still launches each kernel by itself, and the card waits for it."
        if not yours.reached:
            return "It is quick, and not there yet: let it see more sentences, or learn more from each."
        return "What is left is to be there with less: fewer steps, shorter steps, or a cheaper hour."


def raising_of(kept: Kept, on: Machine) -> Raising:
    """What a run, finished or stopped half-way, has on a machine; without a run neither training."""
    told = {each["key"]: each for each in kept.data["points"]} if kept.tapes else {}
    target = float(kept.data["target"]) if told else 0.0
    mystery = mystery_on(kept.tapes[MYSTERY], on) if MYSTERY in kept.tapes else None
    yours = training(told[YOURS], kept.tapes, on) if YOURS in kept.tapes and YOURS in told else None
    return Raising(mystery, yours, target, (told.get(YOURS) or {}).get("trouble") or "")


def mystery_on(tape: Path, on: Machine) -> Training:
    """The mystery job's whole training: steps from a run's tape, what it learned from the training that we kept."""
    known = capstone.mystery()
    n = int(known["n_sentences"])
    looked = tuple((int(k), float(loss)) for k, loss in known["held_out"])
    return Training("the mystery job", Choices(), n, 0, n, looked, True, play_file(tape, on), None)


def training(told: Mapping[str, Any], tapes: Mapping[str, Path], on: Machine, label: str = "yours") -> Training:
    """One attempt from what its run told and its tapes.

    Raises:
        TimelineError: a tape is gone or damaged.
    """
    start = tapes.get(YOUR_START)
    looked = tuple((int(row[0]), float(row[3])) for row in told["curve"])
    return Training(
        label,
        Choices.from_data(told["choices"]),
        int(told["n_steps"]),
        int(told["n_start"]) if start else 0,
        int(told["n_seen"]),
        looked,
        bool(told["reached"]),
        play_file(tapes[YOURS], on),
        play_file(start, on) if start else None,
    )


@lru_cache(maxsize=1)
def _our_run() -> Mapping[str, Any]:
    import json

    told: Mapping[str, Any] = json.loads((capstone.folder() / "ours.json").read_text("ascii"))
    return told


def our_training(on: Machine) -> Training:
    """Our own solution, from the run that we kept.

    Raises:
        TimelineError: a tape is gone or damaged.
    """
    told = _our_run()
    tapes = {key: capstone.folder() / file for key, file in told["tapes"].items()}
    (mine,) = (each for each in told["points"] if each["key"] == YOURS)
    return training(mine, tapes, on, "ours")


def ours_on(on: Machine) -> Raising:
    """The mystery job and our own solution, from the runs that we kept.

    Raises:
        TimelineError: a tape is gone or damaged.
    """
    told = _our_run()
    return Raising(mystery_on(capstone.folder() / told["tapes"][MYSTERY], on), our_training(on), float(told["target"]))


# --- what a reader's page remembers ----------------------------------------------------------------------------------


def outcome(store: Store, found: Raising) -> float | None:
    """The busy share of what the lesson asks about: this run's, or that of an earlier run; None before there is one."""
    yours = found.yours
    if yours is not None and replace(yours.choices, most=ASKED.most) == ASKED and yours.looked:
        store.put(LESSON, "asked", yours.busy_share)
    told = store.get(LESSON, "asked")
    return float(told) if isinstance(told, int | float) else None


def note_attempt(store: Store, found: Raising, at: str) -> None:
    """Remember the run that ended at this time as an attempt, once; the oldest ones are forgotten."""
    yours, known = found.yours, attempts(store)
    if yours is None or any(each["at"] == at for each in known):
        return
    told = {"at": at, "choices": yours.choices.as_data(), "machine": yours.machine.name, "reached": yours.reached}
    told |= {"busy": yours.busy_share, "run_ns": yours.run_ns, "usd": yours.usd(), "held_out": yours.held_out}
    store.put(LESSON, "attempts", [*known, told | {"n_seen": yours.n_seen}][-MOST_ATTEMPTS:])


def attempts(store: Store) -> Sequence[Mapping[str, Any]]:
    """The attempts that are remembered, the oldest first."""
    told = store.get(LESSON, "attempts")
    return [each for each in told if isinstance(each, dict) and "choices" in each] if isinstance(told, list) else []
