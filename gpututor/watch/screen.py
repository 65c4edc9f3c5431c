"""The watch on a terminal: one block a GPU, then the CPU, in any width from 40 columns on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gpututor.text import NBSP, duration, percent
from gpututor.watch.history import History
from gpututor.watch.meaning import clocks_sentence, utilization_sentence, verdict
from gpututor.watch.source import Cpu, CpuProcess, Device, GpuProcess, Reading

if TYPE_CHECKING:
    from rich.console import Console, Group, RenderableType
    from rich.text import Text

BLOCKS, PLAIN_BLOCKS = "▁▂▃▄▅▆▇█", "_.-=+*%#"
NOT_READ = "·"
WIDE = 78
"""Our choice: below the width of an old terminal, what a reader can do without is left out."""

GAUGE = 8
"""Columns of a gauge's number: the longest is "> 99.9 %"."""

GPU_COLOUR, CPU_COLOUR = (
    "#5b8fe8",
    "#ed9525",
)  # charts' blue for kernels, made lighter for a dark terminal; their orange


def sparkline(shares: Sequence[float | None], width: int, blocks: str = BLOCKS, *, first: int = 0) -> str:
    """Shares in 0..1 as one character each, the newest last; what wasn't read is a dot, 0 the lowest block.

    With more shares than columns each column is the mean of a few; a column without any value is a dot too. `first`
    is the number of the first share since the watch began, so that columns move on and don't change their members.

    >>> sparkline([0, 0.5, None, 1], 10)
    '▁▅·█'
    >>> sparkline([0, 1, 1, 1], 2)
    '▅█'
    """
    each = max(1, -(-len(shares) // max(1, width)))
    columns: dict[int, list[float]] = {}
    for k, share in enumerate(shares, first):
        known = columns.setdefault(k // each, [])
        if share is not None:
            known.append(share)
    means = [sum(known) / len(known) if known else None for known in columns.values()][-width:]
    top = len(blocks) - 1
    return "".join(NOT_READ if mean is None else blocks[min(top, int(mean * top + 0.5))] for mean in means)


def blocks_for(encoding: str) -> str:
    """The characters for sparklines that a terminal of this encoding can show."""
    try:
        BLOCKS.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return PLAIN_BLOCKS
    return BLOCKS


def gib(n_bytes: float | None) -> str:
    """Bytes as GiB in text."""
    return "?" if n_bytes is None else f"{n_bytes / 2**30:.1f}"


def figures(device: Device) -> str:
    """Memory, power and temperature of a GPU in one line; what isn't known is left out."""
    parts = []
    if device.memory_used_bytes is not None:
        parts.append(f"memory {gib(device.memory_used_bytes)} of {gib(device.memory_total_bytes)}{NBSP}GiB")
    if device.power_w is not None:
        limit = f" of {device.power_limit_w:.0f}" if device.power_limit_w is not None else ""
        parts.append(f"power {device.power_w:.0f}{limit}{NBSP}W")
    if device.temperature_c is not None:
        parts.append(f"{device.temperature_c:.0f}{NBSP}°C")
    return ", ".join(parts)


def sentence(text: str) -> str:
    """The words as a sentence; nothing stays nothing.

    >>> sentence("memory 4 of 16 GiB")
    'Memory 4 of 16 GiB.'
    """
    return f"{text[0].upper()}{text[1:]}." if text else ""


def missing(device: Device) -> Iterator[str]:
    """What of memory, power, clocks and temperature isn't known and why, one sentence a reason."""
    words = {
        "memory_used_bytes": "memory",
        "power_w": "power",
        "temperature_c": "temperature",
        "clock_reasons": "what holds the clocks",
        "processes": "processes",
    }
    by_reason: dict[str, list[str]] = {}
    for name, word in words.items():
        if getattr(device, name) is None and name in device.reasons:
            by_reason.setdefault(device.reasons[name], []).append(word)
    if device.simulated:
        yield from map(sentence, by_reason)
    else:
        yield from (f"Not known: {', '.join(names)} ({reason})." for reason, names in by_reason.items())


def processes_line(processes: Sequence[GpuProcess]) -> str:
    """The processes that hold memory of a GPU, largest first."""
    largest = sorted(processes, key=lambda p: -(p.memory_bytes or 0))[:3]
    more = f", {len(processes) - 3} more" if len(processes) > 3 else ""
    return ", ".join(_gpu_process(p) for p in largest) + more


def _gpu_process(process: GpuProcess) -> str:
    size = "" if process.memory_bytes is None else f" {gib(process.memory_bytes)}{NBSP}GiB"
    return f"{process.name or 'not visible from here'} ({process.pid}){size}"


def cpu_line(cpu: Cpu) -> str:
    """The CPU in one line."""
    if cpu.busy_share is None:
        return f"CPU: {cpu.reasons.get('busy_share', 'not known')}."
    cores = f" of {cpu.n_usable} cores" if cpu.n_usable > 1 else " of one core"
    memory = ""
    if cpu.memory_used_bytes is not None:
        memory = f", memory {gib(cpu.memory_used_bytes)} of {gib(cpu.memory_total_bytes)}{NBSP}GiB"
    return f"CPU {percent(cpu.busy_share)}{cores} busy{memory}"


def busiest_line(busiest: Sequence[CpuProcess]) -> str:
    """This user's busiest processes."""
    return "; ".join(f"{p.name} ({p.pid}) {p.busy_cores:.1f} cores" for p in busiest)


def fitting(reading: Reading, history: History, console: Console, *, blocks: str = BLOCKS, page: str = "") -> Group:
    """The whole screen at one tick; where it would be higher than the terminal, two lines a GPU."""
    whole = view(reading, history, console.width, blocks=blocks, page=page)
    if len(console.render_lines(whole)) <= console.height:
        return whole
    return view(reading, history, console.width, blocks=blocks, page=page, short=True)


def view(
    reading: Reading, history: History, width: int, *, blocks: str = BLOCKS, page: str = "", short: bool = False
) -> Group:
    """The screen in any height, for rich to print."""
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = []
    for device in reading.devices:
        parts += (
            _in_short(device, history, width, blocks) if short else _device(device, reading, history, width, blocks)
        )
    if short:
        parts += _verdicts(reading, history)
    if not reading.devices and not reading.no_gpu:
        parts.append(Text("No GPU of this number is here."))
    if reading.no_gpu:
        parts.append(Text(no_gpu_line(reading)))
    parts += _cpu(reading.cpu, history, width, blocks)
    long = f"{duration(history.took_s * 1e9)} watched; " if history.took_s else ""
    foot = f"{long}Ctrl-C ends it"
    parts.append(Text(f"{foot}; the page is at {page}" if page else foot, style="dim"))
    return Group(*parts)


def no_gpu_line(reading: Reading) -> str:
    """Why no real GPU is shown, and what can be watched all the same."""
    reason = reading.no_gpu or ""
    line = f"No real GPU is visible: {reason}."
    if any(device.simulated for device in reading.devices):
        return line
    return f"{line} A simulated one shows up here during `gpututor run --clock paced train.py` or a paced lesson."


def _indented(text: str, style: str = "") -> RenderableType:
    """A sentence under the head of its block, moved in on each of its lines."""
    from rich.padding import Padding
    from rich.text import Text

    return Padding(Text(text, style=style), (0, 0, 0, 2))


def _in_short(device: Device, history: History, width: int, blocks: str) -> Iterator[RenderableType]:
    from rich.text import Text

    yield _gauge(f"{device.key} ", device.kernel_time_share, history.gpu_shares(device.key), history, width, blocks)
    yield Text(f"  {device.name}, {figures(device)}", style="dim", no_wrap=True, overflow="ellipsis")


def _verdicts(reading: Reading, history: History) -> Iterator[RenderableType]:
    """Each verdict once, with the GPUs that it is about."""
    found: dict[str, list[str]] = {}
    for device in reading.devices:
        found.setdefault(verdict(history.smoothed(device), reading.cpu).value, []).append(device.key)
    yield from (_indented(f"{', '.join(keys)}: {words}", style="italic") for words, keys in found.items())


def _gauge(
    before: str, share: float | None, shares: Sequence[float | None], history: History, width: int, blocks: str
) -> Text:
    """A number with its last minutes behind it, as wide as the terminal allows."""
    from rich.text import Text

    line = Text(f"{before}{percent(share) if share is not None else '?':>{GAUGE}} ", style=f"bold {GPU_COLOUR}")
    line.append(sparkline(shares, width - len(line) - 1, blocks, first=history.first), style=GPU_COLOUR)
    return line


def _device(device: Device, reading: Reading, history: History, width: int, blocks: str) -> Iterator[RenderableType]:
    from rich.text import Text

    head = Text(f"{device.key} ", style="bold")
    head.append(f"{'simulated ' if device.simulated else ''}{device.name}")
    if device.doing and width >= WIDE:
        head.append(f"  {device.doing}", style="dim")
    yield head
    yield _gauge("", device.kernel_time_share, history.gpu_shares(device.key), history, width, blocks)
    yield _indented(utilization_sentence(device))
    told = figures(device)
    if told:
        yield _indented(sentence(told))
    if device.sm_clock_hz is not None:
        yield _indented(clocks_sentence(device))
    if device.processes and not device.simulated:
        yield _indented(processes_line(device.processes), style="dim")
    if width >= WIDE:
        yield from (_indented(each, style="dim") for each in missing(device))
    yield _indented(verdict(history.smoothed(device), reading.cpu).value, style="italic")
    yield Text("")


def _cpu(cpu: Cpu, history: History, width: int, blocks: str) -> Iterator[RenderableType]:
    from rich.text import Text

    yield Text(cpu_line(cpu), style="bold")
    if cpu.busy_share is not None:
        line = Text(f"{percent(cpu.busy_share):>{GAUGE}} ", style=f"bold {CPU_COLOUR}")
        line.append(sparkline(history.cpu_shares(), width - GAUGE - 2, blocks, first=history.first), style=CPU_COLOUR)
        yield line
    if len(cpu.core_shares) > 1:
        each = Text(f"{'cores':>{GAUGE}} ", style="dim")
        each.append(sparkline(cpu.core_shares, width - GAUGE - 2, blocks), style=CPU_COLOUR)
        yield each
    if cpu.busiest:
        yield _indented(busiest_line(cpu.busiest if width >= WIDE else cpu.busiest[:2]), style="dim")
    yield Text("")
