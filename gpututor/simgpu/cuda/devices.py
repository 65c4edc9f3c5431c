"""The two names of a simulated GPU: "simgpu:0" to torch, "cuda:0" to a script that was written for CUDA."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

from gpututor.simgpu.forms import DEVICE_NAME


def there(device: Any) -> Any:
    """A device as given to torch, with CUDA's replaced by the simulated one; everything else comes back as it is."""
    kind = type(device)
    if kind is torch.device:
        return device if device.type != "cuda" else torch.device(DEVICE_NAME, device.index or 0)
    if kind is str and device[:4] == "cuda":
        return DEVICE_NAME + device[4:]
    return device


@cache
def cuda_device(index: int) -> torch.device:
    """What a script sees as the device of simulated GPU `index`."""
    return torch.device("cuda", index)
