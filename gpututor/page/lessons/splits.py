"""Mean steps of a run's variants on one machine, worked out when asked for, so that the first figures come first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from gpututor.cards import Machine
from gpututor.experiments.per_op import HostSplit, host_split
from gpututor.model.tape import Tape
from gpututor.replay import SameMachine, read_tape

UPDATE = "optimizer"  # the phase of ops that an optimizer launched


@lru_cache(maxsize=512)
def _split(path: Path, changed_ns: int, on: SameMachine, without: str | None) -> HostSplit:
    tape = read_tape(path)
    if without is not None:
        entries = [each for each in tape.entries if getattr(each, "phase", None) != without]
        tape = Tape(tape.what, entries, tape.losses, n_cards=tape.n_cards, clock=tape.clock)
    return host_split(tape, on.machine)


class Steps(Mapping[str, HostSplit]):
    """A mean step of each variant on one machine, by key; `without` leaves out the ops of one phase.

    Asking raises `TimelineError` where a tape is gone or damaged.
    """

    def __init__(self, tapes: Mapping[str, Path], on: Machine, *, without: str | None = None) -> None:
        self._tapes, self._on, self._without = tapes, SameMachine(on), without

    def __getitem__(self, key: str) -> HostSplit:
        path = self._tapes[key]
        return _split(path, path.stat().st_mtime_ns, self._on, self._without)

    def __contains__(self, key: object) -> bool:
        return key in self._tapes

    def __iter__(self) -> Iterator[str]:
        return iter(self._tapes)

    def __len__(self) -> int:
        return len(self._tapes)
