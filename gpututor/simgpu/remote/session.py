"""A session whose card lives in another process: to the program the same `device="simgpu"`, with nothing to get at.

Its clocks, its memory and its tape are over there; what stands here in their place asks, or only has a name.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import torch

from gpututor.lookup import machine_named
from gpututor.model.tape import BeginStep, EndRun, Entry, HostWork, ModuleCall, RecordEvent, Sync, TapeOp, WaitEvent
from gpututor.simgpu import register
from gpututor.simgpu.graphs.graphs import CUDAGraph
from gpututor.simgpu.remote.forwarding import RemoteWatch, phase_now
from gpututor.simgpu.remote.line import Line
from gpututor.simgpu.remote.told import form_heard
from gpututor.simgpu.session import Session, current
from gpututor.simgpu.streams import card_of
from gpututor.simgpu.tensor import SimTensor


class Memory:
    """In the place of a card's memory: nothing is allocated in this process."""

    def use_stream(self, stream: int) -> None:
        """The card hears of it by `use_card`."""

    def __getattr__(self, name: str) -> Any:
        raise NotImplementedError(
            f"this way of making or asking for a tensor ({name}) is not there on a card in another process; make it on "
            'the CPU and move it with .to("simgpu")'
        )


class _Queue:
    """The clocks, as far as streams and events ask for them."""

    def __init__(self, session: RemoteSession) -> None:
        self._session = session
        self.stream_card = list(range(session.machine.n_cards))

    @property
    def host_ns(self) -> int:
        return self._session.host_ns

    @property
    def stream_ns(self) -> list[int]:
        told: list[int] = self._session.line.ask("q", "stream_ns", [])
        return told


class _Player:
    def __init__(self, session: RemoteSession) -> None:
        self.queue = _Queue(session)
        self.events: dict[int, int] = {}


