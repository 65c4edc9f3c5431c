"""Autocast for the simulated GPU: CUDA's lists of ops, CUDA's policies, and its cache of cast weights.

Casts are ordinary ops of the device, so each is accounted as the kernel that CUDA runs for it.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

import torch

from gpututor.simgpu import sparse
from gpututor.simgpu.forms import DEVICE_NAME, DTYPE_NAME
from gpututor.simgpu.precision import half_softmax
from gpututor.simgpu.precision import lists as amp_lists
from gpututor.simgpu.private.tensors import ExcludeKeys, is_view, keys, schema_of
from gpututor.simgpu.tensor import SimTensor

Kernel = Callable[..., Any]

_KEYS = keys("AutocastPrivateUse1")

_CASTABLE = frozenset(dtype for dtype in DTYPE_NAME if dtype.is_floating_point and dtype is not torch.float64)

_cast_weights: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
"""By the weight's id: the weight, which must live as long as its id is used, and its cast."""


def can_be_cast(value: Any) -> bool:
    """Whether autocast concerns itself with this argument: a floating-point tensor of the device, float64 apart."""
    if type(value) is SimTensor:  # not by its device, which reads "cuda" while CUDA's names lead here
        return value.form.dtype in _CASTABLE
    return sparse.is_sparse(value) and value.dtype in _CASTABLE


def cast(value: Any, dtype: torch.dtype, keep: bool = True) -> Any:
    """The argument in `dtype`, lists item by item; a weight is cast once until the outermost region ends.

    With `keep=False` the cast of a weight is neither looked up nor kept.
    """
    if type(value) is SimTensor:
        if value.form.dtype is dtype or value.form.dtype not in _CASTABLE:
            return value
        return cast_weight(value, dtype) if keep and value.requires_grad else value.to(dtype)
    if type(value) is list or type(value) is tuple:
        return [cast(v, dtype, keep) for v in value]
    return value.to(dtype) if can_be_cast(value) else value


def cast_weight(weight: SimTensor, dtype: torch.dtype) -> torch.Tensor:
    """The weight in `dtype`, from the cache if it is there, and kept for later if it is to be."""
    known = _cast_weights.get(id(weight))
    if known is not None and known[1].dtype is dtype and torch.is_autocast_cache_enabled():
        return known[1]
    if not is_kept(weight, dtype):
        return weight.to(dtype)
    with torch.enable_grad():  # a cast kept from code without gradients must serve code with them
        known = _cast_weights[id(weight)] = (weight, weight.to(dtype))
    return known[1]


def is_kept(weight: torch.Tensor, dtype: torch.dtype) -> bool:
    """Whether torch keeps the cast of this tensor: of a float32 leaf that is no view, to the region's dtype."""
    return (
        weight.dtype is torch.float32
        and dtype is torch.get_autocast_dtype(DEVICE_NAME)
        and weight.is_leaf
        and not is_view(weight)
        and torch.is_autocast_cache_enabled()
        and not torch.is_inference_mode_enabled()
    )


def forget_cast_weights() -> None:
    """What torch asks for when the outermost autocast region ends."""
    _cast_weights.clear()
    _forget_of_torch()


_forget_of_torch = torch.clear_autocast_cache


# --- the policies -----------------------------------------------------------------------------------------------


def in_one_dtype(op: Any, dtype_of: Callable[[tuple[Any, ...]], torch.dtype], keep: bool = True) -> Kernel:
    """A kernel that casts every argument to the dtype that `dtype_of` finds, then runs `op`."""

    def kernel(*args: Any, **kwargs: Any) -> Any:
        with ExcludeKeys(_KEYS):
            dtype = dtype_of(args)
            args = tuple([cast(a, dtype, keep) for a in args])
            return op(*args, **{k: cast(v, dtype, keep) for k, v in kwargs.items()}) if kwargs else op(*args)

    return kernel


def writes_float32(op: Any) -> Kernel:
    """A kernel that asks `op` for float32 where the caller named no dtype."""
    at = next(k for k, a in enumerate(schema_of(op).arguments) if a.name == "dtype")

    def kernel(*args: Any, **kwargs: Any) -> Any:
        with ExcludeKeys(_KEYS):
            dtype = args[at] if len(args) > at else kwargs.get("dtype")
            if dtype is None and can_be_cast(args[0]):
                dtype = torch.float32
                args, kwargs = args[:at], {**kwargs, "dtype": dtype}
            if half_softmax.reads_halves(op, args, dtype):
                return half_softmax.WHOLE[op](args[0], args[1], True)
            return op(*args, **kwargs)

    return kernel


