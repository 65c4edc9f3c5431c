"""One GPU as a call needs it, what a call may answer, and the short way for calls made several times a second.

A core that slept fetches all code anew, so that calls through one function of ours cost less than as many through
functions of the binding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import byref
from dataclasses import dataclass
from typing import Any, TypeAlias

from gpututor.measure.nvml.failures import Refusal


@dataclass(frozen=True, slots=True)
class Entries:
    """Several values that the driver kept for us: times in nanoseconds since sampling began, and values."""

    times_ns: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(slots=True)
class Contact:
    """One GPU as a call needs it; `now_ns` counts from when sampling began, at `zero_ns` of the system's clock.

    A MIG instance has its parent's handle and its own number there besides.
    """

    nvml: Any
    handle: Any
    now_ns: int = 0
    zero_ns: int = 0
    parent: Any = None
    gpu_instance: int | None = None


Answer: TypeAlias = "float | Entries | Refusal"
Ask: TypeAlias = "Callable[[Contact], Sequence[Answer] | Refusal]"


class Direct:
    """A function of the driver that writes whole numbers, called past the binding into memory that is used again.

    The binding opens the library, finds the function and names the errors; only the layout of what is written is
    repeated: `room` is an array of that layout, `meant` turns it into our units, and `given` is passed before it.
    `needs` is the binding's name without which it is too old. A binding that doesn't show how it finds functions is
    asked `otherwise`. Each GPU has its own, since the memory belongs to one thread.
    """

    __slots__ = ("_args", "_call", "_function", "_given", "_meant", "_needs", "_of", "_otherwise", "_room")

    def __init__(
        self,
        function: str,
        room: Any,
        meant: Callable[[Any, Contact], Sequence[Answer]],
        otherwise: Ask,
        *given: Any,
        needs: str | None = None,
    ) -> None:
        self._function, self._room, self._meant, self._otherwise = function, room, meant, otherwise
        self._given, self._needs = given, needs or function
        self._of: Contact | None = None
        self._call: Any = None
        self._args: tuple[Any, ...] = ()

    def ask(self, gpu: Contact) -> Sequence[Answer] | Refusal:
        """The answer.

        Raises whatever the binding raises.
        """
        if gpu is not self._of:
            self._bind(gpu)
        if self._call is None:
            return self._otherwise(gpu)
        code = self._call(*self._args)
        if code:
            raise gpu.nvml.NVMLError(code)
        return self._meant(self._room, gpu)

    def _bind(self, gpu: Contact) -> None:
        """Take the function from the library that the binding has open now."""
        pointer = getattr(gpu.nvml, "_nvmlGetFunctionPointer", None)
        shown = pointer is not None and hasattr(gpu.nvml, self._needs)
        self._call = pointer(self._function) if pointer is not None and shown else None
        self._args = (gpu.handle, *self._given, byref(self._room))
        self._of = gpu
