"""What a stopwatch around each line of a training loop shows, worked out from a tape for any machine.

Only the clocks move, no spans are kept, so a whole sweep takes some milliseconds a machine.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpututor.cards import Machine
from gpututor.errors import TimelineError
from gpututor.model.tape import CopyCall, Entry, Player, Pricer, Sync, Tape, WaitEvent

LAST_WAIT = "synchronize"  # what an experiment waits for after its last step; no line of the loop


@dataclass(frozen=True, slots=True)
class Stopwatch:
    """A mean step as the host lives through it, in nanoseconds.

    `batch_ns` passes in lines that bring something to the card, `read_ns` in those that ask the card for something;
    the rest of the step launches work. `copy_ns` is what the copies to the card really take, `card_ns` is how long
    kernels run, and `n_waits` how often the host waits.
    """

    step_ns: float
    batch_ns: float
    read_ns: float
    copy_ns: float
    card_ns: float
    n_waits: float

    @property
    def launching_ns(self) -> float:
        """What is left: Python, the framework and the launch calls of forward pass, backward pass and update."""
        return self.step_ns - self.batch_ns - self.read_ns

    @property
    def read_share(self) -> float:
        """The share of the step that passes in reading."""
        return self.read_ns / self.step_ns

    @property
    def batch_share(self) -> float:
        """The share of the step that passes in bringing the batch."""
        return self.batch_ns / self.step_ns

    @property
    def copy_share(self) -> float:
        """The share of the step that the copies to the card really take."""
        return self.copy_ns / self.step_ns


@dataclass(slots=True)
class _Sums:
    batch_ns: int = 0
    read_ns: int = 0
    copy_ns: int = 0
    n_waits: int = 0

    def add(self, entry: Entry, took_ns: int, pricer: Pricer) -> None:
        """Put the host's time in one entry to the line it belongs to."""
        match entry:
            case CopyCall(to_gpu=True):
                self.batch_ns += took_ns
                self.copy_ns += pricer.copy(entry)[0]
                self.n_waits += entry.blocking
            case CopyCall():
                self.read_ns += took_ns
                self.n_waits += entry.blocking
            case Sync(name=name) if name != LAST_WAIT:
                self.read_ns += took_ns
                self.n_waits += 1
            case WaitEvent(stream=None):
                self.read_ns += took_ns
                self.n_waits += 1


def stopwatch(tape: Tape, machine: Machine) -> Stopwatch:
    """A mean step of this tape on `machine`, line by line.

    Raises:
        TimelineError: the tape has no steps.
    """
    pricer, sums = Pricer(machine), _Sums()
    player = Player(pricer)
    for entry in tape.entries:
        before_ns = player.queue.host_ns
        player.play(entry)
        sums.add(entry, player.queue.host_ns - before_ns, pricer)
    n = len(player.begins)
    if not n:
        raise TimelineError("the run has no steps, so no line of a step can be timed; run the experiment again")
    end_ns = player.queue.host_ns if player.end_ns is None else player.end_ns
    return Stopwatch(
        (end_ns - player.begins[0][0]) / n,
        sums.batch_ns / n,
        sums.read_ns / n,
        sums.copy_ns / n,
        player.queue.summed_kernel_ns / n,
        sums.n_waits / n,
    )
