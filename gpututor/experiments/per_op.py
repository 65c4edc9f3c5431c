"""Where the host's time goes for each kernel it launches, worked out from a tape for any machine.

Only the clocks move, no spans are kept, so a whole sweep takes some milliseconds a machine.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpututor.cards import Host, Machine
from gpututor.errors import TimelineError
from gpututor.model.host import amount_us
from gpututor.model.spec import HostKind
from gpututor.model.tape import CopyCall, Entry, GraphReplay, HostWork, ModuleCall, Player, Pricer, Tape, TapeOp
from gpututor.timeline import Activity

WITH_GRADIENT = ("forward", "scripted")


@dataclass(frozen=True, slots=True)
class HostSplit:
    """A mean step, in nanoseconds: what the host does in it by who does it, what the card does, and the wall time.

    `autograd_ns` is what is done for a backward pass beyond the operators themselves: notes for it while the forward
    pass runs, autograd's engine, and storing gradients. `start_up_ns` is compiling. Waiting is in none of the parts.
    """

    step_ns: float
    python_ns: float
    framework_ns: float
    autograd_ns: float
    launch_ns: float
    start_up_ns: float
    card_ns: float
    n_kernels: float
    n_steps: int

    @property
    def host_ns(self) -> float:
        """The host's work in a step, compiling left out."""
        return self.python_ns + self.framework_ns + self.autograd_ns + self.launch_ns

    @property
    def host_ns_per_kernel(self) -> float:
        """The same for each kernel; 0 where none runs."""
        return self.host_ns / self.n_kernels if self.n_kernels else 0.0

    @property
    def launch_share(self) -> float:
        """The share of the host's work that is the driver's launch call."""
        return self.launch_ns / self.host_ns if self.host_ns else 0.0

    @property
    def busy_share(self) -> float:
        """The share of the step in which a kernel runs; kernels of one stream never overlap."""
        return min(1.0, self.card_ns / self.step_ns)


@dataclass(slots=True)
class _Sums:
    python_ns: int = 0
    framework_ns: int = 0
    autograd_ns: int = 0
    launch_ns: int = 0
    start_up_ns: int = 0
    n_kernels: int = 0

    def add(self, entry: Entry, pricer: Pricer) -> None:
        """Put what the host does for one entry to those who do it."""
        match entry:
            case TapeOp():
                op = pricer.op(entry)
                own_ns = min(op.dispatch_ns, _autograd_ns(entry, pricer.machine.host))
                self.python_ns += op.python_ns
                self.autograd_ns += own_ns
                self.framework_ns += op.dispatch_ns - own_ns
                self.launch_ns += op.launch_ns * len(op.kernels)
                self.n_kernels += len(op.kernels)
            case ModuleCall():
                self.python_ns += pricer.module_ns
            case GraphReplay():
                graph = pricer.graph(entry)
                self.framework_ns += graph.before_ns
                self.launch_ns += graph.launch_ns
                self.n_kernels += len(graph.work)
            case CopyCall():
                self.framework_ns += pricer.copy(entry)[1]
            case HostWork(activity=Activity.STARTUP):
                self.start_up_ns += entry.long_ns


def _autograd_ns(op: TapeOp, host: Host) -> int:
    """The part of an operator's dispatch that is there for gradients alone."""
    if op.phase == "backward" and op.host is HostKind.FREE:
        return round(1e3 * amount_us(host, "accumulate"))
    if op.host in (HostKind.FREE, HostKind.VIEW):
        return 0
    if op.phase == "backward":
        return round(1e3 * amount_us(host, "engine"))
    return round(1e3 * amount_us(host, "autograd")) if op.phase in WITH_GRADIENT else 0


def host_split(tape: Tape, machine: Machine) -> HostSplit:
    """A mean step of this tape on `machine`, the host's work split by who does it.

    Raises:
        TimelineError: the tape has no steps.
    """
    pricer, sums = Pricer(machine), _Sums()
    player = Player(pricer)
    for entry in tape.entries:
        player.play(entry)
        if player.begins:
            sums.add(entry, pricer)
    n = len(player.begins)
    if not n:
        raise TimelineError("the run has no steps, so no step's host time can be split; run the experiment again")
    end_ns = player.queue.host_ns if player.end_ns is None else player.end_ns
    return HostSplit(
        (end_ns - player.begins[0][0]) / n,
        sums.python_ns / n,
        sums.framework_ns / n,
        sums.autograd_ns / n,
        sums.launch_ns / n,
        sums.start_up_ns / n,
        player.queue.summed_kernel_ns / n,
        sums.n_kernels / n,
        n,
    )
