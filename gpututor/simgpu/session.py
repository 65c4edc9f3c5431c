"""One simulated machine at work: its clocks, its memory, and the tape of what a program did on it."""

from __future__ import annotations

import os
import sys
import threading
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import torch

from gpututor.errors import SessionRunning
from gpututor.model.cards_player import player_for
from gpututor.model.host import PHASES
from gpututor.model.marks import LAUNCH_BLOCKING, LaunchBlocking
from gpututor.model.tape import BeginStep, EndRun, Entry, Player, Tape, TapeOp, UseStream
from gpututor.simgpu.memory import Memory
from gpututor.timeline import Timeline

if TYPE_CHECKING:
    from gpututor.cards import Machine
    from gpututor.simgpu.remote.session import RemoteSession
    from gpututor.simgpu.watching import Watch

FORWARD, NO_GRAD, BACKWARD, OPTIMIZER = range(4)
SCRIPTED, SCRIPTED_NO_GRAD = PHASES.index("scripted"), PHASES.index("scripted_no_grad")


class _ThreadState(threading.local):
    """What the engine wrapper, the optimizer hooks and set_device note of this thread."""

    backward_depth = 0
    backward_error: BaseException | None = None
    caller: int | None = None  # autograd's engine, an optimizer or TorchScript, while one of them calls
    card = 0  # the current device
    inside_whole = False  # a whole op is computed on the CPU, with the CPU's own autograd


thread = _ThreadState()


def phase() -> int:
    """Who is calling the device: forward pass, code without gradients, autograd's engine, an optimizer, TorchScript."""
    caller = thread.caller
    if caller is not None:
        return caller
    return FORWARD if torch.is_grad_enabled() else NO_GRAD


def no_such_card(machine: Machine, index: int) -> RuntimeError:
    """The error for a card that the machine doesn't have."""
    has = "one GPU, 0" if machine.n_cards == 1 else f"{machine.n_cards} GPUs, 0 to {machine.n_cards - 1}"
    return RuntimeError(f"no simulated GPU {index}: {machine.name} is simulated with {has}")


