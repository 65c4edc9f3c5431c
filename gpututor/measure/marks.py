"""Cut a loop into steps and steps into parts, by marks in the device's queue.

The rule. A step begins where the loop asks for its next batch and ends where it asks for the one after. What a
program marks itself counts as marked. Of the rest: what comes before a backward pass, back to the last mark, is
forward, unless the program marks a forward in that step itself; anything else is rest. Marks inside other marks don't
count, so an optimizer that runs a backward pass is the optimizer. What is captured into a graph has no parts. The
parts sum to the step by construction.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import Any

from gpututor.measure.devices import Device
from gpututor.measure.parts import Part, SplitStep

KEPT_STEPS = 10_000
"""Our choice: the last steps of a long run, at about a kilobyte each; ten megabytes."""


@dataclass(slots=True)
class _Open:
    """A step that isn't resolved: parts (None: not known yet), marks and the host's times; the end comes last."""

    parts: list[Part | None] = field(default_factory=list)
    marks: list[Any] = field(default_factory=list)
    host_ns: list[int] = field(default_factory=list)
    says_forward: bool = False

    def known(self) -> tuple[Part, ...]:
        """The parts, with what nothing claimed as rest."""
        return tuple(part or Part.REST for part in self.parts)

    def claim_forward(self) -> None:
        """What was not claimed since the last mark is forward."""
        if not self.says_forward and self.parts and self.parts[-1] is None:
            self.parts[-1] = Part.FORWARD


class Marks:
    """Marks of one loop, and the steps that they make. Times of steps are resolved as the device reaches them."""

    def __init__(self, device: Device, own_clock_ns: Callable[[], int] = perf_counter_ns) -> None:
        self.steps: deque[SplitStep] = deque(maxlen=KEPT_STEPS)
        self.n_steps = self.n_marks = self.own_ns = 0
        self.pauses: list[tuple[int, int]] = []  # between two loops, on the host's clock
        self._device, self._own_clock_ns = device, own_clock_ns
        self._open: _Open | None = None
        self._waiting: deque[_Open] = deque()
        self._depth = 0
        self._last: tuple[Any, int] | None = None  # the last resolved mark, and its place on the GPU's clock
        self._left_ns: int | None = None

    # --- the loop ---------------------------------------------------------------------------------------------

    def begin_step(self) -> None:
        """The loop asks for its next batch: the step before ends, and a new one begins with an input wait."""
        if self._last is None:
            self._device.synchronize()  # from here both clocks count from one instant
        self._depth = 0  # an optimizer whose step raised has not left
        mark, now_ns = self._mark()
        if self._left_ns is not None:
            self.pauses.append((self._left_ns, now_ns))
            self._left_ns = None
        self._close(mark, now_ns)
        self._open = _Open([Part.INPUT], [mark], [now_ns])
        self._last = self._last or (mark, now_ns)

    def got_batch(self) -> None:
        """The batch is there."""
        self._cut(None)

    def end_loop(self) -> None:
        """There is no next batch: the mark set when it was asked for has ended the last step."""
        self._open, self._left_ns = None, self._device.host_ns()

    def give_up_step(self) -> None:
        """The loop was left in the middle of a step, which therefore counts for nothing."""
        self.end_loop()

    @property
    def in_step(self) -> bool:
        """Whether a step is open."""
        return self._open is not None

    # --- inside a step ----------------------------------------------------------------------------------------

    @contextmanager
    def during(self, part: Part) -> Iterator[None]:
        """What happens in the block is this part; inside another such block, or outside a step, nothing is marked."""
        self.enter(part)
        try:
            yield
        finally:
            self.leave()

    def enter(self, part: Part) -> None:
        """A part begins."""
        self._depth += 1
        if self._depth > 1 or self._open is None:
            return
        if part is Part.FORWARD:
            self._open.says_forward = True
        if part is Part.BACKWARD:
            self._open.claim_forward()
        self._cut(part)

    def leave(self) -> None:
        """It ends."""
        left = self._depth == 1
        self._depth = max(0, self._depth - 1)
        if left:
            self._cut(None)

    # --- the end ----------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Wait for the device and resolve what is left; an open step counts for nothing.

        Raises:
            RuntimeError: the device reports an error of work that it had been given.
        """
        self._open = None
        if self._waiting:
            self._device.synchronize()
        while self._waiting:
            self._resolve(self._waiting.popleft())

    def forget(self) -> None:
        """Throw away what was split so far: the steps so far were warm-up."""
        self.finish()
        self.steps.clear()
        self.pauses.clear()
        self.n_steps = self.n_marks = self.own_ns = 0
        self._last = self._left_ns = None

    def _cut(self, part: Part | None) -> None:
        capturing = self._device.capturing
        if self._open is None or (capturing is not None and capturing()):
            return
        mark, now_ns = self._mark()
        self._open.parts.append(part)
        self._open.marks.append(mark)
        self._open.host_ns.append(now_ns)

    def _mark(self) -> tuple[Any, int]:
        began_ns = self._own_clock_ns()
        now_ns = self._device.host_ns()
        mark = self._device.mark()
        self.n_marks += 1
        self.own_ns += self._own_clock_ns() - began_ns
        return mark, now_ns

    def _close(self, mark: Any, now_ns: int) -> None:
        """End the open step and resolve what the device has reached, without waiting for it."""
        if self._open is None:
            return
        self._open.marks.append(mark)
        self._open.host_ns.append(now_ns)
        self._waiting.append(self._open)
        self._open = None
        self.n_steps += 1
        reached = self._device.reached
        while reached is not None and self._waiting and reached(self._waiting[0].marks[-1]):
            self._resolve(self._waiting.popleft())

    def _resolve(self, step: _Open) -> None:
        assert self._last is not None
        mark, at_ns = self._last
        gpu_ns = []
        for each in step.marks:
            if each is not mark:
                at_ns += max(0, self._device.between_ns(mark, each))
            mark = each
            gpu_ns.append(at_ns)
        self._last = (mark, at_ns)
        self.steps.append(SplitStep(step.known(), tuple(gpu_ns), tuple(step.host_ns)))
