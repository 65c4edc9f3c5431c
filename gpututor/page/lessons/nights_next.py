"""The case of exercise 18.1: what was noted in the forty nights after those of a reader's run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from gpututor.cards import Machine
from gpututor.exercises.ex18 import asked_episode, case_why, next_seed
from gpututor.exercises.form import Case
from gpututor.experiments.nights import N_QUIET, Night, episodes, ledger_of, nights
from gpututor.history import Entry
from gpututor.history.changes import moved, usual
from gpututor.history.entry import accounts_a_step
from gpututor.ledger import Ledger
from gpututor.model.tape import Tape
from gpututor.page.kept import Kept
from gpututor.page.lessons.nights import Nights
from gpututor.replay import read_tape
from gpututor.text import NBSP, duration

N_ASKED = 3  # nights at the end of an episode that are shown
LONGER_SHARE = 0.03  # by so much a step must be longer to be asked about


def why_case(kept: Kept, found: Nights) -> Case:
    """The case of exercise 18.1: the forty nights after these, from the same tapes, on the same machine.

    Raises:
        TimelineError: a tape is gone or damaged.
    """
    seed, machine = next_seed(int(kept.data["seed"])), found.machine
    tapes = {form: read_tape(path) for form, path in kept.tapes.items()}
    told = nights(seed)
    usual_ns = found.usual_ns * told[0].n_samples
    longer = [
        one
        for one in episodes(seed)
        if (ledger_of(told[one.last - 1].alike, tapes, machine).step_ns or 0.0) >= (1 + LONGER_SHARE) * usual_ns
    ]
    one = asked_episode(seed, longer)
    if one is None:
        return {}
    last = [told[n - 1] for n in one.numbers][-N_ASKED:]
    return case_why(seed, one, machine.name, machine.card.name, _rows(told[:N_QUIET], last, tapes, machine))


def _rows(
    before: Sequence[Night], then: Sequence[Night], tapes: Mapping[str, Tape], machine: Machine
) -> list[tuple[str, str, str]]:
    """What was noted of both groups of nights: medians a step, and what else differs."""
    groups = [[ledger_of(night, tapes, machine) for night in nights_] for nights_ in (before, then)]
    step_ns, longer_ns = (median(each.step_ns or 0.0 for each in group) for group in groups)
    rows = [("a step", duration(step_ns), duration(longer_ns))]
    rows.append(("samples in it", f"{before[0].n_samples}", f"{then[0].n_samples}"))
    accounts = [usual([_entry(each) for each in group]) for group in groups]
    rows += [
        (each.account.value, duration(each.before_ns), duration(each.after_ns))
        for each in moved(*accounts)
        if abs(each.difference_ns) >= LONGER_SHARE / 3 * step_ns
    ]
    rows.append(("clock of the SMs", _mhz(machine, before[0]), _mhz(machine, then[0])))
    rows.append(("driver", before[0].driver, then[0].driver))
    rows.append(("commit", before[-1].commit[:9], then[-1].commit[:9]))
    return rows


def _mhz(machine: Machine, night: Night) -> str:
    return f"{machine.card.boost_clock_hz * night.clock_share / 1e6:,.0f}{NBSP}MHz"


def _entry(ledger: Ledger) -> Entry:
    return Entry("job", "nightly.py", "simulated", None, None, accounts_ns=accounts_a_step(ledger))
