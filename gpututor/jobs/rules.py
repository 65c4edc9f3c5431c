"""Optimizers by what they do with a gradient, and by how torch goes through the parameters; names only, no torch."""

from __future__ import annotations

from enum import Enum


class Rule(Enum):
    """What an optimizer does with a gradient; the value is what a reader sees."""

    SGD = "SGD"
    MOMENTUM = "momentum"
    ADAM = "Adam"
    ADAMW = "AdamW"

    @property
    def key(self) -> str:
        """Names its files."""
        return self.name.lower()


class Way(Enum):
    """How torch goes through the parameters; the value is what a reader sees."""

    LOOP = "a loop"
    FOREACH = "foreach"
    FUSED = "fused"

    @property
    def key(self) -> str:
        """Names its files."""
        return self.name.lower()
