"""Find out why a GPU is only partly busy, what that costs, and what to change."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpututor.cards import Card, Host, Machine, card, find_card, host, hosts, machine, machine_for, machines
    from gpututor.errors import GpututorError
    from gpututor.timeline import Timeline

__version__ = "0.1.0"

# Each public name and the module that holds it; a module is imported when one of its names is first asked for.
# None may have the name of a module: `gpututor.cards` is the module, the function is `gpututor.cards.cards`.
_HOME = {
    "Card": "gpututor.cards",
    "GpututorError": "gpututor.errors",
    "Host": "gpututor.cards",
    "Machine": "gpututor.cards",
    "Timeline": "gpututor.timeline",
    "card": "gpututor.cards",
    "find_card": "gpututor.cards",
    "host": "gpututor.cards",
    "hosts": "gpututor.cards",
    "machine": "gpututor.cards",
    "machine_for": "gpututor.cards",
    "machines": "gpututor.cards",
}

__all__ = [
    "Card",
    "GpututorError",
    "Host",
    "Machine",
    "Timeline",
    "__version__",
    "card",
    "find_card",
    "host",
    "hosts",
    "machine",
    "machine_for",
    "machines",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'gpututor' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
