from __future__ import annotations

import pytest

from gpututor.measure.nvml import clock_reasons
from gpututor.watch.history import LAST_MINUTES_S, LONGEST, History
from tests.watch.made import BUSY_CPU, IDLE_CPU, gpu, reading


def history_of(*readings):
    history = History()
    for one in readings:
        history.note(one)
    return history


def told(history):
    return [line.replace("\u00a0", " ") for line in history.lines()]


def test_the_summary_counts_time_and_readings():
    history = history_of(*(reading(gpu(), time_s=100.0 + k) for k in range(11)))

    assert told(history)[0] == "Watched 10.0 s, 11 readings; CPU 5.0 % busy."


def test_a_gpu_is_summed_up_by_mean_and_ends():
    history = history_of(*(reading(gpu(share)) for share in (0.2, 0.3, 0.7)))

    assert "a kernel ran 40 % of the time (20 % to 70 %)" in told(history)[1]


def test_what_was_not_read_counts_in_no_mean():
    history = history_of(reading(gpu(0.5, power_w=None)), reading(gpu(None, power_w=200.0)))
    summary = history.devices["gpu0"]

    assert (summary.busy_share.mean, summary.power_w.mean) == (0.5, 200.0)


def test_a_gauge_that_was_never_read_is_said_to_be_unknown():
    assert "utilization never known" in told(history_of(reading(gpu(None))))[1]


def test_readings_with_a_busy_cpu_and_an_idle_gpu_are_counted():
    history = history_of(
        reading(gpu(0.1), cpu=BUSY_CPU), reading(gpu(0.9), cpu=BUSY_CPU), reading(gpu(0.1), cpu=IDLE_CPU)
    )

    assert "in 1 of 3 readings the CPU was busy while it idled: the loader" in told(history)[1]


def test_a_reason_that_slows_the_clocks_is_counted_and_idleness_is_none():
    hot, idle = clock_reasons(0x40), clock_reasons(0x1)
    history = history_of(*(reading(gpu(clock_reasons=r)) for r in (hot, hot, idle)))

    assert "its clocks were held in 2 of 3 (the card halved its clocks or more because of heat)" in told(history)[1]


def test_only_the_last_minutes_are_kept_and_the_summary_has_all():
    n = int(LAST_MINUTES_S) * 2
    history = history_of(*(reading(gpu(), time_s=float(k)) for k in range(n + 1)))

    assert len(history.readings) == LAST_MINUTES_S + 1
    assert history.n == n + 1
    assert history.first == n - LAST_MINUTES_S
    assert history.took_s == n


def test_quick_ticks_are_bounded_too():
    history = history_of(*(reading(time_s=k / 1000) for k in range(LONGEST + 5)))

    assert len(history.readings) == LONGEST


def test_a_tick_without_the_gpu_leaves_a_gap():
    history = history_of(reading(gpu(0.5)), reading(), reading(gpu(0.7)))

    assert history.gpu_shares("gpu0") == [0.5, None, 0.7]


def test_the_verdict_rests_on_a_few_ticks():
    history = history_of(*(reading(gpu(share)) for share in (0.0, 0.0, 0.5, None, 0.7)))

    assert history.smoothed(gpu(0.7)).kernel_time_share == pytest.approx(0.3)


def test_a_gauge_that_is_unknown_now_is_not_filled_from_the_past():
    history = history_of(reading(gpu(0.5)), reading(gpu(None)))

    assert history.smoothed(gpu(None)).kernel_time_share is None
