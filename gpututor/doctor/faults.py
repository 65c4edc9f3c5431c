"""What is planted in a made-up machine: one list, from torch's build to the gauge that is looked at.

Numbers are drawn, so that no two machines with the same fault are alike.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from enum import Enum

from gpututor.doctor.facts import Process, Torch
from gpututor.doctor.planted import ARCHITECTURES, GIB, MIB, NEWER, SHM, MadeUpFiles, Patient, Plant, healthy
from gpututor.doctor.readers import Space

HEAT_BY_DRIVER, HEAT_BY_HARDWARE, POWER_CAP = 0x20, 0x48, 0x4
"""Bits of nvmlDeviceGetCurrentClocksEventReasons. Source: nvml.h, nvmlClocksEventReasons."""
CONTEXT_BYTES = 430 * MIB
"""Our choice: what a process of torch holds on a card before its first tensor, about half a GiB."""


def clock_under(limit_share: float) -> float:
    """Share of its clock that a busy card keeps under this share of its power.

    Power goes as clock times voltage squared, and voltage about as clock, so clock as the cube root. An RTX 3090 that
    trains kept 80 % of its pace in fp32 at 280 of 480 W (blog.qwertyforce.dev, optimal_power_limit); the root says 84.

    >>> round(clock_under(280 / 480), 2), clock_under(1.0)
    (0.84, 1.0)
    """
    return float(limit_share ** (1 / 3))


def _resting(patient: Patient, *processes: Process) -> Patient:
    """The card with nothing to do: clocks and link rest too."""
    gpu = patient.gpu
    assert gpu.power_limit_w is not None
    assert gpu.sm_clock_max_hz is not None
    return patient.with_gpu(
        kernel_time_share=0.0,
        memory_used_bytes=4 * MIB + sum(each.memory_bytes or 0 for each in processes),
        power_w=round(0.13 * gpu.power_limit_w),
        temperature_c=34,
        sm_clock_hz=round(0.2 * gpu.sm_clock_max_hz, -6),
        clock_reasons=(0x1,) * 5,
        pcie_gen=1,
        processes=processes,
    )


def _hungry(patient: Patient, rng: random.Random) -> Patient:
    """The card waits for its next batch most of the time."""
    gpu = patient.gpu
    share = rng.randint(22, 34) / 100
    assert gpu.power_limit_w is not None
    power_w = round((0.15 + 0.7 * share) * gpu.power_limit_w)
    waiting = patient.with_gpu(kernel_time_share=share, power_w=power_w, temperature_c=rng.randint(44, 52))
    return replace(waiting, wait_share=round(1 - share - rng.uniform(0.02, 0.05), 2))


def _on_processor(patient: Patient) -> Patient:
    machine = patient.facts.machine
    n = machine.n_cpus or 1
    busy = replace(machine, load_1_min=round(0.97 * n, 1))
    return replace(patient.with_facts(machine=busy), busy_cpus=round(0.96 * n, 1))


def _cpu_wheel(patient: Patient, rng: random.Random) -> Patient:
    torch = Torch("2.13.0+cpu", import_s=1.9, n_threads=patient.facts.torch.n_threads, available=False)
    return _on_processor(_resting(patient)).with_facts(torch=torch)


def _wrong_device(patient: Patient, rng: random.Random) -> Patient:
    (training,) = patient.gpu.processes or (Process(4711),)
    return _on_processor(_resting(patient, replace(training, memory_bytes=CONTEXT_BYTES)))


def _neighbour(patient: Patient, rng: random.Random) -> Patient:
    gpu = patient.gpu
    (training,) = gpu.processes or (Process(4711),)
    assert gpu.memory_bytes is not None
    assert gpu.memory_used_bytes is not None
    size = round(rng.uniform(0.18, 0.26) * gpu.memory_bytes)
    other = Process(training.pid + rng.randint(100, 900), size, rng.choice(("python sweep.py", "python serve.py")))
    return patient.with_gpu(
        processes=(training, other), memory_used_bytes=gpu.memory_used_bytes + size, kernel_time_share=1.0
    )


def _heat(patient: Patient, rng: random.Random) -> Patient:
    gpu = patient.gpu
    assert gpu.sm_clock_max_hz is not None
    assert gpu.power_limit_w is not None
    bits, share = rng.choice(((HEAT_BY_DRIVER, rng.uniform(0.58, 0.68)), (HEAT_BY_HARDWARE, rng.uniform(0.35, 0.48))))
    return patient.with_gpu(
        clock_reasons=(bits,) * 5,
        sm_clock_hz=round(share * gpu.sm_clock_max_hz, -6),
        temperature_c=rng.randint(88, 93),
        power_w=round(rng.uniform(0.42, 0.55) * gpu.power_limit_w),
        kernel_time_share=0.99,
    )


def _power(patient: Patient, rng: random.Random) -> Patient:
    gpu = patient.gpu
    assert gpu.sm_clock_max_hz is not None
    assert gpu.power_limit_default_w is not None
    share = rng.randint(50, 60) / 100
    limit_w = round(share * gpu.power_limit_default_w)
    return patient.with_gpu(
        power_limit_w=limit_w,
        power_w=limit_w - 1,
        clock_reasons=(POWER_CAP,) * 5,
        sm_clock_hz=round(clock_under(share) * gpu.sm_clock_max_hz, -6),
        temperature_c=rng.randint(51, 58),
        kernel_time_share=0.99,
    )


def _link(patient: Patient, rng: random.Random) -> Patient:
    narrow = rng.choice(({"pcie_width": 1}, {"pcie_gen": 1, "pcie_width": 4}))
    return patient.with_gpu(**narrow, kernel_time_share=rng.randint(41, 58) / 100, temperature_c=rng.randint(47, 55))


def _in_container(patient: Patient, shm_bytes: int, **texts: str) -> Patient:
    files = MadeUpFiles(
        spaces={SHM: Space(shm_bytes, shm_bytes - MIB)},
        texts={"/.dockerenv": "", "/dev/nvidia0": "", "/dev/nvidiactl": "", **texts},
    )
    return patient.with_facts(files=files)


def _shared_memory(patient: Patient, rng: random.Random) -> Patient:
    starved = _in_container(_hungry(patient, rng), 64 * MIB)
    return replace(starved, n_workers=0, busy_cpus=1.0)


def _few_cpus(patient: Patient, rng: random.Random) -> Patient:
    n, granted = rng.choice((32, 48, 64)), rng.choice((1, 2))
    files = {"/proc/self/cgroup": "0::/", "/sys/fs/cgroup/cpu.max": f"{granted}00000 100000"}
    machine = replace(
        patient.facts.machine, n_cpus=n, affinity=frozenset(range(n)), load_1_min=round(rng.uniform(0.3, 0.6) * n, 1)
    )
    starved = _in_container(_hungry(patient, rng), 8 * GIB, **files).with_facts(machine=machine)
    return replace(starved, n_workers=8, busy_cpus=float(granted))


def _new_card(patient: Patient, rng: random.Random) -> Patient:
    newer = healthy(rng, NEWER)
    (card,) = newer.facts.torch.gpus
    first = replace(card, kernel_s=float(rng.randint(110, 140)))
    return newer.with_facts(torch=replace(newer.facts.torch, architectures=ARCHITECTURES, gpus=(first,)))


def _gauge(patient: Patient, rng: random.Random) -> Patient:
    windows = replace(patient.facts.machine, platform="win32", affinity=None, load_1_min=None, n_open_files=None)
    told = patient.with_facts(machine=windows, files=MadeUpFiles()).with_gpu(persistence=None)
    return replace(told, graph_share=rng.randint(1, 4) / 100)


@dataclass(frozen=True, slots=True)
class _Kind:
    """A fault in words: its title, what the machine's owner sees, the check that tells it, and how it is planted."""

    title: str
    owner: str
    check: str | None
    plant: Plant


