"""Gradients averaged among cards as NVIDIA's apex does it, which its programs used before torch's own class.

It differs from torch's DistributedDataParallel in what the card has to do. Its buckets are larger: 10 million elements,
in the order in which the first backward pass gives gradients. A bucket is one new flat tensor, so gradients are copied
into it and back. And parameters that get no gradient are left out, where torch's class fails. Not modelled: apex
divides and copies back on a stream of its own beside the backward pass; here the main stream does it at the end.

Source: NVIDIA/apex apex/parallel/distributed.py (create_hooks, comm_ready_buckets, allreduce_bucket; defaults of
DistributedDataParallel), as BERT's run_squad.py, GNMT's trainer.py, SSD's main.py and the Transformer's ddp_trainer.py
of NVIDIA/DeepLearningExamples at 729963d use it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from gpututor.simgpu.private.device import ENGINE
from gpututor.simgpu.private.operators import FOREACH_COPY

MESSAGE_ELEMENTS = 10_000_000  # message_size, apex's default


class ApexParallel(nn.Module):
    """A network whose gradients are the mean over all ranks after each backward pass."""

    def __init__(self, net: nn.Module, message_elements: int = MESSAGE_ELEMENTS) -> None:
        super().__init__()
        self.module, self._least = net, message_elements
        self._buckets: list[list[Tensor]] = []
        self._came: dict[int, Tensor] = {}
        self._sent: list[tuple[Tensor, Any, list[Tensor]]] = []
        self._at_work = False
        for p in net.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(self._arrived)  # type: ignore[no-untyped-call]
                dist.broadcast(p.detach(), 0)

    def forward(self, *args: Any) -> Any:
        """What the network gives."""
        return self.module(*args)

    def _arrived(self, p: Tensor) -> None:
        if not self._at_work:
            self._at_work = True
            ENGINE.queue_callback(self._finish)
        self._came[id(p)] = p
        while len(self._sent) < len(self._buckets):  # buckets go in order
            bucket = self._buckets[len(self._sent)]
            if any(id(q) not in self._came for q in bucket):
                break
            self._send(bucket)

    def _send(self, bucket: list[Tensor]) -> None:
        """Copy the gradients into one tensor and let the ranks add them up meanwhile."""
        with torch.no_grad():
            flat = torch.cat([_gradient(p).reshape(-1) for p in bucket])
            self._sent.append((flat, dist.all_reduce(flat, async_op=True), bucket))

    def _finish(self) -> None:
        """At the end of a backward pass: send the first one's buckets, wait for all, divide, copy back."""
        if not self._buckets:
            self._buckets = buckets_of(list(self._came.values()), self._least)
        for bucket in self._buckets[len(self._sent) :]:
            self._send(bucket)
        with torch.no_grad():
            for flat, work, bucket in self._sent:
                work.wait()
                flat.div_(dist.get_world_size())
                parts = torch.split(flat, [p.numel() for p in bucket])
                FOREACH_COPY([_gradient(p) for p in bucket], [t.view_as(p) for t, p in zip(parts, bucket, strict=True)])
        self._came, self._sent, self._at_work = {}, [], False


def buckets_of(parameters: Sequence[Tensor], least: int) -> list[list[Tensor]]:
    """Parameters in buckets of one format, each closed when it holds `least` elements or more; the rest come last."""
    done: list[list[Tensor]] = []
    filling: dict[torch.dtype, list[Tensor]] = {}
    for p in parameters:
        bucket = filling.setdefault(p.dtype, [])
        bucket.append(p)
        if sum(q.numel() for q in bucket) >= least:
            done.append(filling.pop(p.dtype))
    return done + list(filling.values())


def _gradient(p: Tensor) -> Tensor:
    assert p.grad is not None, "a parameter's hook was called before it had a gradient"
    return p.grad
