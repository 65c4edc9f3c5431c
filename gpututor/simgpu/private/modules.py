"""Layers, optimizers, loaders, and arguments nested in one another."""

from __future__ import annotations

import torch

from gpututor.simgpu.private.needing import attribute, need, seam

MODULE_APPLY = seam(
    "torch.nn.Module._apply",
    "keeping the identity of parameters when a module moves",
    "tied weights come apart and optimizers lose their parameters",
)
_MODULE = torch.nn.Module()
plain_call_of = attribute(
    "torch.nn.Module._call_impl",
    _MODULE,
    "calling a module as torch does",
    "modules can't be called",
)
compiled_call_of = attribute(
    "torch.nn.Module._compiled_call_impl",
    _MODULE,
    "calling a module as torch does",
    "modules can't be called",
)
parameters_of = attribute(
    "torch.nn.Module._parameters",
    _MODULE,
    "setting parameters without a size aside while a module moves",
    "lazy modules can't be moved to the card",
)
buffers_of = attribute(
    "torch.nn.Module._buffers",
    _MODULE,
    "setting buffers without a size aside while a module moves",
    "lazy modules can't be moved to the card",
)
modules_of = attribute(
    "torch.nn.Module._modules",
    _MODULE,
    "looking up what a compiled module doesn't have itself",
    "attributes of a compiled module are not found",
)
FOREACH_TYPES = (
    need(
        "torch.optim.optimizer._foreach_supported_types",
        "optimizers that take all parameters in one op, as on CUDA",
        "each parameter costs an optimizer's step several launches",
    ),
    need(
        "torch.utils._foreach_utils._foreach_supported_types",
        "the same in clip_grad_norm_",
        "each parameter costs clipping several launches",
    ),
)
BaseLoaderIterator = need(
    "torch.utils.data.dataloader._BaseDataLoaderIter",
    "marking the time that a DataLoader takes for a batch",
    "waiting for input is not seen",
)
take_tensors = need(
    "torch._utils._take_tensors",
    "DataParallel's flat buffers in which parameters are sent",
    "each parameter would be sent alone",
)
tree_leaves = need(
    "torch.utils._pytree.tree_leaves",
    "finding the tensors among the arguments of a compiled or captured function",
    "torch.compile and CUDA graphs aren't accounted",
)
tree_flatten = need(
    "torch.utils._pytree.tree_flatten",
    "the same, with the way back",
    "torch.compile and CUDA graphs aren't accounted",
)
tree_unflatten = need(
    "torch.utils._pytree.tree_unflatten",
    "putting the tensors back where they were",
    "torch.compile and CUDA graphs aren't accounted",
)
