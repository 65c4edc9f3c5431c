"""Exercises of lesson 8: solutions earn full marks, known slips are caught by name."""

from __future__ import annotations

import base64
import functools

import pytest

from gpututor.exercises import ex08
from gpututor.exercises.arrivals import learned_too_soon
from gpututor.exercises.coded import Launched
from gpututor.exercises.on_card import ex08 as harness
from gpututor.exercises.on_card.ex08 import LEARNS
from gpututor.model import tape_file
from gpututor.model.kernels import Stream
from gpututor.model.spec import HostKind
from gpututor.model.tape import CopyCall, HostWork, RecordEvent, Tape, TapeOp, UseStream, WaitEvent
from gpututor.timeline import Activity

# copy 3 ms in float32, so 6 in float64; the rest of a step 2 ms
COPY_WINS = ex08.hidden_case(3e6, 2e6, 3.1e6)
WORK_WINS = ex08.hidden_case(1e6, 7e6, 7.1e6)


@pytest.mark.parametrize(("case", "answer"), [(COPY_WINS, "6"), (WORK_WINS, "7 ms")], ids=["copy wins", "work wins"])
def test_the_longer_of_copy_and_work_is_right(case, answer):
    assert ex08.HIDDEN.check(answer, case).state == "right"


@pytest.mark.parametrize(
    ("answer", "said"),
    [("8", "one after the other"), ("3", "How many bytes"), ("2", "work to hide it under"), ("20", "side by side")],
    ids=["added", "float32", "hidden whatever it takes", "far away"],
)
def test_a_slip_is_told_by_its_own_sentence(answer, said):
    judged = ex08.HIDDEN.check(answer, COPY_WINS)

    assert judged.state == "wrong"
    assert said in judged.text


def test_an_answer_that_no_slip_explains_gets_the_first_hint():
    assert ex08.HIDDEN.check("20", COPY_WINS).hint == 1


SOLUTION = """
import torch

def train(batches, learn):
    side = torch.cuda.Stream()

    def fetch(pictures):
        with torch.cuda.stream(side):
            return pictures.to("cuda", non_blocking=True)

    losses, coming = [], fetch(batches[0])
    for k in range(len(batches)):
        torch.cuda.current_stream().wait_stream(side)
        pictures = coming
        pictures.record_stream(torch.cuda.current_stream())
        if k + 1 < len(batches):
            coming = fetch(batches[k + 1])
        losses.append(learn(pictures.float() / 255))
    return losses
"""
CONVERTED_FIRST = SOLUTION.replace('pictures.to("cuda"', 'pictures.float().pin_memory().to("cuda"')
SAME_STREAM = """
def train(batches, learn):
    return [learn(pictures.to("cuda", non_blocking=True).float() / 255) for pictures in batches]
"""
BLOCKING = SAME_STREAM.replace(", non_blocking=True", "")
NEVER_WAITS = SOLUTION.replace("        torch.cuda.current_stream().wait_stream(side)\n", "")
OTHER_NUMBERS = SAME_STREAM.replace(" / 255", " / 256")


@pytest.fixture(scope="module")
def judged():
    """Judges a loop that is run here, without a process of its own."""

    def judge(code):
        names = {}
        exec(code, names)
        call = (ex08.N_BATCHES, ex08.BATCH, ex08.SIDE, ex08.SEED)
        told = harness.run(names["train"], ex08.MACHINE, *call)
        launched = Launched(tape_file.from_bytes(base64.b64decode(told["tape"]), "a test"), told["gave"])
        return ex08.judge_launched(launched, ex08.expected_losses(*call))

    return functools.lru_cache(judge)


def test_the_solution_earns_full_marks():
    judged = ex08.AHEAD.check(SOLUTION, {})

    assert judged.state == "right"
    assert judged.earned_share == 1.0


def test_what_learn_refuses_is_told_in_one_sentence():
    judged = ex08.AHEAD.check("def train(batches, learn):\n    return [learn(b) for b in batches]\n", {})

    assert judged.state == "wrong"
    assert "learn takes float32" in judged.text


def test_the_untouched_starter_is_not_judged():
    assert ex08.AHEAD.check(ex08.STARTER, {}).state == "unanswered"


@pytest.mark.parametrize(
    ("code", "said", "hint", "earned"),
    [
        (CONVERTED_FIRST, "converted before the copy", 1, 0.8),
        (BLOCKING, "host stands still", 2, 0.4),
        (SAME_STREAM, "in line with the kernels", 3, 0.6),
        (NEVER_WAITS, "before its copy is sure", 3, 0.8),
    ],
    ids=["converted on the host", "blocking", "the same stream", "nobody waits"],
)
def test_a_loop_that_is_right_but_not_hidden_earns_a_part(judged, code, said, hint, earned):
    assert judged(code).state == "partial"
    assert said in judged(code).text
    assert judged(code).hint == hint
    assert judged(code).earned_share == pytest.approx(earned)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (OTHER_NUMBERS, "losses are others"),
        ("def train(batches, learn):\n    return [0.5] * len(batches)\n", "losses are others"),
    ],
    ids=["other numbers", "made up"],
)
def test_a_wrong_loop_is_told_in_one_sentence(judged, code, said):
    assert judged(code).state == "wrong"
    assert said in judged(code).text


# --- the order of copies and kernels, on tapes written by hand ------------------------------------------------------

COPY = CopyCall("copy", True, 100, True, False)
KERNEL = TapeOp("k", HostKind.LIGHT, "forward", (Stream("k", 8, 1),))
LEARN = HostWork(Activity.PYTHON, LEARNS, 0)
MAIN, SIDE = UseStream(0), UseStream(1)


@pytest.mark.parametrize(
    ("entries", "too_soon"),
    [
        ([COPY, LEARN, KERNEL], []),
        ([SIDE, COPY, MAIN, LEARN, KERNEL], [0]),
        ([SIDE, COPY, RecordEvent(1, 1), MAIN, WaitEvent(1, 0), LEARN, KERNEL], []),
        ([SIDE, RecordEvent(1, 1), COPY, MAIN, WaitEvent(1, 0), LEARN, KERNEL], [0]),
        ([SIDE, COPY, RecordEvent(1, 1), COPY, MAIN, WaitEvent(1, 0), LEARN, KERNEL, LEARN, KERNEL], [1]),
        ([SIDE, COPY, RecordEvent(1, 1), WaitEvent(1, None), MAIN, LEARN, KERNEL], []),
        ([SIDE, CopyCall("copy", True, 100, False, True), MAIN, LEARN, KERNEL], []),
    ],
    ids=["same stream", "no wait", "an event", "event too early", "second not waited", "host waits", "blocking copy"],
)
def test_a_batch_may_be_used_once_its_stream_or_host_has_waited(entries, too_soon):
    assert learned_too_soon(Tape("drawn", entries), 100) == too_soon
