"""How long a tape takes on a machine, without a timeline of it: only the clocks move, which is some times as quick."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpututor.errors import TimelineError
from gpututor.model.cards_player import player_for
from gpututor.model.ranks import RankTapes

if TYPE_CHECKING:
    from gpututor.cards import Machine
    from gpututor.model.tape import Tape


def window_of(tape: Tape, machine: Machine) -> int:
    """Nanoseconds from the first step to the end of the last: the window of `tape.price(machine)`.

    Raises:
        TimelineError: the tape is empty, or the run used more cards than the machine has.
    """
    if tape.n_ranks > 1:
        ranks = RankTapes([tape], tape.n_ranks, tape.what, tape.losses)
        return ranks.clocks(machine, as_in_training=True).duration_ns
    if tape.n_cards > machine.n_cards > 0 and tape.n_cards > 1:
        raise TimelineError(
            f"the run used a machine with {tape.n_cards} cards and {machine.name} has {machine.n_cards}; "
            "price it on a machine with as many"
        )
    player = player_for(machine, None, tape.n_cards)
    for entry in tape.entries:
        player.play(entry)
    begin_ns = player.begins[0][0] if player.begins else 0
    end_ns = player.end_ns if player.end_ns is not None else player.queue.end_ns
    if end_ns <= begin_ns:
        raise TimelineError("the run did nothing on host or card, so there is no time to account for")
    return end_ns - begin_ns
