"""What interrupts a program without being training, told by the names that a trace gives to it.

Running what was compiled is no interruption: a "Torch-Compiled Region", a call of a `CompiledFxGraph` and a lookup in
TorchDynamo's cache are launches like others.

Source of the names: torch/_dynamo/utils.py (`dynamo_timed` marks what it times), the module and function that
`with_stack=True` writes for each call, CUDA's and HIP's API references, and CUPTI's CUpti_ActivityOverheadKind,
whose kinds Kineto writes by name under the category "overhead".
"""

from __future__ import annotations

import re
from enum import Enum

from gpututor.ledger.accounts import Account
from gpututor.timeline import Activity, Span


class Interruption(Enum):
    """What the host did instead; the value is the word shown to a reader."""

    __hash__ = object.__hash__  # one object each, so its own hash will do; that of Enum is slow

    COLLECTING = "garbage collection"
    PROFILING = "the profiler's own work"
    COMPILING = "compiling"
    TUNING = "trying out kernels"
    LOADING = "loading kernels"


ACCOUNT_OF_INTERRUPTION = {
    Interruption.COLLECTING: Account.PAUSE,
    Interruption.PROFILING: Account.PAUSE,
    Interruption.COMPILING: Account.START_UP,
    Interruption.TUNING: Account.START_UP,
    Interruption.LOADING: Account.START_UP,
}

OVERHEADS = {
    "Activity Buffer Request": Interruption.PROFILING,
    "Buffer Flush": Interruption.PROFILING,
    "Instrumentation": Interruption.PROFILING,
    "Resource": Interruption.PROFILING,
    "UVM Activity Init": Interruption.PROFILING,
    "Driver Compiler": Interruption.COMPILING,
    "Runtime Triggered Module Loading": Interruption.LOADING,
    "Lazy Function Loading": Interruption.LOADING,
}
"""What CUPTI says of its own and the driver's overhead. Left out: a full command buffer, when the GPU has work."""

_ACCOUNT_OF_ACTIVITY = {Activity.PAUSE: Account.PAUSE, Activity.STARTUP: Account.START_UP}
SIMULATED_COMPILE = "torch.compile"
"""What the simulated GPU calls it. As a mark in a trace it says nothing: programs give it to what runs compiled too."""

_FRAME = r"(?:^|/)"
_CALLED = {
    Interruption.COLLECTING: (
        r"^<built-in (function collect>|method collect of module )",
        r"^(python[ _-]?)?(gc|gc[._ ]collect|garbage[ _-]?collect(ion|or|ing)?)$",
    ),
    Interruption.PROFILING: (
        _FRAME + r"torch/profiler/profiler\.py\(",
        _FRAME + r"torch/autograd/profiler\.py\(\d+\): _(start_trace|prepare_trace|maybe_cupti)",
        r"^<built-in (method|function) _(enable|disable|prepare)_profiler\b",
    ),
    Interruption.TUNING: (
        r"^(cudnn|cublas|cublasLt|miopen|triton|inductor)[ :._-]*(benchmark|find|autotun)",
        r"^(CachingAutotuner\.benchmark_all_configs|autotun(e|ing))\b",
        _FRAME + r"triton/runtime/autotuner\.py\(\d+\): (_bench|benchmark)$",
        _FRAME
        + r"torch/_inductor/runtime/triton_heuristics\.py\(\d+\): "
        + r"(autotune_to_one_config|benchmark_all_configs|coordinate_descent_tuning)$",
    ),
    Interruption.COMPILING: (
        r"\(dynamo_timed\)$",
        r"^(dynamo|entire_frame_compile|backend_compile|inductor_compile|async_compile\b.*)$",
        _FRAME + r"torch/_dynamo/convert_frame\.py\(",
        _FRAME + r"torch/_inductor/(async_compile|graph|scheduler)\.py\(",
        _FRAME + r"torch/_inductor/compile_fx\.py\(\d+\): (compile_fx|_compile_fx|fx_codegen|codegen_and_compile)",
        _FRAME + r"triton/compiler/compiler\.py\(\d+\): compile$",
        _FRAME + r"torch/utils/cpp_extension\.py\(\d+\): (load|load_inline|_jit_compile)$",
    ),
    Interruption.LOADING: (r"^(cuda|cu|hip)(Module|Library|Link)(Load|Get|Create|Add|Complete)",),
}
_PATTERNS = tuple((kind, re.compile("|".join(forms), re.IGNORECASE)) for kind, forms in _CALLED.items())


_LIKELY = re.compile(
    r"collect|gc|profiler|cud|cublas|miopen|triton|autotun|dynamo|compil|inductor|cpp_ext|^(cu|hip)(M|Li)",
    re.IGNORECASE,
)
"""In every name that any of the patterns could fit: one quick look that most names don't pass."""


def interruption(name: str) -> Interruption | None:
    """What a host event of this name interrupts the program for; None where the name doesn't say."""
    if not _LIKELY.search(name):
        return None
    return next((kind for kind, pattern in _PATTERNS if pattern.search(name)), None)


def activity_of(kind: Interruption | None) -> Activity | None:
    """What a host thread does during an interruption; None for none."""
    if kind is None:
        return None
    return Activity.PAUSE if ACCOUNT_OF_INTERRUPTION[kind] is Account.PAUSE else Activity.STARTUP


def interrupting(span: Span) -> Interruption | None:
    """What a pause or a piece of start-up is for, as far as its name says; None for all other spans."""
    account = _ACCOUNT_OF_ACTIVITY.get(span.activity)
    if account is None:
        return None
    name = span.name.rpartition("gpututor: start-up: ")[2].rpartition("gpututor: pause: ")[2]
    kind = OVERHEADS.get(name) or interruption(name)
    if kind is None and span.activity is Activity.STARTUP and name == SIMULATED_COMPILE:
        kind = Interruption.COMPILING
    return kind if kind is not None and ACCOUNT_OF_INTERRUPTION[kind] is account else None
