"""Does torch import, is it the right build, does it see the GPU, and does a kernel run?"""

from __future__ import annotations

from gpututor.doctor.facts import Facts, Torch, TorchGpu
from gpututor.doctor.finding import Answer, Probe, cannot_tell, check, fails, passes, warns, worst
from gpututor.doctor.hardware import WHEELS, nvidia_signs, other_makers, wheel_command
from gpututor.doctor.readers import in_wsl
from gpututor.doctor.words import several, version_of

SLOW_IMPORT_S = 15.0
"""Our choice: from a local disk torch takes 2 to 5 s; several times that is a network disk or a cold one."""
SLOW_KERNEL_S = 30.0
"""Our choice: a context and a first sum take a few seconds; compiling PTX takes minutes (pytorch#537, #12283)."""


@check("torch.import", "Loading torch", Probe.DRIVER, Probe.TORCH)
def torch_loads(facts: Facts) -> Answer | None:
    """Whether torch can be imported, and how long that takes."""
    torch = facts.torch
    if torch.version is None:
        why = torch.error or torch.unfinished or "no answer"
        command = wheel_command(facts) if nvidia_signs(facts) else "pip install --force-reinstall torch"
        return fails("torch can't be imported", command, f"import torch: {why}")
    took = "" if torch.import_s is None else f", in {torch.import_s:.1f} s"
    evidence = f"import torch, in a fresh process: {torch.file or torch.version}{took}"
    if torch.import_s is not None and torch.import_s > SLOW_IMPORT_S:
        return warns(
            "loading torch takes very long, as from a network disk",
            "put the Python environment on a local disk; each loader worker that is spawned loads it again",
            evidence,
        )
    return passes(f"torch {torch.version}", evidence)


@check("torch.build", "torch's build", Probe.DRIVER, Probe.TORCH)
def build_fits(facts: Facts) -> Answer | None:
    """Whether the wheel was built for the GPU that is here."""
    torch = facts.torch
    if torch.version is None:
        return None
    kind = (
        f"CUDA {torch.cuda}" if torch.cuda else f"ROCm {torch.hip}" if torch.hip else "XPU" if torch.xpu else "CPU only"
    )
    evidence = (f"torch {torch.version}: {kind}", *nvidia_signs(facts))
    if nvidia_signs(facts) and not torch.cuda:
        return fails(
            f"torch is built for {kind}, and there is an NVIDIA GPU",
            wheel_command(facts),
            *evidence,
            sources=("zyddnys/manga-image-translator#210",),
        )
    others = other_makers(facts)
    amd = [line for line in others if "driver amdgpu" in line]
    if amd and not nvidia_signs(facts) and not torch.hip and facts.machine.platform == "linux":
        return warns(
            f"torch is built for {kind}, and there is an AMD GPU",
            "if it is one that ROCm supports: install the ROCm build that pytorch.org/get-started names",
            *evidence,
            *amd,
        )
    return passes(kind, *evidence)


@check("torch.gpu", "torch and the GPU", Probe.DRIVER, Probe.TORCH)
def torch_sees_gpu(facts: Facts) -> Answer | None:
    """Whether torch.cuda is available where a driver shows a GPU, or torch has another accelerator."""
    torch = facts.torch
    if torch.available:
        gpus = [f"cuda:{gpu.index}: {gpu.name}" for gpu in torch.gpus]
        return passes(
            f"torch.cuda works with {several(gpu.name for gpu in torch.gpus) if gpus else 'no device'}", *gpus
        )
    if torch.other:
        return passes(f"torch's accelerator here is {torch.other}", "torch.accelerator.current_accelerator()")
    if torch.version is None or not torch.cuda or not nvidia_signs(facts):
        return None  # said by the checks above: no torch, no CUDA build or no GPU
    if torch.available is None:
        return cannot_tell(f"torch did not say ({torch.unfinished or 'no answer'})", "torch.cuda.is_available()")
    return fails(
        "torch.cuda.is_available() is False, though there is a GPU",
        _why_remedy(facts),
        f"torch: {torch.why_not or 'gives no reason'}",
        f"CUDA_VISIBLE_DEVICES: {facts.environ.get('CUDA_VISIBLE_DEVICES', 'not set')}",
    )


def _why_remedy(facts: Facts) -> str:
    if facts.environ.get("CUDA_VISIBLE_DEVICES") is not None:
        return "unset CUDA_VISIBLE_DEVICES"
    if facts.driver.error is not None or not facts.driver.gpus:
        return "repair the driver first, as said above"
    why = (facts.torch.why_not or "").lower()
    for part, remedy in _BY_WORD.items():
        if part in why:
            return remedy
    if "too old" in why:
        return f"update the driver, or: {wheel_command(facts)}"
    on_linux = facts.machine.platform == "linux" and not in_wsl(facts.files)
    if on_linux and not facts.files.exists("/dev/nvidia-uvm"):
        return "there is no /dev/nvidia-uvm, which CUDA needs; on the host: sudo modprobe nvidia-uvm"
    return "restart the process or container; if it stays so, reboot, since the driver's device files may be stale"


# Parts of CUDA's own messages: errors 802 and 804 of cudaError_t in driver_types.h.
_BY_WORD = {
    "system not yet initialized": "on a machine with NVSwitch, as root: systemctl start nvidia-fabricmanager",
    "forward compatibility": "remove NVIDIA's compat folder from LD_LIBRARY_PATH, and reboot after a driver update",
}


