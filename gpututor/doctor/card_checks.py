"""Is the card healthy: its clocks, power, memory errors and link?"""

from __future__ import annotations

from collections.abc import Callable

from gpututor.cards import find_card
from gpututor.doctor.facts import Facts, Gpu
from gpututor.doctor.finding import Answer, Probe, cannot_tell, check, fails, passes, warns, worst
from gpututor.doctor.hardware import works_hard
from gpututor.doctor.readers import in_wsl
from gpututor.text import percent

NVML = "nvml.h"
# Bits of nvmlDeviceGetCurrentClocksEventReasons. Source: nvml.h, nvmlClocksEventReasons.
_APPLICATION, _POWER_CAP, _HARDWARE, _SYNC_BOOST = 0x2, 0x4, 0x8, 0x10
_THERMAL, _HARDWARE_THERMAL, _POWER_BRAKE = 0x20, 0x40, 0x80
LOW_LIMIT_SHARE = 0.98
"""Our choice: limits come in steps of a watt; two per cent below the board's default was set by somebody."""
LOW_CLOCK_SHARE = 0.7
"""Our choice: under a power cap busy cards hold some 80 % of their highest clock or more; less needs a reason."""


def _each(facts: Facts, one: Callable[[Gpu], Answer | None]) -> Answer | None:
    return worst([answer for gpu in facts.driver.gpus if (answer := one(gpu)) is not None])


def _unread(gpu: Gpu, name: str) -> Answer:
    reason = gpu.reasons.get(name, "no answer")
    return cannot_tell("the driver doesn't say", f"{gpu.called}: {name.removesuffix('_w')}: {reason}")


@check("card.clocks", "What holds the clocks down", Probe.DRIVER)
def clocks(facts: Facts) -> Answer | None:
    """Why the card runs below its highest clock, by kind; only a busy card can tell."""
    return _each(facts, _clocks)


def _clocks(gpu: Gpu) -> Answer:
    if gpu.clock_reasons is None:
        return _unread(gpu, "clock_reasons")
    n = len(gpu.clock_reasons)
    n_with = {bit: sum(bool(mask & bit) for mask in gpu.clock_reasons) for bit in _HELD}
    clock = f", SM clock {_mhz(gpu.sm_clock_hz)} of {_mhz(gpu.sm_clock_max_hz)}"
    heat = f", {gpu.temperature_c:.0f} °C" if gpu.temperature_c is not None else ""
    bits = ", ".join(f"{name} in {k} of {n}" for bit, (name, *_) in _HELD.items() if (k := n_with[bit]))
    evidence = f"{gpu.called}: nvmlDeviceGetCurrentClocksEventReasons: {bits or 'nothing'}{clock}{heat}"
    for bit, (_, answer, words, remedy) in _HELD.items():
        if 2 * n_with[bit] > n:  # most readings: a single one may be a change of state
            return answer(words, remedy, evidence, sources=(NVML,))
    if not works_hard(gpu):
        words = f"{_at_rest(gpu)}, so nothing holds its clocks now"
        return cannot_tell(words, evidence, remedy=_WHILE_TRAINING)
    return _busy_clocks(gpu, evidence)


def _at_rest(gpu: Gpu) -> str:
    return "the card may rest" if works_hard(gpu) is None else "the card rests"


def _capped(gpu: Gpu) -> bool:
    masks = gpu.clock_reasons or ()
    return 2 * sum(bool(mask & _POWER_CAP) for mask in masks) > len(masks)


def _busy_clocks(gpu: Gpu, evidence: str) -> Answer:
    if _capped(gpu):
        return passes("busy up to its power limit, as a healthy card is", evidence, sources=(NVML,))
    if gpu.sm_clock_hz and gpu.sm_clock_max_hz and gpu.sm_clock_hz < LOW_CLOCK_SHARE * gpu.sm_clock_max_hz:
        return warns(
            f"busy at {percent(gpu.sm_clock_hz / gpu.sm_clock_max_hz)} of its highest clock, and gives no reason",
            "if somebody locked the clocks, as root: nvidia-smi --reset-gpu-clocks",
            evidence,
        )
    return passes("nothing holds the clocks", evidence, sources=(NVML,))


_WHILE_TRAINING = "run gpututor doctor again while your training runs"
_COOL = "look at fans, dust and air (rented: take another machine); nvidia-smi -q -d TEMPERATURE shows the limits"
_HELD: dict[int, tuple[str, Callable[..., Answer], str, str]] = {
    _POWER_BRAKE: (
        "power brake",
        fails,
        "the power supply asks the card to slow down, to half its clocks or less",
        "look at the power supply and its cables (rented: take another machine)",
    ),
    _HARDWARE_THERMAL: ("hardware thermal slowdown", fails, "too hot: clocks are cut to half or less", _COOL),
    _HARDWARE: (
        "hardware slowdown",
        fails,
        "the hardware cuts the clocks to half or less: heat or power",
        "look into nvidia-smi -q -d PERFORMANCE while it happens; cooling first, then the power supply",
    ),
    _THERMAL: ("software thermal slowdown", warns, "too hot: the driver lowers the clocks", _COOL),
    _SYNC_BOOST: (
        "sync boost",
        warns,
        "the clocks are tied to those of the slowest card of a group",
        "as root: nvidia-smi boost-slider --list shows the groups; take the card out of its group",
    ),
    _APPLICATION: (
        "application clocks",
        warns,
        "application clocks hold it below its highest clock",
        "as root: nvidia-smi --reset-applications-clocks",
    ),
}


def _mhz(clock_hz: float | None) -> str:
    return "not known" if clock_hz is None else f"{clock_hz / 1e6:.0f} MHz"


