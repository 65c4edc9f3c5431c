"""What a point leaves unsaid and the program that measured it decides: facts read in that program, by repository."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from gpututor.bench.accuracy.placing import DLE, LAMBDA, TIMM
from gpututor.bench.accuracy.points import Point
from gpututor.bench.accuracy.wording import kind_of
from gpututor.cards import Card

STAS = "stas00/ml-engineering"
GIB = 2**30

RECIPES: Mapping[str, str] = MappingProxyType({DLE: "dle", LAMBDA: "lambda", TIMM: "timm"})
"""How the programs are called in a workload's option "recipe"."""

ENDINGS: Mapping[str, str] = MappingProxyType({"sitar-lab/NeuSight": "-hf2023"})
"""Ends of the names of workloads as one program runs them."""

# torch in NVIDIA's containers by their year and month. Source: NVIDIA's release notes of the PyTorch containers.
_CONTAINERS: Mapping[str, str] = MappingProxyType(
    {
        "20.01": "1.4", "20.03": "1.5", "20.06": "1.6", "20.07": "1.6", "20.10": "1.7", "20.12": "1.8", "21.02": "1.8",
        "21.03": "1.9", "21.04": "1.9", "21.05": "1.9", "21.06": "1.9", "21.07": "1.10", "21.10": "1.10",
        "21.11": "1.11", "21.12": "1.11", "22.01": "1.11", "22.05": "1.12", "22.06": "1.13", "22.08": "1.13",
        "22.10": "1.13", "22.11": "1.13", "22.12": "1.14",
        "23.01": "1.14", "23.05": "2.0", "23.10": "2.1", "24.03": "2.3", "24.10": "2.5",
    }
)  # fmt: skip

# Batches of Lambda's runs by task and the card's memory in GiB, (fp32, amp), where its logs don't say them.
# Source: pytorch/scripts/config*/ of the repository: 1080Ti, p3.16xlarge, 24GB, 8xV100, 40GB, 48GB, 80GB.
_LAMBDAS_BATCHES: Mapping[str, Mapping[int, tuple[int, int]]] = MappingProxyType(
    {
        "tacotron2": {
            11: (36, 72), 16: (52, 100), 24: (88, 88), 32: (108, 220), 40: (128, 128), 48: (136, 148), 80: (256, 256)
        },
        "waveglow": {11: (2, 4), 16: (5, 10), 24: (8, 12), 32: (15, 30), 40: (16, 24), 48: (26, 32), 80: (32, 48)},
        "ssd": {
            11: (32, 56), 16: (48, 96), 24: (80, 140), 32: (108, 192), 40: (128, 224), 48: (144, 256), 80: (256, 448)
        },
        "ncf": {
            16: (1280000, 2560000), 24: (2516582, 4278184), 40: (4000000, 7500000), 48: (5000000, 10000000),
            80: (8000000, 10000000),
        },
    }
)  # fmt: skip
# The same in the later configurations, config_v1, whose results lie in folders that end in "_v1".
_LAMBDAS_LATER: Mapping[str, Mapping[int, tuple[int, int]]] = MappingProxyType(
    {"tacotron2": {16: (48, 48)}, "waveglow": {16: (8, 8)}}
)
CLIPS = 625
"""Clips of an epoch of Lambda's Tacotron 2 on one card: --training-files ljs_audio_text_train_subset_625_filelist."""


def torch_of(framework: str) -> str | None:
    """The version of torch that ran, "1.9" or "2.13", or None where the text has none.

    >>> torch_of("PyTorch 21.03 NGC (1.9a)"), torch_of("PyTorch 1.13.0a0+d0d6b1f CUDA V11.8.89")
    ('1.9', '1.13')
    """
    for number in re.findall(r"(?<![\d.])(\d+\.\d+)(?![\d])", re.sub(r"\b(?:CUDA|cu|cuDNN) ?V?[\d.]+", "", framework)):
        if number in _CONTAINERS:
            return _CONTAINERS[number]
        if number.startswith(("1.", "2.")):
            return str(number)
    return None


# The containers in which NVIDIA's tables were measured, by the table's folder. Source: the sentence above each table.
_TABLES_CONTAINERS: Mapping[str, str] = MappingProxyType(
    {
        "LanguageModeling/BERT": "21.11",
        "Translation/Transformer": "22.06",
        "Translation/GNMT": "20.06",
        "SpeechSynthesis/Tacotron2": "20.06",
        "Detection/SSD": "22.10",
        "Segmentation/nnUNet": "22.11",
        "Recommendation/NCF": "21.04",
        "Classification/ConvNets": "21.03",
    }
)


