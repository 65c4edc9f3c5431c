"""What a trace says about one kernel's work: its blocks, how many fit on an SM, and hints in its name.

FLOP and bytes are not in a trace; where it has the shapes of operators, they are worked out from these (`demand`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from math import ceil, prod

import msgspec

from gpututor.timeline import Activity, KernelWork
from gpututor.trace.records import Args

REGISTERS_AT_A_TIME = 256
"""Registers are given out to a warp in units of this many.

Source: CUDA occupancy calculator, compute capability 5.0 to 9.0.
"""

MAX_BLOCKS_PER_SM = {(7, 0): 32, (7, 2): 32, (7, 5): 16, (8, 0): 32, (8, 6): 16, (8, 7): 16, (8, 9): 24, (9, 0): 32}
"""Source: CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability"."""

RESERVED_SMEM_BYTES = 1024
"""Kept by the system in every block from compute capability 8.0 on. Source: the same guide, "Shared Memory"."""


class Sm(msgspec.Struct, frozen=True, gc=False):
    """What one SM offers to blocks; None where the trace doesn't say."""

    n_sms: int | None = None
    max_threads: int | None = None
    registers: int | None = None
    smem_bytes: int | None = None
    warp_size: int = 32
    capability: tuple[int, int] = (0, 0)


class Part(msgspec.Struct, frozen=True, gc=False):
    """FLOP and bytes of one kernel, or why they can't be told. `number_format` is that of the operator's numbers."""

    flop: float | None = None
    moved_bytes: float | None = None
    number_format: str | None = None
    why: str | None = None


def sm_of(device: Mapping[str, object]) -> Sm:
    """An SM of a device, from its `deviceProperties`."""
    return Sm(
        _positive(device.get("numSms")),
        _positive(device.get("maxThreadsPerMultiprocessor")),
        _positive(device.get("regsPerMultiprocessor")),
        _positive(device.get("sharedMemPerMultiprocessor")),
        _positive(device.get("warpSize")) or 32,
        (_positive(device.get("computeMajor")) or 0, _positive(device.get("computeMinor")) or 0),
    )


def work_of(name: str, args: Args, sm: Sm, part: Part | None = None, from_graph: bool | None = None) -> KernelWork:
    """What the trace and the kernel's name tell of its work; `part` is what its operator's shapes tell."""
    number_format, tensor_core = _format(name)
    if number_format is None and part is not None:
        number_format = _format_of_numbers(part.number_format, tensor_core, _kind(name))
    return KernelWork(
        kind=_kind(name),
        n_blocks=_volume(args.grid),
        blocks_per_sm=_resident(args, sm),
        number_format=number_format,
        tensor_core=tensor_core,
        flop=part.flop if part else None,
        moved_bytes=part.moved_bytes if part else None,
        flop_unknown=part.why if part else None,
        from_graph=from_graph,
        group=_group(args),
    )


def _group(args: Args) -> str | None:
    """The process group of a collective, by its name and its ranks, where the trace has them."""
    if args.group is None and args.group_ranks is None:
        return None
    return f"{args.group} {args.group_ranks}"[:200]


def _format_of_numbers(number_format: str | None, tensor_core: bool | None, kind: str) -> str | None:
    """The format that a kernel computes in, from that of its operator's numbers.

    Tensor cores take fp32 numbers as tf32; a matrix kernel on them that doesn't say where it runs may do either.
    """
    if number_format != "fp32" or kind not in MATRIX:
        return number_format
    return None if tensor_core is None else "tf32" if tensor_core else "fp32"


