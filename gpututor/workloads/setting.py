"""How a workload is run, and what a workload is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from gpututor.errors import SettingNotPossible

KINDS = ("train", "gradients", "infer")  # "gradients": forward and backward, no optimizer
PRECISIONS = ("fp32", "tf32", "amp", "amp_bf16", "fp16", "bf16")
LAYOUTS = ("nchw", "nhwc")
MODES = ("eager", "compiled", "graphs")  # "graphs": torch.compile with mode="reduce-overhead"

Step = Callable[[int], Any]
Option = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Setting:
    """How a workload is run on each card; `batch` is for one card, in the workload's own unit.

    "amp" is autocast to fp16 with a gradient scaler, "amp_bf16" autocast to bf16; "fp16" and "bf16" keep weights and
    inputs in that format. "fp32" allows TF32 nowhere, "tf32" everywhere. `options` are the workload's own
    (sequence length, picture size, …); those that it doesn't know are refused.

    Raises:
        SettingNotPossible: a word that is none of the known ones, or a batch or number of cards below 1.
    """

    kind: str = "train"
    batch: int | None = None  # None: the workload's own
    precision: str = "fp32"
    layout: str = "nchw"
    mode: str = "eager"
    n_cards: int = 1
    options: Mapping[str, Option] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        for name, known in (("kind", KINDS), ("precision", PRECISIONS), ("layout", LAYOUTS), ("mode", MODES)):
            value = getattr(self, name)
            if value not in known:
                raise SettingNotPossible(f"{name} is {value!r}; it has to be one of {', '.join(known)}")
        for name in ("batch", "n_cards"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise SettingNotPossible(f"{name} is {value}; it has to be 1 or more")

    @property
    def autocast(self) -> str | None:
        """The format that autocast computes in, "fp16" or "bf16", or None where it is off."""
        return {"amp": "fp16", "amp_bf16": "bf16"}.get(self.precision)


@dataclass(frozen=True, slots=True)
class Job:
    """A workload made for a device: `step(k)` is one step, which works through `n_per_step` units on one card."""

    step: Step
    n_per_step: float


@dataclass(frozen=True, slots=True)
class Workload:
    """A network with its training or inference step.

    `make(setting, device)` builds it with a batch that is not None and all options filled in. `options` are its own
    with their usual values. `unit` is what throughput counts ("img", "seq", "tok", "step"). A `long_step` is a round of
    many launches that leaves the next one nothing: a prediction takes one after one warm-up.
    """

    name: str
    what: str
    source: str
    unit: str
    batch: int
    make: Callable[[Setting, str], Job]
    options: Mapping[str, Option] = field(default_factory=lambda: MappingProxyType({}))
    kinds: tuple[str, ...] = ("train", "gradients", "infer")
    long_step: bool = False

    def build(self, setting: Setting, device: str) -> Job:
        """The workload on `device`, as `setting` says.

        Raises:
            SettingNotPossible: the workload has no such option or isn't run in this way.
        """
        unknown = sorted(set(setting.options) - set(self.options))
        if unknown:
            has = ", ".join(self.options) or "none"
            raise SettingNotPossible(f"{self.name} has no option {', '.join(unknown)}; its options: {has}")
        if setting.kind not in self.kinds:
            raise SettingNotPossible(f"{self.name} is not run as {setting.kind!r}, but as {', '.join(self.kinds)}")
        full = {**self.options, **setting.options}
        return self.make(replace(setting, batch=setting.batch or self.batch, options=MappingProxyType(full)), device)
