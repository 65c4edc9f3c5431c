"""Copies from the host that change the number format on the way: who converts, and how many bytes cross.

CUDA's own copy converts on the host and sends what comes out, from ordinary memory even when the source was pinned;
with `non_blocking=True` it sends the source as it is and converts on the card. Source: PyTorch,
aten/src/ATen/native/cuda/Copy.cu, `copy_kernel_cuda`.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from gpututor.model.lowering.shape import walk
from gpututor.model.spec import HostKind, OpCost
from gpututor.model.tape import HostWork
from gpututor.simgpu.memory import Block
from gpututor.simgpu.plans import Plan
from gpututor.simgpu.session import Session, phase
from gpututor.timeline import Activity

CONVERSION_BYTES_PER_S = 8e9
"""Bytes read and written by one thread that converts, an assumption: a core's plain copy of memory moves about that."""

CopyIn = Callable[[Session, str, torch.Tensor, int, bool, int], None]
NAME = "copy to the GPU"


def copy_converting(
    session: Session, source: torch.Tensor, wanted: torch.dtype, non_blocking: bool, card: int, copy: CopyIn
) -> None:
    """Account a copy of `source` to a card where it gets another number format; `copy` accounts a plain one."""
    n_source, n_wanted = source.numel() * source.element_size(), source.numel() * wanted.itemsize
    if source.dtype == wanted:
        copy(session, NAME, source, n_source, non_blocking, card)
    elif non_blocking:
        beside = Block(n_source, session.memories[card])  # what arrives, until it is converted
        copy(session, NAME, source, n_source, True, card)
        plan = Plan("copy_")
        plan.cost = OpCost(HostKind.COPY, walk("copy_", source.numel(), n_source + n_wanted))
        session.account(plan.entry(phase()))
        del beside
    else:
        ns = round((n_source + n_wanted) / CONVERSION_BYTES_PER_S * 1e9)
        session.account(HostWork(Activity.DISPATCH, "conversion on the host", ns))
        copy(session, NAME, _FRESH, n_wanted, False, card)


_FRESH = torch.empty(0)  # stands for the converted tensor: ordinary memory, never pinned
