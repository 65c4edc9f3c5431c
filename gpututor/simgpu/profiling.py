"""What a torch.profiler that was left on costs the host: each operator is written down, each call of a module too.

Its own time in this process is real and is not accounted; what stands on the virtual clock is the amounts below.
"""

from __future__ import annotations

from typing import Any

import torch.profiler

from gpututor.model.tape import MODULE_CALL, Entry, ModuleCall, TapeOp
from gpututor.simgpu.session import Session, current
from gpututor.simgpu.watching import Listener, listen, watch_of

CALLS_OF_A_RECORD, CALLS_OF_SHAPES, CALLS_OF_STACKS = 0.16, 0.05, 0.56
"""Writing an operator down, its shapes as well, and the frames of Python around a module's call, in calls of modules.

Source: on a computer where our table says 1.6 us for a module's call, with torch 2.13 on the CPU: 0.26 us of
processor time longer an operator, 0.33 with its shapes, 0.89 us longer a call of nn.Identity with stacks.
What CUDA's own recording of kernels adds on a real card is not known here and left out.
"""


class Recorded(Listener):
    """Lets each operator and each module's call take longer."""

    def __init__(self, *, shapes: bool, stacks: bool) -> None:
        self._op = CALLS_OF_A_RECORD + CALLS_OF_SHAPES * shapes
        self._module = CALLS_OF_STACKS * stacks
        self._owed = 0.0  # parts of a call that were not accounted yet

    def account(self, entry: Entry) -> None:
        """Pass it on, and what writing it down takes."""
        self.onward(entry)
        kind = type(entry)
        self._owed += self._op if kind is TapeOp else self._module if kind is ModuleCall else 0.0
        while self._owed >= 1:
            self._owed -= 1
            self.onward(MODULE_CALL)


def account_profilers() -> None:
    """Listen while a torch.profiler records."""
    profile: Any = torch.profiler.profile
    start_trace, stop_trace = profile.start_trace, profile.stop_trace

    def start(self: Any) -> None:
        start_trace(self)
        session = current.session
        if Session.is_running() and session.counts_modules and session.remote is None:
            self._gpututor_listener = Recorded(shapes=bool(self.record_shapes), stacks=bool(self.with_stack))
            listen(self._gpututor_listener)

    def stop(self: Any) -> None:
        listener = self.__dict__.pop("_gpututor_listener", None)
        if listener is not None and Session.is_running():
            watch_of(current.session).remove(listener)
        stop_trace(self)

    profile.start_trace, profile.stop_trace = start, stop
