"""What most calls of a learner need, imported once before any of them: torch, and the simulated GPU's modules."""

from __future__ import annotations

import importlib
import pkgutil

PACKAGES = ("gpututor.model", "gpututor.simgpu")
MODULES = (
    "torch",
    "torch.utils.data",
    "torch._dynamo",  # an optimizer's first step imports it, which takes longer than all else
    "gpututor.lookup",
    "gpututor.lab.on_card",
)


def load() -> None:
    """Import them. The simulated device is not registered: not every exercise wants it."""
    for name in MODULES:
        importlib.import_module(name)
    for name in PACKAGES:
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{name}."):
            importlib.import_module(module.name)
