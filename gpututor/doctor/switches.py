"""Debug switches that are left on: variables of the environment, and settings inside torch.

A switch that costs nothing to speak of, such as TORCH_SHOW_CPP_STACKTRACES, is not among them.
"""

from __future__ import annotations

from gpututor.doctor.facts import Facts
from gpututor.doctor.finding import Answer, Probe, cannot_tell, check, fails, passes, warns

TORCH_ENVIRONMENT = "docs.pytorch.org, CUDA environment variables"
_OFF = {"", "0", "false", "no", "off", "n"}


def _is_on(facts: Facts, name: str) -> bool:
    return facts.environ.get(name, "").strip().lower() not in _OFF


def _read(facts: Facts, *names: str) -> tuple[str, ...]:
    values = [f"{name}={facts.environ[name]}" for name in names if name in facts.environ]
    return (f"environment: {', '.join(values)}" if values else f"environment: {', '.join(names)} not set",)


@check("switch.launch_blocking", "Waiting at each launch")
def launch_blocking(facts: Facts) -> Answer | None:
    """CUDA_LAUNCH_BLOCKING makes the host wait for each kernel, so host and card take turns."""
    read = _read(facts, "CUDA_LAUNCH_BLOCKING")
    if _is_on(facts, "CUDA_LAUNCH_BLOCKING"):
        words = "each kernel is waited for before the next is launched, so the card idles in between"
        return warns(words, "unset CUDA_LAUNCH_BLOCKING", *read, sources=(TORCH_ENVIRONMENT,))
    return passes("off", *read)


@check("switch.allocator", "torch's cache of memory")
def allocator(facts: Facts) -> Answer | None:
    """Without its cache torch asks the driver at each tensor, and the driver waits for the card at each release."""
    names = ("PYTORCH_NO_CUDA_MEMORY_CACHING", "PYTORCH_NO_HIP_MEMORY_CACHING")
    read = _read(facts, *names)
    if any(name in facts.environ for name in names):
        words = "torch's cache of card memory is off, so each tensor costs a call of the driver and a wait"
        return fails(words, f"unset {' '.join(names)}", *read, sources=(TORCH_ENVIRONMENT,))
    return passes("on", *read)


@check("switch.compile", "torch.compile")
def compiling(facts: Facts) -> Answer | None:
    """Variables that turn torch.compile or the JIT into nothing."""
    on = [n for n in ("TORCHDYNAMO_DISABLE", "TORCH_COMPILE_DISABLE") if _is_on(facts, n)]
    if facts.environ.get("PYTORCH_JIT") == "0":
        on.append("PYTORCH_JIT")
    if on:
        words = "torch.compile or torch.jit are switched off, and do nothing without saying so"
        return warns(words, f"unset {' '.join(on)}", *_read(facts, *on))
    return passes(
        "nothing switches it off", *_read(facts, "TORCHDYNAMO_DISABLE", "TORCH_COMPILE_DISABLE", "PYTORCH_JIT")
    )


@check("switch.jit_cache", "Cache of compiled kernels")
def jit_cache(facts: Facts) -> Answer | None:
    """Variables that make the driver compile kernels anew in each process."""
    on = [name for name in ("CUDA_CACHE_DISABLE", "CUDA_FORCE_PTX_JIT") if _is_on(facts, name)]
    read = _read(facts, *(on or ("CUDA_CACHE_DISABLE", "CUDA_FORCE_PTX_JIT")))
    if on:
        words = "the driver compiles kernels anew in each process, for minutes"
        return warns(words, f"unset {' '.join(on)}", *read, sources=("CUDA C++ Programming Guide",))
    return passes("in use", *read)


@check("switch.tf32", "TF32")
def tf32(facts: Facts) -> Answer | None:
    """NVIDIA_TF32_OVERRIDE=0 forbids it to every library, whatever the program says."""
    read = _read(facts, "NVIDIA_TF32_OVERRIDE")
    if facts.environ.get("NVIDIA_TF32_OVERRIDE") == "0":
        words = "TF32 is forbidden to all libraries, so fp32 matrix products run up to eight times slower on Ampere"
        return warns(
            words, "unset NVIDIA_TF32_OVERRIDE", *read, sources=("NVIDIA A100 data sheet: TF32 156, FP32 19.5 TFLOPS",)
        )
    return passes("nothing forbids it to your program", *read)


@check("switch.logging", "Debug logs")
def logging(facts: Facts) -> Answer | None:
    """Variables that make libraries write at every step, or check each other's calls."""
    loud = [
        n for n in ("TORCH_LOGS", "NCCL_DEBUG", "TORCH_DISTRIBUTED_DEBUG", "TORCH_CPP_LOG_LEVEL") if _loud(facts, n)
    ]
    if loud:
        words = "libraries write long logs, or check each collective call"
        return warns(words, f"unset {' '.join(loud)}", *_read(facts, *loud))
    return passes("none is on", *_read(facts, "TORCH_LOGS", "NCCL_DEBUG", "TORCH_DISTRIBUTED_DEBUG"))


