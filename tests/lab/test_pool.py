"""Jobs in the lab: what comes back, in each way in which a job can end."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from gpututor.errors import ExperimentError
from gpututor.lab import pool
from gpututor.lab.job import Limits

E = "experiments_for_tests:"
SHORT = Limits(budget_s=0.4, grace_s=0.3)
MIB = 2**20


class StopAfter:
    """Wishes to stop once `n` reports have come."""

    def __init__(self, n=1):
        self.n, self.reports = n, []

    def hear(self, report):
        if report.phase == "running" and report.n:
            self.reports.append(report)

    def __call__(self):
        return len(self.reports) >= self.n


def test_a_result_comes_back(shared_lab):
    assert shared_lab.run(E + "adds", {"a": 2, "b": 3}).data == 5


def test_a_done_job_says_nothing(shared_lab):
    assert shared_lab.run(E + "adds", {"a": 2, "b": 3}).sentence == ""


def test_a_worker_serves_one_job_after_another(own_lab):
    pids = {own_lab.run(E + "who_am_i").data["pid"] for _ in range(3)}

    assert len(pids) == 1


def test_an_experiment_runs_in_another_process(shared_lab):
    assert shared_lab.run(E + "who_am_i").data["pid"] != os.getpid()


def test_progress_arrives_in_order(shared_lab):
    heard = []
    shared_lab.run(E + "ticks", {"n": 30, "every_s": 0.02}, on_progress=lambda r: heard.append(r.k))

    assert heard == sorted(heard)


def test_progress_comes_five_times_a_second_at_most(shared_lab):
    listener = StopAfter(n=1000)
    job = shared_lab.run(E + "ticks", {"n": 100, "every_s": 0.01}, on_progress=listener.hear)

    assert 2 <= len(listener.reports) <= 5 * job.run_s + 2  # one at the start, and one may be under way


def test_the_last_tick_before_a_pause_is_heard(shared_lab):
    heard = []
    shared_lab.run(E + "ticks", {"n": 2, "every_s": 0.5}, on_progress=lambda r: heard.append(r.note))

    assert "step 1" in heard


def test_stop_ends_a_job_at_its_next_tick(shared_lab):
    stop = StopAfter()

    job = shared_lab.run(E + "ticks", {"n": 10**6, "every_s": 0.01}, on_progress=stop.hear, should_stop=stop)

    assert (job.state, job.sentence) == ("stopped", "You stopped it.")


def test_a_stopped_job_keeps_its_partial_result(shared_lab):
    stop = StopAfter(n=2)

    job = shared_lab.run(E + "ticks", {"n": 10**6, "every_s": 0.01}, on_progress=stop.hear, should_stop=stop)

    assert job.data["steps"] > 0


def test_a_stopped_worker_lives_on(own_lab):
    pid = own_lab.run(E + "who_am_i").data["pid"]
    stop = StopAfter()
    own_lab.run(E + "ticks", {"n": 10**6, "every_s": 0.01}, on_progress=stop.hear, should_stop=stop)

    assert own_lab.run(E + "who_am_i").data["pid"] == pid


def test_an_experiment_may_end_its_own_loop(shared_lab):
    job = shared_lab.run(E + "returns_early", limits=SHORT)

    assert (job.state, job.data) == ("stopped", "what I have")


def test_the_time_budget_stops_a_job_softly(shared_lab):
    job = shared_lab.run(E + "ticks", {"n": 10**6, "every_s": 0.01}, budget_s=0.3)

    assert job.sentence == "That was its time budget of 0.3 s."


def test_a_job_that_never_ticks_is_ended_after_its_budget(own_lab):
    job = own_lab.run(E + "never_ticks", limits=SHORT)

    assert job.state == "failed"
    assert "still running 0.3 s after its time of 0.4 s was over" in job.sentence


def test_an_ended_job_keeps_what_it_told_before(own_lab):
    assert own_lab.run(E + "never_ticks", limits=SHORT).data == "before the loop"


def test_stop_ends_a_job_that_never_ticks(own_lab):
    own_lab.run(E + "who_am_i")
    began_s = time.monotonic()
    limits = Limits(60, grace_s=0.3)
    job = own_lab.run(E + "never_ticks", should_stop=lambda: time.monotonic() > began_s + 0.3, limits=limits)

    assert job.state == "stopped"
    assert "did not answer" in job.sentence


def test_an_ended_worker_is_replaced(own_lab):
    own_lab.run(E + "never_ticks", limits=SHORT)

    assert own_lab.run(E + "adds", {"a": 1, "b": 1}).data == 2


def test_a_job_that_is_ended_takes_its_children_along(own_lab, gone):
    job = own_lab.run(E + "starts_a_child", limits=SHORT)

    assert gone(job.data["child"])


def test_a_raised_error_is_one_sentence(shared_lab):
    assert shared_lab.run(E + "raises").sentence == "The experiment raised KeyError: 'lr'."


def test_an_error_of_ours_is_a_sentence_already(shared_lab):
    assert shared_lab.run(E + "raises_ours").sentence == 'No card is called "V10". Did you mean V100?'


def test_the_traceback_is_kept_for_the_curious(shared_lab):
    assert 'raise KeyError("lr")' in shared_lab.run(E + "raises").log


def test_a_worker_outlives_a_raised_error(own_lab):
    pid = own_lab.run(E + "who_am_i").data["pid"]
    own_lab.run(E + "raises")

    assert own_lab.run(E + "who_am_i").data["pid"] == pid


def test_sys_exit_in_an_experiment_is_one_sentence(shared_lab):
    assert "sys.exit(3)" in shared_lab.run(E + "calls_exit").sentence


@pytest.mark.parametrize(
    ("experiment", "params", "how"),
    [
        pytest.param("segfaults", {}, "signal 11, segmentation fault", id="segmentation fault"),
        pytest.param("ends_its_process", {"code": 0}, "exit code 0", id="os._exit(0)"),
    ],
)
def test_a_crash_is_one_sentence(own_lab, experiment, params, how):
    assert own_lab.run(E + experiment, params).sentence == (
        f"The experiment's process ended by itself ({how}); nothing else is affected; run it again."
    )


def test_after_a_crash_the_next_job_gets_a_new_worker(own_lab):
    own_lab.run(E + "segfaults")

    assert own_lab.run(E + "adds", {"a": 1, "b": 1}).data == 2


def test_a_crash_leaves_its_stack_in_the_log(own_lab):
    assert "Segmentation fault" in own_lab.run(E + "segfaults").log


def test_too_much_memory_is_one_sentence(own_lab):
    job = own_lab.run(E + "fills_memory", {"n_mib": 400}, limits=Limits(20, memory_bytes=150 * MIB))

    assert "more than the 150 MiB it may have" in job.sentence


def test_prints_do_not_touch_the_result(shared_lab):
    assert shared_lab.run(E + "forges_the_wire").data == "true"


def test_prints_are_kept_in_the_log(shared_lab):
    assert "hello from inside" in shared_lab.run(E + "prints", {"text": "hello from inside"}).log


def test_a_log_holds_only_its_own_job(own_lab):
    own_lab.run(E + "prints", {"text": "the first one"})

    assert "the first one" not in own_lab.run(E + "prints", {"text": "the second one"}).log


def test_a_log_is_bounded(own_lab):
    job = own_lab.run(E + "prints_much", {"n_bytes": 8 * MIB})

    assert len(job.log) <= 2**16


@pytest.mark.parametrize(
    ("experiment", "part"),
    [
        pytest.param("gpututor.lab.pool:the_lab", "it runs public functions of", id="another package"),
        pytest.param(
            "experiments_for_tests_too:adds", "it runs public functions of", id="a name that only begins alike"
        ),
        pytest.param(E + "_private", "it runs public functions of", id="private"),
        pytest.param("adds", 'must read "package.module:function"', id="no module"),
        pytest.param(E + "os.system", 'must read "package.module:function"', id="dotted function"),
        pytest.param(E + "no_such_thing", "has no function no_such_thing", id="no such function"),
        pytest.param("experiments_for_tests.nothing:adds", "no module is called", id="no such module"),
    ],
)
def test_an_unknown_experiment_is_one_sentence(shared_lab, experiment, part):
    assert part in shared_lab.run(experiment).sentence


def test_a_result_that_is_no_data_is_one_sentence(shared_lab):
    assert "['losses'][1] is a set" in shared_lab.run(E + "hands_back_a_set").sentence


def test_a_partial_result_that_is_no_data_is_one_sentence(shared_lab):
    assert "it is a set" in shared_lab.run(E + "reports_a_set").sentence


def test_parameters_that_are_no_data_are_one_sentence(shared_lab):
    assert "['a'] is a complex" in shared_lab.run(E + "adds", {"a": 1j, "b": 1}).sentence


def test_a_result_beyond_the_limit_is_one_sentence(own_lab):
    assert "takes 17 MiB, more than 16" in own_lab.run(E + "hands_back_much", {"n_bytes": 17 * MIB}).sentence


def test_a_big_result_within_the_limit_comes_whole(own_lab):
    assert len(own_lab.run(E + "hands_back_much", {"n_bytes": 15 * MIB}).data) == 15 * MIB


def test_wrong_parameters_are_one_sentence(shared_lab):
    assert "unexpected keyword argument 'c'" in shared_lab.run(E + "adds", {"a": 1, "b": 1, "c": 1}).sentence


def test_require_raises_the_sentence(shared_lab):
    job = shared_lab.run(E + "raises")

    with pytest.raises(ExperimentError, match="raised KeyError"):
        job.require()


def test_the_same_seed_draws_the_same_numbers(shared_lab):
    assert shared_lab.run(E + "draws", seed=7).data == shared_lab.run(E + "draws", seed=7).data


def test_another_seed_draws_other_numbers(shared_lab):
    assert shared_lab.run(E + "draws", seed=7).data != shared_lab.run(E + "draws", seed=8).data


def test_a_job_leaves_nothing_behind_for_the_next(own_lab):
    before = own_lab.run(E + "looks_around").data
    own_lab.run(E + "spoils_its_process")

    assert own_lab.run(E + "looks_around").data == before


def test_a_worker_computes_on_one_thread(shared_lab):
    assert shared_lab.run(E + "looks_around").data["threads"] == "1"


def test_a_worker_for_the_simulated_card_sees_no_gpu(shared_lab):
    assert shared_lab.run(E + "looks_around").data["cuda"] == ""


def test_a_variable_that_slows_down_launches_stays_out_of_the_simulated_cards_worker(own_lab, monkeypatch):
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "1")

    assert own_lab.run(E + "looks_around").data["blocking"] is None


def test_simulated_and_real_never_share_a_process(own_lab):
    simulated = own_lab.run(E + "who_am_i").data["pid"]

    assert own_lab.run(E + "who_am_i", kind="real").data["pid"] != simulated


def test_files_land_in_the_results_folder(shared_lab, tmp_path):
    shared_lab.run(E + "writes_a_file", results_dir=tmp_path / "run")

    assert (tmp_path / "run" / "losses.txt").read_text() == "1 2 3"


def test_a_file_without_a_results_folder_is_one_sentence(shared_lab):
    assert "without a results folder" in shared_lab.run(E + "writes_a_file").sentence


def in_threads(*calls):
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    return threads


def test_a_second_job_waits_for_the_first(own_lab):
    notes = []
    first = in_threads(lambda: own_lab.run(E + "sleeps", {"s": 0.5}))
    time.sleep(0.2)
    own_lab.run(E + "adds", {"a": 1, "b": 1}, on_progress=lambda r: notes.append((r.phase, r.note)))
    first[0].join()

    assert notes[0] == ("queued", "waiting for another run to end")


def test_waiting_jobs_are_served_in_the_order_they_came(own_lab):
    order = []
    own_lab.warm()
    calls = []
    for k in range(4):
        calls += in_threads(lambda k=k: own_lab.run(E + "sleeps", {"s": 0.1}, on_progress=noting(order, k)))
        time.sleep(0.05)
    for thread in calls:
        thread.join()

    assert order == [0, 1, 2, 3]


def noting(order, k):
    return lambda report: order.append(k) if report.phase == "starting" else None


def test_a_waiting_job_can_be_stopped(own_lab):
    first = in_threads(lambda: own_lab.run(E + "sleeps", {"s": 0.6}))
    time.sleep(0.2)
    job = own_lab.run(E + "adds", {"a": 1, "b": 1}, should_stop=lambda: True)
    first[0].join()

    assert (job.state, job.sentence) == ("stopped", "It had not begun.")


def test_jobs_of_many_threads_get_their_own_results(shared_lab):
    sums = {}
    calls = [lambda k=k: sums.update({k: shared_lab.run(E + "adds", {"a": k, "b": k}).data}) for k in range(8)]
    for thread in in_threads(*calls):
        thread.join()

    assert sums == {k: 2 * k for k in range(8)}


def test_a_callback_that_raises_ends_its_job(own_lab):
    def fails(report):
        raise RuntimeError("the page is broken")

    with pytest.raises(RuntimeError, match="the page is broken"):
        own_lab.run(E + "never_ticks", on_progress=fails)

    assert own_lab.run(E + "adds", {"a": 1, "b": 1}).data == 2


def test_warm_makes_one_worker_only(own_lab):
    own_lab.warm()
    own_lab.warm()

    assert len(own_lab._workers._idle) == 1


def test_a_warm_worker_that_died_is_replaced(own_lab, eventually):
    own_lab.warm()
    (worker,) = own_lab._workers._idle
    os.kill(worker.pid, 9)
    eventually(lambda: not worker.alive)

    assert own_lab.run(E + "adds", {"a": 1, "b": 1}).data == 2


def test_a_closed_lab_ends_its_running_job(own_lab):
    jobs = []
    running = in_threads(lambda: jobs.append(own_lab.run(E + "never_ticks")))
    time.sleep(0.4)
    own_lab.close()
    running[0].join(timeout=5)

    assert jobs[0].state == "failed"


@pytest.mark.parametrize(("text", "n"), [("3", 3), ("", 2), ("none", 2), ("0", 2), ("1000", 2)])
def test_the_number_of_workers_comes_from_the_environment(monkeypatch, text, n):
    monkeypatch.setenv("GPUTUTOR_LAB_WORKERS", text)

    assert pool.n_workers_wanted() == n


def test_the_lab_is_one():
    assert pool.the_lab() is pool.the_lab()


def test_the_page_side_imports_no_torch():
    modules = "gpututor.lab.pool, gpututor.lab.lock, gpututor.lab.learner_code"
    script = f"import sys, {modules}; sys.exit('torch' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", script], cwd=Path(__file__).parents[2], check=False).returncode == 0
