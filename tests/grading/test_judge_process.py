"""The process that judges: a death is made good, a judge without an end is cut off, and the others go on."""

from __future__ import annotations

import os
import signal
import threading
import time

import psutil
import pytest

from gpututor.errors import GradingNotPossible, GradingStopped
from gpututor.exercises import ex01
from gpututor.grading import items, judge_process
from gpututor.grading.judge_process import close_here, judge_bundle

pytestmark = pytest.mark.skipif(os.name != "posix", reason="kills processes by signals")
CASE = ex01.bandwidth_case(ex01.Moved(1_000, 4, 2, 1, 120, 125e9))
SLOW = "import time\ntime.sleep(2)\ndef sm_fill(n, sms):\n    return 0\n"


@pytest.fixture(autouse=True)
def _ended():
    yield
    close_here()


def bundle(*asked):
    told = [
        {"key": f"k{k}", "number": number, "answer": answer, "case": case, "hidden": []}
        for k, (number, answer, case) in enumerate(asked)
    ]
    return {"isolation": "limits", "grader": items.version(), "items": told}


def typed(*answers):
    return bundle(*(("1.1", answer, CASE) for answer in answers))


def states(told):
    return [told["verdicts"][key]["state"] for key in sorted(told["verdicts"])]


def test_items_are_judged_in_another_process_one_after_the_other():
    heard = []
    told = judge_bundle(typed("100", "50"), lambda key, verdict: heard.append((key, verdict["state"])))

    assert heard == [("k0", "right"), ("k1", "wrong")]
    assert (states(told), told["n_again"]) == (["right", "wrong"], 0)


def test_the_process_is_kept_for_the_next_learner():
    judge_bundle(typed("100"))
    before = judge_process._HERE.judge
    judge_bundle(typed("50"))

    assert judge_process._HERE.judge is before


def killed_at(answer, n_times):
    """A listener that kills the judge before it answers, so often, when `answer` is what it was asked first."""
    send = judge_process.JudgeProcess.send
    left = [n_times]

    def send_and_kill(self, told):
        send(self, told)
        if told["items"][0]["answer"] == answer and left[0]:
            left[0] -= 1
            os.kill(self._process.pid, signal.SIGKILL)

    return send_and_kill


def test_an_item_at_which_the_process_died_is_tried_again(monkeypatch):
    monkeypatch.setattr(judge_process.JudgeProcess, "send", killed_at("100", 2))
    told = judge_bundle(typed("100", "50"))

    assert (states(told), told["n_again"]) == (["right", "wrong"], 2)


def test_after_three_deaths_that_item_alone_is_given_up(monkeypatch):
    monkeypatch.setattr(judge_process.JudgeProcess, "send", killed_at("100", 3))
    told = judge_bundle(typed("100", "50"))

    assert states(told) == ["not judged", "wrong"]
    assert "could not judge this" in told["verdicts"]["k0"]["text"]


def test_more_processor_time_than_a_judge_may_take_is_told(monkeypatch):
    monkeypatch.setattr(judge_process.JudgeProcess, "_cpu_s", lambda self: time.monotonic())
    monkeypatch.setattr(judge_process, "MAX_CPU_S", 0.8)
    told = judge_bundle(bundle(("1.2", SLOW, {"n_sms": 4, "filled": []}), ("1.1", "100", CASE)))

    assert states(told) == ["wrong", "right"]
    assert "judging it takes more than 0.8 s a case" in told["verdicts"]["k0"]["text"]


def test_a_machine_that_hangs_is_not_the_answers_fault(monkeypatch):
    monkeypatch.setattr(judge_process, "MAX_WALL_S", 0.4)
    told = judge_bundle(bundle(("1.2", SLOW, {"n_sms": 4, "filled": []})))

    assert (states(told), told["n_again"]) == (["not judged"], 2)


def test_what_takes_too_much_memory_is_cut_off(monkeypatch):
    monkeypatch.setattr(judge_process, "MAX_MEMORY_BYTES", 2**20)  # less than any process has
    told = judge_bundle(bundle(("1.2", SLOW, {"n_sms": 4, "filled": []})))

    assert "of memory" in told["verdicts"]["k0"]["text"]


def test_a_stop_is_heard_at_once_and_leaves_nothing_running():
    stopping = threading.Event()
    threading.Timer(0.7, stopping.set).start()
    began_s = time.monotonic()
    with pytest.raises(GradingStopped):
        judge_bundle(bundle(("1.2", SLOW, {"n_sms": 4, "filled": []})), None, stopping)

    assert time.monotonic() - began_s < 1.7
    assert not [each for each in psutil.Process().children(recursive=True) if "judging" in " ".join(each.cmdline())]


def test_another_grader_on_a_worker_is_refused():
    with pytest.raises(GradingNotPossible, match="install the same gpututor"):
        judge_bundle({**typed("100"), "grader": "gpututor 0.0.1"})
