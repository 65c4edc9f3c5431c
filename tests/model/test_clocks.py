"""A tape's length by its clocks alone is that of its timeline."""

from __future__ import annotations

import pytest

from gpututor.errors import TimelineError
from gpututor.lookup import machine_named
from gpututor.model.clocks import window_of
from gpututor.model.exchange import CardsExchange, RanksExchange, WaitExchange
from gpututor.model.kernels import Stream
from gpututor.model.spec import HostKind
from gpututor.model.tape import BeginStep, EndRun, Sync, Tape, TapeOp

KERNELS = [TapeOp("aten.add.Tensor", HostKind.LIGHT, "forward", (Stream("add", 8_000_000, 1_000_000, 1_000_000),))] * 9


def tape(*more, **told):
    entries = [entry for k in range(3) for entry in (BeginStep(), *KERNELS, *(make(k) for make in more), Sync("item"))]
    return Tape("", [*entries, EndRun()], [None] * 3, **told)


@pytest.mark.parametrize(
    "one",
    [
        pytest.param(tape(), id="one card"),
        pytest.param(tape(lambda k: CardsExchange("all_reduce", 10**8, (0, 1)), n_cards=2), id="cards of one process"),
        pytest.param(
            tape(
                lambda k: RanksExchange("all_reduce", 10**8, (0, 1, 2, 3), k, 0),
                lambda k: WaitExchange(k, 0),
                n_ranks=4,
            ),
            id="ranks",
        ),
    ],
)
def test_the_window_is_that_of_the_timeline(one):
    machine = machine_named("p3.8xlarge")

    assert window_of(one, machine) == one.price(machine).duration_ns


def test_a_machine_with_too_few_cards_is_refused_as_before():
    with pytest.raises(TimelineError, match="used a machine with 2 cards"):
        window_of(tape(n_cards=2), machine_named("p3.2xlarge"))


def test_an_empty_tape_is_refused_as_before():
    with pytest.raises(TimelineError, match="did nothing"):
        window_of(Tape(), machine_named("p3.2xlarge"))
