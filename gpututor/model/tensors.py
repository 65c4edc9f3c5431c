"""A tensor's outline and an operator's call, without data and without torch."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from gpututor.errors import KernelSpecError

ITEMSIZE_BYTES: dict[str, int] = {
    "float64": 8,
    "float32": 4,
    "float16": 2,
    "bfloat16": 2,
    "int64": 8,
    "int32": 4,
    "int16": 2,
    "int8": 1,
    "uint8": 1,
    "uint16": 2,
    "uint32": 4,
    "uint64": 8,
    "float8_e4m3fn": 1,
    "float8_e4m3fnuz": 1,
    "float8_e5m2": 1,
    "float8_e5m2fnuz": 1,
    "bool": 1,
    "complex32": 4,
    "complex64": 8,
    "complex128": 16,
}
FORMAT: dict[str, str] = {
    "float64": "fp64",
    "float32": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "int8": "int8",
    "complex64": "fp32",
    "complex128": "fp64",
}


@dataclass(frozen=True, slots=True)
class TensorMeta:
    """Shape, strides (in elements) and dtype of a tensor; no data."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str = "float32"

    @classmethod
    def contiguous(cls, *shape: int, dtype: str = "float32") -> TensorMeta:
        """A row-major tensor.

        >>> TensorMeta.contiguous(2, 3, 5).stride
        (15, 5, 1)
        """
        return cls(shape, tuple(prod(shape[i + 1 :]) for i in range(len(shape))), dtype)

    @classmethod
    def channels_last(cls, n: int, c: int, h: int, w: int, dtype: str = "float32") -> TensorMeta:
        """A four-dimensional tensor whose channels lie next to each other (NHWC)."""
        return cls((n, c, h, w), (c * h * w, 1, w * c, c), dtype)

    @property
    def numel(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of one element.

        Raises:
            KernelSpecError: the dtype is not one that we know the size of.
        """
        try:
            return ITEMSIZE_BYTES[self.dtype]
        except KeyError:
            raise KernelSpecError(
                f"a tensor has dtype {self.dtype!r}, whose size we don't know; known: {', '.join(ITEMSIZE_BYTES)}"
            ) from None

    @property
    def n_bytes(self) -> int:
        """Bytes of all elements, each counted once (an expanded tensor counts what is stored)."""
        stored = prod(size for size, step in zip(self.shape, self.stride, strict=True) if step or size == 0)
        return stored * self.itemsize

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements lie in row-major order without gaps."""
        expected = 1
        for size, step in zip(reversed(self.shape), reversed(self.stride), strict=True):
            if size == 1:
                continue
            if step != expected:
                return False
            expected *= size
        return True

    @property
    def is_channels_last(self) -> bool:
        """Whether dimension 1 of four (or five) lies innermost and the rest follow in order."""
        if len(self.shape) not in (4, 5):
            return False
        order = [1, *range(len(self.shape) - 1, 1, -1), 0]
        expected = 1
        for dim in order:
            if self.shape[dim] == 1:
                continue
            if self.stride[dim] != expected:
                return False
            expected *= self.shape[dim]
        return True

    @property
    def number_format(self) -> str:
        """The format's short name on a card ("fp16"); whole numbers and bools count as "fp32" work."""
        return FORMAT.get(self.dtype, "fp32")


Arg: TypeAlias = object  # TensorMeta, int, float, bool, str, None or a tuple of those


@dataclass(frozen=True, slots=True)
class OpCall:
    """One operator as a CUDA backend would receive it; tensors appear as `TensorMeta`, lists as tuples.

    `tf32` says whether fp32 matrix products may round their inputs to TF32, `deterministic` whether only algorithms
    may run that give the same bits each time, and `filled` whether memory is filled before it is first written.
    """

    name: str
    args: tuple[Arg, ...] = ()
    kwargs: tuple[tuple[str, Arg], ...] = ()
    outs: tuple[TensorMeta, ...] = ()
    tf32: bool = False
    deterministic: bool = False
    filled: bool = False

    def kwarg(self, name: str, default: Arg = None) -> Arg:
        """The keyword argument of this name, or `default`."""
        return dict(self.kwargs).get(name, default)

    def tensors(self) -> tuple[TensorMeta, ...]:
        """Every tensor among the arguments, lists opened, in order."""
        found: list[TensorMeta] = []
        waiting: list[Arg] = [*self.args, *(value for _, value in self.kwargs)]
        while waiting:
            head = waiting.pop(0)
            if isinstance(head, TensorMeta):
                found.append(head)
            elif isinstance(head, tuple):
                waiting[:0] = head
        return tuple(found)
