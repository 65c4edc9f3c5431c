"""A run measured on the reader's own GPU, beside what the model expects of the same card.

The card is known by its name. The host is not: its costs are those of a host from our tables, and how much that
may matter is found by pricing the same work on every host that we have. Where `gpututor calibrate` measured the
reader's host, that one is taken instead.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gpututor import own_machine
from gpututor.cards import Card, Host, Machine, find_card, hosts, machine_for, scaled
from gpututor.errors import CalibrationDamaged, TimelineError
from gpututor.expect import Band, Comparison, compare, differences
from gpututor.expect.accuracy import BUSY, error_of, together
from gpututor.ledger import SLOW, UNFILLED, Account, Ledger, charge
from gpututor.model.tape import Tape
from gpututor.replay import play
from gpututor.text import duration, percent
from gpututor.timeline import Label, Origin, Timeline


@dataclass(frozen=True, slots=True)
class StandIn:
    """The machine that the model takes for the reader's, and in words how far its host can be trusted."""

    machine: Machine
    words: str


@dataclass(frozen=True, slots=True)
class Beside:
    """What was measured, what was expected, and where they differ.

    Without an expectation `expected` and `comparison` are None, and `words` says why; else it says whose host it has.
    """

    measured: Ledger
    expected: Ledger | None
    comparison: Comparison | None
    words: str


def beside(timeline: Timeline, tape: Tape) -> Beside:
    """The measured timeline's ledger, and that of the same job's tape on the same card with a host of our tables.

    Raises:
        TimelineError: the timeline holds several GPUs, or the tape no steps.
        ExpectationError: the timeline has no steps.
    """
    measured = charge(timeline)
    stand_in = standing_in(timeline.label)
    if stand_in is None:
        return Beside(measured, None, None, not_listed(timeline.label))
    expected = play(tape, stand_in.machine).ledger
    wall = compare(step_band(tape, stand_in.machine), measured.step_ns)
    accounts = differences(*(as_coarse_as(measured, ledger) for ledger in (expected, measured)))
    return Beside(measured, expected, Comparison(wall, accounts), stand_in.words)


def as_coarse_as(other: Ledger, ledger: Ledger) -> Ledger:
    """The ledger with its busy time broken down no further than the other's: profilers say little about a kernel."""
    if not other.charged_ns[Account.BUSY_UNSPLIT]:
        return ledger
    merged = (*SLOW, Account.USEFUL, *(UNFILLED if "sm_fill" in other.reasons else ()))
    charged_ns = {account: 0 if account in merged else ns for account, ns in ledger.charged_ns.items()}
    charged_ns[Account.BUSY_UNSPLIT] = sum(ledger.charged_ns[account] for account in merged)
    return replace(ledger, charged_ns=charged_ns)


def not_listed(label: Label) -> str:
    """Why there is no expectation for a card that our tables lack."""
    name = label.card or "This card"
    return f"{name} is not in our table of cards, so the model expects nothing; CONTRIBUTING.md says how to add a card."


def standing_in(label: Label) -> StandIn | None:
    """The machine to compare a measured run with: its card, with a host like its own; None if the card isn't known."""
    card = find_card(label.card) if label.card else None
    if card is None:
        return None
    usual = machine_for(card.name)
    calibrated = _calibrated(label, card)
    if calibrated is not None:
        return calibrated
    own = label.host or "not known"
    whose, of_whom = ("The recorded one", "the recorded one") if label.origin is Origin.RECORDED else ("Yours", "yours")
    like = host_like(label.host)
    if like is None:
        words = (
            f"The model's host is that of {usual.name}, {usual.host.cpu}. {whose} ({own}) is in no table of ours, and "
            "what a host needs for a launch is the large unknown here."
        )
        return StandIn(usual, words)
    name = usual.name if like.name == usual.host.name else f"{usual.name} with {like.cpu}"
    words = (
        f"The model's host is {like.cpu}, by its name the same processor as {of_whom}. What it needs for a launch was "
        "recorded or assumed elsewhere, and is the large unknown here."
    )
    return StandIn(replace(usual, name=name, host=like), words)


