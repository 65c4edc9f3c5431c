"""A script written for CUDA runs on the simulated card without an edit: CUDA's names lead there for a while.

Nothing is changed for good. Functions that take a device get a wrapper that reads "cuda" as "simgpu"; simulated
tensors say that they are on "cuda:0"; `torch.cuda` answers for the simulated card. Every thread sees it.
"""

from __future__ import annotations

import functools
import importlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from gpututor.simgpu import files, rng
from gpututor.simgpu.cuda import module as cuda_module
from gpututor.simgpu.cuda import tensor_types as cuda_types
from gpututor.simgpu.cuda.devices import cuda_device, there
from gpututor.simgpu.cuda.swaps import Swaps
from gpututor.simgpu.forms import DEVICE_NAME
from gpututor.simgpu.private.functions import DeviceContext, builtin_table, device_constructors
from gpututor.simgpu.tensor import SimTensor

LIKE = ("zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like", "randint_like")
NEW = ("new_tensor", "new_empty", "new_zeros", "new_ones", "new_full", "new_empty_strided")
FACTORIES = (
    *("empty empty_permuted empty_strided ones zeros full arange range linspace logspace eye scalar_tensor").split(),
    *("rand randn randint randperm tril_indices triu_indices tensor as_tensor asarray").split(),
    *("bartlett_window blackman_window hamming_window hann_window kaiser_window").split(),
    *("sparse_coo_tensor sparse_compressed_tensor sparse_csr_tensor sparse_csc_tensor").split(),
    *("sparse_bsr_tensor sparse_bsc_tensor normal complex").split(),
    *LIKE,
)
ELSEWHERE = (("torch.fft", "fftfreq"), ("torch.fft", "rfftfreq"), ("torch.nested", "nested_tensor"))
BY_DEVICE_TYPE = (
    *("is_autocast_enabled", "set_autocast_enabled", "get_autocast_dtype", "set_autocast_dtype"),
    *("get_device_module",),
)
"""Functions of torch whose first argument is a kind of device."""

_lock = threading.RLock()
_depth = 0
_swaps = Swaps()


@contextmanager
def as_cuda() -> Iterator[None]:
    """Inside this `with` block "cuda" is the simulated GPU, for unedited code; leaving it puts everything back.

    Belongs inside the block of `simulated_gpu(…)`, which says on which card. A real GPU of this machine can't be
    reached meanwhile. May be nested.
    """
    from gpututor.simgpu.register import register

    global _depth
    register()
    with _lock:
        if _depth == 0:
            _put_names(_swaps)
        _depth += 1
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0:
                _swaps.undo()


def _put_names(swaps: Swaps) -> None:
    device_constructors()  # filled now, while the names still are torch's own functions
    try:
        _tensors(swaps)
        _functions(swaps)
        _default_device(swaps)
        _mixed_precision(swaps)
        _files_and_generators(swaps)
        cuda_module.put_names(swaps)
        cuda_types.put_names(swaps)
    except BaseException:
        swaps.undo()
        raise


