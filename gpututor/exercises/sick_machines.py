"""The diagnosis of a machine: one that trains, with one thing wrong that a seed planted, told by its readings.

Which fault it is follows from the seed alone, and stands in no case. `gpututor doctor` sees the same machine.
"""

from __future__ import annotations

import random
from functools import lru_cache

from gpututor.doctor.facts import Gpu
from gpututor.doctor.faults import Fault, planted
from gpututor.doctor.groups import cpu_quota
from gpututor.doctor.planted import SHM, Patient
from gpututor.doctor.words import binary
from gpututor.exercises.form import Case, Exercise, Judged
from gpututor.exercises.typed import judge_choice
from gpututor.text import percent

ASKED = tuple(fault for fault in Fault if fault is not Fault.NEW_CARD)  # which shows at the first step alone
OPTIONS = {
    Fault.CPU_WHEEL: "torch was built for the processor, and can't use the card",
    Fault.WRONG_DEVICE: "torch could use the card, but the model was left on the processor",
    Fault.NEIGHBOUR: "somebody else works on the same card",
    Fault.HEAT: "the card is too hot, and its clock is held down",
    Fault.POWER: "somebody has set a low power limit",
    Fault.LINK: "the card's link is narrower or slower than it could be",
    Fault.SHARED_MEMORY: "shared memory is too small, so the loader has no workers",
    Fault.FEW_CPUS: "the container has too few CPUs for its workers",
    Fault.GAUGE: "nothing: the card works, and its owner looks at the wrong graph",
}
MISSED = {
    Fault.CPU_WHEEL: "Were it torch's build, its version would say so. Read that line.",
    Fault.WRONG_DEVICE: "Were the model on the processor, the card would rest while the processor is busy. Is it so?",
    Fault.NEIGHBOUR: "Were there a neighbour, it would hold memory of the card. Count the programs there.",
    Fault.HEAT: "Were it heat, the card would be hot and slow at once. Compare temperature and clock.",
    Fault.POWER: "Were it the limit, power would stand at it, far below the board's default. Compare the two.",
    Fault.LINK: "Were it the link, it would be narrower or older now than it could be, under load. Compare the two.",
    Fault.SHARED_MEMORY: "Were it shared memory, there would be little of it, and no workers. Read both lines.",
    Fault.FEW_CPUS: "Were it the CPUs, fewer would be granted than there are workers. Compare the two.",
    Fault.GAUGE: "Were it the graph alone, the card would be busy at full clock, and its link and neighbours in order.",
}


@lru_cache(maxsize=64)
def fault_of(seed: int) -> Fault:
    """The fault that a seed plants."""
    return random.Random(f"fault {seed}").choice(ASKED)


@lru_cache(maxsize=64)
def machine_of(seed: int) -> Patient:
    """The machine of a seed."""
    return planted(fault_of(seed), seed)


def case_of(seed: int) -> Case:
    """What is shown of a seed's machine: its readings as a table. The fault is no part of it."""
    options = list(OPTIONS.values())
    random.Random(f"options {seed}").shuffle(options)
    patient = machine_of(seed)
    lines = [f"| {what} | {seen} |" for what, seen in readings(patient).items()]
    words = {"card": patient.gpu.name or "", "table": "\n".join(["| what | reading |", "|:---|:---|", *lines])}
    return {"seed": seed, "words": words, "options": options}


def readings(patient: Patient) -> dict[str, str]:
    """What one reads on such a machine while it trains, with nvidia-smi, torch and a look at the container."""
    gpu, facts = patient.gpu, patient.facts
    torch, machine = facts.torch, facts.machine
    shm = facts.files.space(SHM)
    told = {
        "torch": f"{torch.version}, torch.cuda.is_available() is {torch.available}",
        **_of_card(gpu),
        "CPUs": _cpus(patient),
        "busy with the training": f"{patient.busy_cpus:g} CPUs",
        "the training waits for its next batch": f"{percent(patient.wait_share)} of the time",
        "num_workers": f"{patient.n_workers}",
    }
    if machine.platform == "linux" and shm is not None:
        told[SHM] = binary(shm.total_bytes)
    if patient.graph_share is not None:
        told["Task Manager, 3D"] = percent(patient.graph_share)
    return told


def _of_card(gpu: Gpu) -> dict[str, str]:
    clock, most = ((each or 0) / 1e6 for each in (gpu.sm_clock_hz, gpu.sm_clock_max_hz))
    programs = ", ".join(f"{each.name} {binary(each.memory_bytes)}" for each in gpu.processes or ())
    return {
        "GPU-Util": percent(gpu.kernel_time_share),
        "programs on the card": programs or "none",
        "temperature": f"{gpu.temperature_c:.0f} °C",
        "power": f"{gpu.power_w:.0f} W, limit {gpu.power_limit_w:.0f} W, default {gpu.power_limit_default_w:.0f} W",
        "SM clock": f"{clock:.0f} MHz of {most:.0f} MHz",
        "PCIe link": f"gen {gpu.pcie_gen} x{gpu.pcie_width}, could be gen {gpu.pcie_gen_max} x{gpu.pcie_width_max}",
    }


def _cpus(patient: Patient) -> str:
    n, quota = patient.facts.machine.n_cpus, cpu_quota(patient.facts.files)
    return f"{n}" if quota is None else f"{n}, of which {quota[0]:g} are granted"


def _judge(answer: object, case: Case) -> Judged:
    fault = fault_of(_seed(case))
    why = {OPTIONS[each]: MISSED[each] for each in ASKED}
    told = f"the doctor's check “{fault.check}” tells it" if fault.check else "the doctor finds nothing to repair"
    why[OPTIONS[fault]] = f"So it was made: {fault.title}. On this machine {told}."
    return judge_choice(str(answer), OPTIONS[fault], why)


def _seed(case: Case) -> int:
    seed = case.get("seed", 0)
    return seed if type(seed) is int else 0


def seed_for(learner: str) -> int:
    """The seed of a learner's machine: who sits side by side has different ones."""
    return random.Random(f"machine of {learner}").randint(1, 9999)


WRONG_WITH_IT = Exercise(
    "17.1",
    "What is wrong with this machine?",
    "diagnosis",
    "A machine with a {card} trains, and its owner thinks that something is wrong with it. While it trains you read:"
    "\n\n{table}\n\nWhat is it?",
    (
        "Does the card work at all? If it rests, is it torch that can't use it, or the script that doesn't?",
        "If it works now and then, what does it wait for: batches, or copies over the link?",
        "If it works all the time, compare each reading with what the card could do, and count who is there.",
    ),
    _judge,
    options=tuple(OPTIONS.values()),
    case_from=lambda case: case_of(_seed(case)),
)
