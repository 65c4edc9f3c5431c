from __future__ import annotations

import pytest

from gpututor.errors import WatchNotKept
from gpututor.watch.loop import FIRST_LOOK_S, watch
from tests.watch.made import Clock, Source, gpu, reading

FIRST, SECOND, THIRD = (reading(gpu(), time_s=float(k)) for k in range(3))


def watched(clock=None, readings=(FIRST, SECOND, THIRD), takes_s=0.0, **limits):
    """The readings that a listener gets."""
    clock, seen = clock or Clock(), []
    source = Source(list(readings), clock, takes_s)
    watch(source, [seen.append], clock_s=clock, wait_s=clock.wait, **({"interval_s": 1.0} | limits))
    return seen


def test_the_reading_that_shares_begin_at_is_shown_to_nobody():
    assert watched(n_readings=2) == [SECOND, THIRD]


def test_the_first_answer_comes_before_the_first_interval_is_over():
    clock = Clock()
    watched(clock, n_readings=1, interval_s=60.0)

    assert clock.waits == [FIRST_LOOK_S]


def test_a_short_interval_shortens_the_first_look_too():
    clock = Clock()
    watched(clock, n_readings=1, interval_s=0.1)

    assert clock.waits == [0.1]


def test_ticks_stand_one_interval_apart():
    clock = Clock()
    watched(clock, n_readings=3, interval_s=2.0)

    assert clock.waits == pytest.approx([FIRST_LOOK_S, 2.0, 2.0])


def test_a_reading_that_takes_long_shortens_the_wait_after_it():
    clock = Clock()
    watched(clock, n_readings=2, takes_s=0.4)

    assert clock.waits == pytest.approx([FIRST_LOOK_S, 0.6])


def test_a_tick_that_was_missed_is_not_made_up_for():
    clock = Clock()
    watched(clock, n_readings=3, takes_s=5.0)

    assert clock.waits == pytest.approx([FIRST_LOOK_S, 0.0, 0.0])


def test_the_watch_ends_after_its_seconds():
    clock = Clock()
    seen = watched(clock, seconds=3.0)

    assert len(seen) == 3  # at 0.3, 1.3 and 2.3 s
    assert clock.now_s == pytest.approx(3.0)


class Full:
    def note(self, reading):
        raise OSError(28, "No space left on device")

    def close(self):
        pass


def test_a_full_disk_ends_the_watch_with_a_sentence():
    with pytest.raises(WatchNotKept, match="No space left on device"):
        watch(Source([FIRST]), [], [Full()], interval_s=1, n_readings=1, clock_s=Clock(), wait_s=lambda s: None)


def test_a_reading_is_kept_before_it_is_shown():
    order = []

    class Log:
        def note(self, reading):
            order.append("kept")

    watch(Source([FIRST]), [lambda r: order.append("shown")], [Log()], interval_s=1, n_readings=1,
          clock_s=Clock(), wait_s=lambda s: None)  # fmt: skip

    assert order == ["kept", "shown"]