def _resident(args: Args, sm: Sm) -> int | None:
    """Blocks that fit on one SM at a time: the scarcest of threads, registers, shared memory and block slots.

    Only for NVIDIA cards: an AMD "9.0" is another thing. Source: CUDA C++ Best Practices Guide, "Occupancy".
    """
    threads = _volume(args.block)
    if threads is None or sm.max_threads is None or sm.warp_size != 32 or sm.capability not in MAX_BLOCKS_PER_SM:
        return None
    warps = ceil(threads / sm.warp_size)
    limits = [sm.max_threads // (warps * sm.warp_size), MAX_BLOCKS_PER_SM[sm.capability]]
    registers = args.registers
    if isinstance(registers, int) and registers > 0 and sm.registers:
        a_warp = ceil(registers * sm.warp_size / REGISTERS_AT_A_TIME) * REGISTERS_AT_A_TIME
        limits.append(sm.registers // (a_warp * warps))
    smem_bytes = args.smem_bytes
    if isinstance(smem_bytes, int) and smem_bytes >= 0 and sm.smem_bytes:
        taken = smem_bytes + (RESERVED_SMEM_BYTES if sm.capability >= (8, 0) else 0)
        if taken:
            limits.append(sm.smem_bytes // taken)
    return max(1, min(limits))  # it did run, so at least one block fits


# Instruction shapes that only tensor cores have; source: PTX ISA, "mma", and names seen in cuBLAS, cuDNN and CUTLASS.
_TENSOR_CORE = re.compile(r"tensorop|[shi](884|1688|16816|161616)|tensor16x8|hmma|imma|wgmma|nvjet|cutlass3x")
_FORMATS = (
    ("bf16", re.compile(r"bf16|bfloat16", re.IGNORECASE)),
    ("tf32", re.compile(r"tf32", re.IGNORECASE)),
    ("fp16", re.compile(r"fp16|_h884|h1688|f16|half", re.IGNORECASE)),
    ("fp64", re.compile(r"dgemm|fp64|double")),
    ("fp32", re.compile(r"sgemm|ffma|scudnn_")),
)


MATRIX = frozenset({"gemm", "convolution"})
"""Kinds of kernels that tensor cores are for."""

# What kernels are for, by parts of names in PyTorch, cuDNN, cuBLAS, MIOpen, FlashAttention, Apex and Triton, in small
# letters; the first that fits.
_CONVOLUTION = ("conv", "implicit", "wgrad", "dgrad", "winograd", "fprop", "scudnn_", "hcudnn_", "icudnn_", "dcudnn_")
_GEMM = ("gemm", "cutlass", "cublas", "nvjet", "cijk_", "_mm_")
_CUDNN = re.compile(r"[shid]\d+cudnn_")
_CLASSES = (
    ("attention", ("flash", "fmha", "attention", "attn")),
    ("optimizer", ("multi_tensor", "adam", "fused_sgd", "foreach")),
    ("recurrent", ("rnn", "lstm", "gru")),
    ("normalization", ("batch_norm", "batchnorm", "layer_norm", "layernorm", "group_norm", "groupnorm")),
    ("normalization", ("rms_norm", "rmsnorm", "bn_", "welford")),
    ("softmax and loss", ("softmax", "nll_loss", "cross_entropy")),
    ("convolution", _CONVOLUTION),
    ("gemm", (*_GEMM, "gemv", "matmul", "splitk")),
    ("embedding and indexing", ("embedding", "index", "gather", "scatter", "sort", "topk")),
    ("pooling", ("pool",)),
    ("fused by the compiler", ("triton_",)),
    ("reduction", ("reduce",)),
    ("elementwise", ("elementwise", "vectorized", "unrolled", "copy", "cat", "fill", "dropout", "transpose")),
    ("elementwise", ("nchwtonhwc", "nhwctonchw")),
)


@lru_cache(maxsize=4096)
def kernel_class(name: str, activity: Activity = Activity.KERNEL) -> str:
    """What a kernel is for, as far as its name says; "other" where it doesn't.

    >>> kernel_class("volta_sgemm_128x64_nn"), kernel_class("void at::native::reduce_kernel<512, 1>")
    ('gemm', 'reduction')
    """
    if activity is Activity.COLLECTIVE:
        return "communication"
    if activity is Activity.MEMSET:
        return "memset"
    small = name.lower()
    for words, parts in _CLASSES:
        if any(part in small for part in parts) or (parts is _CONVOLUTION and _CUDNN.search(small)):
            return words
    return "other"


@lru_cache(maxsize=4096)
def _kind(name: str) -> str:
    small = name.lower()
    if any(part in small for part in _CONVOLUTION) or _CUDNN.search(small):
        return "convolution"
    return "gemm" if any(part in small for part in _GEMM) else "kernel"


@lru_cache(maxsize=4096)
def _format(name: str) -> tuple[str | None, bool | None]:
    """Number format and tensor-core use as far as the name of a matrix kernel says them."""
    if _kind(name) == "kernel":
        return None, None
    on_tensor_cores = True if _TENSOR_CORE.search(name) else None
    for number_format, pattern in _FORMATS:
        if pattern.search(name):
            if number_format == "fp32" and on_tensor_cores is None:
                on_tensor_cores = False
            return number_format, on_tensor_cores
    return None, on_tensor_cores


def _volume(sizes: object) -> int | None:
    if not isinstance(sizes, (list, tuple)) or not sizes:
        return None
    if any(type(size) is not int or size < 1 for size in sizes):
        return None
    return prod(sizes)


def _positive(value: object) -> int | None:
    return value if type(value) is int and value > 0 else None
