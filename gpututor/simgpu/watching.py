"""Listeners on a session: they see each op with its tensors, and take what it accounts instead of the tape.

Graph capture and compiled regions are listeners, one inside the other where they nest. A paced clock belongs here
too, because it must know when the program is inside the device and when it is on its own. Without any of
them a session has no watch, and an op pays one look at `session.watch`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast

from gpututor.simgpu.private.tensors import has_kernel
from gpututor.simgpu.session import Session, current

if TYPE_CHECKING:
    from gpututor.model.tape import Entry
    from gpututor.simgpu.clocks.paced import PacedClock


Backward = TypeVar("Backward", bound=Callable[..., Any])


class Listener:
    """What wants to see ops; every method does nothing by default, and `account` passes entries on."""

    onward: Callable[[Entry], None]  # to the next listener outside, at last to the tape

    def account(self, entry: Entry) -> None:
        """The program did this."""
        self.onward(entry)

    def before(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """An op is about to run."""

    def after(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> None:
        """An op ran; what it accounted has come to `account` before."""

    def whole(self, compute: Any, note: Any, tensors: tuple[Any, ...], outs: tuple[Any, ...]) -> None:
        """An op taken whole ran forward; `note` is this call's own and comes again with its backward."""

    def whole_backward(self, note: Any, tensors: tuple[Any, ...], grads: tuple[Any, ...]) -> None:
        """The backward of such an op ran: gradients it got, and those it gave."""

    def backward_done(self) -> None:
        """A call of autograd's engine has ended."""


class Watch:
    """All listeners of one session, and its paced clock if it has one."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.listeners: list[Listener] = []
        self.clock: PacedClock | None = None
        self._depth = 0  # of calls of the device inside one another

    # --- called by the device ---------------------------------------------------------------------------------

    def run(self, run_now: Callable[..., Any], op: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
        """`run_now(op, args, kwargs)`, seen by the listeners; a composite op is seen by its parts."""
        if self._depth or is_composite(op):
            return run_now(op, args, kwargs)
        given = kwargs or {}
        with self.inside():
            for listener in self.listeners:
                listener.before(op, args, given)
            out = run_now(op, args, kwargs)
            for listener in self.listeners:
                listener.after(op, args, given, out)
        return out

    def whole(self, apply: Callable[..., Any], compute: Any, note: Any, tensors: tuple[Any, ...]) -> Any:
        """`apply(compute, note, *tensors)`, seen as one op."""
        with self.inside():
            outs = apply(compute, note, *tensors)
            for listener in self.listeners:
                listener.whole(compute, note, tensors, outs)
        return outs

    def whole_backward(self, backward: Callable[..., Any], ctx: Any, grads: tuple[Any, ...]) -> Any:
        """`backward(ctx, *grads)`, seen as one op."""
        with self.inside():
            results = backward(ctx, *grads)
            for listener in self.listeners:
                listener.whole_backward(ctx.note, grads, results)
        return results

    def account(self, entry: Entry) -> None:
        """Stands in for the session's own `account`."""
        if self.clock is not None and not self._depth:
            with self.inside():
                self._inmost(entry)
        else:
            self._inmost(entry)

    def backward_done(self) -> None:
        """The engine's outermost call has ended."""
        for listener in reversed(list(self.listeners)):
            listener.backward_done()

    # --- called by listeners ----------------------------------------------------------------------------------

    def add(self, listener: Listener) -> None:
        """Let a listener take entries first, before those that are there already."""
        outer = self.listeners[-1].account if self.listeners else self._outmost
        listener.onward = outer
        self.listeners.append(listener)

    def remove(self, listener: Listener) -> None:
        """Take the innermost listener away again; the watch goes with the last one, unless there is a clock."""
        self.listeners.remove(listener)
        if not self.listeners and self.clock is None:
            self.session.unwatch()

    def _inmost(self, entry: Entry) -> None:
        if self.listeners:
            self.listeners[-1].account(entry)
        else:
            self._outmost(entry)

    def _outmost(self, entry: Entry) -> None:
        Session.account(self.session, entry if self.clock is None else self.clock.as_real(entry))

    @contextmanager
    def inside(self) -> Iterator[None]:
        """The program is inside the device; the paced clock charges what it did on its own before."""
        outermost = self._depth == 0 and self.clock is not None
        if outermost:
            assert self.clock is not None
            self.clock.enter(charged=not self.listeners)
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            if outermost:
                assert self.clock is not None
                self.clock.leave()


def watch_of(session: Session) -> Watch:
    """The session's watch, made when first asked for."""
    watch = session.watch
    if watch is None:
        watch = Watch(session)
        session.watch_with(watch)
    return watch


def listen(listener: Listener) -> Watch:
    """Put a listener on the running session."""
    watch = watch_of(current.session)
    watch.add(listener)
    return watch


def seen_backward(backward: Backward) -> Backward:
    """A whole op's `backward(ctx, *grads)`, seen by whoever watches the session."""

    def seen(ctx: Any, *grads: Any) -> Any:
        watch = current.session.watch
        return backward(ctx, *grads) if watch is None else watch.whole_backward(backward, ctx, grads)

    return cast("Backward", seen)


def is_composite(op: Any) -> bool:
    """Whether an op is made of others and arrives whole, as under inference_mode."""
    return has_kernel(op.name(), "CompositeImplicitAutograd") and not has_kernel(op.name(), "CPU")
