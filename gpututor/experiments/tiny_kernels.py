"""Lesson 10: the same training step as it is, as TorchScript, compiled and as a CUDA graph, over the batch.

How long a step takes is asked of ResNet-50, by shape only: its arithmetic would take a laptop minutes. Whether all
ways learn the same is asked of a small network on molecules, which really trains. Two more questions go along: what
more molecules a step change, and what compiling costs when molecules differ in size.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from gpututor.experiments import sweeps
from gpututor.experiments.sweeps import Step, Variant
from gpututor.experiments.ways import NOT_ON_A_PROCESSOR, Training, Way
from gpututor.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch
    from torch import Tensor, nn

BATCHES = (1, 2, 4, 8, 16)
N_FIRST = 5  # steps from the very first on: compiling, recording and capturing are over by then
RESNET_RATE, MOLECULE_RATE, MOMENTUM = 0.1, 0.01, 0.9
LEARNED_BATCH, N_LEARNED, N_HELD_OUT = 16, 120, 256
CROWDS = (1, 200, 2000)  # molecules a step; 200 at a width of 150 is what pyg-team/pytorch_geometric#1169 had
WIDTH, CROWD_WIDTH = 48, 150
THREADS_BATCHES = (1, 8)  # the two ends of the table in pytorch/benchmark#706
SIZES = (13, 15, 16, 17, 18, 19, 21, 24)  # atoms of the eight batches that differ; 8 shapes as in pytorch#174704
MODES: dict[str, tuple[str, dict[str, Any]]] = {
    "fixed": ("every size anew (dynamic=False)", {"dynamic": False}),
    "auto": ("as torch decides", {}),
    "open": ("any size at once (dynamic=True)", {"dynamic": True}),
    "padded": ("padded to one size", {}),
}
WHAT = "lesson 10, tiny kernels"


def resnet50(way: Way, batch: int, device: torch.device, *, adam: bool = False) -> Step:
    """A training step of ResNet-50 on `batch` random pictures; with SGD, or as in pytorch/benchmark#706 with Adam.

    There the graph held an Adam that goes from parameter to parameter, as capturable ones did in January 2022.
    """
    import torch

    from gpututor.workloads.vision.resnets import ResNet50

    torch.manual_seed(0)
    net = ResNet50().to(device)
    optimizer: torch.optim.Optimizer
    if not adam:
        optimizer = torch.optim.SGD(net.parameters(), lr=RESNET_RATE, momentum=MOMENTUM)
    elif way is Way.GRAPH:
        optimizer = torch.optim.Adam(net.parameters(), capturable=True, foreach=False)
    else:
        optimizer = torch.optim.Adam(net.parameters())
    pictures = torch.randn(batch, 3, 224, 224, device=device)
    kinds = torch.randint(0, 1000, (batch,), device=device)
    train = Training(way, net, optimizer, _of_pictures, device)
    return lambda _k: train((pictures, kinds))


def _of_pictures(net: Any, batch: Sequence[Tensor]) -> Tensor:
    from torch import nn

    pictures, kinds = batch
    loss: Tensor = nn.functional.cross_entropy(net(pictures), kinds)
    return loss


def _of_molecules(net: Any, batch: Sequence[Tensor]) -> Tensor:
    *molecules, wanted = batch
    error: Tensor = net(*molecules, wanted) - wanted
    return (error * error).mean()


class Learning:
    """The network on molecules, trained in one way; every way sees the same molecules in the same order."""

    def __init__(
        self,
        way: Way,
        n: int,
        device: torch.device,
        *,
        n_batches: int = N_LEARNED,
        width: int = WIDTH,
        sizes: Sequence[int] = (),
        options: dict[str, Any] | None = None,
    ) -> None:
        import torch

        from gpututor.jobs.molecules import N_ATOMS, MessageNet, draw

        torch.manual_seed(0)
        self.net: nn.Module = MessageNet(width).to(device)
        optimizer = torch.optim.SGD(self.net.parameters(), lr=MOLECULE_RATE, momentum=MOMENTUM)
        self.train = Training(way, self.net, optimizer, _of_molecules, device, options)
        atoms = sizes or (N_ATOMS,)
        self.batches = [draw(n, 100 + k, atoms[k % len(atoms)]).to(device) for k in range(n_batches)]
        self.device = device

    def __call__(self, k: int) -> Tensor:
        """Train on batch number `k`; its loss stays on the device."""
        return self.train(self.batches[k % len(self.batches)])

    def held_out(self) -> float:
        """The loss on molecules that it never saw."""
        import torch

        from gpututor.jobs.molecules import draw

        with torch.no_grad():
            return float(_of_molecules(self.net, draw(N_HELD_OUT, seed=1).to(self.device)))


def timed(batches: Sequence[int] = BATCHES) -> list[Variant]:
    """ResNet-50 in each way at each batch, after its first steps."""
    return [
        Variant(f"{way.key}-{n}", way.value, partial(resnet50, way, n), n, n, 2, 4, numerics=False, n_kept=2)
        for n in batches
        for way in Way
    ]


def first(batch: int = 1) -> list[Variant]:
    """The first steps in each way, with all that happens only once."""
    return [
        Variant(f"first-{way.key}", way.value, partial(resnet50, way, batch), None, batch, N_FIRST, 0, numerics=False)
        for way in Way
    ]


def thread(batches: Sequence[int] = THREADS_BATCHES) -> list[Variant]:
    """Eager and graph with the optimizer of pytorch/benchmark#706."""
    return [
        Variant(
            f"adam-{way.key}-{n}", way.value, partial(resnet50, way, n, adam=True), n, n, 2, 4, numerics=False, n_kept=2
        )
        for n in batches
        for way in (Way.EAGER, Way.GRAPH)
    ]


