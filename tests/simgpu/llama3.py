"""Training steps of Llama 3 8B on a simulated H100; prints what they took as JSON."""

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
from gpututor.workloads.language.llama import Llama


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
        flop = (6 * (n_parameters - net.word.weight.numel()) + 6 * 32 * 4096 * length) * batch * length
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
