"""The steps that NeuSight timed: a forward pass alone, or forward and backward whose gradients are never cleared."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from gpututor.workloads.setting import Setting, Step
from gpututor.workloads.training import autocast, steps

F = nn.functional


def gathering(net: nn.Module, scores_of: Callable[[], Tensor], targets: Tensor, setting: Setting, device: str) -> Step:
    """A step that adds its gradients to those of the steps before, as code without an optimizer does.

    The loss is the mean cross-entropy of all places, whatever the kind of network. NeuSight's clock stands still while
    the loss itself is computed, ours doesn't: some 0.3 % of a step.

    Source: sitar-lab/NeuSight neusight/Tracing/trace.py, measure_e2e.
    """
    if setting.kind == "infer":
        return steps(net, scores_of, setting, device, None)

    def step(k: int) -> Tensor:
        with autocast(setting, device):
            scores = scores_of()
            loss = F.cross_entropy(scores.flatten(0, -2), targets.flatten())
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it without annotations
        return loss

    return step
