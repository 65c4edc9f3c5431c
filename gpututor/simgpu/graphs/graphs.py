"""CUDA graphs on the simulated GPU: capture once, then replay with a single launch call.

Capturing costs the host what the ops cost without their launches. A replay is one launch; the card then runs the
graph's kernels and copies in the order of their capture, with shorter gaps between them (model/queue.py). Branches
captured in several streams are run one after the other, so a graph that forks is shown no faster than it is.
"""

from __future__ import annotations

import itertools
import warnings
from contextlib import nullcontext
from types import TracebackType
from typing import Any
from weakref import WeakKeyDictionary

import torch

from gpututor.model.tape import GraphReplay
from gpututor.simgpu import streams
from gpututor.simgpu.graphs.capturing import NOT_PERMITTED, Capture
from gpututor.simgpu.memory import Memory
from gpututor.simgpu.session import Session, current
from gpututor.simgpu.watching import listen, watch_of

Pool = tuple[int, int]
_numbers = itertools.count(1)


def graph_pool_handle() -> Pool:
    """A name for a memory pool that several graphs may share."""
    return 0, next(_numbers)


def is_current_stream_capturing() -> bool:
    """Whether a graph is being captured now."""
    return current.session.capturing is not None


def refuse_uncapturable_steps() -> None:
    """An optimizer that counts its steps on the host can't be captured; torch itself only asks CUDA and XPU."""
    from torch.optim.optimizer import register_optimizer_step_pre_hook

    def check(optimizer: Any, *_: Any) -> None:
        if is_current_stream_capturing() and not all(g.get("capturable", True) for g in optimizer.param_groups):
            raise RuntimeError(
                f"Attempting SIMGPU graph capture of step() for an instance of {type(optimizer).__name__} but "
                "param_groups' capturable is False."
            )

    register_optimizer_step_pre_hook(check)


class _Pools:
    """The private memory of a session's graphs: it serves nothing else, and `empty_cache` leaves it while one lives."""

    def __init__(self, memories: list[Memory]) -> None:
        self.memories = memories
        self.n_users: dict[Pool, int] = {}
        self._aside: dict[tuple[Pool, int], Any] = {}

    def begin(self, pool: Pool) -> None:
        """Allocate from this pool."""
        self.n_users[pool] = self.n_users.get(pool, 0) + 1
        for k, memory in enumerate(self.memories):
            if (pool, k) in self._aside:
                memory.put_back(-pool[1], self._aside.pop((pool, k)))
            memory.use_stream(-pool[1])

    def end(self, pool: Pool, stream_numbers: list[int]) -> None:
        """Allocate from the current streams' memory again, and keep the pool aside."""
        for k, memory in enumerate(self.memories):
            memory.use_stream(stream_numbers[k])
            self._aside[pool, k] = memory.set_aside(-pool[1])

    def leave(self, pool: Pool) -> None:
        """A graph is gone; with the last one the pool can be given back."""
        self.n_users[pool] -= 1
        if not self.n_users[pool]:
            for k, memory in enumerate(self.memories):
                memory.put_back(-pool[1], self._aside.pop((pool, k)))


_pools: WeakKeyDictionary[Session, _Pools] = WeakKeyDictionary()


def _pools_of(session: Session) -> _Pools:
    known = _pools.get(session)
    if known is None:
        known = _pools[session] = _Pools(session.memories)
    return known


