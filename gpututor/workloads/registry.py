"""All workloads by name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType

from gpututor.errors import WorkloadNotKnown
from gpututor.workloads.setting import Workload

# The extension point: every module that holds workloads, alone or in tuples. Of two that are spelt nearly alike, the
# first is meant.
MODULES = (
    "vision.resnets",
    "vision.inverted",
    "vision.densenets",
    "vision.vggs",
    "vision.regnets",
    "vision.convnexts",
    "vision.ghostnets",
    "vision.inceptions",
    "vision.vits",
    "vision.small_nets",
    "vision.repvggs",
    "vision.hrnets",
    "vision.unets",
    "detection.ssd",
    "segmentation.nnunet",
    "language.bert_jobs",
    "language.next_word",
    "language.llama",
    "language.megatron",
    "language.switch_jobs",
    "translation.gnmt",
    "translation.transformer_jobs",
    "words.word_language_model",
    "speech.tacotron2_training",
    "speech.waveglow",
    "recommendation.ncf",
    "single.recurrent",
    "single.layers",
    "single.optimizers",
)


def workloads() -> dict[str, Workload]:
    """Every workload by name, in the order of the list."""
    return dict(_by_name())


def find(name: str) -> Workload:
    """The workload of this name; else the first that differs only in case, hyphens, dots or underscores.

    >>> find("ResNet-50").name, find("resnext101_32x4d").name, find("resnext101-32x4d").name
    ('resnet50', 'resnext101_32x4d', 'resnext101-32x4d')

    Raises:
        WorkloadNotKnown: no workload has this name; the message lists near matches.
    """
    found = _by_name().get(name) or _by_key().get(key_of(name))
    if found is None:
        raise WorkloadNotKnown("workload", name, _by_name())
    return found


def key_of(name: str) -> str:
    """A name without what people write differently.

    >>> key_of("MobileNetV3_large.100")
    'mobilenetv3large100'
    """
    return re.sub(r"[^a-z0-9]+", "", name.casefold())


def _in(module: str) -> Iterator[Workload]:
    """A module's own workloads, in the order in which they stand there."""
    for value in vars(import_module(f"gpututor.workloads.{module}")).values():
        if isinstance(value, Workload):
            yield value
        elif isinstance(value, tuple):
            yield from (one for one in value if isinstance(one, Workload))


@cache
def _by_name() -> Mapping[str, Workload]:
    found: dict[str, Workload] = {}
    for module in MODULES:
        for workload in _in(module):
            found.setdefault(workload.name, workload)
    return MappingProxyType(found)


@cache
def _by_key() -> Mapping[str, Workload]:
    return MappingProxyType({key_of(name): workload for name, workload in reversed(list(_by_name().items()))})
