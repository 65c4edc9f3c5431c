"""How Lambda's boxes scale: one task, card, batch and torch on one card and on several, none of them a judged point."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from statistics import median
from types import MappingProxyType

from gpututor.bench.accuracy.points import Point
from gpututor.cards import card, find_card
from gpututor.hardware import Card
from tools.calibrate.common import read
from tools.calibrate.runs import LAMBDAS_TASKS, PRECISION, lambdas_point

LEAST_PACE = 1 / 1.08  # of one card's time; faster than that, the rows are not the same work
GIB = 2**30

# Cards that we have no figures of, and one of ours with the same chip or its next larger: it gives the shape of a step,
# whose length is then the measured one.
STAND_INS: Mapping[str, str] = MappingProxyType(
    {
        "GeForce_RTX_3070": "RTX-3080",
        "Quadro_RTX_6000": "TITAN-RTX",
        "Quadro_RTX_8000": "TITAN-RTX",
        "RTX_A4000": "A40",
        "NVIDIA_RTX_A4500": "A40",
        "RTX_A5000": "A40",
        "NVIDIA_RTX_A5500": "A40",
        "RTX_A6000": "A40",
        "NVIDIA_RTX_A6000": "A40",
        "NVIDIA_RTX_6000_Ada_Generation": "RTX-4090",
    }
)

# The link of a box by its name and card; the first that fits. In clouds other than AWS's, and in most boxes "_v1" of
# late 2022 (torch 1.13), cards with NVLink or peer access scale like GeForce cards: they don't reach each other there.
CLASSES: tuple[tuple[str, str], ...] = (
    (r"NVlink", "nvlink-bridge"),
    (r"Linode|LambdaCloud_(?!V10016G)", "pcie-virtual"),
    (r"GeForce", "pcie-geforce"),
    (r"H100_80GB_PCIe5", "pcie5-server"),
    (r"AdaA6000_v1\|[48]", "pcie4-server"),
    (r"HBM3|H200", "nvlink4"),
    (r"B200", "nvlink5"),
    (r"_v1", "pcie-virtual"),
    (r"V100-SXM", "nvlink2"),
    (r"A100.SXM", "nvlink3"),
    (r"Quadro", "pcie3-server"),
    (r"", "pcie4-server"),
)


@dataclass(frozen=True, slots=True)
class Pair:
    """One task on one card and on `n` of a box: seconds of a step per unit of a card's work, `alone` and `together`."""

    task: str
    link: str
    box: str
    n: int
    card: Card
    exact: bool  # the card itself, not one that stands in
    point: Point
    alone: float
    together: float

    @property
    def ratio(self) -> float:
        """Time with several cards over time with one, for the same batch on each card."""
        return self.together / self.alone


def pairs() -> Iterator[Pair]:
    """All usable pairs, those of one box and kind of card together."""
    judged = {row["path"] for row in read("validation_open.csv")}
    groups: dict[tuple[str, ...], dict[int, list[dict[str, str]]]] = defaultdict(lambda: defaultdict(list))
    for row in read("lambda_runs.csv.gz"):
        task = row["task"].removeprefix("PyTorch_")
        known = task.startswith(LAMBDAS_TASKS) and task.rpartition("_")[2] in PRECISION
        wrong_card = "A4000" in row["system"] and "A4000" not in row["gpu"]
        if row["suspect"] != "False" or row["path"] in judged or not known or wrong_card:
            continue
        groups[task, row["gpu"], box_of(row), _era(row), row["batch_per_gpu"]][int(row["gpus"])].append(row)
    for (task, gpu, box, era, batch), by_n in sorted(groups.items()):
        one = by_n.get(1) or _elsewhere(groups, (task, gpu, era, batch))
        found = _card(gpu)
        if not one or found is None:
            continue
        for n, rows in sorted(by_n.items()):
            per_unit = [1 / median(float(r["throughput"]) for r in some) for some in (one, rows)]
            if n > 1 and per_unit[1] * n >= LEAST_PACE * per_unit[0]:
                yield Pair(
                    task, link_of(gpu, box, n), f"{gpu} {box}", n, found, gpu not in STAND_INS,
                    lambdas_point(task, gpu, era, str(n), batch, rows), per_unit[0], per_unit[1] * n,
                )  # fmt: skip


def box_of(row: Mapping[str, str]) -> str:
    """The box's name without its number of cards; one name for all of Lambda's many equal H100 machines."""
    if row["gpu"] == "NVIDIA_H100_80GB_HBM3":
        return "H100_SXM5"
    return re.sub(r"(?<![A-Za-z0-9])\d+x(?=[A-Z0-9])|_trt2?$", "", row["system"])


def link_of(gpu: str, box: str, n: int) -> str:
    """Which of `CLASSES` joins the cards of a box."""
    return next(name for pattern, name in CLASSES if re.search(pattern, f"{gpu} {box}|{n}"))


def _era(row: Mapping[str, str]) -> str:
    return ".".join(row["torch"].split(".")[:2])


def _elsewhere(
    groups: Mapping[tuple[str, ...], Mapping[int, list[dict[str, str]]]], wanted: tuple[str, ...]
) -> list[dict[str, str]]:
    """Runs of one card in other boxes, where a box has none: of the same torch, else of the one before or after."""
    task, gpu, era, batch = wanted
    found = {k[3]: by_n[1] for k, by_n in groups.items() if (k[0], k[1], k[4]) == (task, gpu, batch) and 1 in by_n}
    return found.get(era) or found.get({"1.9": "1.7", "1.4": "1.4"}.get(era, ""), [])


def _card(gpu: str) -> Card | None:
    if gpu in STAND_INS:
        return replace(card(STAND_INS[gpu]), memory_bytes=96 * GIB)
    return find_card(gpu.replace("_", " ")) or find_card(gpu)
