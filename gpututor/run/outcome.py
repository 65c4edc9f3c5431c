"""From what the child left behind to timeline, ledger, findings, money, and what a reader must know."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from statistics import median_low
from typing import Any

from gpututor.cards import Machine
from gpututor.causes import Finding, find_causes
from gpututor.errors import TimelineError
from gpututor.expect import Band, Verdicts, judge
from gpututor.expect.accuracy import error_of, regime_of, step_band, util_band
from gpututor.ledger import SHORTEST_PERIOD_S, Ledger, charge, gpu_util_samples
from gpututor.lookup import machine_named
from gpututor.model import tape_file
from gpututor.model.tape import Tape
from gpututor.run.parent import Ended
from gpututor.run.request import TAPE, Request
from gpututor.text import duration
from gpututor.timeline import NS_PER_S, Timeline

UNEVEN = 5
"""Our choice: batches of different lengths seldom differ by more; an evaluation between two steps does."""

LEAST_SAMPLES, MOST_SAMPLES = 60, 3600
"""Our choice: ten seconds of looking at least, ten minutes at most."""

SET_A_DEVICE = (
    'is the device set? Many scripts need an option such as --cuda or --device cuda; in code it is device = "cuda", '
    "given to the model and to every batch"
)
VIRTUAL_CLOCK = (
    "the simulated machine's host is charged for each op and for nothing else: what your Python does between them "
    "(loading, tokenizing, logging) costs nothing here, and on a real machine it may keep the card waiting; "
    "--clock paced counts it"
)
PACED_CLOCK = (
    "the clock was paced: what your Python does between the ops took as long as it took on this machine, "
    "so another machine gives other numbers"
)
TIMES_PRINTED = "times that the script prints itself are this machine's, except those of torch.cuda.Event"
WHAT_A_STEP_IS = {
    "marked": "a step ends where the script calls gpututor.step()",
    "optimizer": "a step ends where {optimizer}, the optimizer that stepped first, has stepped",
    "backward": "no optimizer was made, so a step ends where a backward pass has ended",
    None: "no optimizer stepped and no backward pass ended, so the whole run is one window; "
    "gpututor.step() at the end of each round of your loop marks its steps",
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """One finished run, ready to be shown. Without a ledger, `why_none` says why."""

    request: Request
    ended: Ended
    machine: Machine | None
    timeline: Timeline | None
    ledger: Ledger | None
    tape: Tape | None
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    why_none: str | None = None

    @property
    def device(self) -> int | None:
        """The number of the GPU that the ledger is of, None where there is only one."""
        return self.ledger.device if self.ledger else None

    @property
    def band(self) -> Band | None:
        """The predicted step in nanoseconds with its room; None for a measured run, without steps, or a paced clock."""
        predicted = self._predicted
        return step_band(*predicted) if predicted else None

    @property
    def util_band(self) -> Band | None:
        """The predicted GPU-Util with its room; None where `band` is."""
        predicted = self._predicted
        return util_band(*predicted) if predicted else None

    @property
    def gpu_util_samples(self) -> tuple[int, ...]:
        """The whole percents that nvidia-smi would show one after the other on the card that looks back least.

        The kept steps are repeated for it, until they have all been seen; nothing without a ledger.
        """
        if self.timeline is None or self.ledger is None:
            return ()
        n_samples = math.ceil(self.timeline.duration_ns / NS_PER_S / SHORTEST_PERIOD_S)
        n_samples = min(max(n_samples, LEAST_SAMPLES), MOST_SAMPLES)
        return gpu_util_samples(self.timeline, n_samples=n_samples, device=self.device)

    @property
    def _predicted(self) -> tuple[Timeline, Ledger, float | None] | None:
        """What bands follow from. With a paced clock the host is this machine's, which no report of ours knows."""
        if self.timeline is None or self.ledger is None or self.ledger.step_ns is None or self.machine is None:
            return None
        if self.request.here or self.request.clock == "paced":
            return None
        return self.timeline, self.ledger, self.machine.host.costs_error_share

    @property
    def usd_per_hour(self) -> float | None:
        """Price of the machine, or None where nobody rents it out."""
        return self.machine.usd_per_hour if self.machine else None

    @property
    def usd_per_1000_steps(self) -> float | None:
        """What a thousand such steps cost in US dollars; None without steps or price."""
        step_ns = self.ledger.step_ns if self.ledger else None
        if step_ns is None or self.usd_per_hour is None:
            return None
        return 1000 * step_ns / NS_PER_S / 3600 * self.usd_per_hour

    @property
    def memory_peak_bytes(self) -> int | None:
        """The most that the card's memory held, or None where it wasn't followed."""
        peak: int | None = self.ended.told.get("memory_peak_bytes")
        return peak