@check("card.power_limit", "Power limit", Probe.DRIVER)
def power_limit(facts: Facts) -> Answer | None:
    """Whether the card may draw as much as its maker meant it to."""
    return _each(facts, _power_limit)


def _power_limit(gpu: Gpu) -> Answer:
    for name in ("power_limit_w", "power_limit_default_w"):
        if getattr(gpu, name) is None:
            return _unread(gpu, name)
    limit_w, default_w = gpu.power_limit_w, gpu.power_limit_default_w
    assert limit_w is not None
    assert default_w is not None
    evidence = f"{gpu.called}: limit {limit_w:.0f} W, the board's default {default_w:.0f} W"
    if limit_w < LOW_LIMIT_SHARE * default_w:
        return warns(
            f"limited to {percent(limit_w / default_w)} of the default",
            f"if nobody needs it so, as root: nvidia-smi -i {gpu.index} -pl {default_w:.0f}",
            evidence,
        )
    return passes(f"{limit_w:.0f} W, the default or more", evidence)


@check("card.persistence", "Persistence mode", Probe.DRIVER)
def persistence(facts: Facts) -> Answer | None:
    """Whether the driver stays loaded when no program uses the card; Linux only."""
    if facts.machine.platform != "linux" or in_wsl(facts.files):
        return None
    return _each(facts, _persistence)


def _persistence(gpu: Gpu) -> Answer:
    if gpu.persistence is None:
        return _unread(gpu, "persistence")
    evidence = f"{gpu.called}: nvmlDeviceGetPersistenceMode: {'on' if gpu.persistence else 'off'}"
    source = ("docs.nvidia.com/deploy/driver-persistence",)
    if gpu.persistence or gpu.display:
        return passes("the driver stays loaded", evidence, sources=source)
    return warns(
        "off: the driver starts anew for each program, which costs seconds, and its settings are lost",
        "as root: systemctl enable --now nvidia-persistenced (or nvidia-smi -pm 1 until the next boot)",
        evidence,
        sources=source,
    )


@check("card.errors", "Memory errors of the card", Probe.DRIVER)
def memory_errors(facts: Facts) -> Answer | None:
    """Errors that ECC could not correct since the driver was loaded, and memory rows that wait to be replaced."""
    return _each(facts, _memory_errors)


def _memory_errors(gpu: Gpu) -> Answer | None:
    if gpu.ecc is None or not gpu.ecc:
        return None  # most GeForce cards have none, and some people turn it off for memory
    evidence = [f"{gpu.called}: nvmlDeviceGetTotalEccErrors, uncorrected: {_or_reason(gpu, 'n_uncorrected_errors')}"]
    if gpu.remapping is not None:
        corrected, uncorrected, pending, failed = gpu.remapping
        evidence.append(
            f"{gpu.called}: nvmlDeviceGetRemappedRows: {corrected + uncorrected} replaced, "
            f"{'some' if pending else 'none'} pending, {'failed' if failed else 'none failed'}"
        )
        if failed:
            return fails("its memory has no spare rows left", "have the card replaced", *evidence, sources=(NVML,))
    if gpu.n_uncorrected_errors:
        return fails(
            f"{gpu.n_uncorrected_errors} memory errors that ECC could not correct",
            f"as root, with nothing running on it: nvidia-smi --gpu-reset -i {gpu.index}; if they return, replace it",
            *evidence,
            sources=(NVML,),
        )
    if gpu.remapping is not None and gpu.remapping[2]:
        return warns(
            "a bad row of its memory waits to be replaced by a spare one",
            f"when nothing runs on it, as root: nvidia-smi --gpu-reset -i {gpu.index}",
            *evidence,
            sources=(NVML,),
        )
    if gpu.n_uncorrected_errors is None:
        return cannot_tell("the driver doesn't count them", *evidence)
    return passes("none since the driver was loaded", *evidence)


def _or_reason(gpu: Gpu, name: str) -> str:
    value = getattr(gpu, name)
    return str(value) if value is not None else gpu.reasons.get(name, "no answer")


@check("card.link", "PCI Express link", Probe.DRIVER)
def link(facts: Facts) -> Answer | None:
    """Generation and width of the link, judged while the card works: at rest it slows down to save power."""
    return _each(facts, _link)


def _link(gpu: Gpu) -> Answer:
    for name in ("pcie_gen", "pcie_width", "pcie_gen_max", "pcie_width_max"):
        if getattr(gpu, name) is None:
            return _unread(gpu, name)
    card = find_card(gpu.name) if gpu.name else None
    now, most = f"gen {gpu.pcie_gen} x{gpu.pcie_width}", f"gen {gpu.pcie_gen_max} x{gpu.pcie_width_max}"
    evidence = f"{gpu.called}: link {now} now, card and slot allow {most}"
    if card is not None and gpu.pcie_width_max is not None and gpu.pcie_width_max < card.pcie_lanes:
        return warns(
            f"the slot gives {gpu.pcie_width_max} lanes, the card has {card.pcie_lanes}: copies take longer",
            "put the card into a slot with all lanes, mostly the one next to the processor",
            evidence,
            sources=(f"gpututor cards {card.name}",),
        )
    if now == most:
        return passes(f"{now}, all that card and slot allow", evidence)
    if not works_hard(gpu):
        words = f"{now} now; {_at_rest(gpu)}, and a resting link slows down ({most} is allowed)"
        return cannot_tell(words, evidence, remedy=_WHILE_TRAINING)
    return warns(
        f"{now} under load, {most} would be possible: copies to the card take longer",
        "seat the card anew; look at riser cables and the BIOS's link speed (rented: take another machine)",
        evidence,
    )


CHECKS = (clocks, power_limit, persistence, memory_errors, link)
