"""Who runs next, for one reader and for a class."""

from __future__ import annotations

import threading

import pytest

from gpututor.lab.line import SHORT_IN_A_ROW, Line, LineFull
from gpututor.lab.pool import PACED, Lab, Rules

E = "experiments_for_tests:"


def begins(line, ticket):
    """Whether it is this ticket's turn at once."""
    asked = iter([False, True])
    return line.wait(ticket, lambda ahead: None, lambda: next(asked))


def test_a_free_place_is_taken_at_once():
    line, heard = Line(1), []
    line.wait(line.join("ann"), heard.append, lambda: False)

    assert heard == []


def test_who_waits_hears_how_many_go_before():
    line, heard = Line(1, fair=True), []
    assert begins(line, line.join("ann"))
    line.join("bob")
    asked = iter([False, True])
    line.wait(line.join("eve"), heard.append, lambda: next(asked))

    assert heard == [1]


def test_nobody_has_more_than_one_running_and_one_waiting():
    line = Line(4, fair=True)
    assert begins(line, line.join("ann"))
    line.join("ann")

    with pytest.raises(LineFull, match="one run under way and one waiting"):
        line.join("ann")


def test_a_second_run_of_the_same_learner_waits_though_a_place_is_free():
    line = Line(4, fair=True)
    assert begins(line, line.join("ann"))

    assert not begins(line, line.join("ann"))


def test_others_overtake_a_learner_who_has_one_running():
    line = Line(2, fair=True)
    assert begins(line, line.join("ann"))
    line.join("ann")

    assert begins(line, line.join("bob"))


def test_one_reader_may_fill_their_own_line():
    line = Line(1)

    assert len({id(line.join()) for _ in range(5)}) == 5


def test_a_check_goes_before_experiments():
    line = Line(1, fair=True)
    running = line.join("ann")
    assert begins(line, running)
    experiment, check = line.join("bob"), line.join("eve", short=True)
    line.leave(running)

    assert (begins(line, experiment), begins(line, check)) == (False, True)


def test_checks_do_not_keep_an_experiment_waiting_for_ever():
    line = Line(1, fair=True)
    experiment = line.join("ann")
    for k in range(SHORT_IN_A_ROW):
        check = line.join(f"learner {k}", short=True)
        assert begins(line, check)
        line.leave(check)
    line.join("one more", short=True)

    assert begins(line, experiment)


def test_what_measures_waits_until_nothing_else_runs():
    line = Line(3, fair=True)
    other = line.join("ann")
    assert begins(line, other)
    measuring = line.join("bob", alone=True)
    assert not begins(line, measuring)
    line.leave(other)

    assert begins(line, measuring)


def test_nobody_overtakes_what_waits_to_measure():
    line = Line(3, fair=True)
    assert begins(line, line.join("ann"))
    line.join("bob", alone=True)

    assert not begins(line, line.join("eve"))


def test_nothing_begins_beside_what_measures():
    line = Line(3, fair=True)
    assert begins(line, line.join("ann", alone=True))

    assert not begins(line, line.join("bob"))


def test_a_closed_line_lets_nobody_in():
    line = Line(1)
    line.close()

    assert not begins(line, line.join("ann"))


def test_the_line_tells_who_runs_and_who_waits():
    line = Line(1, fair=True)
    assert begins(line, line.join("ann", "batches"))
    line.join("bob", "answers")

    assert [(each.owner, each.what, each.runs) for each in line.seen()] == [
        ("ann", "batches", True),
        ("bob", "answers", False),
    ]


# --- the lab by a class's rules --------------------------------------------------------------------------------


@pytest.fixture
def class_lab(_workers_find_the_experiments):
    lab = Lab(1, allowed=["experiments_for_tests"], torch=False, rules=Rules(fair=True, idle_s=0.4))
    yield lab
    lab.close()


def test_a_third_run_of_a_learner_is_refused_in_a_sentence(class_lab, eventually):
    stop = threading.Event()
    started = [
        threading.Thread(
            target=class_lab.run,
            args=(E + "ticks", {"n": 10**6, "every_s": 0.01}),
            kwargs={"owner": "ann", "should_stop": stop.is_set},
        )
        for _ in range(2)
    ]
    for thread in started:
        thread.start()
    assert eventually(lambda: len(class_lab.line.seen()) == 2)
    job = class_lab.run(E + "adds", {"a": 1, "b": 1}, owner="ann")
    stop.set()
    for thread in started:
        thread.join()

    assert (job.state, job.sentence[:32]) == ("failed", "You have one run under way and o")


def test_a_worker_without_work_ends(class_lab, gone):
    pid = class_lab.run(E + "who_am_i").data["pid"]

    assert gone(pid)
    assert class_lab.worker_pids == []


def test_after_idle_workers_have_ended_a_run_gets_a_new_one(class_lab, gone):
    assert gone(class_lab.run(E + "who_am_i").data["pid"])

    assert class_lab.run(E + "adds", {"a": 2, "b": 2}).data == 4


def test_a_check_holds_the_place_that_a_run_would_take(class_lab):
    with class_lab.turn("ann", "exercise 1.2", lambda place: None, 1.0) as came:
        assert came
        job = class_lab.run(E + "adds", {"a": 1, "b": 1}, owner="bob", should_stop=lambda: True)

    assert job.sentence == "It had not begun."


def test_a_check_that_waits_too_long_does_not_begin(class_lab):
    places = []
    with (
        class_lab.turn("ann", "exercise 1.2", places.append, 1.0),
        class_lab.turn("bob", "exercise 1.2", places.append, 0.2) as came,
    ):
        assert not came

    assert places == ["You are next in line."]


def test_one_readers_checks_never_wait(own_lab):
    with own_lab.turn("", "exercise 1.2", print, 1.0), own_lab.turn("", "exercise 1.2", print, 1.0) as came:
        assert came


def test_every_experiment_on_the_paced_clock_is_known_to_measure():
    from pathlib import Path

    import gpututor.experiments as package

    (folder,) = package.__path__
    paced = {
        f"gpututor.experiments.{path.stem}:run"
        for path in Path(folder).glob("*.py")
        if "def run(" in (text := path.read_text("utf-8")) and ("simulate_calmly(" in text or 'clock="paced"' in text)
    }

    assert paced == set(PACED)
