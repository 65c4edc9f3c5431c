"""The GPUs to read, each with what never changes about it; found by UUID, since NVML and CUDA count differently."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from gpututor.measure.nvml.failures import NOT_FOUND, Meaning, Refusal
from gpututor.measure.nvml.library import Library, gate, text
from gpututor.measure.nvml.visible import torch_order, visible, whole

_SWITCHES = {"persistence", "ecc", "mig"}


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU or MIG instance. `cuda_index` is CUDA's number of it, None where that can't be told.

    `facts` never change during a run: memory_total_bytes, power_limit_w, sm_clock_highest_hz, pcie_gen_highest,
    pcie_lanes_highest, and as 0 or 1 persistence, ecc and mig. `reasons` says why one of them is missing.
    """

    uuid: str
    name: str
    cuda_index: int | None = None
    facts: Mapping[str, float] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_mig(self) -> bool:
        """Whether it is an instance of a divided GPU."""
        return self.uuid.startswith("MIG-")


@dataclass(frozen=True, slots=True)
class Found:
    """GPUs that were asked for and can be read; `notes` says which can't, and why a number is not known."""

    devices: tuple[Device, ...]
    notes: tuple[str, ...] = ()


_FACTS: Mapping[str, Callable[[Any, Any], float]] = {
    "memory_total_bytes": lambda gpu, nvml: nvml.nvmlDeviceGetMemoryInfo(gpu).total,
    "power_limit_w": lambda gpu, nvml: nvml.nvmlDeviceGetEnforcedPowerLimit(gpu) / 1e3,  # NVML gives mW
    "sm_clock_highest_hz": lambda gpu, nvml: nvml.nvmlDeviceGetMaxClockInfo(gpu, 1) * 1e6,  # 1 is NVML_CLOCK_SM; MHz
    "pcie_gen_highest": lambda gpu, nvml: nvml.nvmlDeviceGetMaxPcieLinkGeneration(gpu),
    "pcie_lanes_highest": lambda gpu, nvml: nvml.nvmlDeviceGetMaxPcieLinkWidth(gpu),
    "persistence": lambda gpu, nvml: nvml.nvmlDeviceGetPersistenceMode(gpu),
    "ecc": lambda gpu, nvml: nvml.nvmlDeviceGetEccMode(gpu)[0],
    "mig": lambda gpu, nvml: nvml.nvmlDeviceGetMigMode(gpu)[0],
}


def find_devices(
    library: Library,
    wanted: Sequence[int | str] | None = None,
    environ: Mapping[str, str] | None = None,
    torch_says: Callable[[], Sequence[str] | None] = torch_order,
) -> Found:
    """The GPUs that CUDA programs started here would see, or those of `wanted`: CUDA's numbers and UUIDs.

    A GPU that can't be opened is noted and leaves the others.
    """
    gpus, notes = _listed(library)
    seen = visible(gpus, os.environ if environ is None else environ, torch_says())
    numbers = {uuid: k for k, uuid in enumerate(seen.uuids)} if seen.ordered else {}
    if not seen.ordered:
        notes.append(seen.words)
    chosen = seen.uuids if wanted is None else _chosen(wanted, seen.uuids if seen.ordered else None, gpus, notes)
    if wanted is None and not chosen and gpus:
        notes.append(f"no GPU is visible to CUDA programs {seen.words}")
    names = dict(gpus)
    devices = []
    for uuid in dict.fromkeys(chosen):
        device = _device(library, uuid, names.get(uuid), numbers.get(uuid), notes)
        if device is not None:
            devices.append(device)
    return Found(tuple(devices), tuple(notes))


def _listed(library: Library) -> tuple[list[tuple[str, str]], list[str]]:
    """(UUID, name) of every GPU that can be opened, in NVML's order, and sentences on the others."""
    count = library.asked("nvmlDeviceGetCount")
    if isinstance(count, Refusal):
        return [], [f"the driver does not say how many GPUs there are ({count.words})"]
    gpus, notes = [], []
    for k in range(count):
        gpu = library.asked("nvmlDeviceGetHandleByIndex", k)
        uuid = gpu if isinstance(gpu, Refusal) else library.asked("nvmlDeviceGetUUID", gpu)
        if isinstance(uuid, Refusal):
            notes.append(f"the driver's GPU {k} can't be opened ({uuid.words})")
            continue
        gpus.append((text(uuid), name_of(library, gpu)))
    return gpus, notes


def _chosen(
    wanted: Sequence[int | str], numbered: Sequence[str] | None, gpus: Sequence[tuple[str, str]], notes: list[str]
) -> list[str]:
    """UUIDs of what was asked for; what is not here is noted."""
    chosen: list[str] = []
    for one in wanted:
        if isinstance(one, str):
            fits = [uuid for uuid, _ in gpus if uuid.startswith(whole(one))]
            chosen.append(fits[0] if len(fits) == 1 else whole(one))
        elif numbered is not None and 0 <= one < len(numbered):
            chosen.append(numbered[one])
        elif numbered is None and len(gpus) > 1:
            notes.append(f"CUDA's GPU {one} is not sampled, since its number says nothing here")
        else:
            notes.append(f"there is no GPU {one}; CUDA programs see {len(numbered or ())}")
    return chosen


def _device(library: Library, uuid: str, name: str | None, cuda_index: int | None, notes: list[str]) -> Device | None:
    gpu = handle(library, uuid)
    instance = uuid.replace("GPU-", "MIG-", 1)
    if isinstance(gpu, Refusal) and gpu.code == NOT_FOUND and instance != uuid:  # torch names both kinds alike
        other = handle(library, instance)
        if not isinstance(other, Refusal):
            gpu, uuid = other, instance
    if isinstance(gpu, Refusal):
        notes.append(f"the GPU {uuid} can't be opened ({gpu.words})")
        return None
    if name is None:
        name = name_of(library, gpu)
    facts: dict[str, float] = {}
    reasons: dict[str, str] = {}
    for fact, question in _FACTS.items():
        with gate():
            answer = library.ask(partial(question, gpu))
        if isinstance(answer, Refusal):
            reasons[fact] = answer.words
            if answer.meaning is Meaning.LOST:
                notes.append(f"the {name} is lost ({answer.words})")
                return None
        elif not answer and fact not in _SWITCHES:
            reasons[fact] = "the driver said 0, which can't be"
        else:
            facts[fact] = float(answer)
    return Device(uuid, name, cuda_index, facts, reasons)


def name_of(library: Library, gpu: Any) -> str:
    """The card's name as the driver says it."""
    told = library.asked("nvmlDeviceGetName", gpu)
    return "GPU without a name" if isinstance(told, Refusal) else text(told)


def handle(library: Library, uuid: str) -> Any:
    """NVML's handle of the GPU or MIG instance with this UUID, or the refusal."""
    found = library.asked("nvmlDeviceGetHandleByUUID", uuid)
    if isinstance(found, Refusal) and found.code is None:  # old bindings want bytes
        return library.asked("nvmlDeviceGetHandleByUUID", uuid.encode())
    return found


def mig_place(library: Library, gpu: Any) -> tuple[Any, int] | None:
    """Parent and number of a MIG instance; None where neither can be had."""
    parent = library.asked("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", gpu)
    number = library.asked("nvmlDeviceGetGpuInstanceId", gpu)
    return None if isinstance(parent, Refusal) or isinstance(number, Refusal) else (parent, int(number))
