"""Llama 3 in plain torch, and training steps of its 8B size on a simulated H100; prints what they took as JSON.

Sizes: "The Llama 3 Herd of Models" (2024), table 3: 32 layers, width 4096, feed-forward 14336, 32 heads, 8 for keys and
values, 128256 words.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

import torch
from torch import nn

from gpututor.errors import GpututorError
from gpututor.simgpu import simulated_gpu


class RmsNorm(nn.Module):
    """Root mean square norm, with the mean in fp32."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        wide = x.float()
        return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-5)).type_as(x) * self.weight


def turned(x, cos, sin):
    """Rotary positions."""
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat((-b, a), -1) * sin


class Layer(nn.Module):
    """Attention with fewer heads for keys and values, and a gated feed-forward part."""

    def __init__(self, width, wide, heads, kv_heads):
        super().__init__()
        self.heads, self.kv_heads, self.head = heads, kv_heads, width // heads
        self.norm, self.norm2 = RmsNorm(width), RmsNorm(width)
        self.q = nn.Linear(width, width, bias=False)
        self.k, self.v = (nn.Linear(width, kv_heads * self.head, bias=False) for _ in "kv")
        self.o = nn.Linear(width, width, bias=False)
        self.gate, self.up = (nn.Linear(width, wide, bias=False) for _ in "gu")
        self.down = nn.Linear(wide, width, bias=False)

    def forward(self, x, cos, sin):
        b, s, c = x.shape
        h = self.norm(x)
        q, k, v = (p(h).view(b, s, -1, self.head).transpose(1, 2) for p in (self.q, self.k, self.v))
        q, k = turned(q, cos, sin), turned(k, cos, sin)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.o(y.transpose(1, 2).reshape(b, s, c))
        h = self.norm2(x)
        return x + self.down(nn.functional.silu(self.gate(h)) * self.up(h))


class Llama(nn.Module):
    """The language model."""

    def __init__(self, layers=32, width=4096, wide=14336, heads=32, kv_heads=8, words=128256):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.layers = nn.ModuleList(Layer(width, wide, heads, kv_heads) for _ in range(layers))
        self.norm, self.out = RmsNorm(width), nn.Linear(width, words, bias=False)
        self.head = width // heads

    def forward(self, ids):
        x = self.embedding(ids)
        speed = 500000.0 ** (-torch.arange(0, self.head, 2, device=ids.device) / self.head)
        angle = torch.arange(ids.shape[1], device=ids.device)[:, None] * speed[None].repeat(1, 2)
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.out(self.norm(x))


def train(machine, optimizer, dtype, batch, length, n_steps=3):
    """Account `n_steps` steps without numerics."""
    began = time.thread_time()
    with simulated_gpu(machine, numerics=False, what="Llama 3 8B") as sim:
        torch.set_default_dtype(dtype)
        with torch.device("simgpu"):
            net = Llama()
        built_s = time.thread_time() - began
        n_parameters = sum(p.numel() for p in net.parameters())
        weights = torch.simgpu.memory_allocated()
        opt = optimizer(net.parameters())
        ids = torch.randint(0, 128256, (batch, length + 1)).to("simgpu")
        for _ in range(n_steps):
            begun = time.thread_time()
            sim.begin_step(batch * length)
            loss = nn.functional.cross_entropy(net(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
            opt.zero_grad()
            loss.backward()
            opt.step()
            torch.simgpu.synchronize()
            step_cpu_s = time.thread_time() - begun
        sim.end_run()
        step = sim.timeline().steps[-1]
        step_s = (step.end_ns - step.start_ns) / 1e9
        flop = (6 * (n_parameters - net.embedding.weight.numel()) + 6 * 32 * 4096 * length) * batch * length
        return {
            "n_parameters": n_parameters,
            "weights_bytes": weights,
            "peak_bytes": torch.simgpu.max_memory_allocated(),
            "reserved_bytes": torch.simgpu.max_memory_reserved(),
            "step_s": step_s,
            "tokens_per_s": batch * length / step_s,
            "mfu": flop / step_s / sim.machine.card.peak("bf16"),
            "n_ops": sum(type(e).__name__ == "TapeOp" for e in sim.tape.entries),
            "built_s": built_s,
            "step_cpu_s": step_cpu_s,
        }


def peak_bytes() -> int:
    """The most memory this process held. `ru_maxrss` would count what its parent held when it was forked."""
    status = Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) * 1024 for line in status.read_text().splitlines() if "VmHWM" in line)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main():
    """Train with the optimizer that is named on the command line."""
    torch.set_num_threads(1)
    name, dtype = sys.argv[1], getattr(torch, sys.argv[2])
    batch, length = int(sys.argv[3]), int(sys.argv[4])
    make = {
        "sgd": lambda p: torch.optim.SGD(p, lr=0.01),
        "adamw": lambda p: torch.optim.AdamW(p, lr=1e-4),
    }[name]
    try:
        found = train("H100-SXM", make, dtype, batch, length)
    except (torch.OutOfMemoryError, GpututorError) as error:
        found = {"error": type(error).__name__, "words": str(error)}
    found["host_peak_bytes"] = peak_bytes()
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
