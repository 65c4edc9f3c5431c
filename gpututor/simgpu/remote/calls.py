"""What a program asks its card apart from operators: entries without work, clocks, streams, memory, graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpututor.model.tape import (
    MODULE_CALL,
    BeginStep,
    EndRun,
    Entry,
    HostWork,
    RecordEvent,
    Sync,
    WaitEvent,
)
from gpututor.simgpu import memory_calls, streams
from gpututor.simgpu.graphs.graphs import CUDAGraph
from gpututor.simgpu.remote.wire import foul
from gpututor.simgpu.session import (
    BACKWARD,
    FORWARD,
    NO_GRAD,
    OPTIMIZER,
    SCRIPTED,
    SCRIPTED_NO_GRAD,
    Session,
)
from gpututor.simgpu.tensor import SimTensor
from gpututor.timeline import Activity

MOST_OF_EACH = 10_000  # streams, events, graphs
MOST_MODULES = 1_000_000
LONGEST_NS = 10**12


def text(value: Any) -> str:
    """A short text.

    Raises:
        Foul: it is anything else.
    """
    if type(value) is not str or len(value) > 80:
        raise foul("a name that is none")
    return value


def number(value: Any, below: int) -> int:
    """A whole number from 0 to before `below`.

    Raises:
        Foul: it is anything else.
    """
    if type(value) is not int or not 0 <= value < below:
        raise foul("a number out of bounds")
    return value


CALLERS = (FORWARD, NO_GRAD, BACKWARD, OPTIMIZER, SCRIPTED, SCRIPTED_NO_GRAD)


def caller(phase: Any) -> int:
    """Who calls the card, as the program says.

    Raises:
        Foul: nobody of this number calls one by one; compiled regions are accounted otherwise.
    """
    if type(phase) is not int or phase not in CALLERS:
        raise foul("an op of no known phase")
    return phase


class Calls:
    """The streams and graphs that one program made on its session, by number, and what it may ask of them."""

    def __init__(self, session: Session, steps: bool) -> None:
        self.session, self.steps = session, steps
        self.streams: dict[int, streams.Stream] = {k: streams.default_stream(k) for k in range(session.machine.n_cards)}
        self.graphs: dict[int, CUDAGraph] = {}
        self.answers: dict[str, Callable[..., Any]] = {
            "host_ns": lambda: session.host_ns,
            "stream_ns": lambda: list(session.player.queue.stream_ns),
            "new_stream": self.new_stream,
            "use_stream": self.use_stream,
            "query": self.query,
            "modules": self.modules,
            "memory": self.memory,
            "graph": self.graph,
        }

    def answer(self, name: Any, args: Any) -> Any:
        """What the program asked for, as data.

        Raises:
            Foul: there is no such question, or its arguments make no sense.
        """
        call = self.answers.get(name) if type(name) is str else None
        if call is None or type(args) is not list or len(args) > 8:
            raise foul("a question that no card answers")
        try:
            return call(*args)
        except TypeError:
            raise foul("a question with odd arguments") from None

    # --- entries ----------------------------------------------------------------------------------------------

    def entry(self, kind: Any, given: Any) -> Entry:
        """The entry that the program wants accounted.

        Raises:
            Foul: a program has no business with such an entry.
        """
        make = {
            "sync": self._sync,
            "host": self._host_work,
            "record": lambda event, stream: RecordEvent(number(event, MOST_OF_EACH), self.known(stream)),
            "wait": lambda event, stream: WaitEvent(
                number(event, MOST_OF_EACH), None if stream is None else self.known(stream)
            ),
        } | ({"step": self._step, "end": EndRun} if self.steps else {})
        if type(kind) is not str or kind not in make or type(given) is not list or len(given) > 4:
            raise foul("an entry that isn't a program's to make")
        try:
            made: Entry = make[kind](*given)  # type: ignore[operator]
        except TypeError:
            raise foul("an entry with odd parts") from None
        return made

    def _step(self, n_samples: Any) -> BeginStep:
        return BeginStep(None if n_samples is None else number(n_samples, LONGEST_NS))

    def _sync(self, name: Any, stream: Any) -> Sync:
        if type(stream) is list:
            return Sync(text(name), tuple(number(each, MOST_OF_EACH) for each in stream))
        return Sync(text(name), None if stream is None else self.known(stream))

    def _host_work(self, activity: Any, name: Any, long_ns: Any) -> HostWork:
        known = {each.value: each for each in Activity}
        if type(activity) is not str or activity not in known:
            raise foul("host work of no known kind")
        return HostWork(known[activity], text(name), number(long_ns, LONGEST_NS))

    def known(self, stream: Any) -> int:
        """The number of a stream that there is."""
        if type(stream) is not int or stream not in self.streams:
            raise foul("a stream that was never made")
        return stream

    # --- streams, memory ----------------------------------------------------------------------------------------

    def new_stream(self, card: Any) -> int:
        """Make a stream; gives its number."""
        if len(self.streams) >= MOST_OF_EACH:
            raise foul("thousands of streams")
        made = streams.Stream(number(card, self.session.machine.n_cards))
        self.streams[made.stream_id] = made
        return made.stream_id

    def use_stream(self, stream: Any) -> None:
        """Later work joins this stream."""
        streams.set_stream(self.streams[self.known(stream)])

    def query(self) -> None:
        """Asking whether something is done takes the host a moment."""
        self.session.account(streams.QUERY)

    def modules(self, n: Any) -> None:
        """The program called so many modules."""
        for _ in range(number(n, MOST_MODULES)):
            self.session.account(MODULE_CALL)

    def memory(self, name: Any, args: Any) -> Any:
        """What one of the memory functions says."""
        function = memory_calls.FUNCTIONS.get(name) if type(name) is str else None
        plain = (int, float, bool, type(None))
        if function is None or type(args) is not list or any(type(a) not in plain for a in args):
            raise foul("a question about memory that no card answers")
        return function(*args)

    def record_stream(self, t: SimTensor, stream: Any) -> None:
        """Keep the tensor's memory until the stream is done with it."""
        memory_calls.record_stream(t, self.streams[self.known(stream)])

    # --- graphs ------------------------------------------------------------------------------------------------

    def graph(self, verb: Any, which: Any, pool: Any = None) -> Any:
        """Begin, end, abandon, replay or reset a graph; gives the name of its memory pool."""
        graph = self.graphs.get(number(which, MOST_OF_EACH))
        if graph is None:
            graph = self.graphs[which] = CUDAGraph()
        if verb == "begin":
            graph.capture_begin(None if pool is None else (number(pool[0], 1), number(pool[1], 1 << 31)))
        elif verb == "abandon":
            graph.abandon()
        elif verb in ("end", "replay", "reset"):
            {"end": graph.capture_end, "replay": graph.replay, "reset": graph.reset}[verb]()
        else:
            raise foul("a graph's call that there isn't")
        return list(graph.pool())
