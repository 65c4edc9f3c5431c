"""An operator as a trace recorded it (`record_shapes`) → an `OpCall` of the cost model.

A trace holds the arguments but not the results, so these are worked out here for the operators whose cost hangs on
them. What is recorded differs: shapes and types since torch 1.8, numbers among the arguments ("Concrete Inputs") and
strides since torch 2.0. Places of arguments: aten/src/ATen/native/native_functions.yaml.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import msgspec

from gpututor.errors import KernelSpecError
from gpututor.model.lowering.norm import SUMS
from gpututor.model.lowering.pointwise import FLOP_PER_ELEMENT
from gpututor.model.spec import OpCall, TensorMeta
from gpututor.trace.records import Asked

DTYPES = {
    "float": "float32",
    "double": "float64",
    "c10::Half": "float16",
    "c10::BFloat16": "bfloat16",
    "long": "int64",
    "long int": "int64",
    "int": "int32",
    "short": "int16",
    "signed char": "int8",
    "unsigned char": "uint8",
    "bool": "bool",
    "c10::Float8_e4m3fn": "float8_e4m3fn",
    "c10::Float8_e5m2": "float8_e5m2",
    "c10::complex<float>": "complex64",
    "c10::complex<double>": "complex128",
}
"""Names of C++ types as the profiler writes them. Source: c10/util/typeid.h and names in recorded traces."""

LISTS = frozenset({"TensorList", "GenericList"})
MOST_ELEMENTS = 2**50  # our limit: a petabyte is more than any card holds, so a shape beyond it is damage
WIDENING = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128".split()
COMPARING = frozenset("eq ne lt le gt ge logical_not logical_and logical_or isnan isfinite".split())
PLAIN_ARGUMENTS: dict[str, int] = {
    **dict.fromkeys("neg abs exp log sqrt rsqrt reciprocal tanh sin cos erf square relu floor log1p expm1".split(), 1),
    **dict.fromkeys("sigmoid silu logical_not".split(), 1),
    **dict.fromkeys("mul pow clamp_min clamp_max maximum minimum sigmoid_backward tanh_backward".split(), 2),
    **dict.fromkeys("eq ne lt le gt ge logical_and logical_or silu_backward".split(), 2),
    **dict.fromkeys("add sub clamp threshold_backward".split(), 3),
    **dict.fromkeys("addcmul addcdiv".split(), 4),
}
"""How many arguments they take. A further tensor is the one to write into (`out=`): a trace calls both the same."""
MATRIX_PRODUCTS = frozenset("mm bmm addmm addmm_ baddbmm baddbmm_ linear mv dot".split())
FORWARD, BACKWARD = "gpututor.attention.forward", "gpututor.attention.backward"
# Fused attention: the call it is to the model, the place of q, that of the argument which says whether it is causal,
# that of the sequences' own ends where they may differ, and whether heads stand before rows.
ATTENTION: dict[str, tuple[str, int, int, int | None, bool]] = {
    "_scaled_dot_product_flash_attention": (FORWARD, 0, 4, None, True),
    "_scaled_dot_product_efficient_attention": (FORWARD, 0, 6, None, True),
    "_scaled_dot_product_cudnn_attention": (FORWARD, 0, 6, None, True),
    "_flash_attention_forward": (FORWARD, 0, 8, 3, False),
    "_efficient_attention_forward": (FORWARD, 0, 9, 4, False),
    "_scaled_dot_product_flash_attention_backward": (BACKWARD, 1, 11, 6, True),
    "_scaled_dot_product_efficient_attention_backward": (BACKWARD, 1, 11, None, True),
    "_scaled_dot_product_cudnn_attention_backward": (BACKWARD, 1, 14, 9, True),
    "_flash_attention_backward": (BACKWARD, 1, 11, 6, False),
    "_efficient_attention_backward": (BACKWARD, 1, 14, 6, False),
}
# Places of padding, stride, dilation, transposed (None: it isn't) and groups.
CONVOLUTION: dict[str, tuple[int, int, int, int | None, int]] = {
    "cudnn_convolution": (2, 3, 4, None, 5),
    "miopen_convolution": (3, 4, 5, None, 6),
    "_convolution": (4, 3, 5, 6, 8),
    "convolution": (4, 3, 5, 6, 8),
}
LIKE_THE_FIRST = frozenset(
    "_softmax _log_softmax _softmax_backward_data _log_softmax_backward_data copy_ fill_ zero_ clone "
    "native_batch_norm cudnn_batch_norm native_batch_norm_backward cudnn_batch_norm_backward".split()
)
LAYER_NORM = {"native_layer_norm": (1, 2), "native_layer_norm_backward": (2, 5)}  # places of the shape and the weights


def call_of(asked: Asked) -> OpCall:
    """The operator's call, with results where the model's cost hangs on them.

    Raises:
        KernelSpecError: the operator isn't one that we know the cost of, or its record doesn't say enough.
    """
    name = asked.name.removeprefix("aten::")
    args = _arguments(asked)
    args = args[: PLAIN_ARGUMENTS.get(name, len(args))]
    if name in ATTENTION:
        return _attention(name, args, _has_numbers(asked))
    if name in CONVOLUTION:
        return _convolution(name, args, _has_numbers(asked))
    if name == "convolution_backward":
        if len(args) < 11 or any(arg is None for arg in args[4:]):
            raise KernelSpecError("its strides and which gradients it makes aren't recorded")
        return OpCall("aten.convolution_backward.default", tuple(args))
    if asked.name == name:
        raise KernelSpecError("the operator isn't torch's own")
    return OpCall(f"aten.{name}.default", tuple(args), outs=_results(name, args, _has_numbers(asked)))


def _has_numbers(asked: Asked) -> bool:
    return bool(asked.concrete)


def _results(name: str, args: list[object], numbers_known: bool) -> tuple[TensorMeta, ...]:
    """What comes out, for operators that are told apart here."""
    tensors = [a for a in args if isinstance(a, TensorMeta)]
    if name in MATRIX_PRODUCTS:
        return ()
    if not tensors:
        raise KernelSpecError("none of its tensors is recorded with shape and type")
    first = tensors[0]
    if name in LAYER_NORM:
        place, weights = LAYER_NORM[name]
        weight = args[weights] if weights < len(args) else None
        if not isinstance(args[place], tuple):
            if not isinstance(weight, TensorMeta):
                raise KernelSpecError("the shape that it normalizes over isn't recorded")
            args[place] = weight.shape
        return (first,)
    if name in ("native_batch_norm", "cudnn_batch_norm") and (len(args) < 6 or not isinstance(args[5], bool)):
        raise KernelSpecError("whether it gathers statistics isn't recorded")
    if name in LIKE_THE_FIRST or (name.endswith("_") and name in FLOP_PER_ELEMENT):
        return (first,)
    if name in FLOP_PER_ELEMENT or name in COMPARING or name == "where":
        met = _widest(t for t in tensors if t.shape or all(not u.shape for u in tensors))
        return (TensorMeta.contiguous(*_broadcast(tensors), dtype="bool" if name in COMPARING else met),)
    if name in SUMS.split():
        return (_summed(first, args),) if numbers_known else ()
    raise KernelSpecError("what this operator costs isn't known here")


def _widest(tensors: object) -> str:
    dtypes = [t.dtype for t in tensors if t.dtype in WIDENING]  # type: ignore[attr-defined]
    return max(dtypes, key=WIDENING.index, default="float32")


def _broadcast(tensors: Sequence[TensorMeta]) -> tuple[int, ...]:
    """The shape that tensors of these shapes meet in."""
    out: list[int] = []
    longest = max(len(t.shape) for t in tensors)
    for sizes in zip(*((1,) * (longest - len(t.shape)) + t.shape for t in tensors), strict=True):
        other = {size for size in sizes if size != 1}
        if len(other) > 1:
            raise KernelSpecError("its tensors have shapes that don't fit together")
        out.append(other.pop() if other else 1)
    return tuple(out)


def _summed(x: TensorMeta, args: list[object]) -> TensorMeta:
    """What is left of `x` after a reduction over the dimensions in the second argument, or over all."""
    over = args[1] if len(args) > 1 else None
    dims = (over,) if isinstance(over, int) and not isinstance(over, bool) else over
    gone = {int(d) % len(x.shape) for d in dims} if isinstance(dims, tuple) and dims and x.shape else None
    kept = () if gone is None else tuple(size for k, size in enumerate(x.shape) if k not in gone)
    return TensorMeta.contiguous(*kept, dtype=x.dtype)


def _attention(name: str, args: list[object], numbers_known: bool) -> OpCall:
    call, first, causal, ends, heads_first = ATTENTION[name]
    metas = [a for a in args[first : first + 3] if isinstance(a, TensorMeta) and len(a.shape) == 4]
    if len(metas) < 3:
        raise KernelSpecError("the shapes of its queries, keys and values aren't recorded")
    if ends is not None and ends < len(args) and isinstance(args[ends], TensorMeta):
        raise KernelSpecError("its sequences differ in length, and how isn't recorded")
    if not numbers_known or causal >= len(args) or not isinstance(args[causal], int):
        raise KernelSpecError("whether its mask is causal isn't recorded")
    order = (0, 1, 2, 3) if heads_first else (0, 2, 1, 3)
    turned = tuple(
        TensorMeta(tuple(m.shape[d] for d in order), tuple(m.stride[d] for d in order), m.dtype) for m in metas
    )
    return OpCall(call, turned, (("causal", bool(args[causal])),))


def _convolution(name: str, args: list[object], numbers_known: bool) -> OpCall:
    if not numbers_known:
        raise KernelSpecError("its stride isn't recorded")
    x, w = args[0], args[1]
    if not isinstance(x, TensorMeta) or not isinstance(w, TensorMeta):
        raise KernelSpecError("the shapes of its input and weights aren't recorded")
    places = CONVOLUTION[name]
    if type(args[places[4]]) is not int:
        raise KernelSpecError("its groups can't be read")
    padding, stride, dilation = (_each(args[place], len(x.shape) - 2) for place in places[:3])
    if places[3] is not None and args[places[3]]:
        raise KernelSpecError("the result of a transposed convolution isn't worked out here")
    sizes = [
        (size + 2 * pad - far * (taps - 1) - 1) // step + 1
        for size, taps, pad, step, far in zip(x.shape[2:], w.shape[2:], padding, stride, dilation, strict=True)
    ]
    y = TensorMeta.contiguous(x.shape[0], w.shape[0], *sizes, dtype=x.dtype)
    return OpCall(
        "aten.convolution.default",
        (x, w, None, stride, padding, dilation, False, (0,), args[places[4]]),
        outs=(y,),
    )


def _each(value: object, n: int) -> tuple[int, ...]:
    numbers = value if isinstance(value, tuple) else (value,)
    if not numbers or any(type(v) is not int for v in numbers):
        raise KernelSpecError("its stride, padding or dilation can't be read")
    return numbers * n if len(numbers) == 1 else numbers


def _arguments(asked: Asked) -> list[object]:
    """Tensors, numbers, lists and None, in order."""
    dims, types = _list(asked.dims), _list(asked.types)
    strides, concrete = _list(asked.strides), _list(asked.concrete)
    out: list[object] = []
    for k, (shape, kind) in enumerate(zip(dims, types, strict=False)):
        if type(kind) is str and kind in DTYPES:
            steps = strides[k] if k < len(strides) else None
            out.append(_tensor(shape, steps, DTYPES[kind]))
        elif kind in LISTS and shape:
            raise KernelSpecError("the types of its list of tensors aren't recorded")
        else:
            out.append(_number(concrete[k]) if k < len(concrete) else None)
    return out


def _tensor(shape: object, steps: object, dtype: str) -> TensorMeta:
    if not isinstance(shape, list) or any(type(size) is not int or size < 0 for size in shape):
        raise KernelSpecError("a shape in its record can't be read")
    if len(shape) > 64 or prod(shape) > MOST_ELEMENTS:
        raise KernelSpecError("a shape in its record is larger than any card's memory")
    if isinstance(steps, list) and len(steps) == len(shape) and all(type(s) is int and s >= 0 for s in steps):
        return TensorMeta(tuple(shape), tuple(steps), dtype)
    return TensorMeta.contiguous(*shape, dtype=dtype)


def _number(text: object) -> object:
    """A number, a truth or a list of them, as the profiler writes it; None where there is none."""
    if type(text) is not str or len(text) > 1000:
        return None
    try:
        found = msgspec.json.decode(text.replace("True", "true").replace("False", "false").encode())
    except msgspec.DecodeError:
        return None
    return tuple(found) if isinstance(found, list) else found


def _list(text: bytes) -> list[object]:
    try:
        found = msgspec.json.decode(text) if text else []
    except (msgspec.DecodeError, RecursionError):
        found = None
    if not isinstance(found, list):
        raise KernelSpecError("its record can't be read")
    return found
