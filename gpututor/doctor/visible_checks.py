"""Which cards a program may see, and whether its numbers mean the ones you think."""

from __future__ import annotations

from collections.abc import Mapping

from gpututor.doctor.facts import Facts, TorchGpu
from gpututor.doctor.finding import Answer, Probe, cannot_tell, check, fails, passes, warns
from gpututor.doctor.words import counted

GUIDE = "CUDA C++ Programming Guide, CUDA environment variables"


@check("visible.list", "CUDA_VISIBLE_DEVICES", Probe.DRIVER)
def visible_list(facts: Facts) -> Answer | None:
    """What CUDA makes of the variable: it stops at the first entry that names no card, and refuses doubles."""
    gpus = facts.driver.gpus
    if not gpus:
        return None
    text = facts.environ.get("CUDA_VISIBLE_DEVICES")
    if text is None:
        return passes("not set, so every card is seen", "environment: CUDA_VISIBLE_DEVICES not set")
    evidence = (f'environment: CUDA_VISIBLE_DEVICES="{text}"', f"NVML: {counted(len(gpus), 'GPU')}")
    entries = [entry.strip() for entry in text.split(",") if entry.strip()]
    if not entries or entries[0] == "-1":
        return fails("it hides every card from CUDA", "unset CUDA_VISIBLE_DEVICES", *evidence, sources=(GUIDE,))
    if any(entry.upper().startswith("MIG-") for entry in entries):
        return passes("it names a MIG slice", *evidence, sources=(GUIDE,))
    named = [_named(facts, entry) for entry in entries]
    seen = named[: named.index(None)] if None in named else named
    if None in named:
        wrong = entries[named.index(None)]
        words = f'"{wrong}" names no card, and CUDA stops there: {counted(len(seen), "card")} of {len(gpus)} seen'
        remedy = f"export CUDA_VISIBLE_DEVICES={','.join(str(gpu.index) for gpu in gpus)}"
        return (warns if seen else fails)(words, remedy, *evidence, sources=(GUIDE,))
    if len(set(seen)) < len(seen):
        words = "it names a card twice, and CUDA then shows none"
        remedy = f"export CUDA_VISIBLE_DEVICES={','.join(dict.fromkeys(entries))}"
        return fails(words, remedy, *evidence, sources=(GUIDE,))
    return passes(f"it shows {counted(len(seen), 'card')} of {len(gpus)}", *evidence, sources=(GUIDE,))


def _named(facts: Facts, entry: str) -> str | None:
    """The card that an entry names by its number or the beginning of its UUID; None where it names none or several."""
    if entry.isdigit():
        return str(int(entry)) if int(entry) < len(facts.driver.gpus) else None
    if not entry.upper().startswith("GPU-"):
        return None
    found = [gpu.uuid for gpu in facts.driver.gpus if (gpu.uuid or "").lower().startswith(entry.lower())]
    return found[0] if len(found) == 1 else None


@check("visible.order", "Numbers of the cards", Probe.DRIVER, Probe.TORCH)
def same_order(facts: Facts) -> Answer | None:
    """Whether cuda:0 is nvidia-smi's card 0: CUDA puts the fastest first, NVML goes by the bus."""
    gpus = facts.driver.gpus
    if len(gpus) < 2 or not facts.torch.gpus:
        return None
    by_uuid: Mapping[str, int] = {_bare(gpu.uuid): gpu.index for gpu in gpus if gpu.uuid}
    pairs = [(gpu.index, by_uuid.get(_bare(gpu.uuid)) if gpu.uuid else None, gpu.name) for gpu in facts.torch.gpus]
    evidence = [
        f"cuda:{ours} {name}: nvidia-smi's {'card ' + str(theirs) if theirs is not None else 'number not known'}"
        for ours, theirs, name in pairs
    ]
    if any(theirs is None for _, theirs, _ in pairs):
        return cannot_tell("torch and the driver can't be matched by UUID", *evidence)
    if all(ours == theirs for ours, theirs, _ in pairs):
        return passes("torch counts the cards as nvidia-smi does", *evidence)
    if facts.environ.get("CUDA_VISIBLE_DEVICES") is not None:
        return passes("CUDA_VISIBLE_DEVICES numbers the cards anew", *evidence)
    return warns(
        "torch counts the cards in another order than nvidia-smi, so one watches the wrong card",
        "export CUDA_DEVICE_ORDER=PCI_BUS_ID",
        *evidence,
        sources=(GUIDE, "NVIDIA/DIGITS#1358"),
    )


def _bare(uuid: str | None) -> str:
    return (uuid or "").lower().removeprefix("gpu-")


@check("visible.default", "The default card, cuda:0", Probe.TORCH)
def first_card(facts: Facts) -> Answer | None:
    """Whether the card that a program gets without a number has less memory than another one."""
    gpus = facts.torch.gpus
    if len(gpus) < 2:
        return None
    evidence = [f"cuda:{gpu.index}: {gpu.name}, capability {gpu.capability}" for gpu in gpus]
    most = max(gpus, key=lambda gpu: gpu.memory_bytes or 0)
    if gpus[0].memory_bytes is None or most.memory_bytes is None:
        return cannot_tell("the sizes of the cards are not known", *evidence)
    # Cards of one kind differ by a few pages; a different kind differs by a tenth or more.
    if gpus[0].memory_bytes >= 0.95 * most.memory_bytes:
        return passes(f"{gpus[0].name}, none has more memory", *evidence)
    return warns(
        f"a program that names no card runs on {gpus[0].name}, and {most.name} has more memory",
        f'use torch.device("cuda:{most.index}"), or: export CUDA_VISIBLE_DEVICES={_named_by(most)}',
        *evidence,
    )


@check("visible.other_makers", "Cards of other makers", Probe.DRIVER)
def other_makers_hidden(facts: Facts) -> Answer | None:
    """Whether a variable hides every card of AMD or Intel."""
    names = ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK")
    given = {name: facts.environ[name] for name in names if name in facts.environ}
    if not given:
        return None
    evidence = [f'environment: {name}="{value}"' for name, value in given.items()]
    hiding = [name for name, value in given.items() if value.strip() in {"", "-1"}]
    if hiding:
        return warns("a variable hides every card of its maker", f"unset {' '.join(hiding)}", *evidence)
    return passes("a variable picks some", *evidence)


def _named_by(gpu: TorchGpu) -> str:
    return f"GPU-{_bare(gpu.uuid)}" if gpu.uuid else str(gpu.index)


CHECKS = (visible_list, same_order, first_card, other_makers_hidden)
