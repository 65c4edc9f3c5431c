"""torch.distributed among simulated ranks."""

from __future__ import annotations

from gpututor.simgpu.private.needing import need, seam

World = need(
    "torch.distributed.distributed_c10d._World",
    "a registry of process groups for each simulated rank",
    "ranks of one process would share their groups",
)
WORLD = seam(
    "torch.distributed.distributed_c10d._world",
    "putting a rank's registry in place when its turn comes",
    "ranks of one process would share their groups",
)
isolate_threads = need(
    "torch._C._distributed_c10d._set_thread_isolation_mode",
    "torch's own registry of groups below Python, one for each thread",
    "DDP's reducer finds the group of another rank",
)
