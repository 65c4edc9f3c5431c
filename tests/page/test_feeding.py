"""What lesson 6 says of a run, from drawn numbers: a batch takes 60 ms to decode and 20 ms of copy and compute."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from gpututor.page.lessons.feeding import feeding_in
from gpututor.page.lessons.feeding_tables import columns, epoch_columns, thread_rows

MS = 1e6
SWEEP_MS = {0: 80, 1: 60, 2: 30, 4: 29}
NBSP = "\u00a0"


def point(key, step_ms, x=None):
    label = key.replace("-", " ")
    return SimpleNamespace(key=key, label=label, x=x, step_ns=step_ms * MS, played=object(), busy_share=20 / step_ms)


def told(key, **changed):
    about = {
        "key": key,
        "wait_ns": 60 * MS,
        "wait_cpu_ns": 55 * MS,
        "cpu_cores": 1.5,
        "lag_share": 0.0,
        "n_workers": 2,
        "n_threads": 6,
    }
    return about | {"who": [0, 1], "first_ns": [90 * MS, 80 * MS], "epoch_ns": [300 * MS, 290 * MS]} | changed


def drawn(sweep_ms=SWEEP_MS, others=(), n_cores=2, **data):
    """A run of the sweep, and of other ways given as (key, step in ms, what was told of it)."""
    sweep = [point(f"workers-{n}", ms, float(n)) for n, ms in sweep_ms.items()]
    points = [*sweep, *(point(key, ms) for key, ms, _ in others)]
    about = [told(each.key) for each in sweep] + [told(key, **changed) for key, _, changed in others]
    pickled = {"paths": [3000, 1], "pictures": [200_000_000, 1]}
    return feeding_in(points, {"points": about, "n_cores": n_cores, "pickled": pickled} | data)


def starts(fork_ms=(80, 61), spawn_ms=(4000, 62)):
    """Both ways to start a worker, anew and to stay: milliseconds to the first batch of a later epoch."""
    return [
        (f"{method}-{way}", 60, {"first_ns": [90 * MS, ms * MS]})
        for method, pair in (("fork", fork_ms), ("spawn", spawn_ms))
        for way, ms in zip(("anew", "stay"), pair, strict=True)
    ]


# --- the law ---------------------------------------------------------------------------------------------------------


def test_load_is_the_wait_without_workers_and_compute_the_rest():
    fed = drawn()

    assert (fed.load_ns, fed.compute_ns) == (60 * MS, 20 * MS)


def test_the_law_bends_at_three_workers():
    line = dict(drawn().law_line)

    assert (line[1.0], line[2.0], line[3.0], line[4.0]) == (60, 30, 20, 20)


def test_enough_are_the_fewest_within_a_tenth_of_the_best():
    fed = drawn()

    assert (fed.best.x, fed.enough.x) == (4, 2)


def test_a_step_that_no_worker_shortens_needs_none():
    assert drawn({0: 20, 1: 20, 2: 21, 4: 25}).enough.x == 0


def test_too_few_cores_for_the_law_are_named():
    assert "asks for 3 workers. This computer has 2 cores" in drawn().law_said


def test_cores_enough_are_named_too():
    assert drawn(n_cores=8).law_said.endswith("and this computer has 8 cores.")


def test_dots_above_the_line_are_named():
    assert drawn().off_said.startswith("With 4 workers the circles lie above")  # 29 ms, where the law says 20


def test_dots_on_the_line_are_said_to_be_there():
    assert drawn({0: 80, 1: 60, 2: 31, 4: 21}).off_said == "The circles follow the line."


def test_dots_below_the_line_say_that_the_line_was_measured_in_a_crowd():
    assert "2 workers they lie below it" in drawn({0: 80, 1: 60, 2: 21, 4: 21}).off_said  # 21 ms, where the law says 30


def test_a_quiet_run_has_no_warning():
    assert not drawn().noise_said


def test_cores_that_others_had_are_told():
    fed = drawn()
    fed.told["workers-0"]["wait_cpu_ns"] = 30 * MS

    assert f"is 30.0{NBSP}ms of work here and took 60.0{NBSP}ms" in fed.noise_said


def test_a_simulation_that_fell_behind_is_told():
    fed = drawn()
    fed.told["workers-2"]["lag_share"] = 0.25

    assert f"25{NBSP}%" in fed.noise_said


def test_enough_says_what_it_gives_up():
    assert f"With workers 2, 30.0{NBSP}ms" in drawn().enough_said
    assert "None with fewer" in drawn({0: 80, 1: 60, 2: 40, 4: 20}).enough_said


# --- the settings ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one_ms", "eight_ms", "says"),
    [(30, 30, "changed nothing"), (45, 30, "With 8 batches ahead a step is 1.5 times"), (30, 60, "With 1 batch ahead")],
)
def test_prefetching_is_told_as_it_came_out(one_ms, eight_ms, says):
    assert says in drawn(others=[("prefetch-1", one_ms, {}), ("prefetch-8", eight_ms, {})]).prefetch_said


@pytest.mark.parametrize(("one_batch_ms", "says"), [(450, "took 1.5 times as long"), (300, "took no longer here")])
def test_a_worker_without_a_batch_is_told(one_batch_ms, says):
    one = {"who": [0], "epoch_ns": [one_batch_ms * MS]}
    said = drawn(others=[("few-0", 60, {}), ("few-1", 120, one)]).few_said

    assert "of 2 workers, 1 had work" in said
    assert says in said


@pytest.mark.parametrize(
    ("many_ms", "says"), [(300, "3.0 times as long"), (50, "2.0 times as fast"), (100, "made no difference")]
)
def test_threads_are_told_as_they_came_out(many_ms, says):
    said = drawn(others=[("threads-1", 100, {}), ("threads-n", many_ms, {"n_threads": 8})]).threads_said

    assert said.startswith("8 threads in place of 6 on 2 cores")
    assert says in said


def test_persistent_workers_are_worth_it_where_the_start_is_slow():
    said = drawn(others=starts(), starts=["fork", "spawn"]).starts_said

    assert "hardly worth it. With spawn" in said  # 40 batches of 60 ms: 20 ms of 2,400 with fork, 3.9 s with spawn
    assert f"4.00{NBSP}s before each epoch" in said
    assert said.endswith(f"200{NBSP}MB with pictures in it.")


def test_a_start_that_was_not_run_is_not_told():
    assert drawn(others=starts()[:2], starts=["fork", "spawn"]).starts == ("fork",)


@pytest.mark.parametrize(
    ("losses", "says"),
    [([[2.0, 1.0]] * 2, "to the last digit"), ([[2.0, 1.0], [2.0, 1.1]], "differ"), ([[2.0]], "was stopped")],
)
def test_losses_are_compared(losses, says):
    assert says in drawn(learned=[{"losses": each} for each in losses]).same_losses


# --- tables ----------------------------------------------------------------------------------------------------------


def test_wait_and_cores_stand_beside_a_step():
    fed = drawn()
    (_, wait), (_, cores) = columns(fed)

    assert (wait(fed.sweep[0]), cores(fed.sweep[0])) == (f"60.0{NBSP}ms", "1.5 of 2")


def test_cores_that_could_not_be_read_are_a_dash():
    fed = drawn()
    fed.told["workers-0"]["cpu_cores"] = None

    assert columns(fed)[1][1](fed.sweep[0]) == "—"


def test_the_first_epoch_and_later_ones_stand_apart():
    fed = drawn(others=starts(), starts=["fork", "spawn"])
    (_, first), (_, later) = epoch_columns(fed)

    assert (first(fed.points["spawn-anew"]), later(fed.points["spawn-anew"])) == (f"90.0{NBSP}ms", f"4.00{NBSP}s")


def test_every_thread_has_our_ratio_beside_it():
    few = {"who": [0], "epoch_ns": [450 * MS]}
    others = [("halved", 40, {}), ("few-1", 120, few), ("threads-1", 100, {}), ("threads-n", 300, {}), *starts()]
    ours = {theirs.source: ratio for theirs, ratio in thread_rows(drawn(others=others, starts=["fork", "spawn"]))}

    assert ours["pytorch/examples#387"] == 4  # 80 ms with the wait, 20 without
    assert ours["huggingface/pytorch-image-models#1491"] == 1.5
    assert ours["warpem/miss-alignment#14"] == 2
    assert ours["open-mmlab/mmdetection#6867"] == 3
    assert ours["Project-MONAI/MONAI#1300"] == 1  # both drawn with the same epochs


def test_threads_that_were_not_run_have_no_ratio():
    assert [ratio for _, ratio in thread_rows(drawn(starts=["fork"]))] == [4, *[None] * 4, *[None] * 2]
