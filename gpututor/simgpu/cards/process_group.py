"""`torch.distributed`'s process group among simulated ranks: real sums, virtual time.

Every collective does two things: the ranks' meeting lets it start in virtual time when the last of them has come, and
the numbers are put together on the host, summed in the order of the ranks. It returns at once, like NCCL's; the
current stream waits for it where the program waits (`Work.wait`), and autograd at the end of its backward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch.distributed import ReduceOp
from torch.distributed.distributed_c10d import Work

from gpututor.model.exchange import RECEIVE, SEND, RanksExchange, WaitExchange
from gpututor.model.host import PHASES
from gpututor.simgpu.cards.ddp_seams import give_plain_memory
from gpututor.simgpu.cards.numbers import fill, fold, numbers
from gpututor.simgpu.private.asked import NAMES_BEFORE_2_13
from gpututor.simgpu.private.device import ENGINE
from gpututor.simgpu.private.ranks import WORLD
from gpututor.simgpu.session import current, phase, thread
from gpututor.simgpu.tensor import SimTensor

if TYPE_CHECKING:
    from gpututor.simgpu.cards.distributed import World

_ProcessGroup: Any = dist.ProcessGroup  # its stubs list overloads that torch itself never calls from Python
Tensors = Sequence[torch.Tensor]
Combine = Callable[[list[Any]], None]  # what all ranks of a group gave, in the group's order


class Exchanged(Work):
    """A collective on its way; its numbers are there already, its time is not."""

    def __init__(self, value: Any, number: int, card: int, wait_on_host: bool) -> None:
        super().__init__()
        self._value, self._number, self._card, self._on_host = value, number, card, wait_on_host
        self._waited = False

    def wait(self, timeout: timedelta | None = None) -> bool:
        """The current stream goes on only after the collective."""
        if not self._waited:
            self._waited = True
            current.session.account(WaitExchange(self._number, self._card, self._on_host))
        return True

    def synchronize(self) -> None:
        """The same."""
        self.wait()

    def is_completed(self) -> bool:
        """Whether it is done; true where it was waited for."""
        return self._waited

    def get_future(self) -> Any:
        """A finished future. In a backward pass its end is what waits, as DDP's reducer does; else the call itself."""
        if thread.backward_depth:
            ENGINE.queue_callback(self.synchronize)
        else:
            self.wait()
        future: Any = torch.futures.Future()
        future.set_result(self._value)
        return future


