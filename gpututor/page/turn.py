"""Checking an answer when its turn has come: on a server for a class, a learner's code waits in the lab's line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpututor.exercises.form import Case, Exercise, Judged
from gpututor.lab.line import LineFull
from gpututor.lab.pool import the_lab
from gpututor.store import Store

LONGEST_S = 120.0  # our choice: whoever waits longer is better told to come back, since their page stands still


def checked(one: Exercise, answer: Any, case: Case, store: Store, tell: Callable[[str], None]) -> Judged:
    """The judge's word. `tell` gets one sentence on the place in line, whenever it changes while the answer waits.

    Only code waits, because only code takes a process. With a line too long, or too much of the learner's own in it,
    the answer stays unanswered, with one sentence.
    """
    if one.kind != "code" or one.is_untouched(answer):
        return one.check(answer, case)
    try:
        with the_lab().turn(store.learner, f"exercise {one.number}", tell, LONGEST_S) as came:
            if came:
                return one.check(answer, case)
    except LineFull as full:
        return Judged("unanswered", f"Not checked yet, because {full}.")
    return Judged("unanswered", f"Not checked yet: its turn didn't come in {LONGEST_S:.0f} s. Press Check again.")
