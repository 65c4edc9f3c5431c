"""One simulated machine at work: its clocks, its memory, and the tape of what a program did on it."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import TYPE_CHECKING

import torch

from gpututor.errors import SessionRunning
from gpututor.model.tape import BeginStep, EndRun, Entry, Player, Pricer, Tape, TapeOp
from gpututor.simgpu.forms import Memory
from gpututor.timeline import Timeline

if TYPE_CHECKING:
    from gpututor.cards import Machine

FORWARD, NO_GRAD, BACKWARD, OPTIMIZER = range(4)


class _ThreadState(threading.local):
    """What the engine wrapper and the optimizer hooks note of this thread."""

    backward_depth = 0
    backward_error: BaseException | None = None
    in_optimizer = 0


thread = _ThreadState()


def phase() -> int:
    """Who is calling the device: forward pass, code without gradients, autograd's engine or an optimizer."""
    if thread.backward_depth:
        return BACKWARD
    if thread.in_optimizer:
        return OPTIMIZER
    return FORWARD if torch.is_grad_enabled() else NO_GRAD


class Session:
    """A simulated machine from `with` to the end of it; one at a time in a process.

    With `numerics` every op really computes, on the CPU, and results are the CPU's to the bit.
    Without, only shapes are followed: values are zero and nothing may depend on them.
    """

    _running = threading.Lock()

    def __init__(self, machine: Machine, *, numerics: bool = True, what: str = "", keep_tape: bool = True) -> None:
        self.machine, self.numerics = machine, numerics
        self.tape = Tape(what)
        self.memory = Memory(machine.card.memory_bytes, machine.card.name)
        self.player = Player(Pricer(machine))
        self._keep = self.tape.entries.append if keep_tape else None
        self._outer: Session | None = None

    # --- accounts ---------------------------------------------------------------------------------------------

    def account(self, entry: Entry) -> None:
        """The program did this: write it on the tape and move the clocks."""
        if self._keep is not None:
            self._keep(entry)
        if type(entry) is TapeOp:
            player = self.player
            player.queue.op(player.pricer.op(entry))
        else:
            self.player.play(entry)

    def begin_step(self, n_samples: int | None = None) -> None:
        """A training step begins; the one before it, if any, ends."""
        self.account(BeginStep(n_samples))

    def end_run(self) -> None:
        """The last step ends here."""
        self.account(EndRun())

    @property
    def host_ns(self) -> int:
        """The simulated host's clock, in nanoseconds since the session began."""
        return self.player.queue.host_ns

    def timeline(self) -> Timeline:
        """Everything done so far, priced on this machine.

        Raises:
            TimelineError: nothing was done yet.
        """
        return self.tape.price(self.machine, versions=(("torch", torch.__version__),))

    # --- life -------------------------------------------------------------------------------------------------

    def __enter__(self) -> Session:
        if current.session._outer is not None or not Session._running.acquire(blocking=False):
            raise SessionRunning(
                "a simulated GPU is already at work in this process, and two would share one random generator; "
                "end its with-block first, or run the second one in a process of its own"
            )
        self._outer, current.session = current.session, self
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._outer is not None
        current.session, self._outer = self._outer, None
        Session._running.release()


class _Current:
    """The session in which device calls are accounted."""

    session: Session


current = _Current()