def _tensors(swaps: Swaps) -> None:
    """What a script asks of a tensor, and the methods that move one."""
    own_device = torch.Tensor.device.__get__
    swaps.put(SimTensor, "device", property(lambda t: cuda_device(own_device(t).index or 0)))
    swaps.put(SimTensor, "is_cuda", property(lambda t: True))
    move = torch.Tensor.to

    @functools.wraps(move)
    def to(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        if args:
            args = (there(args[0]), *args[1:])
        if "device" in kwargs:
            kwargs["device"] = there(kwargs["device"])
        return move(self, *args, **kwargs)

    def cuda(
        self: torch.Tensor,
        device: Any = None,
        non_blocking: bool = False,
        memory_format: torch.memory_format = torch.preserve_format,
    ) -> torch.Tensor:
        target = torch.device(DEVICE_NAME, device) if isinstance(device, int) else there(device or "cuda")
        return move(self, target, non_blocking=non_blocking, memory_format=memory_format)

    swaps.put(torch.Tensor, "to", to)
    swaps.put(torch.Tensor, "cuda", cuda)
    for name in NEW:
        swaps.put(torch.Tensor, name, _reading_device(getattr(torch.Tensor, name)))


def _functions(swaps: Swaps) -> None:
    """Every function of torch that makes a tensor on a device of the caller's choice."""
    elsewhere = [(importlib.import_module(module), name) for module, name in ELSEWHERE]
    for owner, name in [*((torch, name) for name in FACTORIES), *elsewhere]:
        original = getattr(owner, name, None)
        if original is not None:
            wrapper = _reading_device(original)
            swaps.put(owner, name, wrapper)
            _known_to_jit(swaps, original, wrapper)
    for name in BY_DEVICE_TYPE:
        original = getattr(torch, name)
        swaps.put(torch, name, _reading_first(original, ours_by_default=name == "is_autocast_enabled"))


def _reading_device(original: Callable[..., Any]) -> Callable[..., Any]:
    """`original` with "cuda" as its device read as the simulated GPU."""

    @functools.wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        device = kwargs.get("device")
        if device is not None:
            kwargs["device"] = there(device)
        elif kwargs.get("pin_memory"):
            del kwargs["pin_memory"]
            return original(*args, **kwargs).pin_memory()
        return original(*args, **kwargs)

    return wrapper


def _reading_first(original: Callable[..., Any], *, ours_by_default: bool = False) -> Callable[..., Any]:
    """`original` with a kind of device as its first argument."""

    @functools.wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if args:
            args = (there(args[0]), *args[1:])
        elif ours_by_default and not kwargs:
            args = (DEVICE_NAME,)
        if "device_type" in kwargs:
            kwargs["device_type"] = there(kwargs["device_type"])
        return original(*args, **kwargs)

    return wrapper


def _known_to_jit(swaps: Swaps, original: Any, wrapper: Any) -> None:
    """TorchScript knows torch's functions by identity; let it know the wrapper as the same function."""
    table = builtin_table()
    known = table.get(id(original))
    if known is not None:
        swaps.put_item(table, id(wrapper), known)


def _default_device(swaps: Swaps) -> None:
    """`torch.set_default_device("cuda")` and `with torch.device("cuda"):`."""
    context = DeviceContext
    init, get_default = context.__init__, torch.get_default_device

    def read_init(self: Any, device: Any) -> None:
        init(self, there(device))

    def get_default_device() -> torch.device:
        device = get_default()
        return cuda_device(device.index or 0) if device.type == DEVICE_NAME else device

    swaps.put(context, "__init__", read_init)
    swaps.put(torch, "get_default_device", get_default_device)


def _mixed_precision(swaps: Swaps) -> None:
    """`torch.autocast("cuda")` and `GradScaler("cuda")`; those of torch.cuda.amp are built upon them."""
    from torch.amp import autocast_mode, grad_scaler

    swaps.put(autocast_mode.autocast, "__init__", _reading_second(autocast_mode.autocast.__init__))
    swaps.put(grad_scaler.GradScaler, "__init__", _reading_second(grad_scaler.GradScaler.__init__, "cuda"))
    available = _reading_first(autocast_mode.is_autocast_available)
    swaps.put(autocast_mode, "is_autocast_available", available)
    swaps.put(torch.amp, "is_autocast_available", available)


def _reading_second(original: Callable[..., None], default: str | None = None) -> Callable[..., None]:
    """An `__init__` whose first argument after self is a kind of device; `default` where none is given."""

    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        for name in ("device_type", "device"):
            if name in kwargs:
                kwargs[name] = there(kwargs[name])
        if args:
            args = (there(args[0]), *args[1:])
        elif default is not None and "device" not in kwargs:
            args = (there(default),)
        original(self, *args, **kwargs)

    return init


def _files_and_generators(swaps: Swaps) -> None:
    """`torch.load(…, map_location="cuda")` and `torch.Generator("cuda")`."""
    load, generator = torch.load, torch.Generator

    @functools.wraps(load)
    def read_load(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        if isinstance(map_location, dict):
            map_location = {name: there(v) for k, v in map_location.items() for name in (k, there(k))}
        elif map_location is not None and not callable(map_location):
            map_location = there(map_location)
        return load(f, map_location, *args, **kwargs)

    class Generator(generator):  # type: ignore[valid-type, misc]
        """torch.Generator that takes "cuda" for the simulated GPU."""

        def __new__(cls, device: Any = "cpu") -> Any:
            return generator.__new__(cls, there(device))  # type: ignore[call-arg]

    swaps.put(rng.Generator, "device", property(lambda g: cuda_device(g.home.index)))
    swaps.put(files, "HERE", files.HERE | {"cuda"})  # a file written on CUDA is at home here
    swaps.put(torch, "load", read_load)
    swaps.put(torch, "Generator", Generator)
