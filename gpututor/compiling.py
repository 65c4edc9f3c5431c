"""`gpututor.compile`: torch.compile on a real GPU, its account on a simulated one."""

from __future__ import annotations

from typing import Any


def compile(model: Any = None, **options: Any) -> Any:  # noqa: A001  # torch's own name
    """The model or function compiled; without one, a decorator. Options are those of `torch.compile`.

    Where there is a CUDA GPU and nothing simulated, this is torch.compile itself. On the simulated GPU the code runs as
    it is, and only the account of its kernels and launches is that of compiled code.
    """
    import torch

    if not torch.cuda.is_available():
        from gpututor.simgpu import register

        register()  # which puts the simulated GPU's compile in the place of torch's
    return torch.compile(model, **options)
