"""The machine a reader means by a name that may be a machine's or a card's."""

from __future__ import annotations

from gpututor.cards import DEFAULT_MACHINE, Machine, cards, machine, machine_for, machines
from gpututor.errors import CardNotKnown, MachineNotKnown
from gpututor.own_machine import asked_for, machine_here


def machine_named(name: str | Machine | None = None) -> Machine:
    """The machine called `name`, or the usual machine with one card called `name`.

    A machine is given back as it is; without a name it is the default one. "here" is this computer as `gpututor
    calibrate` measured it, "T4 here" the same with another card.

    >>> machine_named().name, machine_named("g4dn.xlarge").card.name, machine_named("T4").name
    ('p3.2xlarge', 'T4', 'g4dn.xlarge')

    Raises:
        MachineNotKnown: neither a machine nor a card has this name; the message lists near matches.
        NotCalibrated: it is this computer, and nothing was measured here.
    """
    if isinstance(name, Machine):
        return name
    wanted = DEFAULT_MACHINE if name is None else name
    is_here, card_name = asked_for(wanted)
    if is_here:
        return machine_here(card_name)
    try:
        return machine(wanted)
    except MachineNotKnown:
        pass
    try:
        return machine_for(wanted)
    except CardNotKnown:
        raise MachineNotKnown("machine or card", wanted, [*machines(), *cards()]) from None
