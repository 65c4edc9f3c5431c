"""What a training script's host does besides calling operators: wait for the card, wait for the loader."""

from __future__ import annotations

import time

import torch


def wait_for(device: str) -> None:
    """Wait until the device has done everything."""
    torch.get_device_module(device).synchronize()


def run_python(device: str, long_s: float) -> None:
    """Account what a program's loop does in Python besides; on a real device that takes its own time."""
    if device.startswith("simgpu"):
        from gpututor.model.tape import HostWork
        from gpututor.simgpu.session import current
        from gpututor.timeline import Activity

        current.session.account(HostWork(Activity.PYTHON, "the loop's own", round(long_s * 1e9)))


def wait_for_input(device: str, long_s: float) -> None:
    """Wait as long as a loader's workers take; on the simulated GPU by its host's clock."""
    if long_s <= 0:
        return
    if not device.startswith("simgpu"):
        time.sleep(long_s)
        return
    from gpututor.model.tape import HostWork
    from gpututor.simgpu.session import current
    from gpututor.timeline import Activity

    current.session.account(HostWork(Activity.INPUT, "next batch", round(long_s * 1e9)))