class Session:
    """A simulated machine from `with` to the end of it; one at a time in a process.

    A second thread that wants one waits for its turn, so that readers of one server don't share a random
    generator. With `numerics` every op really computes, on the CPU, and results are the CPU's to the bit.
    Without, only shapes are followed: values are zero and nothing may depend on them.

    The host's clock is "virtual", the same on every computer, or "paced": then it is this computer's, the card
    alone is simulated, and the program really waits where it would wait for the card (see paced.py).
    """

    _running = threading.Lock()
    _owner: int | None = None
    remote: RemoteSession | None = None
    """Itself where the card lives in another process, see remote/; else None."""
    graph_class: type | None = None

    def __init__(
        self,
        machine: Machine,
        *,
        numerics: bool = True,
        what: str = "",
        keep_tape: bool = True,
        clock: str = "virtual",
    ) -> None:
        self.machine, self.numerics = machine, numerics
        self.tape = Tape(what, n_cards=machine.n_cards, clock=clock)
        self.watch: Watch | None = None
        self.memories = [Memory(machine.card, k, self) for k in range(machine.n_cards)]
        self.player: Player = player_for(machine, None, machine.n_cards)
        self.card = 0  # whose stream the queue is on
        self.stream_numbers = list(range(machine.n_cards))  # the current stream of each card
        self.chosen_streams: dict[int, object] = {}
        self.capturing: object | None = None
        self.drives_cards = machine.n_cards > 1  # autograd has a thread for each card; a rank has one card only
        self._numbers: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        self._n_streams, self._n_events = machine.n_cards, 0
        self._keep = self.tape.entries.append if keep_tape else None
        self._outer: Session | None = None
        self.counts_modules = clock == "virtual"  # else Python's time is real
        self.tuned: set[object] = set()  # plans of convolutions whose quickest algorithm cuDNN has looked for
        self.launches_wait = False  # CUDA_LAUNCH_BLOCKING was set when the session began
        self.opened_in: FrameType | None = None  # the frame of Python that began it
        self.n_steps_seen = 0  # by somebody who finds steps in a program without marks

    @property
    def memory(self) -> Memory:
        """The memory of the first card."""
        return self.memories[0]

    @classmethod
    def is_running(cls) -> bool:
        """Whether a simulated GPU is at work in this process."""
        return cls._owner is not None

    # --- cards, streams, events -------------------------------------------------------------------------------

    def use_card(self, card: int) -> None:
        """Later kernels and copies go to this card, into the stream that is current there.

        Raises:
            RuntimeError: the machine has no such card; an op on it was remembered from a larger machine.
        """
        if card >= self.machine.n_cards:
            raise no_such_card(self.machine, card)
        if card >= len(self.memories):  # a plan remembered from a machine with more cards
            from gpututor.simgpu.streams import card_of

            card_of(card)  # refuses it
        self.card = card
        self.account(UseStream(self.stream_numbers[card], card))

    def number_of(self, stream: Any, card: int) -> int:
        """The number of a stream that the program made; it gets one when it is first asked for."""
        number = self._numbers.get(stream)
        if number is None:
            number = self._numbers[stream] = self._n_streams
            self._n_streams += 1
            self.account(UseStream(number, card))
            self.account(UseStream(self.stream_numbers[self.card], self.card))
        return number

    def new_event(self) -> int:
        """A number for an event."""
        self._n_events += 1
        return self._n_events

    # --- accounts ---------------------------------------------------------------------------------------------

    def account(self, entry: Entry) -> None:
        """The program did this: write it on the tape and move the clocks."""
        keep = self._keep
        if keep is not None:
            keep(entry)
        player = self.player
        if type(entry) is TapeOp and not player.launches_wait:
            known = player.priced_ops.get(id(entry))
            player.queue.op_unseen(known[1] if known is not None else player.pricer.op(entry))
        else:
            player.play(entry)

    def watch_with(self, watch: Watch) -> None:
        """Let a watch take what is accounted; it hands it on to `Session.account`."""
        self.watch = watch
        self.account = watch.account  # type: ignore[method-assign]

    def unwatch(self) -> None:
        """Account directly again."""
        self.watch = None
        del self.account

    def stop_keeping(self) -> None:
        """Write no more on the tape; the clocks and the memory go on."""
        self._keep = None

    def begin_step(self, n_samples: int | None = None, useful_share: float | None = None) -> None:
        """A training step begins; the one before it, if any, ends.

        `useful_share` is the part of its arithmetic that isn't on padding, where the program knows.
        """
        self.account(BeginStep(n_samples, useful_share))
        if self.launches_wait:  # steps may be cut out of the tape
            self.account(LaunchBlocking())

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

    def tell_no_more(self) -> None:
        """The run is over for those who watch it from another process, as they can on a paced clock."""
        if self.tape.clock == "paced":
            from gpututor.simgpu.clocks.paced import end

            end(self)

    # --- life -------------------------------------------------------------------------------------------------

    def __enter__(self) -> Session:
        me = threading.get_ident()
        if Session._owner == me:
            raise SessionRunning(
                "a simulated GPU is already at work in this thread, and two would share one random generator; "
                "end its with-block first, or run the second one in a process of its own"
            )
        Session._running.acquire()
        Session._owner = me
        self._outer, current.session = current.session, self
        thread.card = 0
        self.opened_in = sys._getframe(1)
        if self.remote is None and os.environ.get(LAUNCH_BLOCKING) == "1":  # read once, as CUDA does
            self.launches_wait = True
            self.account(LaunchBlocking())
        if self.tape.clock == "paced":
            from gpututor.simgpu.clocks.paced import start

            start(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._outer is not None
        self.tell_no_more()
        current.session, self._outer, self.opened_in = self._outer, None, None
        Session._owner = None
        Session._running.release()


class _Current:
    """The session in which device calls are accounted."""

    session: Session


current = _Current()