class Fault(Enum):
    """What can be wrong, in the order in which one looks. `check` is None where the machine itself is in order."""

    CPU_WHEEL = _Kind(
        "a torch built for the processor",
        "Since the packages were installed anew the script takes all night. It says nothing.",
        "torch.build",
        _cpu_wheel,
    )
    WRONG_DEVICE = _Kind(
        "a model left on the processor",
        "The script asks whether there is a GPU, and there is. The fans of the card don't move.",
        None,
        _wrong_device,
    )
    NEIGHBOUR = _Kind("a neighbour on the card", "At night it is twice as fast as by day.", "card.others", _neighbour)
    HEAT = _Kind("a card that is too hot", "Fast for ten minutes, slow for the rest of the day.", "card.clocks", _heat)
    POWER = _Kind("a power limit", "Slower than a colleague's, with the same card in it.", "card.power_limit", _power)
    LINK = _Kind("a link of one lane", "Slow since the card moved to another slot.", "card.link", _link)
    SHARED_MEMORY = _Kind(
        "64 MiB of shared memory",
        "Workers died of a bus error in the container, so num_workers was set to 0.",
        "container.shm",
        _shared_memory,
    )
    FEW_CPUS = _Kind(
        "a share of the processor",
        "A large server, and in the container the loader crawls.",
        "container.cpu",
        _few_cpus,
    )
    NEW_CARD = _Kind(
        "a card newer than torch", "Each first step takes minutes. After that all is well.", "torch.code", _new_card
    )
    GAUGE = _Kind("the wrong gauge", "Task Manager shows hardly any use of the GPU.", None, _gauge)

    @property
    def title(self) -> str:
        """What it is, in a few words."""
        return self.value.title

    @property
    def owner(self) -> str:
        """What the machine's owner sees of it."""
        return self.value.owner

    @property
    def check(self) -> str | None:
        """Id of the doctor's check that tells it."""
        return self.value.check


def planted(fault: Fault, seed: object) -> Patient:
    """The machine of a seed with this fault in it; the same wherever the course runs."""
    rng = random.Random(f"{fault.name} {seed}")
    return fault.value.plant(healthy(rng), rng)
