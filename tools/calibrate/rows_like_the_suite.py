"""Rows in the form of the suite of measured points, made from the published tables, less those that are judged.

`python -m tools.calibrate.rows_like_the_suite > rows.csv`, then `gpututor bench accuracy --points rows.csv` tries
everything that such a file may hold: models, cards, formats, layouts, numbers of cards, and each source's way to write
them. `--source NAME` takes one source, `--every N` each Nth of its rows.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

from gpututor.cards import find_card
from tools.calibrate.common import judged, read
from tools.calibrate.suite_tables import Row, nvidias

COLUMNS = (
    "id regime kind model config precision gpu n_gpus interconnect gpu_key batch_per_gpu metric measured unit step_ms "
    "framework grade repo path line commit note split"
).split()
JUDGED_NETWORKS = "resnet50 mobilenetv3_large_100 vgg16 densenet121 ghostnet_100 efficientnet_b0".split()
SIBLINGS = "resnet18 resnet101 resnext50_32x4d mobilenetv2_100 vgg13_bn densenet169 efficientnet_b2 regnety_016".split()
SIBLINGS += "convnext_tiny vit_base_patch16_224 wide_resnet50_2 mobilenetv3_small_100".split()
LAMBDAS_UNITS = {"SSD": "img/s", "resnet50": "img/s", "bert": "seq/s", "gnmt": "tok/s"}
LAMBDAS_TEXTS = {
    "SSD": "300x300, COCO", "resnet50": "224px synthetic data backend, NCHW", "gnmt": "WMT16 en-de tok/s total",
    "bert": "SQuAD v1.1 seq 384",
}  # fmt: skip
DEEPBENCHS_CARDS = {"NV_V100": "V100-SXM2-16GB", "NV_P100": "P100", "NV_1080Ti": "GTX 1080Ti"}


def lambdas() -> Iterator[Row]:
    """One row for each task, card, version of torch, number of cards and batch: the middle one of its logs."""
    groups: dict[tuple[str, ...], list[dict[str, str]]] = defaultdict(list)
    for row in read("lambda_runs.csv.gz"):
        if row["suspect"] == "False":
            era = ".".join(row["torch"].split(".")[:2])
            groups[row["task"], row["gpu"], era, row["gpus"], row["batch_per_gpu"]].append(row)
    for rows in groups.values():
        middle = sorted(rows, key=lambda row: float(row["throughput"]))[len(rows) // 2]
        yield _lambdas(middle, "throughput", middle["throughput"])
        sampled = [row for row in rows if row["nvsmi_util_mean"]]
        if sampled:
            one = sorted(sampled, key=lambda row: float(row["nvsmi_util_mean"]))[len(sampled) // 2]
            yield _lambdas(one, "nvsmi_util", one["nvsmi_util_mean"])


def _lambdas(row: dict[str, str], metric: str, value: str) -> Row:
    task = row["task"].removeprefix("PyTorch_")
    family = task.partition("_")[0]
    card = find_card(row["gpu"].replace("_", " "))
    recent = card is not None and "tf32" in card.peak_flop_per_s
    form = "amp" if row["precision"] != "fp32" else "tf32 (cuDNN/cuBLAS default in NGC)" if recent else "fp32"
    n, batch = int(row["gpus"]), round(float(row["batch_per_gpu"])) if row["batch_per_gpu"] else None
    linked = "NVLink" if re.search("SXM|H100_80GB_HBM3|H200$|B200", row["gpu"]) else "PCIe (no NVLink)"
    counted = LAMBDAS_UNITS.get(family, row["unit"])
    timed = metric == "throughput"
    step_ms = 1e3 * n * batch / float(value) if batch and timed and counted in ("img/s", "seq/s") else None
    return {
        "regime": f"lambda {family} {metric}", "kind": "train",
        "model": "GNMT v2" if family == "gnmt" and n == 1 else task,
        "config": LAMBDAS_TEXTS.get(family, "") if n == 1 else "", "precision": form, "gpu": row["gpu"],
        "n_gpus": str(n), "interconnect": linked if n > 1 else "", "batch_per_gpu": f"{batch}.0" if batch else "",
        "metric": metric, "measured": value, "unit": counted if timed else "%",
        "step_ms": f"{step_ms:.4f}" if step_ms else "", "framework": f"PyTorch {row['torch']} CUDA {row['cuda']}",
        "repo": row["repo"], "path": row["path"], "commit": row["commit"],
    }  # fmt: skip


def timms() -> Iterator[Row]:
    """The judged networks and some of their siblings on every card, in every layout and mode."""
    for row in read("timm_benchmarks.csv.gz"):
        network = row["model"].partition(".")[0]
        if network not in (*JUDGED_NETWORKS, *SIBLINGS) or "CPU" in row["device"] or not row["step_ms"]:
            continue
        way = "torch.compile" if row["compile"] == "True" else "eager"
        trains = row["mode"] == "train"
        cuda = row["cuda"].partition(".")[0]
        form = {"amp": "amp(fp16)", "amp_bf16": "amp(bf16)"}.get(row["precision"], row["precision"])
        yield {
            "regime": f"timm {row['mode']} {way}", "kind": row["mode"], "model": network,
            "config": f"timm, {row['img_size']}px, {row['layout']} {way}{', SGD step' if trains else ''}",
            "precision": form, "gpu": row["device"], "n_gpus": "1", "batch_per_gpu": row["batch"],
            "metric": "step time", "measured": row["step_ms"], "unit": "ms", "step_ms": row["step_ms"],
            "framework": f"PyTorch {row['torch']} cu{cuda}.0", "repo": row["repo"], "path": row["path"],
            "commit": row["commit"],
        }  # fmt: skip


def neusights() -> Iterator[Row]:
    """Every end-to-end point, those of AMD's cards and of split models too."""
    for row in read("neusight_e2e.csv"):
        trains, option = row["mode"] == "train", row["option"]
        n = int(found[1]) if (found := re.match(r"(?:dp|tp|pp)(\d+)", option)) else 1
        did = "fwd+bwd (no optimizer step)" if trains else "fwd"
        told = f" {option} Megatron" if n > 1 else f", {option}" if option else ""
        yield {
            "regime": f"neusight {row['mode']}{' ' + option if option else ''}", "kind": row["mode"],
            "model": row["model_name"], "config": f"HF transformers, seq {row['seqlen']}, eager fp32, {did}{told}",
            "precision": "fp32", "gpu": row["device"], "n_gpus": str(n), "interconnect": "NVLink" if n > 1 else "",
            "batch_per_gpu": str(int(row["batch"]) // (n if option.startswith("dp") else 1)),
            "metric": "e2e latency", "measured": row["label_e2e_ms"], "unit": "ms", "step_ms": row["label_e2e_ms"],
            "framework": "PyTorch 2.1.0 cu121", "repo": row["repo"], "path": row["path"], "commit": row["commit"],
            "note": f"NeuSight={row['neusight_e2e_ms']} ms",
        }  # fmt: skip


def deepbenchs() -> Iterator[Row]:
    """One recurrent layer's forward call, by cell, card and format."""
    words = {"LSTM": ("LSTM", 8), "GRU": ("GRU", 6), "Vanilla": ("RNN", 2)}
    for row in read("deepbench_rnn.csv.gz"):
        if not row["hidden"] or not row["gpu"].startswith("NV_"):
            continue
        cell, times = words[row["cell"]]
        form = "fp16" if re.search("16 bit|FP16", row["precision"]) else "fp32"
        text = f"hidden={float(row['hidden']):.0f} T={row['timesteps']} CUDNN_SKIP_INPUT"
        yield {
            "regime": f"deepbench {cell}", "kind": "kernel", "model": f"cuDNN {cell} 1 layer fwd",
            "config": f"{text} (recurrent GEMM only: {times}*H^2*N*T flop)", "precision": form,
            "gpu": DEEPBENCHS_CARDS.get(row["gpu"], row["gpu"][3:]), "n_gpus": "1", "batch_per_gpu": row["batch"],
            "metric": "fwd time", "measured": row["fwd_ms"], "unit": "ms", "step_ms": row["fwd_ms"],
            "framework": f"cuDNN {row['cudnn']} CUDA {row['cuda']}", "repo": row["repo"], "path": row["path"],
            "commit": row["commit"],
        }  # fmt: skip


SOURCES: Mapping[str, Callable[[], Iterator[Row]]] = {
    "nvidia": nvidias, "lambda": lambdas, "timm": timms, "neusight": neusights, "deepbench": deepbenchs,
}  # fmt: skip


def rows(names: list[str], every: int = 1) -> Iterator[Row]:
    """The rows of these sources, numbered, each Nth of them; none that is judged."""
    numbers = _judged_numbers()
    lines = {line for line in judged() if line[2]}
    for name in names:
        found = [row for row in SOURCES[name]() if not _is_judged(row, lines, numbers)]
        for k, row in enumerate(found[::every]):
            yield dict.fromkeys(COLUMNS, "") | row | {"id": f"{name}{every * k}", "split": "like"}


def _judged_numbers() -> set[tuple[str, str, str]]:
    return {(r["path"], f"{float(r['measured']):.4g}", r["model"]) for r in read("validation_open.csv")}


def _is_judged(row: Row, lines: set[tuple[str, ...]], numbers: set[tuple[str, str, str]]) -> bool:
    if (row["path"], f"{float(row['measured']):.4g}", row["model"]) in numbers:
        return True
    return (row["repo"], row["path"], row.get("line", "")) in lines and row["repo"].startswith("NVIDIA") and _same(row)


def _same(row: Row) -> bool:
    """A judged line of NVIDIA's tables holds two formats; the other one is kept."""
    kept = {(r["path"], r["line"], r["precision"]) for r in read("validation_open.csv")}
    return (row["path"], row["line"], row["precision"]) in kept


def main() -> None:
    """Print the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", choices=tuple(SOURCES), action="append")
    parser.add_argument("--every", type=int, default=1)
    asked = parser.parse_args()
    table = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
    table.writeheader()
    table.writerows(rows(asked.source or list(SOURCES), asked.every))


if __name__ == "__main__":
    main()
