"""What a measurement asks of a device: a mark in its queue, the time between two of them, memory, a name.

CUDA, ROCm and XPU have events with times. MPS has them too, on its one queue. The simulated GPU has them on its
virtual clock. The CPU works while it is called, so there the host's clock is the device's.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import Any

from gpututor.cards import find_card
from gpututor.errors import DeviceNotKnown
from gpututor.own_machine import cpu_name
from gpututor.timeline import Origin

KINDS = ("auto", "cuda", "xpu", "mps", "simgpu", "cpu")
Reading = tuple["int | None", "str | None"]  # a value, or the reason why there is none


@dataclass(frozen=True, slots=True)
class Device:
    """A device to measure on, and the calls that reach it.

    `mark` puts a mark into the queue; `between_ns` needs both marks reached. `reached` is None where asking would
    itself take time on the device's clock. While a graph is `capturing` nothing may be marked. `card` is a name of our
    table or the driver's, None for the CPU. `uuid` names an NVIDIA GPU to its driver, None for every other device.
    """

    kind: str
    name: str
    mark: Callable[[], Any]
    between_ns: Callable[[Any, Any], int]
    synchronize: Callable[[], None]
    reached: Callable[[Any], bool] | None = None
    capturing: Callable[[], bool] | None = None
    host_ns: Callable[[], int] = perf_counter_ns
    memory_peak_bytes: Callable[[], Reading] = lambda: (None, "torch doesn't count the memory of this device")
    card: str | None = None
    n_sms: int | None = None
    host: str | None = None
    uuid: str | None = None
    no_sampler: str | None = "no driver of ours samples this device"
    origin: Origin = Origin.MEASURED
    versions: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = field(default=())


def find(device: str = "auto") -> Device:
    """The named device ("cuda:1"), or the one that torch finds: a GPU, an accelerator, else the CPU.

    Raises:
        DeviceNotKnown: another name than "auto", "cuda", "xpu", "mps", "simgpu" or "cpu", or torch has no such device.
    """
    import torch

    kind, colon, number = device.partition(":")
    if kind not in KINDS or (colon and not number.isdecimal()):
        raise DeviceNotKnown("device to measure on", device, KINDS)
    if kind == "auto":
        kind = _found()
    if kind == "cpu":
        return cpu()
    if kind == "simgpu":
        return _simulated()
    module = getattr(torch, kind, None)
    available = torch.backends.mps.is_available() if kind == "mps" else module is not None and module.is_available()
    if not available:
        raise DeviceNotKnown("device of this machine", device, [name for name in KINDS if name != kind])
    return _mps() if kind == "mps" else _with_events(kind, int(number) if number else None)


def _found() -> str:
    """Which kind of device a loop of this process most likely works on."""
    import torch

    if _session_runs():
        return "simgpu"
    if torch.cuda.is_available():
        return "cuda"
    if hasattr(torch, "xpu") and torch.xpu.is_available():
        return "xpu"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _session_runs() -> bool:
    """Whether a simulated GPU is at work, without loading it."""
    import sys

    module = sys.modules.get("gpututor.simgpu.session")
    return module is not None and bool(module.Session.is_running())


def _torch_version() -> tuple[tuple[str, str], ...]:
    import torch

    return (("torch", torch.__version__), ("Python", platform.python_version()))


def cpu(clock_ns: Callable[[], int] = perf_counter_ns) -> Device:
    """The host itself: nothing is queued, so each mark is reached as it is set."""
    return Device(
        kind="cpu",
        name=cpu_name() or "CPU",
        mark=clock_ns,
        between_ns=lambda a, b: int(b - a),
        synchronize=lambda: None,
        reached=lambda _: True,
        host_ns=clock_ns,
        memory_peak_bytes=lambda: (None, "torch doesn't count the CPU's memory"),
        host=cpu_name(),
        no_sampler="there is no GPU at work, so no driver is asked",
        versions=_torch_version(),
        notes=("no GPU is measured: here the CPU does the model's work, and busy means that it is in your model",),
    )


def _event_calls(module: Any, index: int | None = None) -> dict[str, Any]:
    """The calls of a torch device module with CUDA's events, recorded in the current stream of device `index`."""

    def mark() -> Any:
        event = module.Event(enable_timing=True)
        event.record(*(() if index is None else (module.current_stream(index),)))
        return event

    return {
        "mark": mark,
        "between_ns": lambda a, b: round(1e6 * a.elapsed_time(b)),  # torch gives milliseconds
        "reached": lambda event: bool(event.query()),
    }


def _with_events(kind: str, index: int | None) -> Device:
    """CUDA, ROCm or XPU."""
    import torch

    module = getattr(torch, kind)
    index = module.current_device() if index is None else index
    properties = module.get_device_properties(index)
    listed = find_card(properties.name)
    rocm = getattr(torch.version, "hip", None) if kind == "cuda" else None
    nvidia = kind == "cuda" and not rocm
    runtime = ("ROCm", rocm) if rocm else ("CUDA", torch.version.cuda) if nvidia else ("", None)
    return Device(
        kind=kind,
        name=properties.name,
        synchronize=lambda: module.synchronize(index),
        memory_peak_bytes=lambda: (int(module.max_memory_allocated(index)), None),
        card=listed.name if listed else properties.name,
        n_sms=getattr(properties, "multi_processor_count", None),
        host=cpu_name(),
        uuid=str(getattr(properties, "uuid", "")) or None if nvidia else None,
        no_sampler=None if nvidia else f"NVML reads NVIDIA's GPUs, and this is {properties.name}",
        versions=(*_torch_version(), *((runtime[0], version) for version in runtime[1:] if version)),
        capturing=getattr(module, "is_current_stream_capturing", None),
        **_event_calls(module, index),
    )


def _mps() -> Device:
    import torch

    def peak() -> Reading:
        return None, "torch keeps no peak of the memory on MPS, only what is held now"

    return Device(
        kind="mps",
        name="Apple GPU",
        synchronize=torch.mps.synchronize,
        memory_peak_bytes=peak,
        card="Apple GPU",
        host=cpu_name(),
        no_sampler="NVML reads NVIDIA's GPUs, and this is Apple's",
        versions=_torch_version(),
        **_event_calls(torch.mps.event),
    )


def _simulated() -> Device:
    """The card of the simulated GPU that is at work; its host's clock is virtual too."""
    import torch

    if not _session_runs():
        raise DeviceNotKnown("simulated GPU at work", "simgpu", ["with gpututor.simulated_gpu(): around the loop"])
    from gpututor.simgpu.session import current

    session = current.session
    module = getattr(torch, "simgpu")  # noqa: B009  torch has no such attribute until the card is registered
    calls = _event_calls(module) | {"reached": None}  # asking takes virtual time
    free = "the simulated host is charged for ops alone: your loader's and your Python's own work take no time here"
    return Device(
        kind="simgpu",
        name=f"simulated {session.machine.card.name}",
        synchronize=module.synchronize,
        host_ns=lambda: int(session.host_ns),
        memory_peak_bytes=lambda: (int(module.max_memory_allocated()), None),
        card=session.machine.card.name,
        n_sms=session.machine.card.n_sms,
        host=session.machine.name,
        no_sampler="a simulated GPU has no driver to sample",
        origin=Origin.SIMULATED,
        versions=_torch_version(),
        notes=(free,) if session.counts_modules else (),
        **calls,
    )
