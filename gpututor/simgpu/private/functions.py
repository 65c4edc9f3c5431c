"""Torch's tables of its own functions, which must know the wrappers we put in their places."""

from __future__ import annotations

from gpututor.simgpu.private.needing import need

device_constructors = need(
    "torch.utils._device._device_constructors",
    "torch.set_default_device, whose list of functions is filled once and must hold torch's own",
    "a default device is ignored by the functions we wrap",
)
DeviceContext = need(
    "torch.utils._device.DeviceContext",
    'torch.set_default_device("cuda") and `with torch.device("cuda"):`',
    "tensors made there ask for a real GPU",
)
find_builtin = need(
    "torch.jit._builtins._find_builtin",
    "scripted functions, which find an op by torch's function",
    "TorchScript doesn't know the functions we wrap",
)
register_builtin = need(
    "torch.jit._builtins._register_builtin",
    "the same for our wrappers",
    "TorchScript doesn't know the functions we wrap",
)
builtin_table = need(
    "torch.jit._builtins._get_builtin_table",
    "the same while CUDA's names lead to the simulated card, to be taken back afterwards",
    "TorchScript doesn't know the functions we wrap",
)
cuda_utils = need(
    "torch.cuda._utils",
    "torch.load, which asks a device's module for the number of a device",
    "files written on CUDA can't be loaded under CUDA's names",
)
transforms_active = need(
    "torch._C._are_functorch_transforms_active",
    "leaving out torch's search for functorch around an op that runs whole, where there is none",
    "recurrent layers, attention and dropout can't be taken whole",
)
