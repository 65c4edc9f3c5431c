"""Whole runs to calibrate on: Lambda's benchmark logs and NVIDIA's tables of networks, none of them a judged point."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from statistics import median

from gpututor.bench.accuracy.points import Point
from gpututor.cards import find_card
from tools.calibrate.common import read

UNITS = {"resnet50": "img/s", "SSD": "img/s", "bert": "seq/s", "gnmt": "tok/s", "tacotron2": "tok/s"}
LAMBDAS_TASKS = ("resnet50_FP32", "resnet50_AMP", "bert_base", "bert_large", "gnmt", "SSD_FP32", "SSD_AMP", "tacotron2")
PRECISION = {"FP32": "fp32", "FP16": "amp", "AMP": "amp"}
NETWORKS = ("resnext101-32x4d", "se-resnext101-32x4d", "efficientnet")
DGX = {"A100": "A100-SXM4-80GB", "V100": "V100-SXM2-16GB", "T4": "T4"}


def lambdas_runs() -> Iterator[Point]:
    """One point for each task, card, version of torch and number of cards: the median of its logs."""
    judged = {row["path"] for row in read("validation_open.csv")}
    groups: dict[tuple[str, ...], list[dict[str, str]]] = defaultdict(list)
    for row in read("lambda_runs.csv.gz"):
        task = row["task"].removeprefix("PyTorch_")
        if (
            row["suspect"] != "False"
            or not task.startswith(LAMBDAS_TASKS)
            or not find_card(row["gpu"].replace("_", " "))
        ):
            continue
        if row["path"] in judged or task.rpartition("_")[2] not in PRECISION:
            continue
        era = ".".join(row["torch"].split(".")[:2])
        groups[task, row["gpu"], era, row["gpus"], row["batch_per_gpu"]].append(row)
    for (task, gpu, era, n, batch), rows in sorted(groups.items()):
        yield lambdas_point(task, gpu, era, n, batch, rows)


def lambdas_point(task: str, gpu: str, era: str, n: str, batch: str, rows: list[dict[str, str]]) -> Point:
    """The point of one group of logs: the median."""
    unit = next(unit for name, unit in UNITS.items() if task.startswith(name))
    seen = median(float(row["throughput"]) for row in rows)
    return Point(
        id=f"{task}|{gpu}|{era}|x{n}|b{batch}",
        regime="lambda",
        kind="train",
        model=task,
        config="",
        precision=PRECISION[task.rpartition("_")[2]],
        gpu=gpu,
        n_gpus=int(n),
        batch=round(float(batch)) if batch else None,
        metric="throughput",
        measured=seen,
        unit=unit,
        framework=f"PyTorch {era}",
        repo=rows[0]["repo"],
        path=rows[0]["path"],
        commit=rows[0]["commit"],
    )


def nvidias_latencies() -> Iterator[Point]:
    """Inference by batch of the networks that aren't judged, on a V100, an A100 and a T4."""
    for row in read("dle_perf_rows.csv.gz"):
        family = row["model"].removeprefix("Classification/ConvNets/")
        batch = re.search(r"Batch Size=(\d+)", row["row"])
        seen = re.search(r"Throughput Avg=([\d.]+) img/s", row["row"])
        gpu = next((card for word, card in DGX.items() if word in row["section"]), None)
        if family not in NETWORKS or not batch or not seen or gpu is None or "Latency" not in row["section"]:
            continue
        named = re.search(r"Model=([\w.-]+)", row["row"])
        model = named[1] if named else family
        if model == "efficientnet-b0":
            continue  # it is judged
        amp = "Mixed" in row["section"]
        precision = "amp" if amp else "tf32" if gpu.startswith("A100") else "fp32"
        yield Point(
            id=f"{model}|{gpu}|{precision}|b{batch[1]}",
            regime="latency",
            kind="infer",
            model=model,
            config=f"224x224 eval, {'NHWC' if amp else 'NCHW'}, eager",
            precision=precision,
            gpu=gpu,
            n_gpus=1,
            batch=int(batch[1]),
            metric="throughput",
            measured=float(seen[1]),
            unit="img/s",
            framework="PyTorch 21.03 NGC (1.9a)",
            repo=row["repo"],
            path=row["path"],
            line=row["line"],
            commit=row["commit"],
        )
