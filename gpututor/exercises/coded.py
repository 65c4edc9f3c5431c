"""What a learner's code handed back from its process, as facts that a judge can count and price.

Nothing of it is trusted: times come from pricing the tape here, and outputs are compared with the judge's own. That
work was skipped is seen in what was launched, because any right answer needs at least so much of it.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from gpututor.cards import Machine
from gpututor.errors import GpututorError
from gpututor.exercises.form import Judged
from gpututor.lab.cards_pool import OneCard, cards_apart
from gpututor.lab.incidents import note
from gpututor.lab.learner_code import LearnerRun, run_learner
from gpututor.model import tape_file
from gpututor.model.tape import CopyCall, Sync, Tape, TapeOp, WaitEvent
from gpututor.replay import Played, play

ON_CARD_TIMEOUT_S = 25.0  # torch is imported in it, and the reader's processor may be busy
ON_CARD_MEMORY_MB = 4096
SMALL_BYTES = 512  # indices and losses: our choice, less than the inputs or results of any hidden case
ELSEWHERE = "The values are right, but the card has reckoned too little, or copied too much: the work belongs there."


@dataclass(frozen=True, slots=True)
class Launched:
    """What one call launched on the simulated card, and what it gave back as plain data."""

    tape: Tape
    gave: Any
    received_bytes: int | None = None
    """Bytes of host tensors that the card got while the code ran, copied or not; None where the card was the code's."""

    @property
    def uploaded_bytes(self) -> int:
        """Bytes that went from the host to the card: of work moved off the card, the results come back this way."""
        copied = sum(entry.n_bytes for entry in self.tape.entries if type(entry) is CopyCall and entry.to_gpu)
        return max(copied, self.received_bytes or 0)

    @property
    def downloaded_bytes(self) -> int:
        """Bytes that the code read from the card: what is reckoned elsewhere has to be read first."""
        return sum(entry.n_bytes for entry in self.tape.entries if type(entry) is CopyCall and not entry.to_gpu)

    def is_done_there(self, least_flop: float, machine: Machine, most_up_bytes: int = SMALL_BYTES) -> bool:
        """Whether the card did at least so much, and no more was copied than an answer that works there needs.

        To reckon elsewhere, inputs have to be read and results brought back; `SMALL_BYTES` may be read.
        """
        there = self.downloaded_bytes <= SMALL_BYTES and self.uploaded_bytes <= most_up_bytes
        return there and self.flop(machine) >= least_flop

    @property
    def n_waits(self) -> int:
        """How often the host waited for the card in any way: syncs, blocking copies, events; not the one at the end."""
        waits = sum(
            type(entry) is Sync
            or (type(entry) is CopyCall and entry.blocking)
            or (type(entry) is WaitEvent and entry.stream is None)
            for entry in self.tape.entries
        )
        return max(0, waits - 1)

    @property
    def n_ops(self) -> int:
        """Calls of the device: operators, without copies."""
        return sum(type(entry) is TapeOp for entry in self.tape.entries)

    @property
    def n_copies(self) -> int:
        """Copies between host and card."""
        return sum(type(entry) is CopyCall for entry in self.tape.entries)

    def on(self, machine: Machine) -> Played:
        """The work priced on a machine, by us."""
        return play(self.tape, machine)

    def flop(self, machine: Machine) -> float:
        """Floating point operations of everything launched: a lower bound of it can't be skipped."""
        spans = self.on(machine).timeline.spans
        return sum(span.work.flop or 0.0 for span in spans if span.work is not None)


@dataclass(frozen=True, slots=True)
class Laid:
    """An argument of a harness: tensors on the card that `where` ("module:function") makes of `args`.

    Where the card lives apart they are laid there by its own process, and the learner's gets neither `args` nor values.
    """

    where: str
    args: tuple[Any, ...] = ()


