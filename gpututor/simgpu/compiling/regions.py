"""Collects the ops of a compiled region and accounts the kernels that Inductor would have made of them.

The code inside runs as it is and gives the same numbers; only the account differs. What a compiler can't follow
breaks a region in parts: a value that the host reads, a shape that data decide, a recurrent layer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from gpututor.errors import GraphBreak
from gpututor.model.compiled_layout import before_fusion
from gpututor.model.fusion import Node, Part, fuse
from gpututor.model.kernels import Stream
from gpututor.model.spec import HostKind
from gpututor.model.tape import CopyCall, GraphReplay, HostWork, ModuleCall, Sync, TapeOp, UseStream
from gpututor.simgpu.compiling.fusible import RANDOM, Numbered, nodes_of, tensors_in
from gpututor.simgpu.compiling.guards import COMPILE_BASE_NS, COMPILE_OP_NS, Version
from gpututor.simgpu.graphs.capturing import without_kernels
from gpututor.simgpu.private.modules import tree_leaves
from gpututor.simgpu.watching import Listener
from gpututor.timeline import Activity

if TYPE_CHECKING:
    from gpututor.model.tape import Entry

FREEING = "cudaFree"
FORWARD, BACKWARD = "compiled", "compiled_backward"
CALLS = {phase: TapeOp("compiled call", HostKind.CALL, phase) for phase in (FORWARD, BACKWARD)}
BREAKS = frozenset({HostKind.RNN, HostKind.SYNC})
"""Dynamo doesn't follow recurrent layers (torch/_dynamo/config.py, allow_rnn is off) nor values that the host reads."""


@dataclass(frozen=True, slots=True)
class Made:
    """The calls that one part of a region became."""

    ops: tuple[TapeOp, ...]
    replay: GraphReplay


class Parts:
    """Parts of regions that were seen before, by their ops and how memory connects them."""

    def __init__(self) -> None:
        self._made: dict[Any, Made] = {}
        self._numbers: dict[TapeOp, int] = {}

    def number(self, op: TapeOp) -> int:
        """A number for an op, the same for equal ones."""
        return self._numbers.setdefault(op, len(self._numbers))

    def made_of(self, key: Any, nodes: list[Node], kept: frozenset[int], phase: str, inference: bool) -> Made:
        """The calls for these nodes."""
        made = self._made.get(key)
        if made is None:
            joinable = before_fusion(nodes, inference=inference)
            ops = tuple(TapeOp(f.name, f.host, phase, f.kernels) for f in fuse(joinable, kept))
            made = self._made[key] = Made(ops, GraphReplay(-1 - len(self._made), ops))
        return made


parts = Parts()


