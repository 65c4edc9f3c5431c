"""Int8 as torch itself does it, which is for processors only: torch.ao's networks of 8-bit convolutions.

torch.ao is being replaced by torchao, so a later torch may lack it; then there is nothing, and the caller says so.
"""

from __future__ import annotations

import platform
import warnings
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn

ENGINES = ("x86", "qnnpack")  # for Intel and AMD, and for ARM


def engine() -> str | None:
    """The library that multiplies bytes on this processor; None where this torch was built without one."""
    wanted = ENGINES[0] if platform.machine().lower() in ("x86_64", "amd64") else ENGINES[1]
    return wanted if wanted in torch.backends.quantized.supported_engines else None


def on_processor(net: nn.Module, examples: Tensor) -> nn.Module | None:
    """The network in int8 for this processor, its ranges taken from `examples`; None where torch can't make one.

    Weights are rounded by output channel, what goes between layers by the range seen, and norms become part of the
    convolutions before them.
    """
    name = engine()
    if name is None:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is deprecated is said above
        try:
            steps: Any = import_module("torch.ao.quantization.quantize_fx")
            settings: Any = import_module("torch.ao.quantization").get_default_qconfig_mapping(name)
        except (ImportError, AttributeError):
            return None
        torch.backends.quantized.engine = name
        watched = steps.prepare_fx(net.eval(), settings, (examples[:1],))
        with torch.no_grad():
            watched(examples)
        made: nn.Module = steps.convert_fx(watched)
    return made
