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


class Summed(torch.autograd.Function):
    """Sums over the cards forward, what each has from its share of a table's rows; backward it is the identity."""

    @staticmethod
    def forward(_ctx: Any, x: Tensor) -> Tensor:
        """The sum, in the memory of `x`."""
        distributed.all_reduce(x)
        return x

    @staticmethod
    def backward(_ctx: Any, grad: Tensor) -> Tensor:
        """The same gradient on every card."""
        return grad


class Shared(torch.autograd.Function):
    """The identity forward, before a table whose columns the cards share; backward it sums the gradients."""

    @staticmethod
    def forward(_ctx: Any, x: Tensor) -> Tensor:
        """The input."""
        return x.view_as(x)

    @staticmethod
    def backward(_ctx: Any, grad: Tensor) -> Tensor:
        """The sum. Megatron computes the table's gradient meanwhile; here it comes before."""
        grad = grad.contiguous()
        distributed.all_reduce(grad)
        return grad


def _summed(x: Tensor, n_shares: int) -> Tensor:
    found: Tensor = Summed.apply(x) if n_shares > 1 else x  # type: ignore[no-untyped-call]
    return found


def _shared(x: Tensor, n_shares: int) -> Tensor:
    found: Tensor = Shared.apply(x) if n_shares > 1 else x  # type: ignore[no-untyped-call]
    return found


class Layer(nn.Module):
    """A layer of GPT-2 over (length, batch, width); in fp32 mask and softmax are ops of their own.

    With `n_shares`, each card has that share of the heads and of the feed-forward part.
    """

    def __init__(self, width: int, heads: int, n_shares: int = 1) -> None:
        super().__init__()
        self.heads, self.n_shares, inner = heads // n_shares, n_shares, width // n_shares
        self.before_attention, self.before_feed = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attend, self.project = nn.Linear(width, 3 * inner), nn.Linear(inner, width)
        self.widen, self.narrow = nn.Linear(width, 4 * inner), nn.Linear(4 * inner, width)
        self.gelu, self.added = torch.compile(_biased_gelu), torch.compile(_added)  # TorchScript there

    def forward(self, x: Tensor, hidden: Tensor) -> Tensor:
        """The shape of `x`; `hidden` is true where a place may not look."""
        n = self.n_shares
        seen = self._attention(_shared(self.before_attention(x), n), hidden)
        x = self.added(_summed(F.linear(seen, self.project.weight), n), self.project.bias, x)
        wide = self.gelu(self.widen.bias, F.linear(_shared(self.before_feed(x), n), self.widen.weight))
        fed: Tensor = self.added(_summed(F.linear(wide, self.narrow.weight), n), self.narrow.bias, x)
        return fed

    def _attention(self, x: Tensor, hidden: Tensor) -> Tensor:
        length, batch, _ = x.shape
        head = self.project.weight.shape[1] // self.heads
        parts = F.linear(x, self.attend.weight) + self.attend.bias
        q, k, v = parts.view(length, batch, self.heads, 3 * head).split(head, dim=-1)  # type: ignore[no-untyped-call]
        q, k, v = (t.reshape(length, batch * self.heads, head).transpose(0, 1) for t in (q, k, v))
        blank = torch.empty(batch * self.heads, length, length, dtype=x.dtype, device=x.device)
        scores = torch.baddbmm(blank, q, k.transpose(1, 2), beta=0.0, alpha=1.0 / math.sqrt(head))
        scores = scores.view(batch, self.heads, length, length).masked_fill_(hidden, -10000.0)
        shares = F.dropout(F.softmax(scores, dim=-1), 0.1, self.training)
        seen = torch.bmm(shares.view(batch * self.heads, length, length), v)
        return seen.view(batch, self.heads, length, head).permute(2, 0, 1, 3).contiguous().view(length, batch, -1)


