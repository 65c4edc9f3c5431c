"""Small readers of the machine, each of which can be pointed at something else in a test."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Space:
    """Size and free part of a file system, in bytes."""

    total_bytes: int
    free_bytes: int


@dataclass(frozen=True, slots=True)
class Files:
    """The files of this machine under `root`; what can't be read is None or empty, never an error.

    `spaces` stands in for the sizes of file systems, which a folder of a test can't have.
    """

    root: Path = Path("/")
    spaces: Mapping[str, Space] = field(default_factory=dict)

    def path(self, name: str) -> Path:
        """Where `/proc/meminfo` and its like lie under this root."""
        return self.root / name.lstrip("/")

    def read(self, name: str) -> str | None:
        """The file's text without the white space around it."""
        try:
            return self.path(name).read_text(encoding="utf-8", errors="replace").strip("\0 \t\r\n")
        except (OSError, ValueError):
            return None

    def number(self, name: str) -> int | None:
        """The file's only number; None where it says "max" or anything else."""
        text = self.read(name)
        try:
            return None if text is None else int(text)
        except ValueError:
            return None

    def exists(self, name: str) -> bool:
        """Whether there is something of this name."""
        try:
            return self.path(name).exists()
        except OSError:
            return False

    def names(self, folder: str) -> tuple[str, ...]:
        """Names in a folder, sorted."""
        try:
            return tuple(sorted(one.name for one in self.path(folder).iterdir()))
        except OSError:
            return ()

    def link(self, name: str) -> str | None:
        """The last part of where a link points to: the driver's name for /sys/bus/pci/devices/…/driver."""
        try:
            return self.path(name).readlink().name
        except OSError:
            return None

    def space(self, name: str) -> Space | None:
        """Size and free part of the file system that holds `name`."""
        if self.spaces or self.root != Path("/"):
            return self.spaces.get(name)
        try:
            found = os.statvfs(name)
        except (OSError, AttributeError):  # Windows has no statvfs
            return None
        return Space(found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize)


@dataclass(frozen=True, slots=True)
class PciDevice:
    """A display controller or accelerator on the PCI bus, with the kernel driver that holds it."""

    address: str
    vendor: str
    driver: str | None
    local_cpus: frozenset[int]


# Source: the PCI ID repository, pci-ids.ucw.cz.
NVIDIA, AMD, INTEL = "0x10de", "0x1002", "0x8086"
# PCI Code and ID Assignment Specification: base class 03h display controllers, 12h processing accelerators.
_CLASSES = ("0x03", "0x12")


def pci_devices(files: Files) -> tuple[PciDevice, ...]:
    """The graphics cards and accelerators that Linux lists; a container sees them even without rights to use them."""
    folder = "/sys/bus/pci/devices"
    return tuple(
        PciDevice(
            address,
            (files.read(f"{folder}/{address}/vendor") or "").lower(),
            files.link(f"{folder}/{address}/driver"),
            cpu_list(files.read(f"{folder}/{address}/local_cpulist") or ""),
        )
        for address in files.names(folder)
        if (files.read(f"{folder}/{address}/class") or "").startswith(_CLASSES)
    )


def cpu_list(text: str) -> frozenset[int]:
    """The kernel's list of CPUs as numbers; empty where it isn't one.

    >>> sorted(cpu_list("0-3,8")), cpu_list("")
    ([0, 1, 2, 3, 8], frozenset())
    """
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.strip().isdigit() and (not last or last.strip().isdigit()):
            found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


def in_wsl(files: Files) -> bool:
    """Whether this is Linux inside Windows. Source: Microsoft's kernels name themselves in /proc/version."""
    return "microsoft" in (files.read("/proc/version") or "").lower()


def container(files: Files, environ: Mapping[str, str]) -> str | None:
    """What says that we are in a container: a file, a variable or a control group; None where nothing does."""
    for name in ("/.dockerenv", "/run/.containerenv"):
        if files.exists(name):
            return name
    for name in ("KUBERNETES_SERVICE_HOST", "SINGULARITY_NAME", "APPTAINER_NAME"):
        if environ.get(name):
            return name
    groups = files.read("/proc/1/cgroup") or ""
    return next(
        (f"/proc/1/cgroup names {word}" for word in ("docker", "kubepods", "containerd") if word in groups), None
    )
