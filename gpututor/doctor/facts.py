"""What the checks look at: plain records, so that a test can put any machine before them.

A reading that is missing is None; where a record has `reasons`, they say why by the field's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpututor.doctor.readers import Files


@dataclass(frozen=True, slots=True)
class Machine:
    """The computer as Python and psutil see it. `platform` is sys.platform; `affinity` the CPUs we may run on."""

    platform: str = "linux"
    architecture: str = "x86_64"
    n_cpus: int | None = None
    affinity: frozenset[int] | None = None
    load_1_min: float | None = None
    ram_bytes: int | None = None
    ram_available_bytes: int | None = None
    swap_bytes: int | None = None
    swap_used_bytes: int | None = None
    n_open_files: int | None = None
    development_mode: bool = False
    python_allocations_traced: bool = False


@dataclass(frozen=True, slots=True)
class Packages:
    """Versions of installed packages by name, and the file that `import pynvml` would load (None if there is none)."""

    versions: Mapping[str, str] = field(default_factory=dict)
    pynvml_file: str | None = None


@dataclass(frozen=True, slots=True)
class Process:
    """Another program on a card. In a container its number is the host's, so its name often can't be read."""

    pid: int
    memory_bytes: int | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Gpu:
    """One NVIDIA GPU as NVML tells it, in NVML's order. `clock_reasons` are several readings of one bit mask."""

    index: int
    name: str | None = None
    uuid: str | None = None
    pci_address: str | None = None
    capability: str | None = None
    memory_bytes: int | None = None
    memory_used_bytes: int | None = None
    kernel_time_share: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    power_limit_default_w: float | None = None
    temperature_c: float | None = None
    sm_clock_hz: float | None = None
    sm_clock_max_hz: float | None = None
    clock_reasons: tuple[int, ...] | None = None
    persistence: bool | None = None
    ecc: bool | None = None
    n_uncorrected_errors: int | None = None
    remapping: tuple[int, int, int, int] | None = None
    mig: bool | None = None
    n_mig_slices: int | None = None
    compute_mode: int | None = None
    pcie_gen: int | None = None
    pcie_gen_max: int | None = None
    pcie_width: int | None = None
    pcie_width_max: int | None = None
    display: bool | None = None
    processes: tuple[Process, ...] | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)

    @property
    def called(self) -> str:
        """The card by its place in nvidia-smi's list."""
        return f"GPU {self.index}"


@dataclass(frozen=True, slots=True)
class Unreachable:
    """A GPU that the driver counts and does not open, with NVML's code."""

    index: int
    code: int | None
    words: str


@dataclass(frozen=True, slots=True)
class Driver:
    """What NVML says. `code` and `error` are set when it does not start; `died` when whoever asked did."""

    code: int | None = None
    error: str | None = None
    died: bool = False
    version: str | None = None
    cuda: str | None = None
    gpus: tuple[Gpu, ...] = ()
    unreachable: tuple[Unreachable, ...] = ()

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> Driver:
        """The record from what a child process wrote as JSON."""
        gpus = [
            Gpu(
                **{
                    **gpu,
                    "clock_reasons": _tuple(gpu.get("clock_reasons")),
                    "remapping": _tuple(gpu.get("remapping")),
                    "processes": None if (p := gpu.get("processes")) is None else tuple(Process(**one) for one in p),
                }
            )
            for gpu in fields.get("gpus", ())
        ]
        lost = [Unreachable(**one) for one in fields.get("unreachable", ())]
        return cls(**{**fields, "gpus": tuple(gpus), "unreachable": tuple(lost)})


@dataclass(frozen=True, slots=True)
class TorchGpu:
    """A device of torch.cuda. `kernel_s` is the time from asking for a first sum to its result, `error` why not."""

    index: int
    name: str
    capability: str | None = None
    uuid: str | None = None
    memory_bytes: int | None = None
    kernel_s: float | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Switches:
    """Settings of torch that cost time; a fresh process has torch's own defaults unless something sets them."""

    anomaly: bool = False
    deterministic: bool = False
    cudnn_deterministic: bool = False
    cudnn_benchmark: bool = False
    cudnn_enabled: bool = True


@dataclass(frozen=True, slots=True)
class Torch:
    """What a fresh process with torch says; `error` is why it can't be imported, `unfinished` why it didn't end.

    `untried` is why no kernel was tried.
    """

    version: str | None = None
    file: str | None = None
    import_s: float | None = None
    error: str | None = None
    cuda: str | None = None
    hip: str | None = None
    xpu: str | None = None
    cudnn: str | None = None
    n_threads: int | None = None
    switches: Switches | None = None
    available: bool | None = None
    why_not: str | None = None
    architectures: tuple[str, ...] = ()
    gpus: tuple[TorchGpu, ...] = ()
    other: str | None = None
    unfinished: str | None = None
    untried: str | None = None

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> Torch:
        """The record from what a child process wrote as JSON."""
        switches = fields.get("switches")
        return cls(
            **{
                **fields,
                "switches": None if switches is None else Switches(**switches),
                "architectures": tuple(fields.get("architectures", ())),
                "gpus": tuple(TorchGpu(**gpu) for gpu in fields.get("gpus", ())),
            }
        )


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything a check may look at. `driver` and `torch` are empty until their child process has answered."""

    files: Files
    environ: Mapping[str, str] = field(default_factory=dict)
    machine: Machine = field(default_factory=Machine)
    packages: Packages = field(default_factory=Packages)
    data: Path = Path()
    driver: Driver = field(default_factory=Driver)
    torch: Torch = field(default_factory=Torch)


def _tuple(value: Any) -> tuple[Any, ...] | None:
    return None if value is None else tuple(value)