def verdicts(predicted: Outcome, measured: Outcome) -> Verdicts | None:
    """What the measured run says to the predicted one, account by account; None where one of them has no steps."""
    if predicted.timeline is None or predicted.ledger is None or measured.ledger is None:
        return None
    if predicted.ledger.step_ns is None or measured.ledger.step_ns is None:
        return None
    host_error = predicted.machine.host.costs_error_share if predicted.machine else None
    error_share, source = error_of(regime_of(predicted.timeline, predicted.ledger), host_error)
    return judge(measured.ledger, predicted.ledger, error_share, source, known={"profiled": True})


def simulated(request: Request, ended: Ended, folder: Path) -> Outcome:
    """The outcome of a run on the simulated card."""
    machine = machine_named(request.machine or None)
    if not ended.whole:
        return without(request, ended, machine, died(ended))
    tape = tape_file.load(folder / TAPE)
    if not ended.told["n_launches"]:
        return without(request, ended, machine, _touched_nothing(ended, machine))
    try:
        timeline = tape.price(machine, versions=(("torch", ended.told["torch"]),))
    except TimelineError as error:
        return without(request, ended, machine, str(error))
    ledger = charge(timeline, machine.card, device=0 if machine.n_cards > 1 else None)
    found, notes = find_causes(timeline, ledger), (*uneven(timeline), *_notes(request, ended.told))
    return Outcome(request, ended, machine, timeline, ledger, tape, found, notes)


def uneven(timeline: Timeline) -> tuple[str, ...]:
    """A note where a few steps last much longer than the others, so that their mean is nobody's step."""
    lengths_ns = [step.end_ns - step.start_ns for step in timeline.steps]
    if not lengths_ns:
        return ()
    usual_ns, longest_ns = median_low(lengths_ns), max(lengths_ns)
    if longest_ns < UNEVEN * usual_ns:
        return ()
    k = lengths_ns.index(longest_ns) + 1
    told = (
        f"most steps last {duration(usual_ns)}, but step {k} of {len(lengths_ns)} lasts {duration(longest_ns)}: "
        "an evaluation, a checkpoint or a sample of text inside it is counted with it"
    )
    return (told,)


def without(request: Request, ended: Ended, machine: Machine | None, why: str) -> Outcome:
    """An outcome without a ledger, and why there is none."""
    return Outcome(request, ended, machine, None, None, None, (), (), why)


def died(ended: Ended) -> str:
    """What is to be said of a process that left no result."""
    n_steps = ended.told.get("n_steps", 0)
    seen = f"until then it had done {n_steps} steps" if n_steps else "it had not finished a step"
    if ended.told.get("step_ns"):
        seen += f" of {duration(ended.told['step_ns'])} on the simulated card"
    return f"the process of the script is gone ({ended.how}) and could not write down what it did; {seen}"


def _touched_nothing(ended: Ended, machine: Machine) -> str:
    long = f"{ended.told['seconds']:.1f} s"
    if ended.told["error"] is not None:
        return f"the script failed after {long}, before it launched anything on the simulated {machine.card.name}"
    return f"the script ran {long} and launched nothing on the simulated {machine.card.name}; {SET_A_DEVICE}"


def _notes(request: Request, told: dict[str, Any]) -> tuple[str, ...]:
    """What a reader must know to judge the numbers."""
    notes = [WHAT_A_STEP_IS[told["steps_are"]].format(optimizer=told["optimizer"])]
    left_out, n_steps = told["n_left_out"], told["n_steps"]
    if told["steps_are"] and left_out < request.skip:
        plural = "s" if n_steps > 1 else ""
        notes.append(f"the run had {n_steps} step{plural}, so the set-up before is in the ledger too")
    if not told["kept_whole"]:
        notes.append(f"the run was long: the ledger is that of {told['n_kept']:,} of its {n_steps:,} steps")
    if not request.numerics:
        notes.append("numerics were off, so nothing was computed; losses and accuracies mean nothing")
    return (*notes, VIRTUAL_CLOCK if request.clock == "virtual" else PACED_CLOCK, TIMES_PRINTED)
