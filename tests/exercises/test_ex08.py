"""Exercises 8.1 and 8.2: solutions, wrong answers, and the order of copies and kernels that 8.2 is judged by."""

from __future__ import annotations

import base64

import pytest

from gpututor.exercises import ex08
from gpututor.exercises.arrivals import learned_too_soon
from gpututor.exercises.coded import Launched
from gpututor.exercises.on_card import ex08 as harness
from gpututor.exercises.on_card.ex08_data import WIDTH
from gpututor.model import tape_file
from gpututor.model.kernels import Gemm, Stream
from gpututor.model.spec import HostKind
from gpututor.model.tape import CopyCall, RecordEvent, Tape, TapeOp, UseStream, WaitEvent
from tests.exercises.answers import Answers, Wrong

# float32 takes 3 ms to copy, so float64 takes 6; the rest of a step takes 2 ms
COPY_WINS = ex08.hidden_case(3e6, 2e6, 3.1e6)
WORK_WINS = ex08.hidden_case(1e6, 7e6, 7.1e6)

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
NEVER_WAITS = SOLUTION.replace("        torch.cuda.current_stream().wait_stream(side)\n", "")
ALL_AT_ONCE = """
import torch

def train(batches, learn):
    side, arrived, losses = torch.cuda.Stream(), [], []
    with torch.cuda.stream(side):
        for pictures in batches:
            arrived.append((pictures.to("cuda", non_blocking=True), side.record_event()))
    for pictures, event in arrived:
        torch.cuda.current_stream().wait_event(event)
        losses.append(learn(pictures.float() / 255))
    return losses
"""
SAME_STREAM = """
def train(batches, learn):
    return [learn(pictures.to("cuda", non_blocking=True).float() / 255) for pictures in batches]
"""
BLOCKING = SAME_STREAM.replace(", non_blocking=True", "")
OTHER_NUMBERS = SAME_STREAM.replace(" / 255", " / 256")

ANSWERS = {
    "8.1": Answers(
        lambda case: f"{max(2 * case['copy_ms'], case['work_ms'])} ms",
        (
            Wrong("8", "one after the other"),
            Wrong("3", "How many bytes"),
            Wrong("2", "work to hide it under"),
            Wrong("20", "side by side", hint=1),
        ),
        COPY_WINS,
    ),
    "8.2": Answers(
        SOLUTION,
        (
            Wrong(SAME_STREAM, "has nothing to do", hint=3, earned=0.6),
            Wrong(NEVER_WAITS, "before its copy is sure", hint=3, earned=0.8),
            Wrong("def train(batches, learn):\n    return [learn(b) for b in batches]\n", "learn takes float32"),
        ),
    ),
}


def test_work_that_takes_longer_than_the_copy_sets_the_pace():
    assert ex08.HIDDEN.check("7", WORK_WINS).state == "right"


# --- loops run here, without a process of their own -----------------------------------------------------------------


def judged(code):
    names = {}
    exec(code, names)
    told = harness.run(names["train"], LOOP.machine, LOOP.pictures, [ex08.DATA, LOOP.side, LOOP.weights_seed])
    launched = Launched(tape_file.from_bytes(base64.b64decode(told["tape"]), "a test"), told["gave"])
    return ex08.judge_launched(launched, LOOP)


@pytest.mark.parametrize(
    ("code", "said", "hint", "earned"),
    [
        (OTHER_NUMBERS, "losses are others", 1, 0.0),
        ("def train(batches, learn):\n    return [0.5] * len(batches)\n", "losses are others", 1, 0.0),
        (CONVERTED_FIRST, "converted before the copy", 1, 0.8),
        (BLOCKING, "host stands still", 2, 0.4),
        (ALL_AT_ONCE, "has nothing to do", 3, 0.6),
        (SOLUTION.replace("return losses", "return [loss.item() for loss in losses]"), "host stands still", 2, 0.8),
    ],
    ids=["other numbers", "made up", "converted on the host", "blocking", "all at once", "read at the end"],
)
def test_a_loop_earns_what_holds_of_it(code, said, hint, earned):
    told = judged(code)

    assert said in told.text
    assert told.hint == hint
    assert told.earned_share == pytest.approx(earned)


def test_the_picture_shows_each_copy_that_kept_the_card_waiting():
    waited_us = [us for _, us in judged(BLOCKING).theirs]

    # a byte a value over the T4's link, which carries 12.3 GB/s: 32 * 3 * 128 * 128 bytes take 128 us
    assert waited_us == pytest.approx([128] * LOOP.n_batches, rel=0.05)


# --- the order of copies and kernels, on tapes written by hand ------------------------------------------------------

LOOP = ex08.Loop()
COPY = CopyCall("copy", True, 100, True, False)
KERNEL = TapeOp("k", HostKind.LIGHT, "forward", (Stream("k", 8, 1),))
LEARN = TapeOp("mm", HostKind.GEMM, "forward", (Gemm("mm", 4, 2, 50, 1),))  # over the 50 values of a picture
MAIN, SIDE = UseStream(0), UseStream(1)


@pytest.mark.parametrize(
    ("entries", "too_soon"),
    [
        ([COPY, LEARN], []),
        ([SIDE, COPY, MAIN, LEARN], [0]),
        ([SIDE, COPY, RecordEvent(1, 1), MAIN, WaitEvent(1, 0), LEARN], []),
        ([SIDE, RecordEvent(1, 1), COPY, MAIN, WaitEvent(1, 0), LEARN], [0]),
        ([SIDE, COPY, RecordEvent(1, 1), COPY, MAIN, WaitEvent(1, 0), LEARN, LEARN], [1]),
        ([SIDE, COPY, RecordEvent(1, 1), WaitEvent(1, None), MAIN, LEARN], []),
        ([SIDE, CopyCall("copy", True, 100, False, True), MAIN, LEARN], []),
    ],
    ids=["same stream", "no wait", "an event", "event too early", "second not waited", "host waits", "blocking copy"],
)
def test_a_batch_may_be_used_once_its_stream_or_host_has_waited(entries, too_soon):
    n_learned = entries.count(LEARN)

    assert learned_too_soon(Tape("drawn", [*entries, KERNEL]), 100, 50) == (n_learned, too_soon)


def test_a_product_over_other_values_is_nothing_learned():
    assert learned_too_soon(Tape("drawn", [COPY, KERNEL, LEARN]), 100, 51) == (0, [])


def test_the_judge_counts_as_many_scores_as_the_network_has():
    assert ex08.N_SCORES == WIDTH
