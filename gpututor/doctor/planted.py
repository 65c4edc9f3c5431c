"""Machines made up to learn from: each trains something, and has one thing wrong that was put there on purpose.

What the doctor says of them is not made up: its own checks look at them. They lie in records and in files that exist
in memory alone, so the same machine is there wherever the course runs. Checks of the data folder are left out, since
a machine in memory has none.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from gpututor.doctor.examination import Examination
from gpututor.doctor.facts import Driver, Facts, Gpu, Machine, Packages, Process, Torch, TorchGpu
from gpututor.doctor.finding import Probe
from gpututor.doctor.readers import Files, Space
from gpututor.doctor.registry import CHECKS

GIB, MIB = 2**30, 2**20
SHM = "/dev/shm"  # noqa: S108  # looked at, not written
CHECKED = tuple(check for check in CHECKS if not check.id.startswith("data."))


@dataclass(frozen=True, slots=True)
class MadeUpFiles(Files):
    """Files that exist in memory only: their texts, and where links point to."""

    texts: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)

    def read(self, name: str) -> str | None:
        """The file's text; None where there is none."""
        return self.texts.get(name)

    def exists(self, name: str) -> bool:
        """Whether there is a file, link or folder of this name."""
        known = (*self.texts, *self.links)
        return name in known or any(one.startswith(f"{name}/") for one in known)

    def names(self, folder: str) -> tuple[str, ...]:
        """Names in a folder, sorted."""
        inside = [one[len(folder) + 1 :] for one in (*self.texts, *self.links) if one.startswith(f"{folder}/")]
        return tuple(sorted({one.partition("/")[0] for one in inside}))

    def link(self, name: str) -> str | None:
        """The last part of where a link points to."""
        return PurePosixPath(self.links[name]).name if name in self.links else None

    def space(self, name: str) -> Space | None:
        """Size and free part of the file system that holds `name`."""
        return self.spaces.get(name)


@dataclass(frozen=True, slots=True)
class Patient:
    """A machine while it trains, and what is known of the training besides.

    `busy_cpus` is how many CPUs the training keeps busy, `wait_share` the part of a step in which it waits for the
    next batch, and `graph_share` what Task Manager's first graph, 3D, shows; None where there is no Task Manager.
    """

    facts: Facts
    n_workers: int
    busy_cpus: float
    wait_share: float
    graph_share: float | None = None

    @property
    def gpu(self) -> Gpu:
        """Its one card."""
        return self.facts.driver.gpus[0]

    def with_gpu(self, **changed: Any) -> Patient:
        """The same with some readings of the card changed."""
        driver = replace(self.facts.driver, gpus=(replace(self.gpu, **changed),))
        return self.with_facts(driver=driver)

    def with_facts(self, **changed: Any) -> Patient:
        """The same with some of the doctor's facts changed."""
        return replace(self, facts=replace(self.facts, **changed))


@dataclass(frozen=True, slots=True)
class Model:
    """A card as its driver names it; clocks in hertz, power in watts. Source: data/cards.toml, but for the name."""

    name: str
    capability: str
    clock_hz: float
    power_w: float
    memory_bytes: int
    pcie_gen: int


MODELS = (
    Model("Tesla V100-SXM2-16GB", "7.0", 1530e6, 300, 16 * GIB, 3),
    Model("Tesla T4", "7.5", 1590e6, 70, 16 * GIB, 3),
    Model("NVIDIA A10G", "8.6", 1710e6, 300, 24 * GIB, 4),
    Model("NVIDIA GeForce RTX 3090", "8.6", 1695e6, 350, 24 * GIB, 4),
)
NEWER = Model("NVIDIA GeForce RTX 5090", "12.0", 2407e6, 575, 32 * GIB, 5)
UUID = "5eed0017-0000"
# What the wheels of torch for CUDA 12.6 hold. Source: github.com/pytorch/pytorch RELEASE.md, from Maxwell to Hopper.
ARCHITECTURES = ("sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90", "compute_90")


def _card(rng: random.Random, model: Model) -> Gpu:
    """The card at work: nearly always busy, warm, at its clock and its whole link."""
    used_bytes = round(rng.uniform(0.35, 0.6) * model.memory_bytes)
    training = Process(rng.randint(2_000, 60_000), used_bytes - 300 * MIB, "python train.py")
    return Gpu(
        0,
        model.name,
        uuid=f"GPU-{UUID}",
        capability=model.capability,
        memory_bytes=model.memory_bytes,
        memory_used_bytes=used_bytes,
        kernel_time_share=rng.randint(93, 99) / 100,
        power_w=round(rng.uniform(0.78, 0.92) * model.power_w),
        power_limit_w=model.power_w,
        power_limit_default_w=model.power_w,
        temperature_c=rng.randint(58, 71),
        sm_clock_hz=round(rng.uniform(0.93, 1.0) * model.clock_hz, -6),
        sm_clock_max_hz=model.clock_hz,
        clock_reasons=(0,) * 5,
        persistence=True,
        mig=False,
        compute_mode=0,
        pcie_gen=model.pcie_gen,
        pcie_gen_max=model.pcie_gen,
        pcie_width=16,
        pcie_width_max=16,
        display=False,
        processes=(training,),
    )


def healthy(rng: random.Random, model: Model | None = None) -> Patient:
    """A machine of one card that trains, with nothing wrong; sizes, temperatures and names of processes are drawn."""
    chosen, n_cpus = model or rng.choice(MODELS), rng.choice((8, 12, 16))
    ram_bytes = 4 * n_cpus * GIB
    machine = Machine(
        n_cpus=n_cpus,
        affinity=frozenset(range(n_cpus)),
        load_1_min=round(rng.uniform(0.3, 0.5) * n_cpus, 1),
        ram_bytes=ram_bytes,
        ram_available_bytes=round(0.7 * ram_bytes),
        n_open_files=65_536,
    )
    torch = Torch(
        "2.13.0+cu126",
        import_s=2.4,
        cuda="12.6",
        cudnn="91002",
        n_threads=n_cpus // 2,
        available=True,
        architectures=ARCHITECTURES,
        gpus=(TorchGpu(0, chosen.name, chosen.capability, UUID, chosen.memory_bytes, kernel_s=0.4),),
    )
    files = MadeUpFiles(spaces={SHM: Space(ram_bytes // 2, ram_bytes // 2)})
    packages = Packages({"nvidia-ml-py": "13.615.71"}, "site-packages/pynvml.py")
    driver = Driver(version="580.65.06", cuda="13.0", gpus=(_card(rng, chosen),))
    facts = Facts(files, {}, machine, packages, Path("data"), driver, torch)
    return Patient(facts, n_cpus // 2, round(rng.uniform(0.3, 0.5) * n_cpus, 1), rng.randint(1, 3) / 100)


Plant = Callable[[Patient, random.Random], Patient]


@dataclass(frozen=True, slots=True)
class _Told:
    """A probe that has been answered already."""

    fields: dict[str, Any]

    def go(self, how: str) -> None:
        """Nothing waits for it."""

    def answer(self, limit_s: float) -> tuple[dict[str, Any], str | None]:
        """All of it, at once."""
        return self.fields, None

    def stop(self) -> None:
        """Nothing runs."""


def examination(facts: Facts) -> Examination:
    """The doctor's look at a made-up machine, by its own checks; `findings()` runs it."""
    told = {Probe.DRIVER: asdict(facts.driver), Probe.TORCH: asdict(facts.torch)}
    return Examination(facts, start=lambda probe: _Told(told[probe]), checks=CHECKED)
