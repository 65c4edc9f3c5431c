"""What the categories and names in a Kineto trace mean.

Source of the names: pytorch/kineto, libkineto (ActivityType) for torch 1.13 and later; the capitalised ones
are those of torch 1.8 to 1.12. CUDA and HIP names: the API references of both.
"""

from __future__ import annotations

import re
from enum import Enum

from gpututor.timeline import Activity


class Role(Enum):
    """What an event is to us."""

    __hash__ = object.__hash__  # one object each, so its own hash will do; that of Enum is slow

    KERNEL = "kernel"
    COPY = "copy"
    MEMSET = "memset"
    CALL = "driver or runtime call"
    OPERATOR = "framework operator"
    PYTHON = "Python function"
    MARK = "mark set by a program"
    OVERHEAD = "overhead of profiler or driver"


ROLE_OF_CATEGORY = {
    "kernel": Role.KERNEL,
    "Kernel": Role.KERNEL,
    "gpu_memcpy": Role.COPY,
    "Memcpy": Role.COPY,
    "gpu_memset": Role.MEMSET,
    "Memset": Role.MEMSET,
    "cuda_runtime": Role.CALL,
    "cuda_driver": Role.CALL,
    "hip_runtime": Role.CALL,
    "Runtime": Role.CALL,
    "cpu_op": Role.OPERATOR,
    "Operator": Role.OPERATOR,
    "python_function": Role.PYTHON,
    "user_annotation": Role.MARK,
    "overhead": Role.OVERHEAD,
}
ON_GPU = frozenset({Role.KERNEL, Role.COPY, Role.MEMSET})

ANOTHER_ACCELERATOR = {"mtia": "an MTIA", "hpu": "a Gaudi (HPU)", "xpu": "an Intel XPU", "privateuse1": "a custom"}
"""Beginnings of categories that only other accelerators have."""

STEP = re.compile(r"ProfilerStep\s*#\s*(\d+)")
OPTIMIZER = "Optimizer.step#"
"""How torch's own mark around a step of an optimizer begins; source: torch/optim/optimizer.py."""

INPUT_MARKS = ("enumerate(DataLoader)", "gpututor: next batch")
"""How marks around the loader begin; the first is torch's own."""

PAUSE_MARK, START_UP_MARK, WAIT_MARK = "gpututor: pause", "gpututor: start-up", "gpututor: other ranks"
"""Marks of our own for what no mark of torch's says."""

ARROWS = frozenset({"ac2g", "async_cpu_to_gpu"})
"""Names of arrows from a call to what it started; both are Kineto's, of different years."""

COLLECTIVE = re.compile(r"^(nccl|rccl|mscclKernel)|ncclDev|ncclKernel|rcclDev")
COPY_DIRECTION = {
    "HtoD": Activity.COPY_TO_GPU,
    "DtoH": Activity.COPY_TO_HOST,
    "DtoD": Activity.COPY_ON_GPU,
    "PtoP": Activity.TRANSFER,
}
PREPARES = re.compile(
    r"^(cuda|cu|hip)(Malloc|HostAlloc|HostMalloc|Free|Mem(Alloc|Create|Map)|Module|Library|Link|GraphInstantiate)"
)
WAITS = re.compile(r"^(cuda|cu|hip)\w*Synchronize")


def copy_activity(name: str, kind: object) -> Activity:
    """The direction of a copy, by its name or its `kind`; on the GPU itself where neither says."""
    for text in (name, str(kind)):
        for mark, activity in COPY_DIRECTION.items():
            if mark in text:
                return activity
    return Activity.COPY_ON_GPU


def is_input_mark(name: str) -> bool:
    """Whether a mark says that the program is preparing or awaiting a batch."""
    return name.startswith(INPUT_MARKS)
