"""The machine a reader means by a name that may be a machine's or a card's."""

from __future__ import annotations

from gpututor.cards import DEFAULT_MACHINE, Machine, cards, machine, machine_for, machines
from gpututor.errors import CardNotKnown, MachineNotKnown


def machine_named(name: str | Machine | None = None) -> Machine:
    """The machine called `name`, or the usual machine with one card called `name`.

    A machine is given back as it is; without a name it is the default one.

    >>> machine_named().name, machine_named("g4dn.xlarge").card.name, machine_named("T4").name
    ('p3.2xlarge', 'T4', 'g4dn.xlarge')

    Raises:
        MachineNotKnown: neither a machine nor a card has this name; the message lists near matches.
    """
    if isinstance(name, Machine):
        return name
    wanted = DEFAULT_MACHINE if name is None else name
    try:
        return machine(wanted)
    except MachineNotKnown:
        pass
    try:
        return machine_for(wanted)
    except CardNotKnown:
        raise MachineNotKnown("machine or card", wanted, [*machines(), *cards()]) from None
