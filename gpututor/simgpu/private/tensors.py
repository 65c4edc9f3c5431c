"""The tensor class of the device, and torch's dispatcher below it."""

from __future__ import annotations

from typing import Any

import torch

from gpututor.simgpu.private.needing import attribute, need, seam

# --- the tensor class -------------------------------------------------------------------------------------------

make_wrapper_subclass = need(
    "torch.Tensor._make_wrapper_subclass",
    "tensors with size, dtype and device whose memory is ours to count",
    "no tensor of the device can be made",
)
no_torch_function = need(
    "torch._C._disabled_torch_function_impl",
    "a tensor class that takes part in ops only, not in calls of torch's functions",
    "each call would go through Python once more, and results would lose their class",
)
DisableTorchDispatch = need(
    "torch._C._DisableTorchDispatch",
    "giving a tensor another size in place",
    "t_, resize_ and set_ would come back to us for ever",
)
is_view = need(
    "torch.Tensor._is_view",
    "autocast's rule that only a weight that is no view is cast once",
    "views of weights would be cast once and then be out of date",
)
set_conj = need(
    "torch._C._set_conj",
    "conjugates that are taken when a tensor is read",
    "x.conj() would read as x",
)
set_neg = need(
    "torch._C._set_neg",
    "negatives that are taken when a tensor is read",
    "the imaginary part of a conjugate would have the wrong sign",
)
indices_of = need(
    "torch.Tensor._indices",
    "the indices of a sparse tensor that isn't coalesced",
    "gradients of sparse embeddings can't come to the card",
)
values_of = need(
    "torch.Tensor._values",
    "the values of a sparse tensor that isn't coalesced",
    "gradients of sparse embeddings can't come to the card",
)

# --- the dispatcher ---------------------------------------------------------------------------------------------

schema_of = attribute(
    "torch.ops.aten.add.Tensor._schema",
    torch.ops.aten.add.Tensor,
    "knowing which arguments an op writes into and what it is called",
    "an op in place can't be told from one that makes a tensor",
)
function_of = attribute(
    "torch.ops.aten.add.Tensor._op",
    torch.ops.aten.add.Tensor,
    "calling an op that comes thousands of times a step without a Python frame of torch's around it",
    "an op can't be computed",
)
has_kernel = need(
    "torch._C._dispatch_has_kernel_for_dispatch_key",
    "telling ops that are made of others, which come whole under inference_mode",
    "such an op would be accounted as one kernel",
)
FIND_RULE = seam(
    "torch._library.simple_registry.find_torch_dispatch_rule",
    "answering at once, for each op on the device, that no rule of somebody else's stands in for it",
    "each op takes three calls of Python more",
)
TorchDispatchMode = need(
    "torch.utils._python_dispatch.TorchDispatchMode",
    "ordinary memory where DDP asks for pinned memory below Python",
    "find_unused_parameters=True fails",
)
push_dispatch_mode = need(
    "torch._C._push_on_torch_dispatch_stack",
    "the same, from inside a hook of autograd, which puts the thread's state back by itself",
    "find_unused_parameters=True fails",
)
ExcludeKeys = need(
    "torch._C._ExcludeDispatchKeyGuard",
    "calling an op below autocast, which has no public way out of itself",
    "autocast would call itself for ever",
)
_KeySet = need(
    "torch._C.DispatchKeySet",
    "calling an op's kernel of a chosen kind",
    "autocast and sparse tensors fail",
)
_parse_key = need(
    "torch._C._dispatch_key_parse",
    "the same, with the kind by its name",
    "autocast and sparse tensors fail",
)


def keys(name: str) -> Any:
    """The set of this one dispatch key."""
    return _KeySet(_parse_key(name))


# --- what a program allows --------------------------------------------------------------------------------------

fp32_precision = need(
    "torch._C._get_fp32_precision_getter",
    "learning for each product whether a program allows TF32, as cheaply as torch itself does",
    "products would be priced as the program's first lines had it",
)