def version_of(point: Point) -> str | None:
    """The version of torch that ran: as the folder of NVIDIA's table says, else as the point's framework says."""
    if point.repo == DLE:
        for folder, container in _TABLES_CONTAINERS.items():
            if folder in point.path:
                return _CONTAINERS[container]
    return torch_of(point.framework)


def layout_of(point: Point, precision: str) -> str | None:
    """The layout that NVIDIA's programs for pictures take by precision; None for all others.

    Source: Classification/ConvNets configs.yml (memory_format nhwc with AMP alone); Detection/SSD main.py
    (channels_last unless asked for another) and examples/ (SSD300_FP32_*.sh and the benchmark of inference in fp32 ask
    for channels_first, SSD300_A100_FP32_8GPU.sh doesn't).
    """
    if point.repo != DLE or not re.search(r"Classification/ConvNets|Detection/SSD", point.path):
        return None
    trained_in_tf32 = "Detection/SSD" in point.path and precision == "tf32" and kind_of(point.kind) == "train"
    return "nhwc" if precision.startswith("amp") or trained_in_tf32 else "nchw"


def precision_there(point: Point, precision: str, card: Card) -> str:
    """The precision that ran: NVIDIA's containers let fp32 be TF32 where the card has it, and so does Lambda's "FP32".

    Source: NVIDIA's framework containers set TF32 on by default since 20.06.
    """
    containers = point.repo == LAMBDA and "tf32" in card.peak_flop_per_s
    return "tf32" if containers and precision == "fp32" else precision


def timed_kind(point: Point, program: str | None) -> str | None:
    """What a program's timed call does whatever the point's text says, where we know it.

    NeuSight times Megatron-LM's whole train_step, which clips and updates too.
    Source: sitar-lab/NeuSight scripts/asplos/collect_label_distributed.py; accelerate/utils/megatron_lm.py.
    """
    return "train" if program == "megatron" and point.kind == "train" else None


def kernel_kind(point: Point) -> str:
    """How single kernels ran. DeepBench keeps calls in their training form under results/train."""
    return "train" if "/train/" in f"/{point.path}" else "infer"


def options_of(
    point: Point, kind: str, precision: str, card: Card, batch: int | None
) -> dict[str, str | int | float | bool]:
    """Options that the program sets and the point doesn't mention."""
    options: dict[str, str | int | float | bool] = {}
    if point.repo in RECIPES:
        options["recipe"] = RECIPES[point.repo]
    if point.repo == LAMBDA:
        options["style"] = _berts_style(version_of(point))
    if update := _update_batch(point, precision, card):
        options["update_batch"] = update
    if version := version_of(point):
        options["torch"] = version
    if point.repo == STAS and kind != "infer":
        options["checkpointing"] = True  # its torch-compile-bench.py switches it on for all that trains
    if point.is_utilization and batch and _lambdas_task(point) == "tacotron2":
        options["per_epoch"] = CLIPS // batch  # the whole run was sampled, with loading and validation
    return options


def _berts_style(version: str | None) -> str:
    """NVIDIA's BERT as Lambda ran it with this torch: containers of another year brought another commit of it.

    Source: Lambda's logs and scripts by container; NVIDIA's repository at those dates (workloads/language/bert.py).
    """
    major, _, minor = (version or "1.13").partition(".")
    number = 100 * int(major) + int(minor)
    return "dle2019" if number < 105 else "dle2020" if number < 112 else "dle2022"


def _update_batch(point: Point, precision: str, card: Card) -> int | None:
    """Pictures to an update in NVIDIA's programs, where their configs.yml differs for a DGX-1 from the usual."""
    if point.repo == DLE and card.architecture == "Volta":
        return {("resnet50v1.5", "fp32"): 896, ("se-resnext101-32x4d", "amp"): 896}.get((point.model, precision))
    return None


def _lambdas_task(point: Point) -> str:
    """The first word of one of Lambda's tasks: "tacotron2" of tacotron2_FP16; nothing for other programs."""
    return point.model.casefold().partition("_")[0] if point.repo == LAMBDA else ""


def batch_of(point: Point, precision: str, card: Card) -> int | None:
    """The batch that the program takes where the point has none."""
    task, memory_gib = _lambdas_task(point), round(card.memory_bytes / GIB)
    later = _LAMBDAS_LATER.get(task, {}).get(memory_gib) if "_v1/" in point.path else None
    by_format = later or _LAMBDAS_BATCHES.get(task, {}).get(memory_gib)
    if by_format is None:
        return None
    whole = by_format[precision.startswith("amp")]
    return max(1, whole // point.n_gpus) if task == "ncf" else whole  # NCF's is that of all cards together
