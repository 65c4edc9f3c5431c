"""What one check found, with what it read and what to do about it; and how a check is registered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpututor.doctor.facts import Facts


class State(Enum):
    """How a check ended; the words are the ones that readers and scripts see."""

    FAIL = "fail"
    WARN = "warn"
    CANNOT_TELL = "cannot tell"
    PASS = "pass"


class Probe(Enum):
    """What has to be asked before a check can answer: each is a child process, since either may hang or crash."""

    DRIVER = "driver"
    TORCH = "torch"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a check says: one sentence, what was read and where, one thing to do, and who says so."""

    state: State
    words: str
    evidence: tuple[str, ...]
    remedy: str | None = None
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """An answer with the check's stable id and its title.

    `evidence` says what was read, and where; `remedy` is one command or sentence, None where nothing is to be done.
    """

    id: str
    title: str
    state: State
    words: str
    evidence: tuple[str, ...]
    remedy: str | None
    sources: tuple[str, ...]

    def as_fields(self) -> dict[str, object]:
        """Plain data for JSON."""
        return {
            "id": self.id,
            "title": self.title,
            "state": self.state.value,
            "words": self.words,
            "evidence": list(self.evidence),
            "remedy": self.remedy,
            "sources": list(self.sources),
        }


@dataclass(frozen=True, slots=True)
class Check:
    """One question with a stable id. Called with the facts it gives a finding, or None where it doesn't apply."""

    id: str
    title: str
    needs: frozenset[Probe]
    answer: Callable[[Facts], Answer | None]

    def __call__(self, facts: Facts) -> Finding | None:
        """What this check finds; never raises, since one broken file must not hide what the others see."""
        try:
            answer = self.answer(facts)
        except Exception as error:  # noqa: BLE001  # whatever this machine holds, the other checks go on
            answer = cannot_tell(f"this check stopped at {type(error).__name__}: {error}")
        if answer is None:
            return None
        return Finding(self.id, self.title, answer.state, answer.words, answer.evidence, answer.remedy, answer.sources)


def check(identity: str, title: str, *needs: Probe) -> Callable[[Callable[[Facts], Answer | None]], Check]:
    """A decorator that makes a check out of the function that answers it."""

    def made(answer: Callable[[Facts], Answer | None]) -> Check:
        return Check(identity, title, frozenset(needs), answer)

    return made


def passes(words: str, *evidence: str, sources: tuple[str, ...] = ()) -> Answer:
    """Nothing to do here."""
    return Answer(State.PASS, words, evidence, None, sources)


def warns(words: str, remedy: str, *evidence: str, sources: tuple[str, ...] = ()) -> Answer:
    """It works, and may be slower than need be."""
    return Answer(State.WARN, words, evidence, remedy, sources)


def fails(words: str, remedy: str, *evidence: str, sources: tuple[str, ...] = ()) -> Answer:
    """It doesn't work, or at a fraction of its pace."""
    return Answer(State.FAIL, words, evidence, remedy, sources)


def cannot_tell(words: str, *evidence: str, remedy: str | None = None, sources: tuple[str, ...] = ()) -> Answer:
    """The reading is missing or says nothing now; `words` gives the reason."""
    return Answer(State.CANNOT_TELL, words, evidence, remedy, sources)


_WORST_FIRST = (State.FAIL, State.WARN, State.CANNOT_TELL, State.PASS)


def worst(answers: list[Answer]) -> Answer | None:
    """One answer for several cards: the worst, with words and evidence of all that are as bad; None without any."""
    if not answers:
        return None
    state = min((answer.state for answer in answers), key=_WORST_FIRST.index)
    chosen = [answer for answer in answers if answer.state is state]
    return Answer(
        state,
        "; ".join(dict.fromkeys(answer.words for answer in chosen)),
        tuple(dict.fromkeys(line for answer in chosen for line in answer.evidence)),
        chosen[0].remedy,
        tuple(dict.fromkeys(source for answer in chosen for source in answer.sources)),
    )
