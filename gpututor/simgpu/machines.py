"""The machine a reader means by a name that may be a machine's or a card's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpututor.cards import cards, machine, machine_for, machines
from gpututor.errors import CardNotKnown, MachineNotKnown

if TYPE_CHECKING:
    from gpututor.cards import Machine


def machine_named(name: str) -> Machine:
    """The machine called `name`, or the usual machine with one card called `name`.

    Raises:
        MachineNotKnown: neither a machine nor a card has this name; the message lists near matches.
    """
    try:
        return machine(name)
    except MachineNotKnown:
        pass
    try:
        return machine_for(name)
    except CardNotKnown:
        raise MachineNotKnown("machine or card", name, [*machines(), *cards()]) from None
