"""What the name of a host event says. A trace has hundreds of thousands of them, of some hundred names."""

from __future__ import annotations

import msgspec

from gpututor.ledger.interruptions import OVERHEADS, activity_of, interruption
from gpututor.timeline import Activity
from gpututor.trace.categories import OPTIMIZER, PREPARES, STEP, WAITS, Role, is_input_mark
from gpututor.trace.own import activity_of_mark


class Told(msgspec.Struct, frozen=True, gc=False):
    """What an event of this role and name does to its thread; None where it does nothing.

    `step` is the number of the step that it marks, if it does. What a driver's call does also hangs on what it started.
    """

    role: Role
    name: str
    activity: Activity | None
    step: int | None = None


class Names(dict[str, Told]):
    """What the names of a role say; one that isn't there yet is looked at."""

    def __init__(self, role: Role) -> None:
        super().__init__()
        self.role = role

    def __missing__(self, name: str) -> Told:
        told = self[name] = told_by(self.role, name)
        return told


def told_by(role: Role, name: str) -> Told:
    """What an event of this role and name says."""
    step = STEP.match(name) if role is Role.MARK or role is Role.OPERATOR else None
    return Told(role, name, _activity(role, name), int(step[1][:18]) if step else None)


def _activity(role: Role, name: str) -> Activity | None:
    if role is Role.CALL:  # that started nothing: it waits, allocates, launches, or just takes its time
        if WAITS.match(name):
            return Activity.SYNC
        if PREPARES.match(name):
            return Activity.STARTUP
        return Activity.LAUNCH if "Launch" in name else Activity.DISPATCH
    if is_input_mark(name):
        return Activity.INPUT
    told = activity_of(OVERHEADS.get(name) if role is Role.OVERHEAD else interruption(name))
    if told is not None or role is Role.OVERHEAD:
        return told
    if role is Role.PYTHON:
        return Activity.PYTHON
    if name.startswith(OPTIMIZER):
        return Activity.DISPATCH
    if role is Role.MARK or STEP.match(name):
        return activity_of_mark(name)
    return Activity.DISPATCH