class RemoteSession(Session):
    """A run on a card in another process, from `with` to the end of it."""

    def __init__(self, line: Line, machine: str) -> None:
        super().__init__(machine_named(machine), keep_tape=False)
        self.line = line
        self.remote = self
        self.graph_class = RemoteGraph
        self.watch = RemoteWatch(self, line)  # type: ignore[assignment]  # it answers to the same calls
        self.memories = [Memory() for _ in range(self.machine.n_cards)]  # type: ignore[misc]
        self.player = _Player(self)  # type: ignore[assignment]
        self._told: dict[type, Callable[[Any], tuple[str, list[Any]]]] = {
            Sync: lambda e: ("sync", [e.name, list(e.stream) if isinstance(e.stream, tuple) else e.stream]),
            HostWork: lambda e: ("host", [e.activity.value, e.name, e.long_ns]),
            WaitEvent: lambda e: ("wait", [e.event, e.stream]),
            BeginStep: lambda e: ("step", [e.n_samples]),
            EndRun: lambda e: ("end", []),
        }
        line.ask("n", self.machine.name)

    # --- accounts -------------------------------------------------------------------------------------------------

    def account(self, entry: Entry) -> None:
        """Tell the card what the program did; the card decides what of it counts."""
        kind = type(entry)
        if kind is ModuleCall:
            self.line.n_modules += 1
        elif kind is RecordEvent:
            at_ns = self.line.ask("a", "record", [entry.event, entry.stream])  # type: ignore[union-attr]
            self.player.events[entry.event] = at_ns  # type: ignore[union-attr]
        elif kind is TapeOp:
            self.line.put("q", "query", [])
        elif kind in self._told:
            said = self._told[kind](entry)
            waits = kind is Sync or self.capturing is not None
            (self.line.ask if waits else self.line.put)("a", *said)
        else:
            raise NotImplementedError(f"{kind.__name__} is not there on a card in another process")

    @property
    def host_ns(self) -> int:
        """The simulated host's clock, as the card keeps it."""
        told: int = self.line.ask("q", "host_ns", [])
        return told

    def read(self, name: str, t: SimTensor) -> torch.Tensor:
        """A tensor's values; the card accounts the copy by this name."""
        return self.line.host_tensor(self.line.ask("r", phase_now(), name, t))

    def copy_from(self, source: Any, target: Any) -> Any:
        """A copy that torch makes below Python's tensor class, in `torch.tensor(…, device="simgpu")`."""
        if type(target) is SimTensor:
            self.line.put("c", target, source)
        else:
            target.copy_(self.read("copy to the host", source))
        return target

    # --- streams, memory ------------------------------------------------------------------------------------------

    def use_card(self, card: int) -> None:
        """Later work goes to the stream that is current on this card."""
        self.card = card
        self.line.put("q", "use_stream", [self.stream_numbers[card]])

    def number_of(self, stream: Any, card: int) -> int:
        """The number that the card gives a stream when it is first asked for."""
        number = self._numbers.get(stream)
        if number is None:
            number = self._numbers[stream] = self.line.ask("q", "new_stream", [card])
            self.player.queue.stream_card.append(card)
        return number

    def record_stream(self, t: SimTensor, stream: Any) -> None:
        """Keep the tensor's memory until the stream is done with it."""
        self.line.put("t", t, stream.stream_id)

    def ask_memory(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What one of the memory functions says of a card."""
        numbers = (int, float, bool, type(None))
        given = [a if type(a) in numbers else card_of(a) for a in (*args, *kwargs.values())]
        told = self.line.ask("q", "memory", [name, given])
        return tuple(told) if name == "mem_get_info" else told

    # --- the run --------------------------------------------------------------------------------------------------

    def placed(self, k: int = 0) -> list[SimTensor]:
        """The tensors that the judge had laid on the card under this number."""
        first = self.line.next_number
        return [self.line.made(form_heard(form)) for form in self.line.ask("p", first, k)]

    def start(self) -> None:
        """From here on it counts."""
        self.line.ask("s", None)

    def end(self, gave: Any) -> None:
        """The counted part is over, and this is what the program gives: tensors of the card, or plain data."""
        self.line.ask("e", given(gave))


def given(value: Any) -> Any:
    """A result as the card takes it: lists and dictionaries by mark, tensors of the card as they are.

    Raises:
        TypeError: there is something in it that is no data.
    """
    if value is ...:
        return None
    if isinstance(value, SimTensor):
        return value
    if hasattr(value, "tolist"):
        return given(value.tolist())
    if isinstance(value, dict):
        return ["D", [[str(name), given(each)] for name, each in value.items()]]
    if isinstance(value, list | tuple):
        return ["L", [given(each) for each in value]]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"your function gave back a {type(value).__name__}; give back tensors, numbers or lists")


class RemoteGraph(CUDAGraph):
    """A graph that is captured and replayed by the card."""

    _n = 0

    def __init__(self, keep_graph: bool = False, *, pool: Any = None, **_: Any) -> None:
        super().__init__(keep_graph, pool=pool)
        session = current.session.remote
        assert session is not None
        self._remote = session
        self._which = RemoteGraph._n
        RemoteGraph._n += 1

    def _ask(self, verb: str, *args: Any) -> None:
        self._pool = tuple(self._remote.line.ask("q", "graph", [verb, self._which, *args]))

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global") -> None:
        """Take what follows into the graph instead of running it."""
        wanted = pool or self._wanted_pool
        self._ask("begin", list(wanted) if wanted else None)
        self._remote.capturing = self

    def capture_end(self) -> None:
        """The graph is complete."""
        self._remote.capturing = None
        self._ask("end")

    def abandon(self) -> None:
        """An error ended the capture: the graph stays empty."""
        self._remote.capturing = None
        self._ask("abandon")

    def replay(self) -> None:
        """Run the graph."""
        self._ask("replay")

    def reset(self) -> None:
        """Forget the captured work."""
        self._ask("reset")


_lines: dict[int, Line] = {}


def session_over(card_fd: int, machine: str) -> RemoteSession:
    """A run on the card at the other end of this socket; later runs of the process use the same one."""
    register()
    line = _lines.get(card_fd)
    if line is None:
        line = _lines[card_fd] = Line(socket.socket(fileno=card_fd))
    return RemoteSession(line, machine)
