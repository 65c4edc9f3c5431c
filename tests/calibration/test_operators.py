"""What a profiler's records say on host operators, and what follows for this machine's host."""

from __future__ import annotations

import math

import pytest

from gpututor.calibration import on_cpu
from gpututor.calibration.on_cpu import Round, host_of, measured
from gpututor.calibration.operators import (
    NAMES,
    Recorded,
    Server,
    amounts_ns,
    ratio_of,
    recorded_server,
    weighted_quantile,
)
from gpututor.errors import CalibrationFailed
from gpututor.trace.events import sorted_out

CONV, BATCH_NORM = "aten::conv2d", "aten::batch_norm"


def events(*rows: tuple[str, float, float], cat: str = "cpu_op", tids: tuple[int, ...] = ()):
    """Records of one thread: name, start and length in microseconds; a name in capitals is a driver's call.

    With `tids`, the threads of the rows.
    """
    kinds = {True: "cuda_runtime", False: cat}
    return sorted_out(
        {"ph": "X", "cat": kinds[name.isupper()], "name": name, "ts": ts, "dur": dur, "pid": 1, "tid": tid}
        for (name, ts, dur), tid in zip(rows, tids or (1,) * len(rows), strict=True)
    ).host


def test_an_operators_own_time_is_without_what_it_calls():
    found = amounts_ns(events((CONV, 10, 20), ("aten::convolution", 11, 18), ("aten::_convolution", 12, 15)))

    assert found == {CONV: [2000], "aten::convolution": [3000]}


def test_between_two_operators_runs_python():
    found = amounts_ns(events((CONV, 0, 10), ("inner", 1, 5), ("aten::add_", 14, 2)))

    assert found[f"{CONV} → aten::add_"] == [4000]


def test_a_drivers_call_between_two_operators_is_not_python():
    found = amounts_ns(events((CONV, 0, 10), ("CUDAMALLOC", 11, 2), ("aten::add_", 14, 2)))

    assert f"{CONV} → aten::add_" not in found


def test_threads_are_kept_apart():
    rows = (CONV, 0, 10), ("aten::add_", 12, 2)

    assert f"{CONV} → aten::add_" in amounts_ns(events(*rows))
    assert f"{CONV} → aten::add_" not in amounts_ns(events(*rows, tids=(1, 2)))


def server(**weights: float) -> Server:
    """A server on which each operator takes 1 µs, as often in a step as its weight says."""
    return Server({name: Recorded(1.0, weight) for name, weight in weights.items()}, 2.0, "drawn")


def test_an_operator_that_is_slower_by_the_same_everywhere_has_no_spread():
    ratio = ratio_of({"a": 0.5, "b": 0.5}, server(a=1, b=9))

    assert (ratio.times, ratio.spread_share, ratio.n_operators) == (pytest.approx(0.5), pytest.approx(0), 2)


def test_the_ratio_is_the_mean_over_logarithms_weighted_by_time():
    ratio = ratio_of({"a": 1.0, "b": 16.0}, server(a=3, b=1))

    assert ratio.times == pytest.approx(2.0)  # (1 · 1 · 1 · 16) to the power of a quarter


def test_the_mean_of_four_alike_is_half_as_far_off_as_one():
    ratio = ratio_of({"a": 2.0, "b": 0.5, "c": 2.0, "d": 0.5}, server(a=1, b=1, c=1, d=1))

    assert ratio.spread_share == pytest.approx(1.0)
    assert ratio.mean_error_share == pytest.approx(math.sqrt(2) - 1)


def test_without_a_common_operator_there_is_no_ratio():
    assert ratio_of({"z": 1.0}, server(a=1)) is None


def test_the_quantile_counts_weights():
    assert weighted_quantile([(1.0, 6.0), (5.0, 4.0)], 0.6) == 1.0
    assert weighted_quantile([(1.0, 6.0), (5.0, 4.0)], 0.61) == 5.0


def rounds(*times: float, thread_ns: int = 100, unwatched_ns: int = 100) -> list[Round]:
    return [Round({"a": one}, thread_ns, 100, unwatched_ns) for one in times]


def test_this_host_is_the_middle_round_times_the_servers():
    assert host_of(rounds(0.3, 0.5, 0.4), server(a=1)).times == pytest.approx(0.4 * 2.0)


def test_what_the_profiler_adds_is_taken_off_and_counts_as_error():
    found = host_of(rounds(0.4, 0.4, unwatched_ns=80), server(a=1))

    assert found.times == pytest.approx(0.4 * 2.0 * 0.8)
    assert found.error_share == pytest.approx(0.25)


def test_rounds_that_differ_make_an_error():
    # against 0.4 the others are off by half and by double; the middle one of 1, 2, 2 is 2
    found = host_of(rounds(0.2, 0.4, 0.8), server(a=1))

    assert found.error_share == pytest.approx(1.0)


def test_a_thread_that_was_often_put_aside_is_a_warning():
    (warning,) = host_of(rounds(0.4, thread_ns=40), server(a=1)).warnings

    assert "only 40\N{NO-BREAK SPACE}% of the time" in warning


def test_a_thread_that_was_left_alone_is_none():
    assert host_of(rounds(0.4), server(a=1)).warnings == ()


def test_a_profile_without_these_operators_is_one_sentence():
    with pytest.raises(CalibrationFailed, match="recorded none of the operators"):
        host_of([Round({}, 1, 1, 1)], server(a=1))


def test_on_a_busy_machine_fewer_rounds_do():
    clock = iter([0.0, 10.0, 30.0, 50.0, 70.0])
    told: list[int] = []

    measured(lambda what, k, n: told.append(k), lambda: iter(rounds_of_all(9)), lambda: next(clock))

    assert told == [1, 2]  # 25 s are over after the second


def rounds_of_all(n: int) -> list[Round]:
    return [Round(dict.fromkeys(recorded_server().operators, 1.0), 100, 100, 90)] * n


def test_our_table_holds_what_is_compared_and_nothing_else():
    assert set(recorded_server().operators) <= NAMES
    assert len(recorded_server().operators) >= 15


def test_torchs_own_profiler_shows_nearly_all_of_them_here(monkeypatch):
    monkeypatch.setattr(on_cpu, "N_ROUNDS", 1)
    monkeypatch.setattr(on_cpu, "N_STEPS", 2)

    (one,) = on_cpu.profiled()

    assert len(set(one.amounts_us) & set(recorded_server().operators)) >= 15
    assert 0 < one.thread_ns <= 2 * one.wall_ns


def test_a_recorded_servers_trace_gives_our_table(shared):
    from tools.calibrate import host_operators

    if not (shared / "traces" / host_operators.TRACE).exists():
        pytest.skip(f"no {host_operators.TRACE} there")
    assert host_operators.text() == (host_operators.data_dir() / "host_operators.toml").read_text("utf-8")