class Loss(torch.autograd.Function):
    """Cross-entropy in separate steps over the scores, whose memory it uses again.

    With `n_shares` the cards share the words, and settle the largest score, the right one and the sum together.
    """

    @staticmethod
    def forward(ctx: Any, scores: Tensor, targets: Tensor, n_shares: int) -> Tensor:
        """The loss of each place."""
        most = scores.max(dim=-1)[0]
        if n_shares > 1:
            distributed.all_reduce(most, op=distributed.ReduceOp.MAX)
        scores = scores - most.unsqueeze(-1)
        rows, at = scores.view(-1, scores.shape[-1]), torch.arange(targets.numel(), device=scores.device)
        right = rows[at, targets.view(-1)].clone().view_as(targets)
        torch.exp(scores, out=scores)
        total = scores.sum(dim=-1)
        if n_shares > 1:
            distributed.all_reduce(right)
            distributed.all_reduce(total)
        scores.div_(total.unsqueeze(-1))
        ctx.save_for_backward(scores, targets, at)
        return torch.log(total) - right

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        """The gradient of the scores."""
        shares, targets, at = ctx.saved_tensors
        shares.view(-1, shares.shape[-1])[at, targets.view(-1)] -= 1.0
        return shares.mul_(grad.unsqueeze(-1)), None, None


class MegatronGpt2(nn.Module):
    """GPT-2 with its words filled up to a multiple of 128."""

    hidden: Tensor

    def __init__(self, size: Size, n_shares: int = 1) -> None:
        super().__init__()
        self.n_shares, each = n_shares, 128 * n_shares
        words = -(-size.words // each) * each // n_shares
        self.word, self.place = nn.Embedding(words, size.width), nn.Embedding(size.length, size.width)
        self.layers = nn.ModuleList(Layer(size.width, size.heads, n_shares) for _ in range(size.layers))
        self.norm = nn.LayerNorm(size.width)
        hidden = torch.ones(1, 1, size.length, size.length, dtype=torch.bool).triu(1)
        self.register_buffer("hidden", hidden, persistent=False)

    def forward(self, ids: Tensor, targets: Tensor) -> Tensor:
        """The mean loss of (batch, length) words."""
        places = torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
        words = self.word(ids)
        if self.n_shares > 1:  # words of other cards give zeros here
            words = _summed(words.masked_fill((ids < 0)[..., None], 0.0), self.n_shares)
        x = F.dropout((words + self.place(places)).transpose(0, 1).contiguous(), 0.1, self.training)
        for layer in self.layers:
            x = layer(x, self.hidden[:, :, : ids.shape[1], : ids.shape[1]])
        scores = F.linear(_shared(self.norm(x), self.n_shares), self.word.weight)
        lost: Tensor = Loss.apply(scores.float(), targets.t().contiguous(), self.n_shares)  # type: ignore[no-untyped-call]
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

    def gathered(self, over_cards: bool) -> None:
        """Divide by the number of cards and sum, if they have copies; then each weight's gradient is its place."""
        if over_cards and distributed.is_initialized():
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
    sharing = bool(setting.options["share_tensors"])
    n_shares = setting.n_cards if sharing else 1
    with torch.device(device):
        net = prepared(MegatronGpt2(SIZES[str(setting.options["size"])], n_shares), replace(setting, n_cards=1))
        ids = torch.ones(setting.batch, int(setting.options["length"]), dtype=torch.int64)
        gradients = FlatGradients(net)
    adam = torch.optim.AdamW(net.parameters(), lr=5e-5, fused=True)

    def step(k: int) -> Tensor:
        gradients.clear()
        loss: Tensor = net(ids, ids)
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it without annotations
        gradients.gathered(over_cards=not sharing)
        if setting.kind == "train":
            nn.utils.clip_grad_norm_(net.parameters(), 1.0, foreach=True).item()
            adam.step()
        return loss

    return Job(step, setting.batch / n_shares)


GPT2_MEGATRON = Workload(
    "gpt2-megatron",
    "GPT-2 as Megatron-LM trains it, cards with copies of it or with shares of each layer; clipped, fused Adam",
    "NVIDIA/Megatron-LM core_r0.5.0 with huggingface/accelerate 1.0; sitar-lab/NeuSight collect_label_distributed.py",
    "seq",
    1,
    _train,
    {"size": "gpt2-large", "length": 1024, "share_tensors": False},
    ("train", "gradients"),
)
