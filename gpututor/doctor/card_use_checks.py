"""Who else uses the card, how much memory is left, and how it is shared out."""

from __future__ import annotations

from gpututor.doctor.facts import Facts, Gpu, Process
from gpututor.doctor.finding import Answer, Probe, cannot_tell, check, fails, passes, warns, worst
from gpututor.doctor.readers import in_wsl
from gpututor.doctor.words import binary, counted, listed
from gpututor.text import percent

LITTLE_FREE_SHARE = 0.1
"""Our choice: with a tenth of its memory free a card holds no training worth its name."""
TAKEN_SHARE = 0.05
"""Our choice, of memory and of time: what a desktop and its windows take stays below."""
# nvmlComputeMode_t in nvml.h
_PROHIBITED, _ONE_PROCESS = 2, 3


@check("card.others", "Other programs on the card", Probe.DRIVER)
def others(facts: Facts) -> Answer | None:
    """Whether somebody works on the card now: their kernels and yours take turns."""
    return worst([_others(gpu) for gpu in facts.driver.gpus])


def _others(gpu: Gpu) -> Answer:
    share, used, whole = gpu.kernel_time_share, gpu.memory_used_bytes, gpu.memory_bytes
    if share is None and used is None and gpu.processes is None:
        reasons = {name: gpu.reasons.get(name, "no answer") for name in ("kernel_time_share", "processes")}
        return cannot_tell("the driver doesn't say", *(f"{gpu.called}: {k}: {v}" for k, v in reasons.items()))
    util = "not known" if share is None else percent(share)
    evidence = [
        f"{gpu.called}: GPU-Util {util}, {binary(used)} of {binary(whole)} in use",
        *(f"{gpu.called}: {_one(process)}" for process in gpu.processes or ()),
    ]
    working = share is not None and share > TAKEN_SHARE
    taken = used is not None and whole is not None and used > TAKEN_SHARE * whole
    if working and not taken and not gpu.processes and gpu.persistence is False:
        words = "the driver has just been loaded, and its first GPU-Util means nothing"
        return cannot_tell(words, *evidence, remedy="run gpututor doctor again while something holds the card")
    if working or taken:
        return warns(
            "in use; unless that is your own training, you share the card",
            f"nvidia-smi -i {gpu.index} lists them; take another card by CUDA_VISIBLE_DEVICES, or wait",
            *evidence,
        )
    return passes("nobody works on it", *evidence)


def _one(process: Process) -> str:
    name = process.name or "a program that can't be named from here"
    return f"process {process.pid}, {name}, {binary(process.memory_bytes)}"


@check("card.memory", "Free memory of the card", Probe.DRIVER)
def free_memory(facts: Facts) -> Answer | None:
    """How much of the card's memory is left."""
    return worst([_free_memory(gpu) for gpu in facts.driver.gpus])


def _free_memory(gpu: Gpu) -> Answer:
    if gpu.memory_bytes is None or gpu.memory_used_bytes is None:
        reason = gpu.reasons.get("memory_bytes") or gpu.reasons.get("memory_used_bytes") or "no answer"
        return cannot_tell("the driver doesn't say, as where card and host share one memory", f"{gpu.called}: {reason}")
    free_bytes = gpu.memory_bytes - gpu.memory_used_bytes
    evidence = f"{gpu.called}: {binary(gpu.memory_used_bytes)} of {binary(gpu.memory_bytes)} in use"
    if free_bytes < LITTLE_FREE_SHARE * gpu.memory_bytes:
        return warns(
            f"only {binary(free_bytes)} are free",
            f"nvidia-smi -i {gpu.index} lists who holds it; end what you don't need",
            evidence,
        )
    return passes(f"{binary(free_bytes)} free", evidence)


@check("card.spill", "Card memory in the host", Probe.DRIVER)
def spill(facts: Facts) -> Answer | None:
    """On Windows a full card goes on in the host's memory, many times slower, and no reading says so."""
    on_windows = facts.machine.platform == "win32" or in_wsl(facts.files)
    if not on_windows or not facts.driver.gpus:
        return None
    return worst([_spill(gpu) for gpu in facts.driver.gpus])


def _spill(gpu: Gpu) -> Answer:
    source = ("ostris/ai-toolkit#669", "nvidia.custhelp.com, System Memory Fallback for Stable Diffusion")
    remedy = "in the NVIDIA Control Panel, 3D settings: CUDA - Sysmem Fallback Policy, Prefer No Sysmem Fallback"
    if gpu.memory_bytes is None or gpu.memory_used_bytes is None:
        reason = gpu.reasons.get("memory_used_bytes", "no answer")
        return cannot_tell("the driver doesn't say how full the card is", f"{gpu.called}: {reason}", sources=source)
    share = gpu.memory_used_bytes / gpu.memory_bytes
    evidence = f"{gpu.called}: {percent(share)} of its memory in use"
    if share > 1 - LITTLE_FREE_SHARE:
        words = "the card is nearly full; on Windows the rest goes to the host's memory, many times slower"
        return warns(words, remedy, evidence, sources=source)
    return passes("the card is not full, so nothing spills now", evidence, sources=source)


@check("card.mig", "Slices of the card (MIG)", Probe.DRIVER)
def slices(facts: Facts) -> Answer | None:
    """Whether the card is cut into slices, and whether there is one to run on."""
    return worst([answer for gpu in facts.driver.gpus if (answer := _slices(gpu)) is not None])


def _slices(gpu: Gpu) -> Answer | None:
    if not gpu.mig:
        return None if gpu.mig is None else passes("the card is whole", f"{gpu.called}: nvmlDeviceGetMigMode: off")
    n = gpu.n_mig_slices
    evidence = f"{gpu.called}: nvmlDeviceGetMigMode: on, {'not known' if n is None else counted(n, 'slice')}"
    source = ("docs.nvidia.com/datacenter/tesla/mig-user-guide",)
    if n == 0:
        return fails(
            "the card is to be cut into slices and has none, so CUDA sees nothing",
            f"as root: nvidia-smi -i {gpu.index} -mig 0 makes it whole; nvidia-smi mig -cgi 0 -C cuts one slice",
            evidence,
            sources=source,
        )
    return warns(
        "you get a slice: fewer SMs and less memory than the card's name says, and no GPU-Util",
        "compare with the slice's own size, which nvidia-smi -L names; a program uses one slice only",
        evidence,
        sources=source,
    )


@check("card.mode", "Compute mode", Probe.DRIVER)
def compute_mode(facts: Facts) -> Answer | None:
    """Whether programs may use the card, and how many at a time."""
    return worst([answer for gpu in facts.driver.gpus if (answer := _compute_mode(gpu)) is not None])


def _compute_mode(gpu: Gpu) -> Answer | None:
    if gpu.compute_mode is None:
        return None
    evidence = f"{gpu.called}: nvmlDeviceGetComputeMode: {gpu.compute_mode}"
    remedy = f"as root: nvidia-smi -i {gpu.index} -c DEFAULT"
    if gpu.compute_mode == _PROHIBITED:
        return fails("no program may use it", remedy, evidence, sources=("nvml.h, nvmlComputeMode_t",))
    if gpu.compute_mode == _ONE_PROCESS and gpu.processes:
        holders = listed(str(process.pid) for process in gpu.processes)
        words = f"one program at a time, and process {holders} has it"
        return warns(words, f"end that one, or {remedy}", evidence, sources=("nvml.h, nvmlComputeMode_t",))
    mode = "one program at a time" if gpu.compute_mode == _ONE_PROCESS else "programs may share it"
    return passes(mode, evidence)


CHECKS = (others, free_memory, spill, slices, compute_mode)
