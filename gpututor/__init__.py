"""Find out why a GPU is only partly busy, what that costs, and what to change."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpututor.cards import Card, Host, Machine, card, find_card, host, hosts, machine, machine_for, machines
    from gpututor.causes import Finding, find_causes
    from gpututor.compiling import compile  # noqa: A004  # torch's own name for it
    from gpututor.errors import GpututorError
    from gpututor.expect.asked import expect
    from gpututor.ledger import Account, Ledger, charge
    from gpututor.marking import step
    from gpututor.measure.loop import measure
    from gpututor.measure.measurement import Measurement
    from gpututor.recorder import find_device, record, record_loop
    from gpututor.recording import Recording
    from gpututor.simgpu import simulated_gpu
    from gpututor.timeline import Timeline

__version__ = "0.1.0"

# Each public name and the module that holds it; a module is imported when one of its names is first asked for.
# None may have the name of a module: `gpututor.cards` is the module, the function is `gpututor.cards.cards`.
# Two do: `gpututor.measure` and `gpututor.expect` are modules that can be called, so they are their own values.
_HOME = {
    "Account": "gpututor.ledger",
    "Card": "gpututor.cards",
    "Finding": "gpututor.causes",
    "GpututorError": "gpututor.errors",
    "Host": "gpututor.cards",
    "Ledger": "gpututor.ledger",
    "Machine": "gpututor.cards",
    "Measurement": "gpututor.measure.measurement",
    "Recording": "gpututor.recording",
    "Timeline": "gpututor.timeline",
    "card": "gpututor.cards",
    "charge": "gpututor.ledger",
    "compile": "gpututor.compiling",
    "expect": "gpututor.expect",
    "find_card": "gpututor.cards",
    "find_causes": "gpututor.causes",
    "find_device": "gpututor.recorder",
    "host": "gpututor.cards",
    "hosts": "gpututor.cards",
    "machine": "gpututor.cards",
    "machine_for": "gpututor.cards",
    "machines": "gpututor.cards",
    "measure": "gpututor.measure",
    "record": "gpututor.recorder",
    "record_loop": "gpututor.recorder",
    "simulated_gpu": "gpututor.simgpu",
    "step": "gpututor.marking",
}

__all__ = [
    "Account",
    "Card",
    "Finding",
    "GpututorError",
    "Host",
    "Ledger",
    "Machine",
    "Measurement",
    "Recording",
    "Timeline",
    "__version__",
    "card",
    "charge",
    "compile",
    "expect",
    "find_card",
    "find_causes",
    "find_device",
    "host",
    "hosts",
    "machine",
    "machine_for",
    "machines",
    "measure",
    "record",
    "record_loop",
    "simulated_gpu",
    "step",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'gpututor' has no attribute {name!r}")
    module = import_module(_HOME[name])
    value = module if _HOME[name] == f"{__name__}.{name}" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
