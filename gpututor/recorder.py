"""Record some training steps: on the real GPU where there is one, else on a simulated card, and say which."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from gpututor.errors import DeviceNotKnown, WrongDevice
from gpututor.lookup import machine_named
from gpututor.recording import NEVER_WAITS, NEXT_BATCH, Recording, StepFunction, never_waits, ran_out
from gpututor.timeline import Activity

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpututor.cards import Machine

DEVICES = ("auto", "cuda", "simgpu")


class Place(NamedTuple):
    """A device to put model and batches on, and the note to show with what is recorded there."""

    device: str
    note: str | None


def find_device(device: str = "auto", machine: str | Machine | None = None) -> Place:
    """Where steps will be recorded: "cuda" where torch finds a GPU, else "simgpu", which this makes ready for use.

    Raises:
        DeviceNotKnown: another name than "auto", "cuda" (or "cuda:1") or "simgpu".
        MachineNotKnown: no machine and no card has the name; near names are given.
    """
    kind, colon, number = device.partition(":")
    if kind not in DEVICES or (colon and (kind != "cuda" or not number.isdecimal())):
        raise DeviceNotKnown("device to record on", device, DEVICES)
    if kind != "simgpu" and _has_gpu():
        return Place("cuda" if kind == "auto" else device, None)
    from gpututor.simgpu import register

    chosen = machine_named(machine)
    register()
    simulated = f"a simulated {chosen.card.name} on {chosen.name}"
    if kind == "simgpu":
        return Place("simgpu", f"this is {simulated}")
    return Place("simgpu", f"no GPU found here, so this is {simulated}")


def record(
    step: StepFunction,
    *,
    device: str = "auto",
    n_steps: int = 10,
    warmup: int = 3,
    machine: str | Machine | None = None,
    n_samples: int | None = None,
    what: str = "",
    model: Any = None,
) -> Recording:
    """`n_steps` calls of `step(k)` as a recording, after `warmup` calls that are not kept.

    `step` may give its loss as number or tensor, or None, and may end the loop early by
    StopIteration. `machine` names the machine or card to simulate, where one is simulated. `n_samples` is what
    one step works through. With `model` (a module or several) the place of its parameters is checked beforehand.

    Raises:
        DeviceNotKnown, MachineNotKnown: there is no such place to record on.
        NoSteps: nothing to record, because of an empty loader or too few steps.
        StepFailed: a step raised; its number is named and the original error is the cause.
        WrongDevice: the model lies elsewhere, or the steps launched nothing on the device.
    """
    place = find_device(device, machine)
    if model is not None:
        _check_model(model, place)
    if place.device != "simgpu":
        from gpututor.measure.cuda import record_cuda, this_gpu

        return record_cuda(
            step, n_steps=n_steps, warmup=warmup, n_samples=n_samples, what=what, gpu=this_gpu(place.device)
        )
    recording = _record_simulated(step, n_steps, warmup, machine_named(machine), n_samples, what)
    notes = (place.note,) if place.note else ()
    return replace(recording, notes=notes + recording.notes)


def record_loop(
    loader: Iterable[Any],
    step: Callable[[Any], Any],
    *,
    device: str = "auto",
    n_steps: int = 10,
    warmup: int = 3,
    machine: str | Machine | None = None,
    n_samples: int | None = None,
    what: str = "",
    model: Any = None,
    batch_ns: int = 0,
) -> Recording:
    """Like `record`, with `step(batch)` called on what the loader yields; waiting for it is part of the step.

    On a simulated machine the loader's own work takes no time, since that machine's clock doesn't run by this one's;
    `batch_ns` is how long a batch takes there.

    Raises:
        NoSteps: the loader is empty, or ends during warm-up.
        DeviceNotKnown, MachineNotKnown, StepFailed, WrongDevice: as `record`.
    """
    place = find_device(device, machine)
    simulated = place.device == "simgpu"
    mark, batches = nullcontext if simulated else _mark, iter(loader)

    def one(k: int) -> Any:
        with mark(NEXT_BATCH):
            batch = next(batches)
            if simulated and batch_ns:
                _simulate_input(batch_ns)
        return step(batch)

    recording = record(
        one, device=device, n_steps=n_steps, warmup=warmup, machine=machine, n_samples=n_samples, what=what, model=model
    )
    if simulated and not batch_ns:
        free = "the loader's work takes no time on the simulated machine; pass batch_ns to give it some"
        return replace(recording, notes=(*recording.notes, free))
    return recording


def _record_simulated(
    step: StepFunction, n_steps: int, warmup: int, machine: Machine, n_samples: int | None, what: str
) -> Recording:
    import torch

    from gpututor.simgpu.recording import tape_steps

    tape = tape_steps(step, n_steps=n_steps, warmup=warmup, machine=machine, n_samples=n_samples, what=what)
    timeline = tape.price(machine, versions=(("torch", torch.__version__),))
    if not any(True for _ in timeline.on(Activity.KERNEL)):
        raise WrongDevice(
            f"the step launched nothing on the simulated {machine.card.name}; are model and batch on device 'simgpu'?"
        )
    notes = []
    if tape.n_steps < n_steps:
        notes.append(ran_out(tape.n_steps, n_steps))
    if never_waits(timeline):
        notes.append(NEVER_WAITS)
    return Recording(timeline, tuple(tape.losses), tuple(notes), tape)


def _has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def _mark(name: str) -> AbstractContextManager[Any]:
    from torch.profiler import record_function

    return record_function(name)


def _simulate_input(long_ns: int) -> None:
    from gpututor.model.tape import HostWork
    from gpututor.simgpu.session import current

    current.session.account(HostWork(Activity.INPUT, "next batch", long_ns))


def _check_model(model: Any, place: Place) -> None:
    """Refuse a model that has parameters elsewhere than where its steps are recorded."""
    wanted = place.device.partition(":")[0]
    found = sorted({p.device.type for part in _parts(model) for p in part.parameters()} - {wanted})
    if found:
        because = f" ({place.note})" if place.note else ""
        raise WrongDevice(
            f"the model has parameters on {' and '.join(found)}, but its steps are to be recorded on "
            f"{place.device}{because}; move it with model.to({place.device!r})"
        )


def _parts(model: Any) -> Iterator[Any]:
    if hasattr(model, "parameters"):
        yield model
    else:
        yield from model