def learned(n_steps: int = N_LEARNED) -> list[Variant]:
    """The network on molecules in each way, from its first step on."""
    return [
        Variant(
            f"learned-{way.key}",
            way.value,
            partial(Learning, way, LEARNED_BATCH, n_batches=n_steps),
            None,
            LEARNED_BATCH,
            n_steps,
            0,
            n_kept=2,
        )
        for way in Way
    ]


def crowds(counts: Sequence[int] = CROWDS) -> list[Variant]:
    """The same network with more molecules a step, by shape only."""
    return [
        Variant(
            f"crowd-{n}",
            f"{n:,} molecules" if n > 1 else "1 molecule",
            partial(Learning, Way.EAGER, n, n_batches=2, width=CROWD_WIDTH),
            n,
            n,
            2,
            numerics=False,
        )
        for n in counts
    ]


def ragged(n: int = LEARNED_BATCH) -> list[Variant]:
    """Eight batches of molecules of eight sizes, compiled in four ways; all from the first step on."""
    return [
        Variant(
            f"ragged-{mode}",
            label,
            partial(
                Learning,
                Way.COMPILED,
                n,
                n_batches=len(SIZES),
                sizes=(max(SIZES),) if mode == "padded" else SIZES,
                options=options,
            ),
            None,
            n,
            len(SIZES),
            0,
            numerics=False,
            n_kept=len(SIZES),
        )
        for mode, (label, options) in MODES.items()
    ]


def run(
    progress: Progress,
    *,
    batches: Sequence[int] = BATCHES,
    n_learned: int = N_LEARNED,
    machine: str = sweeps.MACHINE,
) -> dict[str, Any]:
    """All of it on the simulated card; see `sweeps.simulate`."""
    chosen = [*timed(batches), *first(), *thread(), *learned(n_learned), *crowds(), *ragged()]
    return sweeps.simulate(progress, chosen, what=WHAT, machine=machine)


def measure(progress: Progress, *, device: str = "cuda", batches: Sequence[int] = THREADS_BATCHES) -> dict[str, Any]:
    """ResNet-50 on this computer's GPU in each way, at few batches because each compiles anew.

    On a processor it is the molecules, as it is and as TorchScript.
    """
    if device == "cpu":
        chosen = [
            Variant(f"{way.key}-molecules-{n}", f"{way.value}, {n} molecules", partial(Learning, way, n, n_batches=20))
            for n in (1, CROWDS[1])
            for way in Way
            if way not in NOT_ON_A_PROCESSOR and way is not Way.COMPILED  # Inductor asks for a C++ compiler there
        ]
    else:
        chosen = timed(batches)
    return sweeps.measure(progress, chosen, what=WHAT, device=device, n_warmup=5)
