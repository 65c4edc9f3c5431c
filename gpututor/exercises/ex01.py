"""Exercises of lesson 1: from bytes and time to bandwidth, and from blocks to the share of the card that works."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from gpututor.exercises.coded import numbers_only
from gpututor.exercises.form import NOT_ANSWERED, Case, Exercise, Judged
from gpututor.exercises.ours import case_from
from gpututor.exercises.typed import near, read_number
from gpututor.lab.learner_code import run_learner
from gpututor.text import NBSP, duration, percent, quantity

__all__ = ["BANDWIDTH", "NOTES", "RECALL", "WAVES", "Moved", "bandwidth_case", "by_adding", "grade", "waves_case"]

TOLERANCE = 0.02  # rounding on the way is fine; GiB for GB is 7 % off and isn't
UNIT = "GB/s"
RECALL = (
    ("You rent a card by the hour. What do you pay for while it waits?", "The same: an hour is an hour, busy or not."),
    ("What would a faster card change for a program that keeps it waiting?", "Little. It would wait faster."),
)
NOTES = (
    "**Ask first**: who has trusted the number in nvidia-smi? Then guess and run. **Watch for**: people who take a "
    "small MFU for a fault. Adding two arrays can't have a large one; what counts there is bandwidth. "
    "**Short of time**: guess, run, the picture of the SMs, takeaway. **Exercise 1.1**: the usual slip is to count one "
    "array, or only what is read; both are told by name. **1.2**: the usual slip is a card that stays full once it is "
    "full; ask what the last block of many waits for."
)


@dataclass(frozen=True, slots=True)
class Moved:
    """What the elementwise kernel of the reader's run did: numbers an array, arrays read and written, and its time."""

    n_numbers: int
    number_bytes: int
    n_read: int
    n_written: int
    took_ns: int
    card_bytes_per_s: float

    @property
    def gb_per_s(self) -> float:
        """The right answer: bytes read and written over the time, in 10^9 bytes per second."""
        return self.of_arrays(self.n_read + self.n_written)

    def of_arrays(self, n_arrays: int) -> float:
        """GB/s if only so many arrays moved."""
        return n_arrays * self.n_numbers * self.number_bytes / self.took_ns  # bytes per nanosecond are GB/s

    @property
    def in_words(self) -> dict[str, str]:
        """What fills the gaps of the task."""
        tolerance = f"{100 * TOLERANCE:g}{NBSP}%"
        return {"n_numbers": f"{self.n_numbers:,}", "took": duration(self.took_ns), "tolerance": tolerance}

    @property
    def slips(self) -> tuple[tuple[float, str], ...]:
        """Answers that come from a known slip, each with one sentence on it."""
        right = self.gb_per_s
        return (
            (self.of_arrays(1), "That is one array. Two are read, and one is written."),
            (self.of_arrays(self.n_read), "That is what is read. The result is written to memory too."),
            (right * 8, "That is in bits. A byte has eight of them, and the data sheet counts bytes."),
            (right * 1e9 / 2**30, "That is in GiB, 2 to the 30. The data sheet's GB is ten to the 9."),
            (right / self.number_bytes, "Those are numbers per second. Each takes several bytes."),
            (right / 1e3, "Three zeros are missing: look again at the unit of the time or of the answer."),
            (right * 1e3, "That is in MB/s, or the time was taken a thousand times too short."),
            (right * 1e9, "That is in bytes per second. The answer is asked for in GB/s."),
            (1e9 * right / self.card_bytes_per_s, "That is the share of the data sheet's bandwidth. Asked is GB/s."),
            (1e11 * right / self.card_bytes_per_s, "That is a share in percent. Asked is GB/s."),
        )


def by_adding(moved_bytes: float, took_ns: int, card_bytes_per_s: float) -> Moved:
    """The kernel that adds two fp32 arrays into a third, from all bytes that it moved."""
    return Moved(round(moved_bytes / (3 * 4)), 4, 2, 1, took_ns, card_bytes_per_s)


def grade(typed: str, moved: Moved) -> Judged:
    """The verdict on what a reader typed; `theirs` and `ours` hold one point each, the answers in GB/s."""
    if not typed.strip():
        return NOT_ANSWERED
    answer = read_number(typed)
    if answer is None or answer < 0:
        return Judged("wrong", f"“{typed.strip()[:40]}” is not a number that can be a bandwidth. Type one in {UNIT}.")
    right = moved.gb_per_s
    points = ((0.0, answer),), ((0.0, right),)
    if near(answer, right, TOLERANCE):
        reached = 1e9 * right / moved.card_bytes_per_s
        text = (
            f"{right:.0f}{NBSP}{UNIT} is {percent(reached)} of the {quantity(moved.card_bytes_per_s, 'B/s')} that the "
            "data sheet promises. No better kernel would be much faster, however small its MFU."
        )
        return Judged("right", text, (), *points)
    slip = next((said for value, said in moved.slips if near(answer, value, TOLERANCE)), None)
    if slip is None and 1e9 * answer > moved.card_bytes_per_s:
        slip = f"That is more than the {quantity(moved.card_bytes_per_s, 'B/s')} of the data sheet. Look at the units."
    said = slip or "Count again what is read and what is written, and check the units."
    return Judged("wrong", said, (), *points, None if slip else 1)


