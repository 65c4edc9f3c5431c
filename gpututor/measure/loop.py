"""`with gpututor.measure() as run: for batch in run.steps(loader): …`: any loop, split into parts as it goes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from datetime import datetime, timezone
from types import TracebackType
from typing import Any, TypeVar

from gpututor.errors import NoSteps, TimelineError
from gpututor.history import log, wanted
from gpututor.measure import readings, window
from gpututor.measure.devices import Device, find
from gpututor.measure.hooks import heard
from gpututor.measure.keeping import entry_of, name_of_program
from gpututor.measure.marks import Marks
from gpututor.measure.measurement import Measurement
from gpututor.measure.moving import moved
from gpututor.measure.notes import with_notes
from gpututor.measure.parts import Part
from gpututor.measure.readings import Sampling
from gpututor.timeline import Label, Timeline

Batch = TypeVar("Batch")


class Run:
    """One measured loop, from `with` to the end of the block; afterwards `result` holds what it gave."""

    def __init__(
        self,
        device: Device,
        *,
        warmup: int = 3,
        n_samples: int | None = None,
        what: str = "",
        profile_steps: int = 0,
        usd_per_hour: float | None = None,
        configuration: Mapping[str, object] | None = None,
        history: bool | None = None,
        sampler: Sampling | None = None,
        no_sampler: str | None = None,
        look: window.Window | None = None,
        no_look: str | None = window.NOT_ASKED,
    ) -> None:
        self.device, self.marks = device, Marks(device)
        self._warmup, self._n_samples, self._what, self._usd_per_hour = warmup, n_samples, what, usd_per_hour
        self._configuration, self._history = dict(configuration or {}), history
        self.number: int | None = None  # in the history
        self._sampler, self._reasons = sampler, {"driver's samples": no_sampler} if no_sampler else {}
        self._look, self._n_look = look, profile_steps
        self._timeline: Timeline | None = None
        if look is None:
            self._reasons["window"] = no_look or window.NOT_ASKED
        self._n_begun = 0  # steps that ended, warm-up and those of the window among them
        self._looking = self._sampling = self._counts = False
        self._stack = ExitStack()
        self._result: Measurement | None = None

    # --- what a loop calls ------------------------------------------------------------------------------------

    def steps(self, batches: Iterable[Batch], *, to: Any = None) -> Iterator[Batch]:
        """The batches, one a step; the time until each is there is its input wait.

        With `to` (a device) the tensors of a batch are moved there first, without blocking where their memory is
        pinned, and that is its copy.
        """
        marks = self.marks
        self._next_step()
        try:
            waiting = iter(batches)
            while True:
                try:
                    batch = next(waiting)
                except StopIteration:
                    break
                marks.got_batch()
                if to is not None:
                    with marks.during(Part.COPY):
                        batch = moved(batch, to)
                yield batch
                self._next_step()
        except GeneratorExit:
            marks.give_up_step()
            raise
        marks.end_loop()

    def copy(self) -> AbstractContextManager[None]:
        """A block that moves a batch to the device."""
        return self.marks.during(Part.COPY)

    def forward(self) -> AbstractContextManager[None]:
        """A block that is the forward pass; without any, it is what comes before `loss.backward()`."""
        return self.marks.during(Part.FORWARD)

    def backward(self) -> AbstractContextManager[None]:
        """A block that is the backward pass; `loss.backward()` outside any is seen by itself."""
        return self.marks.during(Part.BACKWARD)

    def optimizer(self) -> AbstractContextManager[None]:
        """A block that is the optimizer's step; torch's own optimizers outside any are seen by themselves."""
        return self.marks.during(Part.OPTIMIZER)

    def pause(self) -> AbstractContextManager[None]:
        """A block inside a step that is no training: an evaluation, a checkpoint, logging."""
        return self.marks.during(Part.PAUSE)

    # --- its life ---------------------------------------------------------------------------------------------

    def __enter__(self) -> Run:  # noqa: PYI034  typing.Self came with Python 3.11
        self._stack.enter_context(heard(self.marks.enter, self.marks.leave))
        if self._warmup == 0:
            self._after_warmup()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
        try:
            if self._looking:
                self._stop_looking()
            self.marks.finish()
        except Exception as late:
            if error is None:
                raise
            self._reasons["the last steps"] = f"the device reported {type(late).__name__} after the loop: {late}"
        finally:
            self._stop_sampler()
        if self._counts and self.marks.steps:
            if error is not None:
                self._reasons["the rest of the loop"] = f"it was ended by {type(error).__name__}"
            self._result = self._made()

    @property
    def result(self) -> Measurement:
        """What was measured.

        Raises:
            NoSteps: the loop is still going on, or had no whole step after its warm-up.
        """
        if self._result is None:
            raise NoSteps(
                f"the loop had {self._n_begun} whole steps, of which {self._steps_before} are left out, so nothing is "
                "measured (yet); look after the with-block, give it more steps, or ask for a smaller warmup"
            )
        return self._result

    def __str__(self) -> str:
        return str(self.result)

    # --- inside -----------------------------------------------------------------------------------------------

    @property
    def _steps_before(self) -> int:
        """Steps that are not split: the warm-up, and those that a profiler slows down."""
        lost = self._look.n_lost if self._look is not None else 0
        return self._warmup + (self._n_look + lost if self._look is not None else 0)

    def _next_step(self) -> None:
        ended = self.marks.in_step
        if ended:
            self._n_begun += 1
            if self._looking and self._look is not None:
                self._look.step()
            if not self._counts and self._n_begun >= self._warmup:
                self._after_warmup()
        self.marks.begin_step()

    def _after_warmup(self) -> None:
        """Begin to look closely where that was asked for; after that, or at once, begin to measure."""
        if self._look is not None and self._n_look and not self._looking and self._n_begun < self._steps_before:
            self._look.expect(self._n_look)
            self._look.begin()
            self._looking = True
        if self._n_begun < self._steps_before:
            return
        if self._looking:
            self._stop_looking()
        self.marks.forget()
        self._counts = True
        if self._sampler is not None:
            try:
                self._sampler.__enter__()
                self._sampling = True
            except Exception as error:  # noqa: BLE001  no sampler is a reading less, never an end of the loop
                self._reasons["driver's samples"] = f"{type(error).__name__}: {error}"

    def _stop_looking(self) -> None:
        self._looking = False
        assert self._look is not None
        try:
            self._timeline = self._look.end(self._what)
        except TimelineError as error:
            self._reasons["window"] = str(error)

    def _stop_sampler(self) -> None:
        if self._sampling and self._sampler is not None:
            self._sampler.__exit__(None, None, None)

    def _made(self) -> Measurement:
        steps, device, reasons = tuple(self.marks.steps), self.device, dict(self._reasons)
        known: dict[str, float] = {}
        series: readings.Over = {}
        if self._sampling and self._sampler is not None:
            known, missing = readings.plain(self._sampler.summary())
            reasons |= missing
            series = readings.over_time(self._sampler.sampled())
        peak, why = device.memory_peak_bytes()
        if peak is not None:
            known["memory_peak_bytes"] = peak
        else:
            reasons["memory_peak_bytes"] = why or "not said"
        known["marking_ns"] = self.marks.own_ns / max(1, self.marks.n_steps)
        found = Measurement(
            label=Label(device.origin, device.card, device.host, self._what, device.versions, device.n_sms),
            steps=steps,
            pauses=tuple(self.marks.pauses),
            n_samples=self._n_samples,
            n_left_out=self._steps_before,
            n_dropped=self.marks.n_steps - len(steps),
            readings=known,
            reasons=reasons,
            series=series,
            window=self._timeline,
            measured_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            usd_per_hour=self._usd_per_hour,
            configuration=self._configuration,
        )
        return self._logged(with_notes(found, device))

    def _logged(self, found: Measurement) -> Measurement:
        if not wanted(self._history):
            return found
        self.number, trouble = log(entry_of(found), self._history)
        return replace(found, notes=(*found.notes, trouble.removesuffix("."))) if trouble else found


def measure(
    device: str | Device = "auto",
    *,
    warmup: int = 3,
    n_samples: int | None = None,
    what: str = "",
    profile_steps: int = 0,
    usd_per_hour: float | None = None,
    configuration: Mapping[str, object] | None = None,
    history: bool | None = None,
    sampler: Sampling | bool = True,
) -> Run:
    """A loop to be measured in a `with` block: each step in input wait, copy, forward, backward, optimizer and rest.

    ::

        with gpututor.measure() as run:
            for batch in run.steps(loader):
                ...  # as before
        print(run.result)

    Steps are split by events in the device's queue ("cuda", "xpu", "mps", a simulated GPU), on the CPU by the clock.
    `warmup` steps are left out, then `profile_steps` are looked at kernel by kernel and left out of the split too.
    `n_samples` is what one step works through, `what` names the loop. The driver's own readings come from a sampler;
    `sampler=False` does without, and another `Sampling` can be given. Nothing that can't be read
    stops the loop: it is missing from `run.result.readings`, with the reason in `run.result.reasons`. The result goes
    into the history, unless `history=False` or GPUTUTOR_HISTORY=0 says otherwise; `configuration` (batch size, model,
    …) says which runs there are repeats of each other.

    Raises:
        DeviceNotKnown: no such device, or not on this machine.
        NoSteps: a negative number of steps is to be left out or looked at.
    """
    if warmup < 0 or profile_steps < 0:
        raise NoSteps(f"warmup={warmup} and profile_steps={profile_steps} were asked for; both are 0 or more")
    found = find(device) if isinstance(device, str) else device
    chosen: Sampling | None = None
    why: str | None = "no sampler was wanted (sampler=False)"
    if sampler is True:
        chosen, why = readings.sampler_for(found)
    elif sampler is not False:
        chosen, why = sampler, None
    look, no_look = window.for_device(found) if profile_steps else (None, window.NOT_ASKED)
    return Run(
        found,
        warmup=warmup,
        n_samples=n_samples,
        what=what or name_of_program(),
        profile_steps=profile_steps,
        usd_per_hour=usd_per_hour,
        configuration=configuration,
        history=history,
        sampler=chosen,
        no_sampler=why,
        look=look,
        no_look=no_look,
    )
