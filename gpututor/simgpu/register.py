"""Make torch know the device "simgpu". Once a process, and only when it is asked for.

Once registered, torch takes it for *the* accelerator of the process, ahead of a real GPU: so a real one is
measured in another process.
"""

from __future__ import annotations

import threading

_lock = threading.Lock()
_done = False


def register() -> None:
    """Register the device; later calls do nothing."""
    global _done
    with _lock:
        if _done:
            return
        _register()
        _done = True


def _register() -> None:
    import torch

    from gpututor.simgpu.versions import check_torch

    check_torch(torch.__version__)

    from gpututor.cards import DEFAULT_MACHINE, machine
    from gpututor.simgpu import (
        autograd,
        debugging,
        device_module,
        dispatch,
        exact,
        factories,
        files,
        making,
        patches,
        pauses,
        profiling,
        rng,
        sparse,
        whole_ops,
    )
    from gpututor.simgpu.forms import DEVICE_NAME
    from gpututor.simgpu.precision import amp
    from gpututor.simgpu.private.device import PrivateUse1Hooks, set_up_backend
    from gpututor.simgpu.session import Session, current

    class Hooks(PrivateUse1Hooks):  # type: ignore[misc]
        def is_available(self) -> bool:
            return True

        def has_primary_context(self, index: int) -> bool:
            return True

        def is_built(self) -> bool:
            return True

    # what runs outside any session is accounted on the default machine, without a tape
    current.session = Session(machine(DEFAULT_MACHINE), keep_tape=False)
    current.session.counts_modules = False  # nothing is simulated yet
    set_up_backend(DEVICE_NAME, backend_module=device_module.build(), hook=Hooks(), device_guard=autograd.Guard())
    autograd.wrap_engine()
    autograd.watch_optimizers()
    factories.register_factories()
    whole_ops.register_whole_ops()
    exact.register_exact()
    amp.register_autocast()
    rng.register_rng()
    files.register_files()
    sparse.register_sparse()
    making.pin_in_factories()
    patches.apply_all()
    debugging.account_kept_stacks()
    pauses.register_pauses()
    profiling.account_profilers()
    assert dispatch.plans is not None  # imported for its registration on the tensor class
