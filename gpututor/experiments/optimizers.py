"""Lesson 12: the update alone over the number of tensors, in whole steps, over rows of a table, and what is learned."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from gpututor.experiments import sweeps
from gpututor.experiments.sweeps import Step, Variant
from gpututor.progress import Progress

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from gpututor.jobs.updates import Rule, Way

RULES = ("sgd", "momentum", "adam", "adamw")
WAYS = ("loop", "foreach", "fused")
N_NUMBERS = 10_500_000  # 3,000 tensors of 3,500 numbers, as in pytorch issue 3929
PIECES = (1, 30, 300, 3000)
PIECES_OF_RULES = 300  # where all rules are compared
LEARNED = tuple((rule, "fused") for rule in RULES)
ALSO = (("momentum", "loop"), ("adam", "loop"), ("adam", "foreach"))
N_SAME = 6  # steps of those that only have to agree with the learned ones
BATCHES = (4, 64)
ROWS = (10_000, 100_000, 1_000_000)
N_LEARNED, N_READ = 160, 60
RUN_ON = "H100-SXM"  # its memory holds all of it; the page prices what was done on any other card


def _job(rule: str, way: str) -> tuple[Rule, Way]:
    from gpututor.jobs.updates import Rule, Way

    return Rule[rule.upper()], Way[way.upper()]


def _words(rule: str, way: str) -> str:
    from gpututor.jobs.updates import Rule, Way

    return f"{Rule[rule.upper()].value}, {Way[way.upper()].value}"


def pieces(rule: str, way: str, n_pieces: int, device: torch.device) -> Step:
    """Updates alone, of the same parameters in so many tensors."""
    from gpututor.jobs.updates import PiecesJob

    return PiecesJob(device, *_job(rule, way), N_NUMBERS, n_pieces).step


class Learning:
    """The deep network, or the table with `n_rows`, as a step that can be asked what it learned."""

    def __init__(self, job: Any) -> None:
        self._job = job

    def __call__(self, k: int) -> Tensor:
        """Train on batch number `k`; its loss stays on the device."""
        loss: Tensor = self._job.step(k)
        return loss

    def held_out(self) -> float:
        """The loss on samples that it never saw."""
        loss: float = self._job.held_out()
        return loss


def deep(rule: str, way: str, device: torch.device) -> Step:
    """The deep network."""
    from gpututor.jobs.updates import DeepJob

    return Learning(DeepJob(device, *_job(rule, way)))


def rows(n_rows: int, sparse: bool, device: torch.device) -> Step:
    """The table, updated whole or by the named rows."""
    from gpututor.jobs.updates import RowsJob

    return Learning(RowsJob(device, n_rows, sparse=sparse))


def resnet50(way: str, batch: int, device: torch.device) -> Step:
    """A training step of ResNet-50 on random pictures, with Adam."""
    import torch
    from torch import nn

    from gpututor.jobs.updates import optimizer
    from gpututor.workloads.vision.resnets import ResNet50

    net = ResNet50().to(device)
    adam = optimizer(*_job("adam", way), net.parameters())
    pictures = torch.randn(batch, 3, 224, 224, device=device)
    kinds = torch.randint(0, 1000, (batch,), device=device)

    def step(_k: int) -> Tensor:
        adam.zero_grad()
        loss = nn.functional.cross_entropy(net(pictures), kinds)
        loss.backward()
        adam.step()
        return loss.detach()

    return step


def _pieces(counts: Sequence[int]) -> list[Variant]:
    asked = [("adam", way, n) for way in WAYS for n in counts]
    if PIECES_OF_RULES in counts:
        asked += [(rule, way, PIECES_OF_RULES) for rule in RULES if rule != "adam" for way in WAYS]
    return [
        Variant(
            f"pieces-{rule}-{way}-{n}",
            f"{n:,} tensors, {_words(rule, way)}" if n > 1 else f"1 tensor, {_words(rule, way)}",
            partial(pieces, rule, way, n),
            n,
            1,
            1,
            1,
            numerics=False,
        )
        for rule, way, n in asked
    ]


def _deep(n_learned: int) -> list[Variant]:
    from gpututor.jobs.updates import BATCH

    return [
        Variant(f"deep-{rule}-{way}", _words(rule, way), partial(deep, rule, way), None, BATCH, n, 0, n_kept=2)
        for asked, n in ((LEARNED, n_learned), (ALSO, min(N_SAME, n_learned)))
        for rule, way in asked
    ]


def _resnets(batches: Sequence[int]) -> list[Variant]:
    return [
        Variant(f"resnet-{way}-{n}", f"{n} pictures, {_words('adam', way)}", partial(resnet50, way, n), n, n, 2, 1, False)
        for n in batches
        for way in ("loop", "fused")
    ]


def _rows(sizes: Sequence[int], n_read: int) -> list[Variant]:
    small = sizes[0]
    return [
        Variant(
            f"rows-{'sparse' if sparse else 'dense'}-{n}",
            f"{n:,} rows, {'SparseAdam' if sparse else 'Adam'}",
            partial(rows, n, sparse),
            n,
            128,
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
        chosen = [*_pieces((1, 300)), *_deep(20), *_rows(ROWS[:2], 20)]
    else:
        chosen = variants(n_learned=20, n_read=20)
    return sweeps.measure(progress, chosen, what="lesson 12, optimizers", device=device, n_steps=10)