class RanksGroup(_ProcessGroup):  # type: ignore[misc]
    """One rank's end of a process group."""

    def __init__(self, world: World, rank: int, ranks: tuple[int, ...]) -> None:
        super().__init__(rank, len(ranks))
        self.world, self._rank, self._ranks = world, rank, ranks
        self.asks_for_pinned = False  # DDP looks for unused parameters

    def size(self) -> int:
        """How many ranks it has."""
        return len(self._ranks)

    def getBackendName(self) -> str:  # noqa: N802  # torch's name
        """The name to which init_process_group was led."""
        return "simgpu"

    @property
    def pg_name(self) -> str:
        """The name torch.distributed gave it."""
        name: str = WORLD.now().pg_names[self]
        return name

    @property
    def group_name(self) -> str:
        """The same."""
        return self.pg_name

    # --- collectives ------------------------------------------------------------------------------------------

    def _meet(self, kind: str, given: Any, tensor: torch.Tensor, n_bytes: int, combine: Combine, value: Any) -> Work:
        """Come to a collective and go on when all have; the last one to come combines the numbers."""
        on_card = type(tensor) is SimTensor
        card = tensor.form.device.index if isinstance(tensor, SimTensor) else thread.card
        number = self.world.next_number()
        exchange = RanksExchange(kind, n_bytes, self._ranks, number, card, PHASES[phase()])
        self.world.meet(exchange, given, combine)
        return Exchanged(value, number, card, wait_on_host=kind == "barrier" or not on_card)

    def allreduce(self, tensors: Tensors, opts: Any = None) -> Work:
        """Every rank gets the sum (or another reduction) of all."""
        op = ReduceOp.SUM if opts is None else opts.reduceOp
        (tensor,) = tensors

        def combine(given: list[Any]) -> None:
            total = fold(op, given)
            for t in given:
                fill(t, total)

        work = self._meet("all_reduce", tensor, tensor, tensor.nbytes, combine, list(tensors))
        if self.asks_for_pinned and thread.backward_depth:
            give_plain_memory()
        return work

    def allreduce_coalesced(self, tensors: Tensors, opts: Any = None) -> Work:
        """Several at once."""
        op = ReduceOp.SUM if opts is None else opts.reduceOp

        def combine(given: list[Any]) -> None:
            for same in zip(*given, strict=True):
                total = fold(op, same)
                for t in same:
                    fill(t, total)

        n_bytes = sum(t.nbytes for t in tensors)
        return self._meet("all_reduce", tensors, tensors[0], n_bytes, combine, list(tensors))

    def reduce(self, tensors: Tensors, opts: Any = None) -> Work:
        """One rank gets the reduction of all."""
        root = 0 if opts is None else opts.rootRank
        op = ReduceOp.SUM if opts is None else opts.reduceOp
        (tensor,) = tensors
        return self._meet(
            "reduce", tensor, tensor, tensor.nbytes, lambda given: fill(given[root], fold(op, given)), list(tensors)
        )

    def broadcast(self, tensors: Tensors, opts: Any = None) -> Work:
        """Every rank gets one rank's values."""
        root = 0 if opts is None else opts.rootRank

        def combine(given: list[Any]) -> None:
            for k, theirs in enumerate(given):
                if k != root:
                    for target, source in zip(theirs, given[root], strict=True):
                        fill(target, numbers(source))

        n_bytes = sum(t.nbytes for t in tensors)
        return self._meet("broadcast", tensors, tensors[0], n_bytes, combine, list(tensors))

    def allgather(self, outs: Any, tensors: Tensors, opts: Any = None) -> Work:
        """Every rank gets all ranks' values."""
        (tensor,) = tensors

        def combine(given: list[Any]) -> None:
            for theirs, _ in given:
                for target, (_, source) in zip(theirs, given, strict=True):
                    fill(target, numbers(source))

        n_bytes = tensor.nbytes * len(self._ranks)
        return self._meet("all_gather", (list(outs[0]), tensor), tensor, n_bytes, combine, list(outs))

    def all_gather_single(self, out: torch.Tensor, tensor: torch.Tensor, opts: Any = None) -> Work:
        """The same into one tensor."""
        return self.allgather([list(out.view(len(self._ranks), *tensor.shape).unbind(0))], [tensor], opts)

    def reduce_scatter(self, outs: Tensors, parts: Any, opts: Any = None) -> Work:
        """Every rank gets its part of the reduction."""
        op = ReduceOp.SUM if opts is None else opts.reduceOp
        (out,), (mine,) = outs, parts

        def combine(given: list[Any]) -> None:
            totals = [fold(op, [theirs[k] for _, theirs in given]) for k in range(len(given))]
            for (target, _), total in zip(given, totals, strict=True):
                fill(target, total)

        n_bytes = out.nbytes * len(self._ranks)
        return self._meet("reduce_scatter", (out, list(mine)), out, n_bytes, combine, list(outs))

    def reduce_scatter_single(self, out: torch.Tensor, tensor: torch.Tensor, opts: Any = None) -> Work:
        """The same from one tensor."""
        return self.reduce_scatter([out], [list(tensor.view(len(self._ranks), *out.shape).unbind(0))], opts)

    def alltoall(self, outs: Tensors, tensors: Tensors, opts: Any = None) -> Work:
        """Rank i gets the i-th tensor of every rank."""

        def combine(given: list[Any]) -> None:
            for k, (theirs, _) in enumerate(given):
                for target, (_, sent) in zip(theirs, given, strict=True):
                    fill(target, numbers(sent[k]))

        n_bytes = sum(t.nbytes for t in tensors)
        return self._meet("all_to_all", (list(outs), list(tensors)), tensors[0], n_bytes, combine, list(outs))

    def gather(self, outs: Any, tensors: Tensors, opts: Any = None) -> Work:
        """One rank gets all ranks' values."""
        root = 0 if opts is None else opts.rootRank
        (tensor,) = tensors
        mine = list(outs[0]) if outs else []

        def combine(given: list[Any]) -> None:
            for target, (_, source) in zip(given[root][0], given, strict=True):
                fill(target, numbers(source))

        n_bytes = tensor.nbytes * len(self._ranks)
        return self._meet("gather", (mine, tensor), tensor, n_bytes, combine, list(outs))

    def scatter(self, outs: Tensors, parts: Any, opts: Any = None) -> Work:
        """Every rank gets its part of one rank's values."""
        root = 0 if opts is None else opts.rootRank
        (out,) = outs
        mine = list(parts[0]) if parts else []

        def combine(given: list[Any]) -> None:
            for (target, _), source in zip(given, given[root][1], strict=True):
                fill(target, numbers(source))

        n_bytes = out.nbytes * len(self._ranks)
        return self._meet("scatter", (out, mine), out, n_bytes, combine, list(outs))

    def barrier(self, opts: Any = None) -> Work:
        """All wait for all; the host too."""
        return self._meet("barrier", None, torch.empty(0), 0, lambda given: None, [])

    # --- one rank to another ----------------------------------------------------------------------------------

    def send(self, tensors: Tensors, dst: int, tag: int = 0) -> Work:
        """A message to one rank of the group, which goes its way whether that rank waits for it or not."""
        (tensor,) = tensors
        exchange = self._message(SEND, (self._rank, dst), tensor)
        self.world.mail.send(self.world, exchange, tensor)
        return self._on_its_way(exchange, tensor)

    def recv(self, tensors: Tensors, src: int, tag: int = 0) -> Work:
        """The next message of one rank; others have their turn until it is sent."""
        (tensor,) = tensors
        exchange = self._message(RECEIVE, (src, self._rank), tensor)
        self.world.mail.receive(self.world, exchange, tensor)
        return self._on_its_way(exchange, tensor)

    def recv_anysource(self, tensors: Tensors, tag: int = 0) -> Work:
        """Not there."""
        raise NotImplementedError(
            "a simulated rank can't receive from whichever rank sends first, because ranks take turns and each run "
            "must give the same times; say from which rank: dist.recv(tensor, src=0)"
        )

    def _message(self, kind: str, pair: tuple[int, int], tensor: torch.Tensor) -> RanksExchange:
        if self.world.in_step:
            raise NotImplementedError(
                f"{kind} needs ranks that really run, and with in_step=True only rank 0 does; launch without in_step"
            )
        card = tensor.form.device.index if isinstance(tensor, SimTensor) else thread.card
        ranks = self._ranks[pair[0]], self._ranks[pair[1]]
        return RanksExchange(kind, tensor.nbytes, ranks, self.world.next_number(), card, PHASES[phase()])

    def _on_its_way(self, exchange: RanksExchange, tensor: torch.Tensor) -> Work:
        on_host = not isinstance(tensor, SimTensor)
        return Exchanged([tensor], exchange.number, exchange.card, wait_on_host=on_host)


for _old, _new in NAMES_BEFORE_2_13.items():
    setattr(RanksGroup, _old, getattr(RanksGroup, _new))
