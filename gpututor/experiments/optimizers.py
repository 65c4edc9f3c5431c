"""Lesson 12: the update alone over the number of tensors, in whole steps, over rows of a table, and what is learned."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from gpututor.experiments import sweeps
from gpututor.experiments.sweeps import Step, Variant
from gpututor.jobs.rules import Rule, Way
from gpututor.progress import Progress

if TYPE_CHECKING:
    import torch
    from torch import Tensor

N_NUMBERS = 10_500_000  # 3,000 tensors of 3,500 numbers, as in pytorch issue 3929
PIECES = (1, 30, 300, 3000)
COMPARED = 300  # tensors, where all rules are compared
LEARNED = tuple((rule, Way.FUSED) for rule in Rule)
ALSO = ((Rule.MOMENTUM, Way.LOOP), (Rule.ADAM, Way.LOOP), (Rule.ADAM, Way.FOREACH))
N_SAME = 6  # steps of those, which only have to agree with the learned ones
BATCHES = (4, 64)  # pictures a step of ResNet-50
ROWS = (10_000, 100_000, 300_000, 1_000_000)
N_LEARNED, N_READ = 160, 60
N_MEASURED = 5  # updates on the reader's machine, of which the middle one counts
RUN_ON = "H100-SXM"  # its memory holds all of it; the page prices what was done on any other card


def pieces_key(rule: Rule, way: Way, n_pieces: int) -> str:
    """Names an update alone."""
    return f"pieces-{rule.key}-{way.key}-{n_pieces}"


def deep_key(rule: Rule, way: Way) -> str:
    """Names a training of the deep network."""
    return f"deep-{rule.key}-{way.key}"


def resnet_key(way: Way, batch: int) -> str:
    """Names a step of ResNet-50."""
    return f"resnet-{way.key}-{batch}"


def rows_key(n_rows: int, *, sparse: bool) -> str:
    """Names a training of the table."""
    return f"rows-{'sparse' if sparse else 'dense'}-{n_rows}"


def pieces(rule: Rule, way: Way, n_pieces: int, device: torch.device) -> Step:
    """Updates alone, of the same parameters in so many tensors."""
    from gpututor.jobs.updates import PiecesJob

    return PiecesJob(device, rule, way, N_NUMBERS, n_pieces)


def deep(rule: Rule, way: Way, device: torch.device) -> Step:
    """The deep network."""
    from gpututor.jobs.updates import DeepJob

    return DeepJob(device, rule, way)


def rows(n_rows: int, sparse: bool, device: torch.device) -> Step:
    """The table, updated whole or by the named rows."""
    from gpututor.jobs.updates import RowsJob

    return RowsJob(device, n_rows, sparse=sparse)


def resnet50(way: Way, batch: int, device: torch.device) -> Step:
    """A training step of ResNet-50 on random pictures, with Adam."""
    import torch
    from torch import nn

    from gpututor.jobs.updates import optimizer
    from gpututor.workloads.vision.resnets import ResNet50

    net = ResNet50().to(device)
    adam = optimizer(Rule.ADAM, way, net.parameters())
    pictures = torch.randn(batch, 3, 224, 224, device=device)
    kinds = torch.randint(0, 1000, (batch,), device=device)

    def step(_k: int) -> Tensor:
        adam.zero_grad()
        loss = nn.functional.cross_entropy(net(pictures), kinds)
        loss.backward()
        adam.step()
        return loss.detach()

    return step


def _pieces(counts: Sequence[int], n_steps: int = 1) -> list[Variant]:
    asked = [(Rule.ADAM, way, n) for way in Way for n in counts]
    if COMPARED in counts:
        asked += [(rule, way, COMPARED) for rule in Rule if rule is not Rule.ADAM for way in Way]
    return [
        Variant(
            pieces_key(rule, way, n),
            f"{n:,} tensor{'s' if n > 1 else ''}, {rule.value}, {way.value}",
            partial(pieces, rule, way, n),
            n,
            1,
            n_steps,
            1,
            numerics=False,
        )
        for rule, way, n in asked
    ]


def _deep(n_learned: int) -> list[Variant]:
    from gpututor.jobs.updates import BATCH

    return [
        Variant(
            deep_key(rule, way),
            f"{rule.value}, {way.value}",
            partial(deep, rule, way),
            None,
            BATCH,
            n,
            0,
            n_kept=2,
        )
        for asked, n in ((LEARNED, n_learned), (ALSO, min(N_SAME, n_learned)))
        for rule, way in asked
    ]


def _resnets(batches: Sequence[int]) -> list[Variant]:
    return [
        Variant(
            resnet_key(way, n),
            f"{n} pictures, {way.value}",
            partial(resnet50, way, n),
            n,
            n,
            1,
            1,
            numerics=False,
        )
        for n in batches
        for way in (Way.LOOP, Way.FUSED)
    ]


def _rows(sizes: Sequence[int], n_read: int) -> list[Variant]:
    from gpututor.jobs.updates import ROWS_BATCH

    small = min(sizes)
    return [
        Variant(
            rows_key(n, sparse=sparse),
            f"{n:,} rows, {'SparseAdam' if sparse else 'Adam'}",
            partial(rows, n, sparse),
            n,
            ROWS_BATCH,
            n_read if n == small else 2,
            0 if n == small else 1,
            numerics=sparse or n == small,  # what is in a sparse gradient can't be followed by shapes
            n_kept=2,
        )
        for n in sizes
        for sparse in (False, True)
    ]


def variants(
    counts: Sequence[int] = PIECES,
    n_learned: int = N_LEARNED,
    batches: Sequence[int] = BATCHES,
    sizes: Sequence[int] = ROWS,
    n_read: int = N_READ,
) -> list[Variant]:
    """The update alone, the deep network, the table, and ResNet-50, in this order."""
    return [*_pieces(counts), *_deep(n_learned), *_rows(sizes, n_read), *_resnets(batches)]


def run(progress: Progress, *, machine: str = RUN_ON, **chosen: Any) -> dict[str, Any]:
    """All of it on the simulated card; `chosen` as for `variants`, see `sweeps.simulate`."""
    return sweeps.simulate(progress, variants(**chosen), what="lesson 12, optimizers", machine=machine)


def measure(progress: Progress, *, device: str = "cuda") -> dict[str, Any]:
    """The same on this computer's GPU; on a processor fewer tensors, and the two networks that it can train."""
    if device == "cpu":
        chosen = [*_pieces((1, COMPARED), N_MEASURED), *_deep(20), *_rows(ROWS[:2], 20)]
    else:
        chosen = [*_pieces(PIECES, N_MEASURED), *_deep(20), *_rows(ROWS, 20), *_resnets(BATCHES)]
    return sweeps.measure(progress, chosen, what="lesson 12, optimizers", device=device, n_steps=10)
