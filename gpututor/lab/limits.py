"""What a learner's code may use, and the sentence for each limit: the same on every machine, whatever was measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MIB = 2**20
PRINTED_BYTES = 2**14  # shown under the exercise: some 200 lines
MAX_PRINTED_BYTES = 2**20  # beyond that it's a loop that prints
MAX_ANSWER_BYTES = 4 * 2**20
MAX_FILE_BYTES = 64 * 2**20
MAX_PROCESSES = 16  # a function may start a few; a fork bomb starts hundreds within a look
LOOK_EVERY_S = 0.05

Cut = Literal["time", "memory", "output", "answer", "processes", "keeper"]
"""Why a run was ended before its time; "keeper": the code ended the process that starts each call inside a sandbox."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Time and memory of one run.

    `cpu_s` is processor time of all its processes together, None where only the clock counts; `wall_s` is time on the
    clock. `told_s` is the time that the sentence names.
    """

    wall_s: float
    told_s: float
    memory_mb: int
    cpu_s: float | None = None

    @property
    def memory_bytes(self) -> int:
        """The memory in bytes."""
        return self.memory_mb * MIB

    def said(self, cut: Cut) -> str:
        """One sentence on a run that went beyond this limit."""
        return {
            "time": f"Your code still ran after {self.told_s:g} s, so it was stopped; is there a loop without an end?",
            "memory": too_much_memory(self.memory_mb),
            "output": (
                "Your code printed more than 1 MiB, so it was stopped; is there a print in a loop without an end?"
            ),
            "answer": "Your function gave back more than 4 MiB, so it was stopped; give back only what is asked.",
            "processes": f"Your code started more than {MAX_PROCESSES} processes, so it was stopped; it needs none.",
            "keeper": "Your code ended the process that had started it, so there is no answer; leave that one alone.",
        }[cut]


def too_much_memory(memory_mb: int) -> str:
    """The sentence on an allocation beyond the limit, in MiB."""
    return f"Your code asked for more memory than the {memory_mb:,} MiB it may have; does a list grow without an end?"
