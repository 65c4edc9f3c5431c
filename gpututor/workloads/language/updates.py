"""Updates as NVIDIA's BERT scripts make them: BERT's first Adam, LAMB on half weights, and the "O2" of apex."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from gpututor.workloads.half_weights import HalfWeights


class FusedAdamO2:
    """apex's fused Adam under its "O2": the network is fp16, the update works on fp32 masters.

    All gradients are clipped to a common norm of 1, which the host reads; the update is one list of kernels; and each
    fp16 gradient is set to zero by a kernel of its own, though the next backward starts without it.

    Source: NVIDIA/apex apex/amp/_process_optimizer.py (2022); DeepLearningExamples run_squad.py, GradientClipper. In
    fine-tuning the norm is above 1 nearly always, so the gradients are always scaled here.
    """

    def __init__(self, net: nn.Module, lr: float = 3e-5) -> None:
        self.weights = HalfWeights([p for p in net.parameters() if p.requires_grad], scale=1.0)
        self.adam = torch.optim.Adam(self.weights.masters, lr=lr, fused=True)

    def backward(self, loss: Tensor) -> None:
        """Gradients of the masters; the host waits for a check of overflow."""
        self.weights.backward(loss)

    def step(self) -> None:
        """Clip, update, copy back, clear."""
        nn.utils.clip_grad_norm_(self.weights.masters, 1.0, foreach=True).item()
        self.adam.step()
        self.weights.copy_back()
        for half, master in zip(self.weights.weights, self.weights.masters, strict=True):
            master.grad = None
            if half.grad is not None:
                half.grad.zero_()


class BertAdam(torch.optim.Optimizer):
    """BERT's first Adam for torch: no bias correction, decay apart, each parameter by itself in some 15 ops.

    Source: DeepLearningExamples PyTorch/LanguageModeling/BERT/optimization.py, BertAdam.
    """

    def __init__(self, parameters: Iterable[Tensor], clipping_waits: bool, lr: float = 3e-5) -> None:
        super().__init__(parameters, {"lr": lr, "betas": (0.9, 0.999), "eps": 1e-6, "decay": 0.01})
        self.clipping_waits = clipping_waits

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """One update; the gradient of each parameter is clipped to a norm of 1 before."""
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self._update(p, group)

    def _update(self, p: Tensor, group: dict[str, Any]) -> None:
        state, (beta1, beta2), grad = self.state[p], group["betas"], p.grad
        assert grad is not None
        if not state:
            state["mean"], state["square"] = torch.zeros_like(p), torch.zeros_like(p)
        mean, square = state["mean"], state["square"]
        norm = nn.utils.clip_grad_norm_(p, 1.0, foreach=False)
        if self.clipping_waits:
            norm.item()
        mean.mul_(beta1).add_(grad, alpha=1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        update = mean / (square.sqrt() + group["eps"])
        if p.dim() > 1:  # biases and norms don't decay
            update += group["decay"] * p
        p.add_(-(group["lr"] * update))


class HalfLamb:
    """LAMB on fp32 masters of an fp16 network, each parameter by itself.

    Source: You et al. 2019, arXiv 1904.00962, algorithm 2. DeepLearningExamples BERT/lamb_amp_opt runs it as a few
    lists of kernels; it comes once in many micro-batches, where the difference is lost.
    """

    def __init__(self, net: nn.Module, lr: float = 6e-3) -> None:
        self.weights, self.lr = [p for p in net.parameters() if p.requires_grad], lr
        self.states = [tuple(torch.zeros_like(p, dtype=torch.float32) for _ in range(2)) for p in self.weights]
        self.masters = [p.detach().float() for p in self.weights]

    @torch.no_grad()
    def step(self) -> None:
        """One update by the gradients that have gathered, which are dropped."""
        nn.utils.clip_grad_norm_(self.weights, 1.0, foreach=True)
        for p, master, (mean, square) in zip(self.weights, self.masters, self.states, strict=True):
            if p.grad is None:
                continue
            grad = p.grad.float()
            mean.lerp_(grad, 0.1)
            square.mul_(0.999).addcmul_(grad, grad, value=0.001)
            update = mean / (square.sqrt() + 1e-6) + 0.01 * master
            master.sub_(update * (self.lr * master.norm() / update.norm()))
            p.copy_(master)
            p.grad = None
