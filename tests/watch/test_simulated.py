from __future__ import annotations

from dataclasses import replace

from gpututor.live import LiveCard, LiveRun
from gpututor.watch.simulated import NOT_SIMULATED, STANDS_STILL, SimulatedGpus

MS = 1_000_000
CARD = LiveCard("V100", 0, 1 << 30, 16 << 30)
RUN = LiveRun(7, "train.py", "p3.2xlarge", 0, 3, 1000.0, (CARD,))


def at(clock_ms, busy_ms, **fields):
    card = replace(CARD, busy_ns=busy_ms * MS)
    return replace(RUN, clock_ns=clock_ms * MS, cards=(card,), **fields)


def looks(*moments):
    """What each look gives; a moment is the runs at that time."""
    waiting = list(moments)
    gpus = SimulatedGpus(lambda: waiting.pop(0))
    return [gpus.read() for _ in moments]


def test_the_share_is_that_of_the_cards_own_clock_between_two_looks():
    (first,), (second,), (third,) = looks((at(1000, 100),), (at(2000, 350),), (at(2500, 850),))

    assert first.kernel_time_share is None
    assert (second.kernel_time_share, third.kernel_time_share) == (0.25, 1.0)


def test_a_clock_that_stands_still_gives_no_share_and_the_next_look_has_it_all():
    _, (still,), (later,) = looks((at(1000, 100),), (at(1000, 100),), (at(1100, 150),))

    assert (still.kernel_time_share, still.reasons["kernel_time_share"]) == (None, STANDS_STILL)
    assert later.kernel_time_share == 0.5


def test_what_no_model_of_ours_gives_is_none_with_a_reason():
    ((card,),) = looks((RUN,))

    assert card.simulated
    assert (card.power_w, card.temperature_c, card.clock_reasons) == (None, None, None)
    assert card.reasons["power_w"] == card.reasons["temperature_c"] == NOT_SIMULATED


def test_the_run_is_named_with_its_process_and_step():
    ((card,),) = looks((RUN,))

    assert card.doing == "train.py, process 7, step 3"


def test_a_run_keeps_its_key_and_the_next_one_takes_a_free_one():
    other = replace(RUN, pid=9)
    seen = looks((RUN,), (RUN, other), (other,), (replace(RUN, pid=12), other))

    assert [[card.key for card in look] for look in seen] == [["sim0"], ["sim0", "sim1"], ["sim1"], ["sim0", "sim1"]]


def test_a_new_run_under_an_old_key_begins_anew():
    _, _, (card,) = looks((at(1000, 900),), (), (at(50, 10, pid=9),))

    assert (card.key, card.kernel_time_share) == ("sim0", None)


def test_every_card_of_a_machine_is_shown():
    ((first, second),) = looks((replace(RUN, cards=(CARD, CARD)),))

    assert (first.key, second.key) == ("sim0", "sim1")
