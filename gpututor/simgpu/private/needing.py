"""How an inner name of torch is looked up, replaced, and missed in words."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import torch

from gpututor.errors import TorchNotSupported
from gpututor.simgpu.versions import KNOWN, check_torch

check_torch(torch.__version__)


@dataclass(frozen=True, slots=True)
class Use:
    """What a name is for, and what breaks without it: both as the end of a sentence."""

    purpose: str
    without: str


used: dict[str, Use] = {}
"""All names that were looked up so far, by their full path."""
torchs_own: dict[str, Any] = {}
"""What stood at each of these paths before anything of ours did."""
asked_for: dict[str, tuple[str, Use]] = {}
"""Names that torch looks for on objects of ours: the module of torch that does, and what for."""


def found(path: str) -> Any:
    """What stands at a dotted path, submodules imported on the way.

    Raises:
        AttributeError: nothing does.
    """
    parts = path.split(".")
    at: Any = importlib.import_module(parts[0])
    for k, part in enumerate(parts[1:], 2):
        try:
            at = getattr(at, part)
        except AttributeError:
            try:
                at = importlib.import_module(".".join(parts[:k]))
            except ImportError:
                raise AttributeError(f"{'.'.join(parts[: k - 1])} has no {part}") from None
    return at


def lacks(path: str, use: Use) -> TorchNotSupported:
    """The error for a torch without this name."""
    return TorchNotSupported(
        f"torch {torch.__version__} lacks {path}, which gpututor needs for {use.purpose}; without it {use.without}. "
        f"Install a release of torch from {KNOWN}, or a newer gpututor"
    )


def need(path: str, purpose: str, without: str) -> Any:
    """What stands at this path of torch.

    Raises:
        TorchNotSupported: nothing does; the error names the path and what it is for.
    """
    use = used[path] = Use(purpose, without)
    try:
        torchs_own[path] = found(path)
    except AttributeError:
        raise lacks(path, use) from None
    return torchs_own[path]


@dataclass(frozen=True, slots=True)
class Seam:
    """A name of torch in whose place we put something of ours."""

    owner: Any
    name: str

    def now(self) -> Any:
        """What stands there at the moment."""
        return getattr(self.owner, self.name)

    def put(self, value: Any) -> None:
        """Let it be `value` from now on."""
        setattr(self.owner, self.name, value)


def seam(path: str, purpose: str, without: str) -> Seam:
    """The place at this path, to be read and replaced.

    Raises:
        TorchNotSupported: there is no such name.
    """
    need(path, purpose, without)
    owner, _, name = path.rpartition(".")
    return Seam(found(owner), name)


def attribute(path: str, sample: Any, purpose: str, without: str) -> attrgetter[Any]:
    """A reader of an attribute that only instances have; `sample` is one. Reading takes no frame of Python.

    Raises:
        TorchNotSupported: the sample has no such attribute.
    """
    use = used[path] = Use(purpose, without)
    name = path.rpartition(".")[2]
    if not hasattr(sample, name):
        raise lacks(path, use)
    return attrgetter(name)


def asked(name: str, by: str, purpose: str, without: str) -> str:
    """A name that the module `by` of torch looks for on an object of ours; gives the name itself."""
    asked_for[name] = (by, Use(purpose, without))
    return name
