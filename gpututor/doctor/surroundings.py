"""Reads this machine into the records of `facts`; the driver and torch are asked elsewhere."""

from __future__ import annotations

import os
import platform
import sys
import warnings
from importlib import metadata, util
from pathlib import Path
from typing import Any

from gpututor.doctor.facts import Facts, Machine, Packages
from gpututor.doctor.readers import Files

# Those that a check asks for: the bindings that fight for the name pynvml.
_PACKAGES = ("nvidia-ml-py", "pynvml", "nvidia-ml-py3")


def this_machine(data: Path) -> Facts:
    """Facts of the machine, environment and packages here; `data` is the folder that holds the training data."""
    return Facts(Files(), dict(os.environ), read_machine(), read_packages(), data)


def read_machine() -> Machine:
    """The computer's size and state now."""
    import tracemalloc

    import psutil  # type: ignore[import-untyped]

    ram, swap = _tried(psutil.virtual_memory), _tried(psutil.swap_memory)
    affinity = getattr(os, "sched_getaffinity", None)  # Linux only
    load = getattr(os, "getloadavg", None)  # not on Windows
    cpus = None if affinity is None else _tried(lambda: frozenset(affinity(0)))
    return Machine(
        platform=sys.platform,
        architecture=platform.machine(),
        n_cpus=os.cpu_count(),
        affinity=cpus,
        load_1_min=None if load is None else _tried(lambda: load()[0]),
        ram_bytes=None if ram is None else ram.total,
        ram_available_bytes=None if ram is None else ram.available,
        swap_bytes=None if swap is None else swap.total,
        swap_used_bytes=None if swap is None else swap.used,
        n_open_files=_open_files(),
        development_mode=sys.flags.dev_mode,
        python_allocations_traced=tracemalloc.is_tracing(),
    )


def _open_files() -> int | None:
    """How many files a process may have open; None where the system has no such limit or doesn't tell."""
    if sys.platform == "win32":
        return None
    import resource

    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def read_packages() -> Packages:
    """Versions of the packages that checks ask for, and which file `import pynvml` would load."""
    versions = {name: version for name in _PACKAGES if (version := _version(name)) is not None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pynvml 13 warns when it is looked for; the check says it better
        spec = _tried(lambda: util.find_spec("pynvml"))
    return Packages(versions, None if spec is None else spec.origin)


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _tried(question: Any) -> Any:
    try:
        return question()
    except Exception:  # noqa: BLE001  # a container may hide any of these; the checks then can't tell
        return None
