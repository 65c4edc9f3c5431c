"""GPT-2 as Megatron-LM trains it: length first, biases fused with what follows, one flat buffer of gradients.

Source of every fact here: NVIDIA/Megatron-LM core_r0.5.0 (megatron/model/transformer.py, core/tensor_parallel,
core/distributed, core/fusions), as huggingface/accelerate 1.0 runs it: one call of the model clears the gradients, goes
forward and backward, sums over the cards, clips and updates (accelerate/utils/megatron_lm.py, train_step). NeuSight's
data-parallel points time exactly that call (sitar-lab/NeuSight scripts/asplos/collect_label_distributed.py).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, distributed, nn

from gpututor.workloads.language.gpt2 import SIZES, Size
from gpututor.workloads.setting import Job, Setting, Workload
from gpututor.workloads.training import prepared

F = nn.functional


def _biased_gelu(bias: Tensor, x: Tensor) -> Tensor:
    moved = bias + x
    return moved * 0.5 * (1.0 + torch.tanh(0.79788456 * moved * (1 + 0.044715 * moved * moved)))


def _added(x: Tensor, bias: Tensor, to: Tensor) -> Tensor:
    return to + F.dropout(x + bias, 0.1, True)


class Layer(nn.Module):
    """A layer of GPT-2 over (length, batch, width); in fp32 mask and softmax are ops of their own."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_feed = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attend, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.widen, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.gelu, self.added = torch.compile(_biased_gelu), torch.compile(_added)  # TorchScript there

    def forward(self, x: Tensor, hidden: Tensor) -> Tensor:
        """The shape of `x`; `hidden` is true where a place may not look."""
        seen = self._attention(self.before_attention(x), hidden)
        x = self.added(F.linear(seen, self.project.weight), self.project.bias, x)
        wide = F.linear(self.before_feed(x), self.widen.weight)
        fed: Tensor = self.added(F.linear(self.gelu(self.widen.bias, wide), self.narrow.weight), self.narrow.bias, x)
        return fed

    def _attention(self, x: Tensor, hidden: Tensor) -> Tensor:
        length, batch, width = x.shape
        head = width // self.heads
        parts = F.linear(x, self.attend.weight) + self.attend.bias
        q, k, v = parts.view(length, batch, self.heads, 3 * head).split(head, dim=-1)  # type: ignore[no-untyped-call]
        q, k, v = (t.reshape(length, batch * self.heads, head).transpose(0, 1) for t in (q, k, v))
        blank = torch.empty(batch * self.heads, length, length, dtype=x.dtype, device=x.device)
        scores = torch.baddbmm(blank, q, k.transpose(1, 2), beta=0.0, alpha=1.0 / math.sqrt(head))
        scores = scores.view(batch, self.heads, length, length).masked_fill_(hidden, -10000.0)
        shares = F.dropout(F.softmax(scores, dim=-1), 0.1, self.training)
        seen = torch.bmm(shares.view(batch * self.heads, length, length), v)
        return seen.view(batch, self.heads, length, head).permute(2, 0, 1, 3).contiguous().view(length, batch, width)


class Loss(torch.autograd.Function):
    """Cross-entropy in separate steps over the scores, whose memory it uses again."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, targets: Tensor) -> Tensor:
        """The loss of each place."""
        scores = scores - scores.max(dim=-1)[0].unsqueeze(-1)
        rows, at = scores.view(-1, scores.shape[-1]), torch.arange(targets.numel(), device=scores.device)
        right = rows[at, targets.view(-1)].clone().view_as(targets)
        torch.exp(scores, out=scores)
        total = scores.sum(dim=-1)
        scores.div_(total.unsqueeze(-1))
        ctx.save_for_backward(scores, targets, at)
        return torch.log(total) - right

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        """The gradient of the scores."""
        shares, targets, at = ctx.saved_tensors
        shares.view(-1, shares.shape[-1])[at, targets.view(-1)] -= 1.0
        return shares.mul_(grad.unsqueeze(-1)), None


class MegatronGpt2(nn.Module):
    """GPT-2 with its words filled up to a multiple of 128."""

    hidden: Tensor

    def __init__(self, size: Size) -> None:
        super().__init__()
        words = -(-size.words // 128) * 128
        self.word, self.place = nn.Embedding(words, size.width), nn.Embedding(size.length, size.width)
        self.layers = nn.ModuleList(Layer(size.width, size.heads) for _ in range(size.layers))
        self.norm = nn.LayerNorm(size.width)
        hidden = torch.ones(1, 1, size.length, size.length, dtype=torch.bool).triu(1)
        self.register_buffer("hidden", hidden, persistent=False)

    def forward(self, ids: Tensor, targets: Tensor) -> Tensor:
        """The mean loss of (batch, length) words."""
        places = torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
        x = F.dropout((self.word(ids) + self.place(places)).transpose(0, 1).contiguous(), 0.1, self.training)
        for layer in self.layers:
            x = layer(x, self.hidden[:, :, : ids.shape[1], : ids.shape[1]])
        scores = F.linear(self.norm(x), self.word.weight)
        lost: Tensor = Loss.apply(scores.float(), targets.t().contiguous())  # type: ignore[no-untyped-call]
        return lost.mean()


class FlatGradients:
    """All gradients in one buffer, to which autograd's are added and which the cards sum at once, after backward."""

    def __init__(self, net: nn.Module) -> None:
        self.weights = list(net.parameters())
        self.buffer = torch.zeros(sum(p.numel() for p in self.weights), device=self.weights[0].device)
        self.places, start = dict[Tensor, Tensor](), 0
        for p in self.weights:
            self.places[p] = self.buffer[start : start + p.numel()].view_as(p)
            start += p.numel()
            p.register_post_accumulate_grad_hook(self._add)  # type: ignore[no-untyped-call]

    def _add(self, p: Tensor) -> None:
        assert p.grad is not None
        self.places[p].add_(p.grad)
        p.grad = None

    def sum_over_cards(self) -> None:
        """Divide by the number of cards and sum; then each weight's gradient is its place."""
        if distributed.is_initialized():
            self.buffer /= distributed.get_world_size()
            distributed.all_reduce(self.buffer)
        for p in self.weights:
            p.grad = self.places[p]

    def clear(self) -> None:
        """Zero the buffer."""
        self.buffer.zero_()
        for p in self.weights:
            p.grad = None


def _train(setting: Setting, device: str) -> Job:
    assert setting.batch is not None
    with torch.device(device):
        net = prepared(MegatronGpt2(SIZES[str(setting.options["size"])]), replace(setting, n_cards=1))
        ids = torch.ones(setting.batch, int(setting.options["length"]), dtype=torch.int64)
        gradients = FlatGradients(net)
    adam = torch.optim.AdamW(net.parameters(), lr=5e-5, fused=True)

    def step(k: int) -> Tensor:
        gradients.clear()
        loss: Tensor = net(ids, ids)
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it without annotations
        gradients.sum_over_cards()
        if setting.kind == "train":
            nn.utils.clip_grad_norm_(net.parameters(), 1.0, foreach=True).item()
            adam.step()
        return loss

    return Job(step, setting.batch)


GPT2_MEGATRON = Workload(
    "gpt2-megatron",
    "GPT-2 as Megatron-LM trains it with data parallelism: gradients summed at the end, clipped, fused Adam",
    "NVIDIA/Megatron-LM core_r0.5.0 with huggingface/accelerate 1.0; sitar-lab/NeuSight collect_label_distributed.py",
    "seq",
    1,
    _train,
    {"size": "gpt2-large", "length": 1024},
    ("train", "gradients"),
)
