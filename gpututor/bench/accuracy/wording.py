"""What a point's free text says about how the model was run; words that no rule knows are kept and reported."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

Said = str | int | float | bool

KINDS = {
    "train": "train",
    "training": "train",
    "infer": "infer",
    "inf": "infer",
    "inference": "infer",
    "optimizer": "train",
    "gradients": "gradients",
}

PRECISIONS = {
    "fp32": "fp32",
    "float32": "fp32",
    "tf32": "tf32",
    "amp": "amp",
    "mixed": "amp",
    "amp(fp16)": "amp",
    "amp(bf16)": "amp_bf16",
    "amp_bf16": "amp_bf16",
    "fp16": "fp16",
    "half": "fp16",
    "bf16": "bf16",
    "bfloat16": "bf16",
}


@dataclass(frozen=True, slots=True)
class Wording:
    """What a text says; None and absent where it says nothing.

    `batch` and `n_cards` stand in the text beside the columns of their own. `program` is one that trains a model in its
    own way, "megatron". `cannot` says why it can't be predicted.
    """

    layout: str | None = None
    layout_by_precision: bool = False
    mode: str | None = None
    kind: str | None = None
    options: Mapping[str, Said] = field(default_factory=lambda: MappingProxyType({}))
    batch: int | None = None
    n_cards: int | None = None
    program: str | None = None
    cannot: str | None = None
    not_understood: tuple[str, ...] = ()


Rule = tuple[str, Callable[[re.Match[str]], dict[str, Said]]]


def _number(name: str) -> Callable[[re.Match[str]], dict[str, Said]]:
    return lambda match: {name: int(match[1])}


def _is(**said: Said) -> Callable[[re.Match[str]], dict[str, Said]]:
    return lambda match: said


def _size(match: re.Match[str]) -> dict[str, Said]:
    height, width = int(match[1]), int(match[2])
    return {"side": height} if height == width else {"height": height, "width": width}


# Earlier rules take their words away from later ones. Names with a dot are no options: ".layout" is Wording.layout.
_RULES: tuple[Rule, ...] = (
    (r"\bamp ?= ?nhwc, ?fp32/tf32 ?= ?nchw\b", _is(**{".layout_by_precision": True})),
    (r"\bnhwc\b|\bchannels[_-]last\b", _is(**{".layout": "nhwc"})),
    (r"\bnchw\b|\bchannels[_-]first\b", _is(**{".layout": "nchw"})),
    (r"\bcudnn_skip_input\b(?: \([^)]*\))?", _is(skip_input=True)),
    (r"\btorch\.compile\b[ ,]*(?:mode=)?\"?reduce-overhead\"?", _is(**{".mode": "graphs"})),
    (r"\bcuda ?graphs?\b|\breduce-overhead\b", _is(**{".mode": "graphs"})),
    (r"\btorch\.compile\b(?:[ ,]*(?:mode=)?\"?default\"?)?", _is(**{".mode": "compiled"})),
    (r"\bcompiled\b|\bdynamo\b|\binductor\b|\bfusion\b", _is(**{".mode": "compiled"})),
    (r"\beager\b", _is(**{".mode": "eager"})),
    (r"\b(?:fwd|forward) ?\+ ?(?:bwd|backward)(?: \(no optimizer step\))?", _is(**{".kind": "gradients"})),
    (r"\b(?:fwd|forward)\b", _is(**{".kind": "infer"})),
    (r"\bno_grad\b", _is()),
    (r"\bseq(?:uence)?(?: ?len(?:gth)?)?[ =]?(\d+)\b", _number("seq")),
    (r"\b(?:micro-)?(?:bs|batch) ?=? ?(\d+)\b", _number(".batch")),
    (r"\bhidden ?= ?(\d+)\b", _number("hidden")),
    (r"\bT ?= ?(\d+)\b", _number("steps")),
    (r"\b(\d+) ?x ?(\d+)\b(?! ?Linear)(?: patch)?", _size),
    (r"\b(\d+) ?px\b", _number("side")),
    (r"\b(?:no|without) gradient checkpointing\b", _is(checkpointing=False)),
    (r"\bgradient checkpointing\b", _is(checkpointing=True)),
    (r"\bforeach ?= ?false\b", _is(form="loop")),
    (r"\bforeach ?= ?true\b", _is(form="foreach")),
    (r"\bfused ?= ?true\b", _is(form="fused")),
    (r"\bfused ?= ?false\b", _is()),
    (r"\b(\d+)x Linear\((\d+), ?\d+\)(?: no bias)?", lambda m: {"parameters": int(m[1]), "width": int(m[2])}),
    (r"\bdp(\d+)\b", _number(".n_cards")),
    (r"\bmegatron(?:-lm)?\b", _is(**{".program": "megatron"})),
    (r"\b(tp|pp)\d+(?:_\d+)?\b", _is(**{".cannot": "the model is split over the GPUs, which we don't predict"})),
)

# What a text may say without changing what we run: data sets, loaders, names of programs, sizes that go with the model.
_NO_EFFECT = (
    *("eval", "timm", "hf transformers", "huggingface", "pytorch", "ddp", "sdpa", "apex"),
    *("fp32", "fp16", "bf16", "tf32", "amp", "sgd step", "adamw?", "lamb", "grad(?:ient)? accumulation"),
    *(
        "dali(?: loader)?",
        "loader",
        "synthetic data backend",
        "coco",
        "imagenet",
        r"movielens(?: \d+m)?",
        "ljspeech",
        r"squad(?: v?1\.1)?",
        r"wmt1\d en-de",
    ),
    *("patch", r"max len \d+", "total", "tok/s", "batch in tokens per gpu", r"\d+l d\d+ h\d+", "fused ln/adam"),
)
_WITHOUT_EFFECT = re.compile(rf"\b(?:{'|'.join(_NO_EFFECT)})\b|\((?:src\+tgt|brats/msd|apex)\)", re.IGNORECASE)
_LEFT = re.compile(r"[\w.+=/-]*\w(?:[ ][\w.+=/-]*\w)*")


def wording_of(config: str) -> Wording:
    """What the text of a point's column `config` says.

    >>> wording_of("224x224 eval, NHWC, eager").options["side"], wording_of("eager, warp 9").not_understood
    (224, ('warp 9',))
    """
    said: dict[str, Said] = {}
    text = config
    for pattern, meaning in _RULES:
        for match in re.finditer(pattern, text, re.IGNORECASE):
            said = meaning(match) | said  # what was said first holds
        text = re.sub(pattern, ";", text, flags=re.IGNORECASE)
    left = _LEFT.findall(_WITHOUT_EFFECT.sub(";", text))
    own = {name[1:]: value for name, value in said.items() if name.startswith(".")}
    options = {name: value for name, value in said.items() if not name.startswith(".")}
    return Wording(options=MappingProxyType(options), not_understood=tuple(left), **own)  # type: ignore[arg-type]


def kind_of(kind: str) -> str | None:
    """A setting's kind from a point's, or None where we don't know the word."""
    return KINDS.get(kind.strip().casefold())


def precision_of(precision: str) -> str | None:
    """A setting's precision from a point's, or None where we don't know the word.

    >>> precision_of("tf32 (cuDNN/cuBLAS default in NGC)"), precision_of("amp(fp16)"), precision_of("int4")
    ('tf32', 'amp', None)
    """
    text = precision.strip().casefold()
    whole = text.replace(" ", "")
    return PRECISIONS.get(whole) or PRECISIONS.get(re.sub(r"\(.*", "", whole))