@check("torch.code", "Code for the card", Probe.DRIVER, Probe.TORCH)
def code_for_card(facts: Facts) -> Answer | None:
    """Whether the wheel holds machine code for each card; PTX for a newer one is compiled at the first use.

    Source: docs.nvidia.com/cuda/ada-compatibility-guide: code for x.y runs on x.z with z >= y, PTX on all later ones.
    """
    torch = facts.torch
    if not torch.cuda or not torch.gpus or not torch.architectures:
        return None
    return worst([_code_for(facts, gpu) for gpu in torch.gpus])


def _code_for(facts: Facts, gpu: TorchGpu) -> Answer:
    capability = version_of(gpu.capability)
    evidence = (
        f"cuda:{gpu.index} {gpu.name}: compute capability {gpu.capability}",
        f"torch.cuda.get_arch_list(): {' '.join(facts.torch.architectures)}",
    )
    if capability is None:
        return cannot_tell("the card doesn't say its compute capability", *evidence)
    binary = [found for found in map(_target, _named(facts, "sm_")) if found]
    ptx = [found for found in map(_target, _named(facts, "compute_")) if found]
    if any(major == capability[0] and minor <= capability[1] for major, minor in binary):
        return passes("machine code for it is in the wheel", *evidence)
    if any(one <= capability for one in ptx):
        return warns(
            "the card is newer than the wheel: its first use compiles all kernels, for minutes",
            wheel_command(facts),
            *evidence,
            sources=("pytorch/pytorch#537", "pytorch/pytorch#12283"),
        )
    older = (
        "older than what this wheel is built for" if binary and capability < min(binary) else "newer than this wheel"
    )
    return fails(
        f"the card is {older}, so no kernel runs on it",
        wheel_command(facts),
        *evidence,
        sources=(WHEELS,),
    )


def _named(facts: Facts, prefix: str) -> list[str]:
    return [name.removeprefix(prefix) for name in facts.torch.architectures if name.startswith(prefix)]


def _target(digits: str) -> tuple[int, int] | None:
    """Capability of "86", "120" or "90a", whose last digit is the minor number; None for anything else."""
    digits = digits.rstrip("af")
    return (int(digits[:-1]), int(digits[-1])) if len(digits) > 1 and digits.isdigit() else None


@check("torch.kernel", "A first kernel", Probe.TORCH)
def kernel_runs(facts: Facts) -> Answer | None:
    """Whether one sum comes back from each card, and how long the first took."""
    torch = facts.torch
    if not torch.available:
        return None
    return worst([_ran(gpu, torch) for gpu in torch.gpus])


def _ran(gpu: TorchGpu, torch: Torch) -> Answer:
    place = f"torch.ones(8, device='cuda:{gpu.index}').sum()"
    if gpu.error is not None:
        return fails("the card refuses a first sum", _kernel_remedy(gpu.error), f"{place}: {gpu.error}")
    if gpu.kernel_s is None:
        if torch.untried is not None:
            return cannot_tell(f"no kernel was tried: {torch.untried}", place)
        why = torch.unfinished or "it was not tried"
        remedy = "wait for it once, since the compiled code is kept; if it never ends, look whether nvidia-smi answers"
        return cannot_tell(f"the first sum did not come back ({why})", place, remedy=remedy)
    evidence = f"{place}: {gpu.kernel_s:.2f} s from nothing to the number"
    if gpu.kernel_s > SLOW_KERNEL_S:
        return warns(
            "the first kernel takes very long, as when all code is compiled for a new card",
            "install a torch built for this card; till then CUDA_CACHE_MAXSIZE=4294967296 keeps the compiled code",
            evidence,
        )
    return passes("a sum came back", evidence)


def _kernel_remedy(error: str) -> str:
    text = error.lower()
    if "no kernel image" in text:
        return "install a torch built for this card, as torch.code says"
    if "out of memory" in text:
        return "end the programs that hold the card's memory, as nvidia-smi lists them"
    if "busy" in text or "unavailable" in text:
        return "another program has the card for itself: end it, or run nvidia-smi -c DEFAULT as root"
    return "look into `sudo dmesg` for lines with Xid, and reboot"


@check("torch.libraries", "torch's own CUDA libraries", Probe.TORCH)
def own_libraries(facts: Facts) -> Answer | None:
    """Whether LD_LIBRARY_PATH may put another CUDA or cuDNN before the ones that came with torch."""
    if not facts.torch.cuda:
        return None
    path = facts.environ.get("LD_LIBRARY_PATH", "")
    strange = [part for part in path.split(":") if "cuda" in part.lower() or "cudnn" in part.lower()]
    evidence = (
        f"torch.backends.cudnn.version(): {facts.torch.cudnn or 'none'}",
        f"LD_LIBRARY_PATH: {path or 'not set'}",
    )
    if facts.torch.cudnn is None:
        return warns("torch finds no cuDNN, so convolutions are slow", wheel_command(facts), *evidence)
    if strange:
        return warns(
            "LD_LIBRARY_PATH puts another CUDA before torch's own; an old cuDNN can be many times slower",
            "unset LD_LIBRARY_PATH, unless you know that you need it",
            *evidence,
            sources=("pytorch/pytorch#47039",),
        )
    return passes(f"cuDNN {facts.torch.cudnn}", *evidence)


CHECKS = (torch_loads, build_fits, torch_sees_gpu, code_for_card, kernel_runs, own_libraries)