def _loud(facts: Facts, name: str) -> bool:
    value = facts.environ.get(name, "").strip().upper()
    if name == "TORCH_LOGS":
        return value.startswith("+") or ",+" in value
    return value.partition(":")[0] in {"INFO", "TRACE", "DETAIL", "DEBUG"} and (name, value) != (
        "TORCH_DISTRIBUTED_DEBUG",
        "INFO",
    )


@check("switch.python", "Python's debug modes")
def python(facts: Facts) -> Answer | None:
    """Python's own debug modes, which every line of the training loop pays for."""
    on = [
        n for n in ("PYTHONDEVMODE", "PYTHONTRACEMALLOC", "PYTHONMALLOC", "PYTHONPROFILEIMPORTTIME") if _is_on(facts, n)
    ]
    if facts.environ.get("PYTHONMALLOC") in {"pymalloc", "default", "mimalloc"}:
        on.remove("PYTHONMALLOC")
    modes = [
        *(["sys.flags.dev_mode"] if facts.machine.development_mode else []),
        *(["tracemalloc.is_tracing()"] if facts.machine.python_allocations_traced else []),
    ]
    read = (
        *_read(facts, *(on or ("PYTHONDEVMODE", "PYTHONTRACEMALLOC", "PYTHONMALLOC"))),
        *(f"{m}: True" for m in modes),
    )
    if on or modes:
        remedy = f"unset {' '.join(on)}" if on else "start Python without -X dev and -X tracemalloc"
        return warns(
            "a debug mode of Python slows each line of the loop", remedy, *read, sources=("docs.python.org, cmdline",)
        )
    return passes("none is on", *read)


@check("switch.profiler", "Attached profilers")
def profiler(facts: Facts) -> Answer | None:
    """Libraries that a profiler or checker puts into each CUDA program."""
    names = ("CUDA_INJECTION64_PATH", "NSYS_PROFILING_SESSION_ID", "CUPTI_INJECTION_PATH", "KINETO_USE_DAEMON")
    on = [name for name in names if _is_on(facts, name)]
    preloaded = facts.environ.get("LD_PRELOAD", "")
    if any(word in preloaded for word in ("sanitizer", "libasan", "libtsan", "nsys", "valgrind")):
        on.append("LD_PRELOAD")
    if on:
        return warns(
            "a profiler or checker rides along, and slows each launch", f"unset {' '.join(on)}", *_read(facts, *on)
        )
    return passes("none", *_read(facts, *names))


_SCRIPT = "what your script sets itself, print(gpututor.doctor.this_process()) shows inside it"


@check("switch.anomaly", "Anomaly mode of autograd", Probe.TORCH)
def anomaly(facts: Facts) -> Answer | None:
    """torch.autograd.set_detect_anomaly: looks for NaN after each backward step and remembers each forward line."""
    switches = facts.torch.switches
    if switches is None:
        return None
    read = f"torch.is_anomaly_enabled(): {switches.anomaly}"
    if switches.anomaly:
        words = "on: backward takes 1.5 to 3 times as long, sometimes far longer"
        source = ("GuyTevet/motion-diffusion-model#80", "Lightning-AI/pytorch-lightning#12344")
        return warns(words, "torch.autograd.set_detect_anomaly(False)", read, sources=source)
    return passes("off", read, _SCRIPT)


@check("switch.deterministic", "Deterministic algorithms", Probe.TORCH)
def deterministic(facts: Facts) -> Answer | None:
    """Settings that take slower kernels, so that two runs give the same numbers."""
    switches = facts.torch.switches
    if switches is None:
        return None
    read = (
        f"torch.are_deterministic_algorithms_enabled(): {switches.deterministic}",
        f"torch.backends.cudnn.deterministic: {switches.cudnn_deterministic}",
    )
    if switches.deterministic or switches.cudnn_deterministic:
        return warns(
            "on: some kernels are far slower so, dilated convolutions 10 to 80 times",
            "torch.use_deterministic_algorithms(False); torch.backends.cudnn.deterministic = False",
            *read,
            sources=("pytorch/pytorch#28777",),
        )
    return passes("off", *read, _SCRIPT)


@check("switch.benchmark", "cuDNN's choice of kernels", Probe.TORCH)
def benchmark(facts: Facts) -> Answer | None:
    """cudnn.benchmark tries kernels once for each new shape: good with few shapes, bad with many."""
    switches = facts.torch.switches
    if switches is None or not (facts.torch.cuda or facts.torch.hip):
        return None
    read = f"torch.backends.cudnn: enabled {switches.cudnn_enabled}, benchmark {switches.cudnn_benchmark}"
    source = ("pytorch/pytorch#2759",)
    if not switches.cudnn_enabled:
        return warns("cuDNN is off, so convolutions are slow", "torch.backends.cudnn.enabled = True", read)
    if switches.cudnn_benchmark:
        words = "benchmark is on: good where shapes repeat, a trial at each step where they change"
        remedy = "where sizes of pictures or sentences vary: torch.backends.cudnn.benchmark = False"
        return cannot_tell(words, read, remedy=remedy, sources=source)
    return passes("benchmark is off, torch's default; with convolutions of one size, try it on", read, sources=source)


IN_TORCH = (anomaly, deterministic, benchmark)
CHECKS = (launch_blocking, allocator, compiling, jit_cache, tf32, logging, python, profiler, *IN_TORCH)
