"""The page's runner: phases, stop, a closed tab, and a result that survives a reload."""

from __future__ import annotations

import threading

import pytest

from gpututor.page.runner import Runner
from gpututor.store import Store

E = "experiments_for_tests:"


@pytest.fixture
def make(monkeypatch, tmp_path, shared_lab):
    """Makes runners of one learner's lesson; their threads end with the test, as with a closed tab."""
    monkeypatch.setenv("GPUTUTOR_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("gpututor.page.runner.LOOK_EVERY_S", 0.05)
    made = []

    def runner(**options):
        made.append(Runner(Store("ann"), "02", lab=options.pop("lab", shared_lab), **options))
        return made[-1]

    yield runner
    for one in made:
        close_tab(one)
        one._thread.join(timeout=5)


def close_tab(runner):
    runner._thread._exit_event.set()  # what marimo does when the page goes


def phase_of(runner):
    """The phase, once the progress cell has shown what there is."""
    runner.caught_up(runner.get_shown())
    return runner.get_phase()


def finished(runner, eventually):
    assert eventually(lambda: phase_of(runner) not in ("ready", "queued", "running"))
    return runner


def test_a_new_page_is_ready(make):
    assert make().get_phase() == "ready"


def test_a_started_run_is_running_at_once(make):
    runner = make()
    runner.start(E + "ticks", {"n": 100, "every_s": 0.02})

    assert runner.get_phase() == "running"


def test_the_phase_changes_where_the_progress_is_shown_not_on_the_runners_thread(make, eventually):
    runner = make()
    runner.start(E + "ticks", {"n": 3})

    assert eventually(lambda: runner.get_shown().phase == "done")
    assert runner.get_phase() == "running"
    assert runner.caught_up(runner.get_shown()).phase == runner.get_phase() == "done"


def test_a_run_ends_in_done(make, eventually):
    runner = make()
    runner.start(E + "ticks", {"n": 3})

    assert finished(runner, eventually).get_phase() == "done"


def test_a_done_run_has_all_its_steps(make, eventually):
    runner = make()
    runner.start(E + "ticks", {"n": 3})
    shown = finished(runner, eventually).get_shown()

    assert (shown.k, shown.n) == (3, 3)


def test_the_result_is_there_when_the_phase_is_done(make, eventually):
    runner = make()
    runner.start(E + "ticks", {"n": 3})

    assert finished(runner, eventually).result.data == {"steps": 3}


def test_a_reload_begins_in_done_with_the_result(make, eventually):
    first = make()
    first.start(E + "ticks", {"n": 3})
    finished(first, eventually)
    again = make()

    assert (again.get_phase(), again.result.data, again.get_shown().n) == ("done", {"steps": 3}, 3)


def test_a_reload_looks_for_its_own_experiment(make, eventually):
    first = make()
    first.start(E + "ticks", {"n": 3})
    finished(first, eventually)

    assert make(experiment=E + "adds").get_phase() == "ready"


def test_stop_ends_in_stopped_and_keeps_what_there_is(make, eventually):
    runner = make()
    runner.start(E + "ticks", {"n": 10**6, "every_s": 0.01})
    eventually(lambda: runner.get_shown().partial is not None)
    runner.stop()

    assert finished(runner, eventually).get_phase() == "stopped"
    assert runner.result.data["steps"] >= 0


def test_a_failed_run_says_why(make, eventually):
    runner = make()
    runner.start(E + "raises")

    assert finished(runner, eventually).get_phase() == "failed"
    assert runner.get_shown().note == "The experiment raised KeyError: 'lr'."


def test_a_failed_run_leaves_the_result_before_it(make, eventually):
    runner = make()
    runner.start(E + "ticks", {"n": 3})
    finished(runner, eventually)
    runner.start(E + "raises")
    finished(runner, eventually)

    assert runner.result.data == {"steps": 3}


def test_a_second_start_while_running_is_refused(make):
    runner = make()
    runner.start(E + "ticks", {"n": 10**6, "every_s": 0.01})

    assert not runner.start(E + "ticks", {"n": 3})


def test_a_page_runs_again(make, eventually):
    runner = make()
    for n in (3, 4):
        assert eventually(lambda n=n: runner.start(E + "ticks", {"n": n}))
        finished(runner, eventually)

    assert runner.result.data == {"steps": 4}


def test_a_run_behind_another_pages_is_queued(make, own_lab, eventually):
    one, other = make(lab=own_lab), make(lab=own_lab)
    one.start(E + "ticks", {"n": 10**6, "every_s": 0.01})
    eventually(lambda: one.get_shown().n > 0)
    other.start(E + "ticks", {"n": 3})

    assert eventually(lambda: phase_of(other) == "queued")
    assert other.get_shown().note == "waiting for another run to end"


def test_a_closed_tab_ends_its_run(make, own_lab, eventually):
    runner = make(lab=own_lab)
    runner.start(E + "ticks", {"n": 10**6, "every_s": 0.01})
    eventually(lambda: runner.get_shown().n > 0)
    close_tab(runner)

    assert own_lab.run(E + "adds", {"a": 1, "b": 1}).data == 2  # the only worker is free again


def test_a_closed_page_whose_kernel_has_ended_ends_its_run(make, own_lab, eventually):
    closed = threading.Event()

    def kernel():
        runner = make(lab=own_lab)
        runner.start(E + "ticks", {"n": 10**6, "every_s": 0.01})
        eventually(lambda: runner.get_shown().n > 0)
        closed.set()

    threading.Thread(target=kernel).start()
    closed.wait()

    assert own_lab.run(E + "adds", {"a": 1, "b": 1}).data == 2  # the only worker is free again


def test_the_next_visit_hears_that_the_page_was_closed(make, eventually):
    runner = make()
    runner.start(E + "ticks", {"n": 10**6, "every_s": 0.01})
    eventually(lambda: runner.get_shown().partial is not None)
    close_tab(runner)
    runner._thread.join(timeout=5)

    assert make().get_shown().note == "The page was closed while it ran."


def test_a_closed_tab_ends_the_pages_thread(make, eventually):
    runner = make()
    close_tab(runner)

    assert eventually(lambda: not runner._thread.is_alive())


def test_files_of_a_run_lie_beside_its_result(make, eventually):
    runner = make()
    runner.start(E + "writes_a_file")

    assert (finished(runner, eventually).result.folder / "losses.txt").read_text() == "1 2 3"


def test_a_home_that_cannot_be_written_is_told(make, monkeypatch, tmp_path, eventually):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GPUTUTOR_HOME", str(tmp_path / "file"))
    runner = make()
    runner.start(E + "ticks", {"n": 3})

    assert finished(runner, eventually).result.data == {"steps": 3}
    assert "result can't be kept" in runner.trouble


def test_a_callback_that_raises_is_one_sentence(make, eventually):
    def fails(result):
        raise RuntimeError("no such chart")

    runner = make(on_result=fails)
    runner.start(E + "ticks", {"n": 3})

    assert finished(runner, eventually).get_shown().note == "RuntimeError: no such chart."