class Region(Listener):
    """One run through a compiled function, or through its backward."""

    def __init__(
        self,
        version: Version,
        phase: str,
        *,
        graphs: bool,
        fullgraph: bool,
        copied_bytes: int = 0,
        inference: bool = False,
    ) -> None:
        self.version, self.phase, self.graphs, self.fullgraph = version, phase, graphs, fullgraph
        self.inference = inference  # no gradient will be asked for
        self._copied_bytes = copied_bytes  # of inputs that a graph reads at a place of its own
        self._pending: list[TapeOp] = []
        self._late: list[TapeOp] = []
        self._n_parts = 0
        self._begin_part()
        self.on_backward_done: Callable[[], None] | None = None

    def _begin_part(self) -> None:
        self._nodes: list[Node] = []
        self._flow: list[Any] = []
        self._memory = Numbered()

    # --- what the program does --------------------------------------------------------------------------------

    def account(self, entry: Entry) -> None:
        """Take ops; let everything else through, after what came before it."""
        if type(entry) is ModuleCall:
            return  # compiled code calls no module
        if type(entry) is TapeOp:
            if entry.host in BREAKS:
                self._break(entry.name)
                self.onward(entry)
            elif entry.host is not HostKind.FREE:
                self._pending.append(entry)
            elif self.phase == BACKWARD:
                self._late.append(entry)
        elif isinstance(entry, HostWork) or (isinstance(entry, Sync) and entry.name == FREEING):
            self.onward(entry)  # of the allocator, which must not be given memory back meanwhile
        elif isinstance(entry, UseStream) or (isinstance(entry, CopyCall) and entry.to_gpu):
            self._flush(None, same_graph=True)
            self.onward(entry)
        else:
            self._break(getattr(entry, "name", "a wait"))
            self.onward(entry)

    def after(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> None:
        """An op ran."""
        self._note(op, args, kwargs, out)

    def whole(self, compute: Any, note: Any, tensors: tuple[Any, ...], outs: tuple[Any, ...]) -> None:
        """A whole op ran forward."""
        self._note(None, tensors, {}, outs)

    def whole_backward(self, note: Any, tensors: tuple[Any, ...], grads: tuple[Any, ...]) -> None:
        """A whole op ran backward."""
        self._note(None, tensors, {}, grads)

    def backward_done(self) -> None:
        """The engine has ended; no edge may have closed the region, where no input needs a gradient."""
        if self.on_backward_done is not None:
            self.on_backward_done()

    def _note(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], outs: Any) -> None:
        entries, self._pending = self._pending, []
        if not entries:
            return
        made = nodes_of(op, args, kwargs, outs, entries, self._memory)
        if made:
            self._nodes += made
            self._flow.append((tuple(map(parts.number, entries)), tuple((n.reads, n.writes) for n in made)))

    # --- ends of a part ---------------------------------------------------------------------------------------

    def end(self, outs: Any = None) -> None:
        """The region is over; `outs` is what it gives back."""
        self._flush(outs, same_graph=False)
        for entry in self._late:
            self.onward(entry)
        self._late.clear()

    def _break(self, why: str) -> None:
        if self.fullgraph:
            raise GraphBreak(
                f"torch.compile(fullgraph=True) can't follow {why}, because the host reads a value there or the layer "
                "is recurrent; leave fullgraph out, or move that line out of the compiled function"
            )
        self._flush(None, same_graph=False)

    def _flush(self, outs: Any, same_graph: bool) -> None:
        if not self._nodes:
            return
        kept = self._kept(outs)
        key = (self.phase, self.inference, tuple(self._flow), kept)
        made = parts.made_of(key, self._nodes, kept, self.phase, self.inference)
        self._charge_compiling(len(self._nodes))
        n_before = self.version.n_runs.get(key, 0)
        self.version.n_runs[key] = n_before + 1
        self.onward(CALLS[self.phase])
        if not self.graphs or n_before == 0:
            for op in made.ops:
                self.onward(op)
        else:
            if n_before == 1:  # recorded: the host does all it does, and nothing is launched
                for op in made.ops:
                    self.onward(without_kernels(op))
            if self._copied_bytes:
                self.onward(_copy_of_inputs(self._copied_bytes, self.phase))
            self.onward(made.replay)
        self._n_parts += not same_graph
        self._begin_part()

    def _charge_compiling(self, n_nodes: int) -> None:
        place = (self.phase, self._n_parts)
        if place in self.version.compiled:
            return
        base_ns = 0 if self.version.compiled else COMPILE_BASE_NS
        self.version.compiled.add(place)
        self.onward(HostWork(Activity.STARTUP, "torch.compile", base_ns + n_nodes * COMPILE_OP_NS))

    def _kept(self, outs: Any) -> frozenset[int]:
        """Blocks that are read later: results, what was there before and was changed, and what backward needs.

        What autograd keeps only because eager ops need it, Inductor computes again in the backward kernel, if it
        is elementwise (the partitioner's choice in torch/_functorch/partitioners.py); so it needn't be written.
        """
        numbers = self._memory.numbers
        living = set(numbers.values())
        if self.phase == FORWARD and outs is not None:
            given = {numbers.get(t.block) for t in tensors_in(list(_leaves(outs)))}
            living = {k for k in living if k in given or k in self._memory.outside or not self._cheap(k)}
        return frozenset(living)

    def _cheap(self, tensor: int) -> bool:
        """Whether only elementwise ops without chance made this block."""
        makers = [n for n in self._nodes if any(k == tensor for k, _ in n.writes)]
        return all(n.part is Part.ELEMENTS and n.name not in RANDOM for n in makers)


@lru_cache(maxsize=256)  # a pricer knows ops by identity
def _copy_of_inputs(n_bytes: int, phase: str) -> TapeOp:
    return TapeOp("copy inputs", HostKind.FOREACH, phase, (Stream("copy inputs", 2 * n_bytes, max(1, n_bytes // 4)),))


def _leaves(value: Any) -> Iterable[Any]:
    leaves: list[Any] = tree_leaves(value)
    return leaves
