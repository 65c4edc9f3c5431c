"""On which card, in which computer a point was measured, as far as that is known."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gpututor.bench.accuracy.points import Point
from gpututor.cards import Card, Host, Machine, card, find_card, host, machine_for, machines

DLE, LAMBDA, TIMM = "NVIDIA/DeepLearningExamples", "lambdal/deeplearning-benchmark", "huggingface/pytorch-image-models"
DEEPBENCH = "baidu-research/DeepBench"


@dataclass(frozen=True, slots=True)
class Place:
    """A host for points of one repository whose card and path fit; `named` is a machine whose links are known.

    `reason` says how we know the host, or why this one stands for it.
    """

    repo: str
    cards: str
    path: str
    host: str
    reason: str
    named: str | None = None


_LOG = "the log's own line on the CPU"
_CASCADE = f"{_LOG}: a Xeon of Skylake's or Cascade Lake's kind; this host has the same core"

# The first that fits holds. Logs of Lambda's runs name the CPU; a file of points doesn't, so we take the usual by card.
_PLACES: tuple[Place, ...] = (
    Place(DLE, "V100-SXM2", "", "dgx1-e5-2698v4", "the table's title says DGX-1", "DGX-1"),
    Place(DLE, "A100-SXM4", "", "epyc-7742", "the table's title says DGX A100", "DGX-A100"),
    Place(DLE, "T4", "", "cascade-lake-8259cl", "the server isn't named; this is a usual one with a T4"),
    Place(LAMBDA, "V100", r"/p3\.", "broadwell-e5-2686v4", f"{_LOG}: E5-2686 v4, an AWS p3"),
    Place(LAMBDA, "V100", "", "cascade-lake-8275cl", _CASCADE),
    Place(LAMBDA, "RTX-2080Ti|GTX-1080Ti|TITAN-RTX|Quadro", "", "cascade-lake-8275cl", _CASCADE),
    Place(LAMBDA, "RTX-3090", "8x", "epyc-7r13", f"{_LOG}: EPYC 7313 or 7662; the host has its core"),
    Place(
        LAMBDA,
        "RTX-3|RTX-4090|RTX-A|RTX-6000-Ada|A40",
        "",
        "epyc-7r13",
        f"{_LOG}: an EPYC or Threadripper of this host's core",
    ),
    Place(LAMBDA, "A100", "", "epyc-7742", f"{_LOG}: mostly EPYC of the 7002 series"),
    Place(LAMBDA, "H100|H200|B200", "", "sapphire-rapids-8480c", f"{_LOG}: Xeon 8480+, or the generation after it"),
    Place(DEEPBENCH, "V100", "", "dgx1-e5-2698v4", "the table's own line on the CPU: E5-2698 v4"),
    Place(TIMM, "", "", "desktop", "a GeForce card in its owner's computer, which isn't named"),
    Place("", "B200|H100|H200", "", "sapphire-rapids-8480c", "not said; servers with this card have such a CPU"),
    Place("", "A100", "", "epyc-7742", "not said; servers with this card often have such a CPU"),
)


def card_of(point: Point) -> Card:
    """The card that a point was measured on.

    Raises:
        CardNotKnown: neither the point's `gpu_key` nor its `gpu` is one of ours.
    """
    for name in (point.gpu_key, point.gpu):
        spaced = re.sub(r"[_\s]+", " ", name).strip()
        found = find_card(name) or find_card(spaced)
        if found is not None:
            return found
    return card(point.gpu_key or point.gpu)


def place_of(point: Point) -> tuple[Machine, str]:
    """The machine of a point with as many cards as it says, and how we know its host.

    Raises:
        CardNotKnown: we have no figures on the card.
    """
    found = card_of(point)
    for place in _PLACES:
        fits = (place.cards, found.name), (place.path, point.path)
        if place.repo in ("", point.repo) and all(re.search(pattern, text) for pattern, text in fits):
            return _machine(found, point, host(place.host), place.named), place.reason
    return _machine(found, point, machine_for(found.name).host), "not said; a usual computer with this card"


def _machine(found: Card, point: Point, its_host: Host, named: str | None = None) -> Machine:
    """As many of these cards as the point says in a computer of nobody's, with the links of the `named` one, if any.

    A name that data/links.toml doesn't have gets the usual links of its card.
    """
    name = (linked_like(found, point) or named or "") if point.n_gpus > 1 else ""
    name = name or f"{point.n_gpus} x {found.name}"
    known = machines().get(name)
    return Machine(name, known.provider if known else "own", found, point.n_gpus, its_host, None, "no price", {})


# Lambda's boxes whose cards don't reach each other: tools/calibrate/boxes.py has them from runs that aren't judged.
_VIRTUAL = re.compile(r"/(LambdaCloud_(?!8xV10016G)|Linode_|\d*x?(A100_\d+GB_(SXM4|PCIe)|H100_80GB_PCIe|A6000)_v1/)")


def linked_like(found: Card, point: Point) -> str | None:
    """The computer in data/links.toml whose cards are joined as the point's, where its card doesn't say that."""
    joined = point.interconnect.casefold()
    if point.repo == LAMBDA and _VIRTUAL.search(f"/{point.path}"):
        return "virtual-machine"
    if "pcie" in joined and found.nvlink_bytes_per_s and "SXM" in found.name:
        return "virtual-machine"
    if joined.startswith("nvlink") and "SXM" not in found.name and point.n_gpus == 2:
        return "bridged-pair"
    return None
