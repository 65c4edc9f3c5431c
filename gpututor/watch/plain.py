"""The watch as plain lines, for a file or a pipe: one line a GPU and tick, greppable, without colour."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from gpututor.text import percent
from gpututor.watch.meaning import clocks_sentence, utilization_sentence, verdict
from gpututor.watch.screen import busiest_line, cpu_line, figures, missing, no_gpu_line, sentence
from gpututor.watch.source import Device, Reading


def explained(reading: Reading) -> Iterator[str]:
    """One reading with what each gauge means, for the first look and for --once."""
    if reading.no_gpu:
        yield no_gpu_line(reading)
    elif not reading.devices:
        yield "No GPU of this number is here."
    for device in reading.devices:
        yield heading(device)
        yield f"  {utilization_sentence(device)}"
        if figures(device):
            yield f"  {sentence(figures(device))}"
        if device.sm_clock_hz is not None:
            yield f"  {clocks_sentence(device)}"
        yield from (f"  {each}" for each in missing(device))
        yield f"  {verdict(device, reading.cpu).value}"
    yield f"{cpu_line(reading.cpu)}"
    if reading.cpu.busiest:
        yield f"  busiest: {busiest_line(reading.cpu.busiest)}"


def heading(device: Device) -> str:
    """Which GPU this is."""
    doing = f" ({device.doing})" if device.doing else ""
    return f"{device.key}: {'simulated ' if device.simulated else ''}{device.name}{doing}"


def tick_lines(reading: Reading) -> Iterator[str]:
    """One short line for each GPU, or one for the CPU alone."""
    at = datetime.fromtimestamp(reading.time_s).strftime("%H:%M:%S")  # noqa: DTZ006  # the reader's own clock
    cpu = "CPU ?" if reading.cpu.busy_share is None else f"CPU {percent(reading.cpu.busy_share)}"
    if not reading.devices:
        yield f"{at}  no GPU  {cpu}"
    for device in reading.devices:
        share = device.kernel_time_share
        told = figures(device)
        yield f"{at}  {device.key} {percent(share) if share is not None else '?'}  {told}{'  ' if told else ''}{cpu}"