def on_card(
    code: str,
    function: str,
    harness: str,
    calls: Sequence[Sequence[Any]] = ((),),
    *,
    reads_before: bool = False,
    on_ranks: bool = False,
) -> tuple[list[Launched], str]:
    """What `function` launched at each call of the harness, or nothing and one sentence why.

    `harness` hands back what `lab.on_card.recorded` gives; an argument that is `Laid` it takes with `lab.on_card.laid`.
    Inside `on_cards_apart(…)` the card lives in a process of its own, which gives tape and values. Values on it can't
    be read before the counted part, lest code learns there what it would have to wait for; `reads_before` allows it
    where there is nothing to learn. With `on_ranks` the harness runs several ranks
    (`recorded_ranks`), which share a process with the code wherever it is judged.
    """
    cards = None if on_ranks else cards_apart()
    if cards is None:
        plain = [[[each.where, *each.args] if isinstance(each, Laid) else each for each in call] for call in calls]
        launched, sentence = _in_their_process(code, function, harness, plain)
    else:
        lain = [each for call in calls for each in call if isinstance(each, Laid)]
        numbers = iter(range(len(lain)))
        plain = [[next(numbers) if isinstance(each, Laid) else each for each in call] for call in calls]
        card = cards.card(len(calls), [(each.where, each.args) for each in lain], reads_before=reads_before)
        launched, sentence = _apart(card, code, function, harness, plain)
    heard = _HEARD.get()
    if heard is not None:
        heard += launched
    return launched, sentence


def _in_their_process(
    code: str, function: str, harness: str, calls: Sequence[Sequence[Any]]
) -> tuple[list[Launched], str]:
    ran = run_learner(code, function, calls, harness=harness, timeout_s=ON_CARD_TIMEOUT_S, memory_mb=ON_CARD_MEMORY_MB)
    if ran.values is None:
        return [], ran.sentence or "Your code gave no answer."
    try:
        return [_launched(told) for told in ran.values], ""
    except (GpututorError, KeyError, TypeError, ValueError, AttributeError, binascii.Error) as error:
        note("record")
        return [], f"What your code handed back is no record of a run ({type(error).__name__}); run it again."


def _apart(
    card: OneCard, code: str, function: str, harness: str, calls: Sequence[Sequence[Any]]
) -> tuple[list[Launched], str]:
    """The same with the card in a process of its own: of what the learner's process says only its fault is heard."""
    try:
        ran = run_learner(
            code,
            function,
            calls,
            harness=harness,
            timeout_s=ON_CARD_TIMEOUT_S,
            memory_mb=ON_CARD_MEMORY_MB,
            card=card.socket.fileno(),
        )
    finally:
        runs, fault = card.runs()
    if fault:
        note("record")
        return [], fault
    if ran.values is None:
        return [], ran.sentence or "Your code gave no answer."
    if len(runs) != len(calls) or list(ran.values) != [{"recording": k} for k in range(len(calls))]:
        note("record")
        return [], f"{len(calls)} runs on the card were asked for, and {len(runs)} are complete; run it again."
    return [Launched(tape_file.from_bytes(run.tape, "your run"), run.gave, run.received_bytes) for run in runs], ""


_HEARD: ContextVar[list[Launched] | None] = ContextVar("heard", default=None)


@contextmanager
def noted() -> Iterator[list[Launched]]:
    """What code launched while judges looked at it inside the block, call by call, for whoever shows it."""
    heard: list[Launched] = []
    before = _HEARD.set(heard)
    try:
        yield heard
    finally:
        _HEARD.reset(before)


def _launched(told: Any) -> Launched:
    return Launched(tape_file.from_bytes(base64.b64decode(told["tape"]), "your run"), told["gave"])


def numbers_only(ran: LearnerRun) -> tuple[list[float], Judged | None]:
    """The values of a run that are to be one number each; or no values, and what is to be said."""
    if ran.values is None:
        return [], Judged("wrong", ran.sentence or "Your code gave no answer.")
    odd = next((value for value in ran.values if not is_number(value)), None)
    if odd is not None or any(value is None for value in ran.values):
        return [], Judged("wrong", f"Your function returned {odd!r}; it is asked for a number.")
    return [float(value) for value in ran.values], None


def is_number(value: Any) -> bool:
    """Whether a reader's answer is a number that can be compared; NaN and infinities are not.

    >>> is_number(0.5), is_number(True), is_number("1"), is_number(float("nan"))
    (True, False, False, False)
    """
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf")


def close_to(theirs: Any, ours: Any, rel: float = 1e-4, least: float = 1e-6) -> bool:
    """Whether two values, numbers or nested lists of them, agree within a share or a least difference."""
    if isinstance(ours, list):
        return (
            isinstance(theirs, list)
            and len(theirs) == len(ours)
            and all(close_to(a, b, rel, least) for a, b in zip(theirs, ours, strict=True))
        )
    return is_number(theirs) and is_number(ours) and math.isclose(theirs, ours, rel_tol=rel, abs_tol=least)
