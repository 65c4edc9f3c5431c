"""Weights in fp16 with fp32 masters beside them, as apex's O2 keeps them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from gpututor.simgpu.private.operators import FOREACH_COPY


class HalfWeights:
    """fp32 masters of fp16 weights: scaled backward, gradients to the masters, new weights back.

    What one step costs on the card: a scaling of the loss, one kernel list that reads the fp16 gradients and writes
    fp32 ones with a check for overflow, a wait of the host for that check, and one list that writes fp16 weights.

    Source: NVIDIA/apex, apex/amp/_process_optimizer.py and scaler.py (multi_tensor_scale, `_overflow_buf.item()`).
    """

    def __init__(self, weights: Sequence[Tensor], scale: float) -> None:
        self.weights, self.scale = list(weights), scale
        self.masters = [torch.nn.Parameter(w.detach().float()) for w in weights]
        self.overflow = torch.zeros(1, device=self.weights[0].device)

    def backward(self, loss: Tensor) -> None:
        """Gradients of the masters."""
        for w in self.weights:
            w.grad = None  # so that autograd hands gradients over instead of adding
        self.overflow.zero_()
        torch.autograd.backward(loss.float() * self.scale)
        pairs = [(w.grad, m) for w, m in zip(self.weights, self.masters, strict=True) if w.grad is not None]
        for _, master in pairs:
            if master.grad is None:
                master.grad = torch.empty_like(master)
        FOREACH_COPY([m.grad for _, m in pairs], [g for g, _ in pairs])
        self.overflow.item()

    def copy_back(self) -> None:
        """Write the masters into the weights."""
        with torch.no_grad():
            FOREACH_COPY(self.weights, self.masters)
