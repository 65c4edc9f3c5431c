"""An exact look at a few steps beside the split of all: by torch.profiler, or from the simulated card's tape."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from gpututor.errors import TimelineError
from gpututor.measure.devices import Device
from gpututor.own_machine import cpu_name
from gpututor.recording import OUR_WAIT
from gpututor.timeline import Origin, Timeline

if TYPE_CHECKING:
    from gpututor.measure.cuda import Gpu, Profiler

NOT_ASKED = "no profiler was asked for (profile_steps)"


class Window(Protocol):
    """A look at some steps. `step` is called at the end of each one; the first `n_lost` are lost to warming up."""

    n_lost: int

    def expect(self, n_steps: int) -> None:
        """How many steps are to be kept."""

    def begin(self) -> None:
        """The next step is the first one."""

    def step(self) -> None:
        """A step is over."""

    def end(self, what: str) -> Timeline:
        """The look is over; what was seen.

        Raises:
            TimelineError: nothing usable was seen.
        """


def for_device(device: Device, gpu: Callable[[], Gpu] | None = None) -> tuple[Window | None, str | None]:
    """How to look at this device's kernels one by one, or None and why there is no such look."""
    if device.kind == "cuda":
        from gpututor.measure.cuda import this_gpu

        return Profiled(gpu or this_gpu), None
    if device.kind == "simgpu":
        return Taped(), None
    if device.kind == "cpu":
        return None, "there is no GPU at work, so there are no kernels to look at"
    return None, f"we can't read what torch.profiler writes of {device.name} ({device.kind}) yet"


class Profiled:
    """By torch.profiler, on a CUDA or ROCm device; its first step is the profiler's own warm-up."""

    n_lost = 1

    def __init__(self, gpu: Callable[[], Gpu]) -> None:
        self._gpu_of, self._n_kept, self._n_done = gpu, 0, 0
        self._context: AbstractContextManager[Profiler] | None = None
        self._profiler: Profiler | None = None

    def expect(self, n_steps: int) -> None:
        """How many steps are to be kept."""
        self._n_kept = n_steps

    def begin(self) -> None:
        """Start the profiler."""
        self._gpu = self._gpu_of()
        self._gpu.synchronize()
        self._context = self._gpu.profiler(self._n_kept)
        self._profiler = self._context.__enter__()

    def step(self) -> None:
        """Tell the profiler of a step's end; the last one ends when the GPU is done, so that all its work is seen."""
        if self._profiler is None:
            return
        self._n_done += 1
        if self._n_done == self._n_kept + self.n_lost:
            self._wait()
        self._profiler.step()

    def _wait(self) -> None:
        with self._gpu.mark(OUR_WAIT):
            self._gpu.synchronize()

    def end(self, what: str) -> Timeline:
        """Stop it and read its trace.

        Raises:
            TimelineError: the trace has no kernels, or can't be read.
        """
        from gpututor.trace import read

        if self._context is None or self._profiler is None:
            raise TimelineError("the profiler was not started, because the loop ended before its first step")
        if self._n_done < self._n_kept + self.n_lost:
            self._wait()
        context, profiler = self._context, self._profiler
        self._context = self._profiler = None
        context.__exit__(None, None, None)
        with tempfile.TemporaryDirectory(prefix="gpututor-") as folder:
            path = Path(folder) / "trace.json"
            profiler.export_chrome_trace(str(path))
            return read(path, origin=Origin.MEASURED, what=what, host=cpu_name(), versions=self._gpu.versions)


class Taped:
    """From the tape of the simulated card, where every kernel is known."""

    n_lost = 0

    def __init__(self) -> None:
        self._first = 0

    def expect(self, n_steps: int) -> None:
        """The tape is as long as it is."""

    def begin(self) -> None:
        """Note the place on the tape."""
        from gpututor.model.tape import Sync
        from gpututor.simgpu.session import current

        self._session = current.session
        self._session.account(Sync("synchronize before recording"))
        self._first = len(self._session.tape.entries)
        self._session.begin_step()

    def step(self) -> None:
        """A step ends and the next begins."""
        self._session.begin_step()

    def end(self, what: str) -> Timeline:
        """Price what the steps did.

        Raises:
            TimelineError: the session keeps no tape, or the steps launched nothing.
        """
        import torch

        from gpututor.model.tape import BeginStep, Sync, Tape

        session, entries = self._session, self._session.tape.entries
        begun = [k for k in range(self._first, len(entries)) if type(entries[k]) is BeginStep]
        if len(begun) < 2:  # the last one is of a step that isn't ours
            raise TimelineError("no whole step is on the tape: the loop ended too early, or the session keeps none")
        del entries[begun[-1]]
        session.account(Sync("synchronize after recording"))
        session.end_run()
        tape = Tape(what, entries[self._first :], [], session.tape.n_cards, session.tape.clock)
        return tape.price(session.machine, versions=(("torch", torch.__version__),))
