"""Lesson 11 on other machines: a card of each generation, and public threads beside the run."""

from __future__ import annotations

from collections.abc import Mapping

from gpututor.experiments.fewer_bits import ASKED_BATCH, EVEN_LENGTH, ODD_LENGTH, photos_key, small_key
from gpututor.experiments.formats import Format
from gpututor.lookup import machine_named
from gpututor.page.kept import Kept
from gpututor.page.lessons.bits import Bits, bits_of
from gpututor.references import Reference, reference

CARDS = ("p2.xlarge", "P100-SXM2", "p3.2xlarge", "g4dn.xlarge", "A100-SXM4-80GB", "H100-SXM")
"""Machines with a card of each generation, the oldest first."""
OTHERS = (*CARDS, "desktop-RTX-3090")


def everywhere(kept: Kept) -> dict[str, Bits]:
    """The run on a card of each generation and on those that threads name, by machine."""
    return {name: bits_of(kept, machine_named(name)) for name in OTHERS}


def threads(rented: Bits, elsewhere: Mapping[str, Bits]) -> list[tuple[Reference, float | None]]:
    """Each public thread with the same ratio from the run, None where it wasn't run."""
    k80, a100, rtx = (elsewhere[name] for name in ("p2.xlarge", "A100-SXM4-80GB", "desktop-RTX-3090"))
    small = {each: small_key(each, ASKED_BATCH) for each in Format}
    photos = {each: photos_key(each) for each in Format}
    rows = {
        "fp32 to mixed, ResNet-20": rented.ratio(small[Format.FP16], small[Format.FP32]),
        "fp32 to mixed, K80": k80.ratio(photos[Format.FP16], photos[Format.FP32]),
        "fp32 to mixed, V100": rented.ratio(photos[Format.FP32], photos[Format.FP16]),
        "TF32 to mixed, A100": a100.ratio(photos[Format.TF32], photos[Format.FP16]),
        "vocabulary, A100": a100.compiled_padded,
        "vocabulary, RTX 3090": rtx.padded(Format.BF16),
        "sentences to a multiple of 8": rented.ratio(f"length-{ODD_LENGTH}", f"length-{EVEN_LENGTH}"),
        "one float64": elsewhere["H100-SXM"].ratio("norm-float64", "norm-float32"),
    }
    return [(reference(name), ratio) for name, ratio in rows.items()]
