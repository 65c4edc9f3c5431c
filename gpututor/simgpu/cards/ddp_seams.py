"""What torch.distributed and DistributedDataParallel need changed to run on simulated ranks.

Each rank has groups of its own, which torch keeps once a process. Backends are all led to the simulated one. DDP that
looks for unused parameters asks for pinned memory in C++, where no device in Python can give any.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

from gpututor.simgpu.private.ranks import World, isolate_threads
from gpututor.simgpu.private.tensors import TorchDispatchMode, push_dispatch_mode

BACKEND = "simgpu"
_installed = False


class _Groups(World):  # type: ignore[misc]
    """Torch's registry of process groups, one for each rank."""

    def __init__(self) -> None:
        super().__init__()
        self._own: dict[str, Any] = {
            name: {}
            for name in ("pg_map", "pg_names", "pg_group_ranks", "pg_backend_config", "tags_to_pg", "pg_to_tag")
        }
        self._count = 0

    @property
    def group_count(self) -> int:
        """How many groups were made, for names."""
        return self._count

    @group_count.setter
    def group_count(self, value: int) -> None:
        self._count = value


def _of_rank(name: str) -> property:
    return property(lambda self: self._own[name])


for _name in ("pg_map", "pg_names", "pg_group_ranks", "pg_backend_config", "tags_to_pg", "pg_to_tag"):
    setattr(_Groups, _name, _of_rank(_name))


def own_world() -> Any:
    """A rank's own registry of process groups."""
    return _Groups()


class _Unpinned(TorchDispatchMode):  # type: ignore[misc]
    """Ordinary host memory where C++ asks for pinned."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func is torch.ops.aten.is_pinned.default:
            return True
        if kwargs.get("pin_memory"):
            kwargs["pin_memory"] = False
        return func(*args, **kwargs)


def give_plain_memory() -> None:
    """Until the end of autograd's present node, which puts the thread's state back by itself."""
    push_dispatch_mode(_Unpinned())


def install(worlds: Any) -> None:
    """Close the seams, once a process; `worlds.running` says whether ranks are simulated at the moment."""
    global _installed
    if _installed:
        return
    _installed = True

    def create(options: Any, _: Any) -> Any:
        world = worlds.running
        ranks = list(options.global_ranks_in_group) or list(range(world.n_ranks))
        return world.group(ranks)

    dist.Backend.register_backend(BACKEND, create, extended_api=True, devices=["cpu", BACKEND])
    isolate_threads(True)
    init, new_group = c10d.init_process_group, c10d.new_group

    def init_process_group(backend: Any = None, init_method: Any = None, *args: Any, **kwargs: Any) -> None:
        world = worlds.running
        if world is None:
            init(backend, init_method, *args, **kwargs)
            return
        timeout = kwargs.get("timeout", args[0] if args else None)
        init(BACKEND, store=world.store, rank=world.own.rank, world_size=world.n_ranks, timeout=timeout)

    def group(ranks: Any = None, timeout: Any = None, backend: Any = None, *args: Any, **kwargs: Any) -> Any:
        if worlds.running is None:
            return new_group(ranks, timeout, backend, *args, **kwargs)
        return new_group(ranks, timeout, BACKEND)

    for module in (c10d, dist):
        module.init_process_group = init_process_group  # type: ignore[attr-defined]
        module.new_group = group  # type: ignore[attr-defined]
        _answer_yes(module, "is_nccl_available", worlds)
    _note_unused(torch.nn.parallel.DistributedDataParallel)


def _answer_yes(module: Any, name: str, worlds: Any) -> None:
    """NCCL is there while ranks are simulated."""
    truly: Callable[[], bool] = getattr(module, name)
    setattr(module, name, lambda: worlds.running is not None or truly())


def _note_unused(ddp: Any) -> None:
    """Tell the process group whether DDP will look for unused parameters."""
    make = ddp.__init__

    def make_and_note(self: Any, *args: Any, **kwargs: Any) -> None:
        make(self, *args, **kwargs)
        if self.find_unused_parameters and hasattr(self.process_group, "asks_for_pinned"):
            self.process_group.asks_for_pinned = True

    ddp.__init__ = make_and_note
