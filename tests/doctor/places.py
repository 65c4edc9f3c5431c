"""Machines made up for the checks: a tree of files under a temporary root, and records with one thing wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpututor.doctor.facts import Driver, Facts, Gpu, Machine, Packages, Torch, TorchGpu
from gpututor.doctor.finding import Check, Finding, State
from gpututor.doctor.readers import Files, Space

GIB = 2**30
CARD = "/sys/bus/pci/devices/0000:65:00.0"

A100 = Gpu(
    index=0,
    name="NVIDIA A100-SXM4-40GB",
    uuid="GPU-11111111-aaaa",
    capability="8.0",
    memory_bytes=40 * GIB,
    memory_used_bytes=0,
    kernel_time_share=0.0,
    power_limit_w=400.0,
    power_limit_default_w=400.0,
    sm_clock_hz=1410e6,
    sm_clock_max_hz=1410e6,
    clock_reasons=(0x1,) * 5,
    persistence=True,
    ecc=True,
    n_uncorrected_errors=0,
    remapping=(0, 0, 0, 0),
    mig=False,
    compute_mode=0,
    pcie_gen=4,
    pcie_gen_max=4,
    pcie_width=16,
    pcie_width_max=16,
    display=False,
    processes=(),
)
HERE = TorchGpu(0, "NVIDIA A100-SXM4-40GB", "8.0", "11111111-aaaa", 40 * GIB, kernel_s=0.4)
TORCH = Torch(
    "2.13.0+cu130",
    import_s=2.0,
    cuda="13.0",
    cudnn="91002",
    available=True,
    architectures=("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120", "compute_120"),
    gpus=(HERE,),
)
DRIVER = Driver(version="580.65.06", cuda="13.0", gpus=(A100,))
NO_DRIVER = Driver(code=12, error="NVMLError_LibraryNotFound: NVML Shared Library Not Found")
CPU_TORCH = Torch("2.13.0+cpu", available=False)
MACHINE = Machine(n_cpus=8, affinity=frozenset(range(8)), ram_bytes=32 * GIB, ram_available_bytes=20 * GIB)


def tree(root: Path, files: Mapping[str, str] | None = None, links: Mapping[str, str] | None = None) -> Files:
    """Files of a machine under `root`; `links` are links whose target need not be there."""
    for name, text in (files or {}).items():
        place = root / name.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text + "\n", encoding="utf-8")
    for name, target in (links or {}).items():
        place = root / name.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)
    return Files(root)


def nvidia_card(root: Path, driver: str | None = "nvidia", **others: str) -> Files:
    """A machine with one NVIDIA card on the bus, held by this kernel driver."""
    files = {f"{CARD}/vendor": "0x10de", f"{CARD}/class": "0x030200", f"{CARD}/local_cpulist": "0-3", **others}
    links = {} if driver is None else {f"{CARD}/driver": f"../../../../bus/pci/drivers/{driver}"}
    return tree(root, files, links)


def with_space(files: Files, **spaces: Space) -> Files:
    """The same files with sizes of file systems, by path with / written as __."""
    return replace(files, spaces={name.replace("__", "/"): space for name, space in spaces.items()})


def healthy(root: Path, **changed: Any) -> Facts:
    """Facts of a machine on which torch uses one A100 and nothing is wrong, but for what is changed."""
    return replace(
        Facts(
            Files(root),
            {},
            MACHINE,
            Packages({"nvidia-ml-py": "13.615.71"}, "/site-packages/pynvml.py"),
            root,
            DRIVER,
            TORCH,
        ),
        **changed,
    )


def with_gpu(root: Path, **changed: Any) -> Facts:
    """The healthy machine, with some readings of its A100 changed."""
    return healthy(root, driver=replace(DRIVER, gpus=(replace(A100, **changed),)))


def with_torch(root: Path, **changed: Any) -> Facts:
    """The healthy machine, with some of torch's answers changed."""
    return healthy(root, torch=replace(TORCH, **changed))


def found(check: Check, facts: Facts) -> Finding:
    """What the check finds, which must be something."""
    finding = check(facts)
    assert finding is not None
    return finding


def state(check: Check, facts: Facts) -> State | None:
    """The finding's state; None where the check doesn't apply."""
    finding = check(facts)
    return None if finding is None else finding.state
