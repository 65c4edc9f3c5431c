"""Inner names that torch looks for on objects of ours: on the device's module, on tensors, on a process group."""

from __future__ import annotations

from gpututor.simgpu.private.needing import asked

# --- on the module of a device: torch.simgpu, and torch.cuda while CUDA's names lead to it ----------------------

DEVICE_GUARD = asked(
    "_DeviceGuard", "torch.cuda", "code for CUDA that changes the current device", "it gets an AttributeError"
)
GET_DEVICE_INDEX = asked(
    "_get_device_index", "torch._utils", "the number of a device that was given by name", "such code fails"
)
LAZY_INIT = asked(
    "_lazy_init", "torch.nn.parallel.distributed", "DDP, which starts the device before it divides a batch", "it fails"
)
LAZY_CALL = asked(
    "_lazy_call", "torch.cuda.random", "seeding a card, now or when it starts", "seeds wait for a card for ever"
)
IN_BAD_FORK = asked(
    "_is_in_bad_fork", "torch.random", "torch.manual_seed, which leaves a forked process's device alone", "it fails"
)
COUNT_BY_NVML = asked(
    "_device_count_nvml", "torch.cuda", "code that counts cards without starting them", "it counts real cards"
)
INITIALIZED = asked(
    "_initialized",
    "torch.utils.checkpoint",
    "checkpointing, which keeps a card's random state if the card was started",
    "dropout differs when activations are computed again",
)
UTILS = asked("_utils", "torch.serialization", "torch.load, which asks there for a device's number", "loading fails")

# --- on tensors -------------------------------------------------------------------------------------------------

IS_PARAMETER = asked(
    "_is_param", "torch.nn.parameter", "telling torch's own mark from what a program noted on a parameter",
    "each saved parameter would carry it",
)  # fmt: skip
IS_BUFFER = asked(
    "_is_buffer", "torch.nn.parameter", "telling torch's own mark from what a program noted on a buffer",
    "each saved buffer would carry it",
)  # fmt: skip
DYNAMIC_DIMENSIONS = asked(
    "_dynamo_dynamic_indices",
    "torch._dynamo.decorators",
    "the dimensions that torch._dynamo.mark_dynamic leaves open",
    "each new size is charged another compilation",
)

# --- on modules and process groups ------------------------------------------------------------------------------

ORIGINAL_MODULE = asked(
    "_orig_mod",
    "torch._dynamo.eval_frame",
    "names in the state of a compiled module, which files written by torch have too",
    "states of compiled modules don't load",
)
NAMES_BEFORE_2_13 = {
    asked(
        "_allgather_base", "torch.distributed.distributed_c10d", "all_gather_into_tensor before torch 2.13", "it fails"
    ): "all_gather_single",
    asked(
        "_reduce_scatter_base", "torch.distributed.distributed_c10d", "reduce_scatter_tensor before 2.13", "it fails"
    ): "reduce_scatter_single",
}
