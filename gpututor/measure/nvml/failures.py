"""What it means when the driver refuses an answer, and the sentence a reader gets for it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

# Codes of nvmlReturn_t. Source: nvml.h of API 13.
SUCCESS = 0
UNINITIALIZED = 1
NOT_SUPPORTED = 3
NO_PERMISSION = 4
NOT_FOUND = 6
DRIVER_NOT_LOADED = 9
LIBRARY_NOT_FOUND = 12
FUNCTION_NOT_FOUND = 13
GPU_IS_LOST = 15
RESET_REQUIRED = 16
OPERATING_SYSTEM = 17
VERSION_MISMATCH = 18
NO_DATA = 21
ARGUMENT_VERSION_MISMATCH = 25
DEPRECATED = 26
NOT_READY = 27
UNKNOWN = 999


class Meaning(Enum):
    """What a refusal says about the next time."""

    NOT_HERE = "this card, driver or library will never give it"
    NOTHING_NEW = "there is no new value since the last one"
    LOST = "the GPU is gone until the machine restarts"
    REOPEN = "the library must be opened again"
    TRY_AGAIN = "it may work later"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why there is no value: the driver's code (None where it gave none) and its words."""

    code: int | None
    said: str
    meaning: Meaning = Meaning.TRY_AGAIN

    @property
    def words(self) -> str:
        """The refusal in a few words, with the code where there is one."""
        return self.said if self.code is None else f"{self.said}, code {self.code}"


_MEANINGS = {
    SUCCESS: Meaning.NOTHING_NEW,  # nvidia-ml-py raises "Success" where a list came back empty
    NOT_FOUND: Meaning.NOTHING_NEW,
    NO_DATA: Meaning.NOTHING_NEW,
    NOT_READY: Meaning.NOTHING_NEW,
    UNINITIALIZED: Meaning.REOPEN,
    NOT_SUPPORTED: Meaning.NOT_HERE,
    NO_PERMISSION: Meaning.NOT_HERE,
    FUNCTION_NOT_FOUND: Meaning.NOT_HERE,
    ARGUMENT_VERSION_MISMATCH: Meaning.NOT_HERE,
    DEPRECATED: Meaning.NOT_HERE,
    GPU_IS_LOST: Meaning.LOST,
    RESET_REQUIRED: Meaning.LOST,
}


def errors_of(nvml: Any) -> tuple[type[BaseException], ...]:
    """Everything that a call through this binding may raise; older bindings lack names, arguments and files."""
    own = getattr(nvml, "NVMLError", OSError)
    return (own, OSError, AttributeError, ImportError, TypeError, ValueError)


def refusal_of(error: BaseException) -> Refusal:
    """The refusal that an exception stands for. Never raises.

    Keeps the code and not the exception, which can't be hashed and holds on to its frames.
    """
    code = getattr(error, "value", None)
    if isinstance(code, int):
        return Refusal(code, _said(error), _MEANINGS.get(code, Meaning.TRY_AGAIN))
    never = isinstance(error, AttributeError | TypeError | ImportError)
    return Refusal(None, _said(error), Meaning.NOT_HERE if never else Meaning.TRY_AGAIN)


def _said(error: BaseException) -> str:
    try:
        words = str(error)
    except Exception:  # noqa: BLE001  # the binding asks the driver for its words, which may fail once more
        words = ""
    return words or type(error).__name__


_AT_OPENING = {
    LIBRARY_NOT_FOUND: "no NVIDIA driver is installed here, or its libnvidia-ml.so.1 is not on the loader's path",
    DRIVER_NOT_LOADED: "the NVIDIA driver is not loaded; in a container, start it with access to the GPUs (--gpus all)",
    VERSION_MISMATCH: "the NVIDIA driver was updated while the old one is still loaded; restart the machine",
    UNKNOWN: "the NVIDIA driver fails and doesn't say why (code 999); in a container, restart it, since it may have "
    "lost its right to the GPU",
    NO_PERMISSION: "this user may not open the GPU; ask for the right to the /dev/nvidia* devices",
    OPERATING_SYSTEM: "the operating system keeps this process from the GPU (code 17); look at the container's or "
    "job's device limits",
}


def why_closed(error: BaseException) -> str:
    """One sentence on why the driver's library can't be opened, and what helps."""
    if isinstance(error, ImportError):
        return f"the package nvidia-ml-py can't be imported ({_said(error)}); install it with pip install nvidia-ml-py"
    refusal = refusal_of(error)
    told = _AT_OPENING.get(refusal.code) if refusal.code is not None else None
    return told or f"the NVIDIA driver does not answer ({refusal.words})"
