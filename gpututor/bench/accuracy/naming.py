"""Which of our workloads a point's model is: by rules on how people write names, and a list of other names."""

from __future__ import annotations

import re

from gpututor.errors import WorkloadNotKnown
from gpututor.workloads.registry import find, key_of, workloads
from gpututor.workloads.setting import Workload

_PRECISION_AT_END = re.compile(r"[_\- ](fp32|fp16|bf16|tf32|amp)$", re.IGNORECASE)
_IN_BRACKETS = re.compile(r"\([^)]*\)")

# Other names of one workload, as `key_of` writes them.
_OTHER_NAMES: dict[str, str] = {
    "ssd": "ssd300",
    "ssd300resnet50backbone": "ssd300",
    "ssd300resnet50": "ssd300",
    "nnunet": "nnunet_2d",
    "gnmtv2": "gnmt",
    "transformer": "transformer-big",
    "bertlargesquadfinetune": "bert-large-squad",
    "bertbasesquadfinetune": "bert-base-squad",
    "bertlargefinetune": "bert-large-squad",
    "bertlargepretrain": "bert-large-pretraining",
    "bertlargepretraining": "bert-large-pretraining",
    "gpt327": "gpt3-2.7b",
    "opt13": "opt-1.3b",
    "switchxl4": "switch-xl-4",
}

# Names with a part that is an option, not a model: pattern, workload's name, options by the pattern's groups.
_PATTERNS: tuple[tuple[re.Pattern[str], str, tuple[str, ...]], ...] = (
    (
        re.compile(r"cudnn (lstm|gru|rnn)(?: (\d+) layers?)?(?: (fwd|forward|bwd|backward))?", re.IGNORECASE),
        "{0}_layer",
        ("cell", "layers", "pass"),
    ),
    (
        re.compile(r"(adamw|adam|sgd)\.step on (\d+) params?(?: of (\d+)M)?", re.IGNORECASE),
        "optimizer_step",
        ("optimizer", "parameters", "width"),
    ),
)
MILLION = 2**20  # "1M" of a square matrix: 1024 x 1024


def workload_of(model: str, ending: str = "", program: str | None = None) -> tuple[Workload, dict[str, str | int]]:
    """The workload that a point's model names, and the options that stand in the name.

    `ending` marks the form that one program runs; a workload whose name has it goes before one without. A `program`
    that trains a family of models in its own way has a workload for the family, in which the model is an option.

    Raises:
        WorkloadNotKnown: none of ours is called so.

    >>> workload_of("resnet50_FP32")[0].name, workload_of("GNMT v2 (4-layer)")[0].name
    ('resnet50', 'gnmt')
    """
    for pattern, name, groups in _PATTERNS:
        if match := pattern.search(model):
            said = [part.casefold() if part else "" for part in match.groups()]
            options = {group: _value(part) for group, part in zip(groups, said, strict=True) if part}
            if "width" in options:
                options["width"] = round((int(options["width"]) * MILLION) ** 0.5)
            return _first([name.format(*said)], model), options
    plain = _PRECISION_AT_END.sub("", _IN_BRACKETS.sub("", model).strip()).strip()
    if program:
        size = plain.casefold().replace("_", "-")
        return _first([f"{size.partition('-')[0]}-{program}"], model), {"size": size}
    names = [plain, _OTHER_NAMES.get(key_of(plain), plain)]
    return _first([*(name + ending for name in names), *names], model), {}


def _first(names: list[str], model: str) -> Workload:
    """The first of these names that we have."""
    for name in names:
        try:
            return find(name)
        except WorkloadNotKnown:
            continue
    raise WorkloadNotKnown("workload", model, workloads())


def _value(text: str) -> str | int:
    return int(text) if text.isdigit() else text
