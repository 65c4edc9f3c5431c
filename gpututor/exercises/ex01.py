"""Exercise of lesson 1: from bytes and time to the bandwidth that a kernel reached."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gpututor.exercises.graded import NOT_ANSWERED, Graded
from gpututor.text import NBSP, duration, percent, quantity

__all__ = ["HINTS", "NOTES", "NOT_ANSWERED", "TASK", "Moved", "by_adding", "grade", "read_number"]

TOLERANCE = 0.02  # rounding on the way is fine; GiB for GB is 7 % off and isn't
UNIT = "GB/s"
_WHAT_MOVES = "How many numbers pass between the SMs and memory? Each result needs two that are read, and is written."
_BYTES = "An fp32 number takes four bytes. So the kernel moves three arrays of four bytes a number."
_NEARLY = (
    "Bytes over seconds gives B/s. A GB/s is a thousand million of them: divide by ten to the 9, not by two to the 30."
)
TASK = (
    "Adding two arrays of {n_numbers} fp32 numbers took one kernel {took}. How many **GB/s** passed between the SMs "
    "and the card's memory? An answer within {tolerance} counts as right."
)
HINTS = (_WHAT_MOVES, _BYTES, _NEARLY)
NOTES = (
    "**Ask first**: who has trusted the number in nvidia-smi? Then guess and run. **Watch for**: people who take a "
    "small MFU for a fault. Adding two arrays can't have a large one; what counts there is bandwidth. "
    "**Short of time**: guess, run, the picture of the SMs, takeaway. **Exercise 1.1**: the usual slip is to count one "
    "array, or only what is read; both are told by name."
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
        """What fills the gaps of `TASK`."""
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


def read_number(text: str) -> float | None:
    """The number in what a reader typed, with or without a unit and thousands separators; None without one.

    >>> read_number("813"), read_number("813.1 GB/s"), read_number("1,234.5"), read_number("0,9"), read_number("fast")
    (813.0, 813.1, 1234.5, 0.9, None)
    """
    found = re.fullmatch(r"\s*([-+]?[\d.,' \u00a0]*\d(?:\.)?(?:[eE][-+]?\d+)?)\s*(?:[a-zA-Z/%]*)\s*", text)
    if found is None:
        return None
    plain = re.sub(r"[' \u00a0]", "", found[1])
    grouped = re.fullmatch(r"[-+]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?", plain)
    plain = plain.replace(",", "") if grouped else plain.replace(",", ".")
    try:
        return float(plain)
    except ValueError:
        return None


def grade(typed: str, moved: Moved) -> Graded:
    """The verdict on what a reader typed; `theirs` and `ours` hold one point each, the answers in GB/s."""
    if not typed.strip():
        return NOT_ANSWERED
    answer = read_number(typed)
    if answer is None or answer < 0:
        return Graded("wrong", f"“{typed.strip()[:40]}” is not a number that can be a bandwidth. Type one in {UNIT}.")
    right = moved.gb_per_s
    points = ((0.0, answer),), ((0.0, right),)
    if _near(answer, right):
        reached = 1e9 * right / moved.card_bytes_per_s
        text = (
            f"{right:.0f}{NBSP}{UNIT} is {percent(reached)} of the {quantity(moved.card_bytes_per_s, 'B/s')} that the "
            "data sheet promises. No better kernel would be much faster, however small its MFU."
        )
        return Graded("right", text, *points)
    slip = next((said for value, said in moved.slips if _near(answer, value)), None)
    if slip is None and 1e9 * answer > moved.card_bytes_per_s:
        slip = f"That is more than the {quantity(moved.card_bytes_per_s, 'B/s')} of the data sheet. Look at the units."
    return Graded("wrong", slip or "Count again what is read and what is written, and check the units.", *points)


def _near(answer: float, value: float) -> bool:
    return abs(answer - value) <= TOLERANCE * value