def _calibrated(label: Label, card: Card) -> StandIn | None:
    """This computer as `gpututor calibrate` measured it, where the run was measured on its processor; else None."""
    try:
        found = own_machine.load()
    except CalibrationDamaged:
        return None  # the command that wrote it says so; here another host does
    if found is None or not found.host.cpu or found.host.cpu != label.host:
        return None
    words = (
        f"The model's host is your own, as `gpututor calibrate` measured it on {found.measured_at[:10]}; what it needs "
        f"for a launch may be off by {percent(found.host.error_share)}."
    )
    return StandIn(own_machine.machine_here(card.name), words)


def host_like(cpu: str | None) -> Host | None:
    """The first host of our tables with the same processor, by its model number; None without one.

    >>> host_like("Intel(R) Xeon(R) CPU E5-2686 v4 @ 2.30GHz").name, host_like("Pentium II"), host_like(None)
    ('broadwell-e5-2686v4', None, None)
    """
    own = _model_numbers(cpu or "")
    return next((host for host in hosts().values() if own & _model_numbers(host.cpu)), None)


def _model_numbers(cpu: str) -> set[str]:
    """Words of a processor's name with three digits or more, as makers number their models: E5-2686, 8259CL, 7R32."""
    words = re.findall(r"[A-Z0-9-]+", cpu.upper())
    return {word for word in words if sum(letter.isdigit() for letter in word) >= 3}


def step_band(tape: Tape, machine: Machine) -> Band:
    """The time of a step on this machine with its room.

    A host that was calibrated is taken a little quicker and slower, as far as it may be off, and what that does to the
    step counts together with the model's own error. Any other is taken for each host of our tables, from the quickest
    to the slowest, with the model's own error on top. That error is the one on runs whose host doesn't matter.

    Raises:
        TimelineError: the run has no steps.
    """
    step_ns, (own_share, source) = _step_ns(tape, machine), error_of(BUSY)
    off_share = machine.host.costs_error_share
    if off_share is not None:
        bounds = [scaled(machine.host.costs, times) for times in (1 / (1 + off_share), 1 + off_share)]
        quick_ns, slow_ns = (_step_ns(tape, replace(machine, host=replace(machine.host, costs=c))) for c in bounds)
        low_share, high_share = (together(own_share, other / step_ns - 1) for other in (step_ns**2 / quick_ns, slow_ns))
        words = f"the model with your host {percent(off_share)} quicker and slower, together with {source}"
        return Band(step_ns / (1 + low_share), step_ns, step_ns * (1 + high_share), "ns", words)
    different = {tuple(host.costs.items()): host for host in hosts().values()}
    steps_ns = [_step_ns(tape, replace(machine, host=host)) for host in different.values()]
    return Band(
        min(*steps_ns, step_ns) / (1 + own_share),
        step_ns,
        max(*steps_ns, step_ns) * (1 + own_share),
        "ns",
        f"the model with each of our hosts, and {percent(own_share)} for its own error: {source}",
    )


def _step_ns(tape: Tape, machine: Machine) -> float:
    timeline = tape.price(machine)
    if not timeline.steps:
        raise TimelineError("the run has no steps, so there is no time of a step")
    return timeline.duration_ns / len(timeline.steps)


def without_profiler(measured: Ledger, rows: Sequence[Sequence[float]], n_kept: int) -> str:
    """What the sentences before the recorded ones say about the profiler's own cost; empty without enough of them.

    `rows` begin with the wall time of a step in nanoseconds; the last `n_kept` were recorded. The second half of the
    others is taken, since the first ones still load kernels.
    """
    before = [row[0] for row in rows[: len(rows) - n_kept]]
    steady = before[len(before) // 2 :]
    if not steady or not measured.n_steps or measured.step_ns is None:
        return ""
    unwatched_ns = sum(steady) / len(steady)
    busy_share = measured.gpu_util_ns / measured.n_steps / unwatched_ns
    return (
        f"Recorded, a step took {duration(measured.step_ns)}; the {len(steady)} before, which nobody recorded, took "
        f"{duration(unwatched_ns)} on average. At that pace the card is about {percent(min(1.0, busy_share))} busy."
    )
