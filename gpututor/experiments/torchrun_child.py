"""What each process of a torchrun job does: train the small network of lesson 16 with the others, and note it.

`torch.distributed.run` starts it with RANK and WORLD_SIZE set; see `gpututor/experiments/torchrun.py`.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path

LOOK_EVERY_S = 0.2


def end_with_parent() -> None:
    """End this process when the one that started it is gone; torchrun's processes lead groups of their own."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(LOOK_EVERY_S)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="parent").start()


def main(folder: Path, n_steps: int, n_warmup: int, backend: str) -> None:
    """Train; rank 0 writes losses (means of all ranks) and nanoseconds of each step into `folder`."""
    end_with_parent()
    import torch
    import torch.distributed as dist

    from gpututor.jobs.several_cards import BATCH, PLAIN, Learning

    rank, n_ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(1)
    device = torch.device("cpu")
    if backend == "nccl":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    met = dist.FileStore(str(folder / "met"), n_ranks)  # type: ignore[attr-defined]  # no port that others could reach
    dist.init_process_group(backend, store=met, rank=rank, world_size=n_ranks)
    step = Learning(PLAIN, BATCH, device)
    losses, walls_ns = [], []
    for k in range(n_warmup + n_steps):
        began_ns = time.perf_counter_ns()
        loss = step(k)
        if backend == "nccl":
            torch.cuda.synchronize()
        walls_ns.append(time.perf_counter_ns() - began_ns)
        dist.all_reduce(loss)
        losses.append(float(loss) / n_ranks)
        if rank == 0:
            told = {"losses": losses, "walls_ns": walls_ns, "done": k + 1 == n_warmup + n_steps}
            (folder / "telling").write_text(json.dumps(told), encoding="utf-8")
            (folder / "telling").replace(folder / "told.json")  # so that nobody reads half of it
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    place = Path(sys.argv[1])
    try:
        main(place, int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
    except Exception as error:  # torchrun's own report has no word of it
        (place / "error").write_text(f"{type(error).__name__}: {error}", encoding="utf-8")
        raise
