"""Saving and loading: how torch builds a tensor again from its storage."""

from __future__ import annotations

from gpututor.simgpu.private.needing import need, seam

REBUILD_SEAMS = (
    seam(
        "torch._utils._rebuild_tensor",
        "placing a loaded tensor on the card where it belongs there",
        "torch.load gives tensors of the CPU",
    ),
    seam(
        "torch._utils._rebuild_tensor_v3",
        "the same for dtypes that torch saves by another function",
        "torch.load gives tensors of the CPU",
    ),
)
rebuild_parameter = need(
    "torch._utils._rebuild_parameter",
    "saving a parameter so that any torch can load it",
    "parameters of the card can't be saved",
)
rebuild_parameter_with_state = need(
    "torch._utils._rebuild_parameter_with_state",
    "the same with what a program noted on it",
    "parameters with attributes of their own can't be saved",
)
allowed_globals = need(
    "torch._weights_only_unpickler._get_allowed_globals",
    "letting torch.load(weights_only=True) look the replaced functions up again",
    "safe loading gives tensors of the CPU",
)