def bandwidth_case(moved: Moved) -> dict[str, Any]:
    """What 1.1 needs of the reader's run."""
    limit = [moved.card_bytes_per_s / 1e9, UNIT]
    return {"moved": asdict(moved), "words": moved.in_words, "limit": limit}


BANDWIDTH = Exercise(
    "1.1",
    "What passed through",
    "number",
    "Adding two arrays of {n_numbers} fp32 numbers took one kernel {took}. How many **GB/s** passed between the SMs "
    "and the card's memory? An answer within {tolerance} counts as right.",
    (
        "How many numbers pass between the SMs and memory? Each result needs two that are read, and is written.",
        "An fp32 number takes four bytes. So the kernel moves three arrays of four bytes a number.",
        "Bytes over seconds gives B/s. A GB/s is a thousand million of them: ten to the 9, not two to the 30.",
    ),
    lambda typed, case: grade(str(typed), Moved(**case["moved"])),
    unit=UNIT,
    case_from=case_from("1.1"),
)

# blocks, SMs, and the share counted on squared paper: a row for each SM, a column for each round
CASES: tuple[tuple[int, int, float], ...] = (
    (1, 80, 1 / 80),
    (80, 80, 1.0),
    (81, 80, 81 / 160),  # the one left over takes a whole round of its own
    (200, 80, 200 / 240),
    (6, 4, 6 / 8),
)
FUNCTION = "sm_fill"
STARTER = f"""def {FUNCTION}(n_blocks, n_sms):
    # an SM holds one block at a time; all blocks take equally long
    # the share, between 0 and 1, of the SMs' time in which they have a block
    ...
"""


def waves_case(filled: Sequence[tuple[float, float | None]], n_sms: int) -> dict[str, Any]:
    """What 1.2 needs: the card's SMs, and the share that the run's kernel fills at some numbers of rows."""
    return {"n_sms": n_sms, "filled": [[x, y] for x, y in list(filled)[:: max(1, len(filled) // 24)]]}


def _judge_waves(code: Any, case: Case) -> Judged:
    n_sms, filled = case["n_sms"], [(x, y) for x, y in case["filled"] if y is not None]
    cases = CASES + tuple((n, sms, n / (math.ceil(n / sms) * sms)) for n, sms in case.get("blocks", ()))
    calls = [[n, sms] for n, sms, _ in cases] + [[int(x), n_sms] for x, _ in filled]
    answers, trouble = numbers_only(run_learner(str(code), FUNCTION, calls))
    if trouble is not None:
        return trouble
    theirs = tuple((x, answer) for (x, _), answer in zip(filled, answers[len(cases) :], strict=True))
    ours = tuple((float(x), y) for x, y in filled)
    for (n_blocks, sms, counted), answer in zip(cases, answers, strict=False):
        if not near(answer, counted, 1e-3):
            hint = 2 if near(answer, min(1.0, n_blocks / sms), 1e-3) else 1
            text = f"{n_blocks} blocks on {sms} SMs: you give {answer:.3g}; counted on paper it is {counted:.3g}."
            return Judged("wrong", text, (), theirs, ours, hint)
    off = max((abs(a - b) for (_, a), (_, b) in zip(theirs, ours, strict=True)), default=0.0)
    text = (
        f"It agrees with all {len(cases)} counted cases and comes within {percent(off)} of the circles. What is left: "
        "a real SM holds several small blocks at a time, and blocks of a memory-bound kernel slow each other down."
    )
    return Judged("right", text, (), theirs, ours)


def _draw(rng: random.Random) -> Case:
    """Numbers of blocks around those that fill a card's SMs so and so often."""
    n_sms = [rng.randint(12, 150) for _ in range(6)]
    blocks = [[max(1, sms * rng.randint(0, 5) + rng.randint(-2, 2)), sms] for sms in n_sms]
    return {"n_sms": n_sms[0], "filled": [], "blocks": [*blocks, [rng.randint(200, 3000), n_sms[0]]]}


WAVES = Exercise(
    "1.2",
    "The last wave",
    "code",
    f"Write `{FUNCTION}(n_blocks, n_sms)`: the share of the SMs' time, between 0 and 1, in which they have a block. An "
    "SM holds one block at a time, all blocks take equally long, and the kernel is over with its last block.",
    (
        "Draw a small one: six blocks on four SMs. How many rounds does it take, and how many squares stay empty?",
        "A card that was full doesn't stay full: what do the other SMs do while the last round runs?",
        "The rounds are `-(-n_blocks // n_sms)`. Of `rounds * n_sms` squares, `n_blocks` are taken.",
    ),
    _judge_waves,
    starter=STARTER,
    x_title="blocks",
    picture="share",
    hidden=_draw,
)
