"""NVIDIA's tables of whole networks as rows in the suite's form: one a cell of throughput."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from tools.calibrate.common import read

Row = dict[str, str]

REPO = "NVIDIA/DeepLearningExamples"
CONVNETS = ("resnet50v1.5", "resnext101-32x4d", "se-resnext101-32x4d", "efficientnet")
FORMATS = {"FP32": "fp32", "TF32": "tf32", "FP16": "amp", "mixed precision": "amp", "Mixed precision": "amp"}

# Pictures on one card in training: (V100 16 GB fp32, amp, V100 32 GB fp32, amp, A100 tf32, amp). Source:
# Classification/ConvNets configs.yml and the folder of launch scripts beside it.
TRAINED: Mapping[str, tuple[int, int, int, int, int, int]] = {
    "resnet50v1.5": (112, 256, 112, 256, 256, 256),
    "resnext101-32x4d": (64, 128, 64, 128, 128, 128),
    "se-resnext101-32x4d": (64, 112, 64, 112, 128, 128),
    "efficientnet-b0": (64, 128, 128, 256, 256, 256),
    "efficientnet-b4": (16, 32, 32, 64, 64, 128),
    "efficientnet-widese-b0": (64, 128, 128, 256, 256, 256),
    "efficientnet-widese-b4": (16, 32, 32, 64, 64, 128),
}


@dataclass(frozen=True, slots=True)
class Table:
    """How a folder's training and inference rows read: the model's name there, its text, and what it counts."""

    model: Callable[[Row], str | None]
    config: str
    unit: str


def _always(name: str) -> Callable[[Row], str | None]:
    return lambda row: name


def _nnunets(row: Row) -> str | None:
    return f"nnU-Net {dimension[1]}D" if (dimension := re.search(r"Dimension=(\d)", row["row"])) else None


def _berts(row: Row) -> str | None:
    return "BERT-large pretrain" if "Pre-training" in row["section"] else "BERT-large SQuAD fine-tune"


TABLES: Mapping[str, Table] = {
    "Detection/SSD": Table(_always("SSD300 resnet50 backbone"), "300x300, DALI, COCO", "img/s"),
    "Segmentation/nnUNet": Table(_nnunets, "DALI", "img/s"),
    "LanguageModeling/BERT": Table(_berts, "24L d1024 h16, fused LN/Adam (apex)", "seq/s"),
    "Translation/GNMT": Table(
        _always("GNMT v2 (4-layer, 1024 hidden, attention)"), "WMT16 en-de, max len 50, total tok/s (src+tgt)", "tok/s"
    ),
    "Translation/Transformer": Table(
        _always("Transformer-big (fairseq, WMT14 en-de)"), "batch in tokens per GPU", "tok/s"
    ),
    "Recommendation/NCF": Table(_always("NCF"), "MovieLens 20M", "samples/s"),
}


def nvidias() -> Iterator[Row]:
    """Every cell of throughput in the tables of networks that we have, on up to eight cards.

    A DGX-2H's V100 has 450 W and is a faster card than ours; it is left out.
    """
    for row in read("dle_perf_rows.csv.gz"):
        folder = row["model"].removeprefix("Classification/ConvNets/")
        if re.search(r"ccuracy|Multi-node|DGX-2H", row["section"]) or "Beam" in row["row"]:
            continue
        if folder in CONVNETS:
            yield from _convnets(row, folder)
        elif row["model"] in TABLES:
            yield from _others(row, TABLES[row["model"]])
        elif row["model"] == "SpeechSynthesis/Tacotron2":
            yield from _speech(row)


def _convnets(row: Row, folder: str) -> Iterator[Row]:
    named = re.search(r"Model=([\w.-]+)", row["row"])
    model = named[1] if named else folder
    if model not in TRAINED or "QAT" in row["section"]:
        return
    if batch := re.search(r"Batch Size=(\d+); Throughput Avg=([\d.]+) img/s", row["row"]):
        form = "amp" if "Mixed" in row["section"] else "tf32" if "A100" in row["section"] else "fp32"
        text = f"224x224 eval, {'NHWC' if form == 'amp' else 'NCHW'}, eager" if "resn" in model else "eager"
        yield _row(row, "infer", model, text, form, 1, batch[1], batch[2], "img/s")
        return
    if "Training performance" not in row["section"] or "GPUs=" not in row["row"]:
        return
    for form, value in _cells(row):
        place = 4 if "A100" in row["section"] else 2 if _gpu(row["section"]).endswith("32GB") else 0
        batch_there = TRAINED[model][place + (form == "amp")]
        side = 380 if model.endswith("b4") else 224
        text = f"{side}px; amp = NHWC, fp32/tf32 = NCHW; DALI loader"
        n = int(_number(row, r"GPUs=(\d+)"))
        text = text if n == 1 else f"DDP, {side}px"
        if n <= 8:
            yield _row(row, "train", model, text, form, n, str(batch_there), value, "img/s")


def _others(row: Row, table: Table) -> Iterator[Row]:
    model = table.model(row)
    trains = bool(re.search(r"Training|Pre-training|Fine-tuning NVIDIA", row["section"]))
    batches = re.search(r"Batch size(?: / GPU)?[^=]*=(\d+)(?:\s*(?:and|/)\s*(\d+))?", row["row"], re.IGNORECASE)
    if model is None or batches is None:
        return
    length = re.search(r"Sequence length=(\d+)", row["row"], re.IGNORECASE)
    text = table.config if not model.startswith("BERT") else f"seq {length[1] if length else 384}, {table.config}"
    if model == "nnU-Net 2D":
        text = f"192x160 patch (BraTS/MSD), {text}"
    for form, value in _cells(row):
        batch = _batch_of(row, batches, form)
        n = int(_number(row, r"GPUs=(\d+)"))
        yield _row(row, "train" if trains else "infer", model, text, form, n, batch, value, table.unit)


def _batch_of(row: Row, batches: re.Match[str], form: str) -> str:
    """The batch of a cell: a table that has two names that of fp32 first, but for the Transformer's."""
    first, second = batches[1], batches[2] or batches[1]
    if "Translation/Transformer" in row["path"]:
        first, second = second, first
    taken = second if form == "amp" else first
    steps = re.search(r"Accumulation steps[^=]*=(\d+) and (\d+)", row["row"])
    if steps and int(taken) >= 2048:  # a column that counts a whole update
        return str(int(taken) // int(steps[2 if form == "amp" else 1]))
    return taken


def _speech(row: Row) -> Iterator[Row]:
    if "Training performance" not in row["section"]:
        return
    what, unit = ("tacotron2", "mels/s") if "mels" in row["row"] else ("waveglow", "samples/s")
    both = re.search(r"Batch size per GPU=(\d+)(?:@FP16, (\d+)@)?", row["row"])
    assert both
    for form, value in re.findall(r"used with (mixed precision|TF32|FP32)=([\d,]+)", row["row"]):
        batch = both[1] if form.startswith("mixed") else both[2] or both[1]
        n = int(_number(row, r"GPUs=(\d+)"))
        yield _row(row, "train", what, "LJSpeech", FORMATS[form], n, batch, value.replace(",", ""), unit)


def _cells(row: Row) -> Iterator[tuple[str, str]]:
    """Format and figure of each cell that holds a throughput."""
    for cell in row["row"].split("; "):
        title, _, value = cell.partition("=")
        named_form = next((form for word, form in FORMATS.items() if word in title), None)
        form = named_form or FORMATS.get(row["context"].strip("*"))
        figure = re.match(r"([\d.]+(?:e\+\d+)?)(M?)", value)
        named = "Throughput" in title or title in ("TF32", "FP32")
        if form is None or figure is None or not named or re.search(r"speedup|scaling|Scaling", title):
            continue
        yield form, f"{float(figure[1]) * (1e6 if figure[2] else 1):g}"


def _number(row: Row, pattern: str) -> str:
    found = re.search(pattern, row["row"])
    return found[1] if found else "1"


def _gpu(section: str) -> str:
    """The card of a table, as the suite calls it."""
    if "T4" in section:
        return "T4"
    small = "40GB" if "40" in section else "80GB"
    if "A100" in section:
        return f"A100-SXM4-{small}"
    return "V100-SXM2-32GB" if re.search(r"V100 32|32G", section) else "V100-SXM2-16GB"


def _row(row: Row, kind: str, model: str, text: str, form: str, n: int, batch: str, value: str, unit: str) -> Row:
    gpu = _gpu(row["section"])
    step_ms = 1e3 * n * int(batch) / float(value) if unit in ("img/s", "seq/s") else None
    return {
        "regime": f"dle {row['model'].rpartition('/')[2]}", "kind": kind, "model": model, "config": text,
        "precision": form, "gpu": gpu, "n_gpus": str(n), "interconnect": "NVLink" if n > 1 else "", "gpu_key": gpu,
        "batch_per_gpu": batch, "metric": "throughput", "measured": value, "unit": unit,
        "step_ms": f"{step_ms:.4f}" if step_ms else "", "framework": "NGC PyTorch", "repo": REPO,
        "path": row["path"], "line": row["line"], "commit": row["commit"],
    }  # fmt: skip