class CUDAGraph:
    """A sequence of kernels that is captured once and replayed; the calls are those of `torch.cuda.CUDAGraph`."""

    def __new__(cls, *_: Any, **__: Any) -> CUDAGraph:
        """A graph of the running session's kind."""
        return object.__new__(current.session.graph_class or cls)

    def __init__(self, keep_graph: bool = False, *, pool: Pool | None = None, **_: Any) -> None:
        self._wanted_pool, self._pool = pool, (0, 0)
        self._session: Session | None = None
        self._capture: Capture | None = None
        self._replay: GraphReplay | None = None
        self._steps: list[Any] = []

    def capture_begin(self, pool: Pool | None = None, capture_error_mode: str = "global") -> None:
        """Take what follows into the graph instead of running it.

        Raises:
            RuntimeError: a graph is being captured already, or the current stream is the default one.
        """
        session = current.session
        if session.capturing is not None:
            raise RuntimeError(f"{NOT_PERMITTED} (another graph is being captured)")
        if streams.current_stream() is streams.default_stream():
            raise RuntimeError(
                "CUDA graphs must be captured on a non-default stream. "
                "(However, after capture, it's ok to replay them on the default stream.)"
            )
        self.reset()
        self._session, self._pool = session, pool or self._wanted_pool or graph_pool_handle()
        _pools_of(session).begin(self._pool)
        session.capturing = self
        self._capture = Capture(session.numerics)
        listen(self._capture)

    def capture_end(self) -> None:
        """The graph is complete.

        Raises:
            RuntimeError: no capture of this graph was begun.
        """
        capture = self._stop()
        if not capture.nodes:
            warnings.warn(
                "The CUDA Graph is empty. This usually means that the graph was attempted to be captured on "
                "wrong device or stream.",
                stacklevel=2,
            )
        self._replay = GraphReplay(next(_numbers), tuple(capture.nodes))
        self._steps = capture.steps

    def _stop(self) -> Capture:
        session, capture = self._session, self._capture
        if session is None or capture is None:
            raise RuntimeError("capture_end was called without a capture_begin before it")
        self._capture, session.capturing = None, None
        watch_of(session).remove(capture)
        capture.put_back()
        _pools_of(session).end(self._pool, session.stream_numbers)
        return capture

    def abandon(self) -> None:
        """An error ended the capture: the graph stays empty."""
        if self._capture is not None:
            self._stop()
            _pools_of(current.session).leave(self._pool)
            self._session = None

    def instantiate(self) -> None:
        """Nothing to do: a captured graph is ready."""

    def replay(self) -> None:
        """Run the graph: one launch call in the current stream.

        Raises:
            RuntimeError: nothing was captured, or it was captured on another simulated machine.
        """
        session = current.session
        if self._replay is None:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        if session is not self._session:
            raise RuntimeError("this graph was captured on another simulated machine; capture it again on this one")
        watch = session.watch
        with nullcontext() if watch is None else watch.inside():
            session.account(self._replay)
            with torch.no_grad():
                for step in self._steps:
                    step()

    def reset(self) -> None:
        """Forget the captured work and let its memory go."""
        if self._replay is not None and self._session is current.session:
            _pools_of(current.session).leave(self._pool)
        self._replay, self._session, self._steps = None, None, []

    def pool(self) -> Pool:
        """The name of the graph's memory pool."""
        return self._pool

    def enable_debug_mode(self) -> None:
        """Accepted, and without effect."""

    def debug_dump(self, debug_path: str) -> None:
        """Not offered: read the graph's kernels from the timeline."""
        raise NotImplementedError("debug_dump needs CUDA's own graph; the simulated one is on the tape, as GraphReplay")

    def __enter__(self) -> CUDAGraph:
        self.capture_begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abandon() if error is not None else self.capture_end()


class graph:  # CUDA's name
    """`with torch.simgpu.graph(g):` captures what happens inside into `g`, in a stream of its own."""

    _stream: streams.Stream | None = None

    def __init__(
        self, cuda_graph: CUDAGraph, pool: Pool | None = None, stream: Any = None, capture_error_mode: str = "global"
    ) -> None:
        if stream is None:
            if graph._stream is None:
                graph._stream = streams.Stream()
            stream = graph._stream
        self.cuda_graph, self.pool, self.mode = cuda_graph, pool, capture_error_mode
        self.stream_ctx = streams.StreamContext(stream)

    def __enter__(self) -> None:
        streams.synchronize()
        self.stream_ctx.__enter__()
        try:
            self.cuda_graph.capture_begin(self.pool, self.mode)
        except BaseException:
            self.stream_ctx.__exit__()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.cuda_graph.abandon() if error is not None else self.cuda_graph.capture_end()
        finally:
            self.stream_ctx.__exit__()