def appends_float32(op: Any) -> Kernel:
    """A kernel for an op without a dtype, which runs `op`, its overload with one."""

    def kernel(*args: Any, **kwargs: Any) -> Any:
        with ExcludeKeys(_KEYS):
            dtype = torch.float32 if can_be_cast(args[0]) else args[0].dtype
            names = [a.name for a in schema_of(op).arguments]
            given = {**dict(zip(names, args, strict=False)), **kwargs}
            defaults = {"p": 2, "keepdim": False}  # CUDA hands on norm's own defaults
            return op(**{name: given.get(name, defaults.get(name)) for name in names if name != "dtype"}, dtype=dtype)

    return kernel


def region_dtype(args: tuple[Any, ...]) -> torch.dtype:
    """The dtype of the present autocast region."""
    return torch.get_autocast_dtype(DEVICE_NAME)


def widest_dtype(args: tuple[Any, ...]) -> torch.dtype:
    """float32 if one tensor is float32, else the region's dtype.

    Raises:
        RuntimeError: a tensor has the half format that the region does not use.
    """
    region = torch.get_autocast_dtype(DEVICE_NAME)
    found = {t.dtype for a in args for t in (a if type(a) in (list, tuple) else (a,)) if can_be_cast(t)}
    if torch.float32 in found:
        return torch.float32
    if found - {region}:
        raise RuntimeError(
            f"autocast to {region} met a tensor of {', '.join(map(str, found - {region}))} in an op that runs in the "
            "widest of its dtypes; cast the tensor yourself"
        )
    return region


def refuse_binary_cross_entropy(*_: Any, **__: Any) -> Any:
    """CUDA's refusal: the logarithm of a half-precision probability overflows."""
    raise RuntimeError(
        "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast: leave out the sigmoid "
        "before them and use binary_cross_entropy_with_logits or torch.nn.BCEWithLogitsLoss."
    )


def kernels() -> dict[str, Kernel]:
    """For each op of the lists that this torch has, by name, the kernel that applies its policy."""
    found: dict[str, Kernel] = {}
    for names, policy in (
        (amp_lists.LOWER_PRECISION, lambda op: in_one_dtype(op, region_dtype)),
        (amp_lists.FLOAT32, lambda op: in_one_dtype(op, lambda args: torch.float32)),
        (amp_lists.WIDEST, lambda op: in_one_dtype(op, widest_dtype)),
        (amp_lists.FLOAT32_OUT, writes_float32),
        (amp_lists.FLOAT16_RECURRENT, lambda op: in_one_dtype(op, lambda args: torch.float16, keep=False)),
    ):
        for name in names:
            op = op_named(name)
            if op is not None:
                found[name] = policy(op)
    for name, with_dtype in amp_lists.FLOAT32_APPENDED.items():
        found[name] = appends_float32(op_named(with_dtype))
    found[amp_lists.REFUSED] = refuse_binary_cross_entropy
    return found


def op_named(name: str) -> Any:
    """The aten op called "name" or "name.overload", None if this torch has none."""
    base, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, base, None), overload or "default", None)


_library = torch.library.Library("aten", "IMPL")  # registrations last as long as these objects
_all = torch.library.Library("_", "IMPL")


def register_autocast() -> None:
    """Let `torch.autocast("simgpu")` cast as CUDA's does."""
    _all.fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")
    for name, kernel in kernels().items():
        _library.impl(name, kernel, "AutocastPrivateUse1")
    torch.clear_autocast_cache = forget_cast_weights


# --- torch.simgpu.amp -------------------------------------------------------------------------------------------


class autocast(torch.autocast):
    """`torch.simgpu.amp.autocast()`: torch.autocast for the simulated GPU."""

    def __init__(self, enabled: bool = True, dtype: torch.dtype = torch.float16, cache_enabled: bool = True) -> None:
        super().__init__(DEVICE_NAME, enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


class GradScaler(torch.amp.GradScaler):
    """`torch.simgpu.amp.GradScaler()`: torch.amp.GradScaler for the simulated GPU."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(DEVICE_NAME, *args, **kwargs)


def build(parent: types.ModuleType) -> types.ModuleType:
    """The module that becomes `torch.simgpu.amp`, inside `parent`."""
    from functools import partial

    module = types.ModuleType(f"torch.{DEVICE_NAME}.amp", __doc__)
    module.autocast, module.GradScaler = autocast, GradScaler  # type: ignore[attr-defined]
    module.custom_fwd = partial(torch.amp.custom_fwd, device_type=DEVICE_NAME)  # type: ignore[attr-defined]
    module.custom_bwd = partial(torch.amp.custom_bwd, device_type=DEVICE_NAME)  # type: ignore[attr-defined]
    parent.__path__ = []
    parent.amp = module  # type: ignore[attr-defined]
    sys.modules[module.__name__] = module
    return module
