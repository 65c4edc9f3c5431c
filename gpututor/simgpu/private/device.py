"""Registration of the device, autograd's engine, and random generators."""

from __future__ import annotations

import torch

from gpututor.simgpu.private.needing import attribute, need, seam

set_up_backend = need(
    "torch.utils.backend_registration._setup_privateuseone_for_python_backend",
    "making a device known that is written in Python",
    "there is no device",
)
PrivateUse1Hooks = need(
    "torch._C._acc.PrivateUse1Hooks",
    "saying that the device is available",
    "torch.accelerator and pinned memory don't know the device",
)
DeviceGuard = need(
    "torch._C._acc.DeviceGuard",
    "torch's changes of the current device",
    "backward passes fail",
)
DEVICE_TYPE = need(
    "torch._C._autograd.DeviceType.PrivateUse1",
    "saying of what kind the device is",
    "the device guard has no answer",
)

# --- autograd's engine ------------------------------------------------------------------------------------------

ENGINE_SEAMS = (
    seam(
        "torch.autograd.graph._engine_run_backward",
        "running a backward pass on its caller's thread, with errors that come through whole",
        "an error in a backward pass ends the process",
    ),
    seam(
        "torch.autograd._engine_run_backward",
        "the same where torch.autograd has a name of its own for it",
        "an error in a backward pass ends the process",
    ),
)
ENGINE = need(
    "torch.autograd.Variable._execution_engine",
    "gradients of a layer that runs whole, and waits for collectives at the end of a backward pass",
    "recurrent layers, attention and DDP have no backward pass",
)

# --- random generators ------------------------------------------------------------------------------------------

SEED_DEVICE = seam(
    "torch.random._seed_custom_device",
    "letting torch.manual_seed reach the card's generator",
    "a card that was seeded apart stays apart",
)
address_of = attribute(
    "torch.Generator._cdata",
    torch.default_generator,
    "knowing a generator again when torch hands it to an op without its Python class",
    "generators of the card can't be told from the CPU's",
)
