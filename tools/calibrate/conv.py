"""Convolutions: the model beside DeepBench's and NeuSight's kernels and timm's networks, its constants fitted on them.

Run as `python -m tools.calibrate.conv --cache FOLDER`. It prints errors of the constants as they stand, of a fit and of
fits that leave networks or cards out, and what each ingredient is worth. It changes nothing: constants are set by hand.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

from gpututor.cards import Card, card
from gpututor.model import constants
from gpututor.model.cost import price
from gpututor.model.costs import conv as costs
from gpututor.model.kernels import Conv, RowReduce, Stream
from gpututor.model.lowering import lower
from gpututor.model.queue import KERNEL_GAP_NS
from gpututor.model.spec import KernelSpec, OpCall, TensorMeta
from gpututor.timeline import NS_PER_S
from tools.calibrate.common import errors, loss, read
from tools.calibrate.networks import Kernels, Run, card_of, kernels_of, runs

PASSES = {"fprop": "fwd_ms", "dgrad": "bwd_data_ms", "wgrad": "bwd_weight_ms"}
DEEPBENCH = {"NV_V100": "V100-SXM2-16GB", "NV_T4": "T4", "NV_P100": "P100-PCIe", "NV_1080Ti": "GTX-1080Ti"}
DEEPBENCH_LAUNCH_S = 2e-6
NEUSIGHT = {"Tesla P100-PCIE-16GB": "P100-PCIe", "Tesla V100-PCIE-32GB": "V100-PCIe-32GB", "Tesla T4": "T4"} | {
    "NVIDIA A100 80GB PCIe": "A100-PCIe-80GB"
}
# NeuSight's calls let cuDNN guess an algorithm and take 0.06 to 0.3 ms however small they are: only long ones are used.
NEUSIGHT_LAUNCH_S, NEUSIGHT_LEAST_S, NEUSIGHT_EVERY = 25e-6, 1e-3, 6
FITTED = (
    "conv.layout_share",
    "conv.native_share",
    "conv.grouped_share",
    "conv.grouped_gradient_flop_share",
    "walk.thread_mb_per_s",
    *(f"conv.depthwise_{way}_{order}_flop_share" for way in PASSES for order in ("first", "last")),
)
STEPS = (0.6, 0.75, 0.86, 0.93, 1.08, 1.18, 1.4)
N_FOLDS = 4
Row = tuple[str, KernelSpec, Card, float, float]  # group, kernel, card, measured seconds, seconds of the launch in them


def convolution(sizes: Mapping[str, int], dtype: str, way: str) -> KernelSpec:
    """One pass of a convolution in NCHW; `sizes` are named as in DeepBench's table."""
    s = sizes
    high = (s["h"] + 2 * s["pad_h"] - s["r"]) // s["stride_v"] + 1
    wide = (s["w"] + 2 * s["pad_w"] - s["s"]) // s["stride_h"] + 1
    x = TensorMeta.contiguous(s["n"], s["c"], s["h"], s["w"], dtype=dtype)
    w = TensorMeta.contiguous(s["k"], s["c"], s["r"], s["s"], dtype=dtype)
    y = TensorMeta.contiguous(s["n"], s["k"], high, wide, dtype=dtype)
    how = ((s["stride_v"], s["stride_h"]), (s["pad_h"], s["pad_w"]), (1, 1), False, (0, 0), 1)
    if way == "fprop":
        return lower(OpCall("aten.convolution.default", (x, w, None, *how), (), (y,))).kernels[0]
    wanted = (way == "dgrad", way == "wgrad", False)
    return lower(OpCall("aten.convolution_backward.default", (y, x, w, None, *how, wanted), (), (x,))).kernels[0]


def deepbench() -> Iterator[Row]:
    """DeepBench's convolutions, each pass a row; P100's fp16 rows compute in fp32 and are left out."""
    for row in read("deepbench_conv.csv.gz"):
        short = "16" in row["precision"]
        if row["gpu"] not in DEEPBENCH or (short and row["gpu"] == "NV_P100"):
            continue
        sizes = {key: int(float(row[key])) for key in "n c h w k r s pad_h pad_w stride_v stride_h".split()}
        for way, column in PASSES.items():
            if row[column][:1].isdigit():
                spec = convolution(sizes, "float16" if short else "float32", way)
                group = f"{row['gpu']} {'fp16' if short else 'fp32'} {way}"
                yield group, spec, card(DEEPBENCH[row["gpu"]]), float(row[column]) / 1e3, DEEPBENCH_LAUNCH_S


def neusight() -> Iterator[Row]:
    """A part of NeuSight's convolutions: 3x3, fp32, forward, of random sizes."""
    found = [r for r in read("neusight_kernels.csv.gz") if r["family"] == "conv" and r["Device"] in NEUSIGHT]
    for row in found[::NEUSIGHT_EVERY]:
        n, c, k, side = (int(float(row[key])) for key in ("B", "Input_Channel", "Output_Channel", "Input_Size"))
        sizes = {"n": n, "c": c, "h": side, "w": side, "k": k, "r": 3, "s": 3, "pad_h": 1, "pad_w": 1}
        spec = convolution(sizes | {"stride_v": 1, "stride_h": 1}, "float32", "fprop")
        measured_s = float(row["latency_ms"]) / 1e3
        if measured_s >= NEUSIGHT_LEAST_S:
            yield f"{row['Device']} fp32 fprop", spec, card(NEUSIGHT[row["Device"]]), measured_s, NEUSIGHT_LAUNCH_S


def show_kernels(title: str, rows: Iterable[Row]) -> None:
    """Errors of single convolutions by card, format and pass."""
    groups: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for group, spec, on, measured_s, launch_s in rows:
        groups[group].append((price(spec, on).duration_ns / NS_PER_S + launch_s, measured_s))
    print(f"\n{title}")
    for group, pairs in sorted(groups.items()):
        print(f"  {group:34s}{errors(pairs)}")


def reads(spec: KernelSpec) -> tuple[str, ...]:
    """Which of the fitted constants the time of a kernel hangs on."""
    if isinstance(spec, RowReduce):
        return ("walk.thread_mb_per_s",)
    if not isinstance(spec, Conv):
        return ()
    if spec.c_in == spec.groups > 1:
        return (f"conv.depthwise_{spec.direction}_{'last' if spec.channels_last else 'first'}_flop_share",)
    layout = () if spec.channels_last else FITTED[:2]
    return (*layout, *FITTED[2:4]) if spec.groups > 1 else layout


def value(path: str) -> float:
    """A constant by group and name."""
    name, _, constant = path.partition(".")
    return constants.group(name).values[constant]


class Networks:
    """Predicted steps of networks; a kernel is priced again only where a constant that it hangs on has changed."""

    def __init__(self, kernels: Mapping[str, Kernels], keep: Callable[[KernelSpec], bool] = lambda spec: True) -> None:
        self.kernels = kernels
        self.known: dict[tuple[object, ...], int] = {}
        self.reads = {id(s): reads(s) for k in kernels.values() for s, _ in k.specs}
        self.keep = {id(s) for k in kernels.values() for s, _ in k.specs if keep(s)}

    def pair(self, run: Run) -> tuple[float, float]:
        """Predicted and measured seconds of a step."""
        kernels, on = self.kernels[run.key], card_of(run)
        busy_ns = sum(n * self.kernel_ns(spec, on) for spec, n in kernels.specs if id(spec) in self.keep)
        return max(busy_ns / NS_PER_S, kernels.host_s), run.measured_s

    def kernel_ns(self, spec: KernelSpec, on: Card) -> int:
        """Duration of a kernel and the gap after it."""
        key = (id(spec), on.name, *map(value, self.reads[id(spec)]))
        if key not in self.known:
            self.known[key] = price(spec, on).duration_ns + KERNEL_GAP_NS
        return self.known[key]

    def pairs(self, rows: Iterable[Run]) -> list[tuple[float, float]]:
        """Predicted and measured seconds of each run."""
        return [self.pair(run) for run in rows]


def fitted(networks: Networks, rows: Sequence[Run], rounds: int = 2) -> dict[str, float]:
    """The constants that make `rows` fit best, each moved in turn; those that no row hangs on stay."""
    found = {path: value(path) for path in FITTED}
    with constants.other(found):
        least = loss(networks.pairs(rows))
    for _ in range(rounds):
        for path in FITTED:
            for times in STEPS:
                tried = found | {path: found[path] * times}
                with constants.other(tried):
                    off = loss(networks.pairs(rows))
                if off < least - 1e-5:
                    least, best = off, tried
                    found = best
    return found


def show_networks(title: str, pairs: Mapping[Run, tuple[float, float]]) -> None:
    """Errors by mode, card and order of channels, and by what the networks are made of."""
    print(f"\n{title}\n  {'all':44s}{errors(pairs.values())}")
    groups: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for run, pair in pairs.items():
        groups[f"{run.mode} {run.device} {run.layout}"].append(pair)
        groups[f"{run.mode}, {run.kind}, {run.layout}"].append(pair)
    for group, found in sorted(groups.items()):
        print(f"  {group:44s}{errors(found)}")


def show_constants(title: str, found: Mapping[str, float]) -> None:
    """Constants by name."""
    print(f"\n{title}: " + ", ".join(f"{path.partition('.')[2]} {number:.3g}" for path, number in found.items()))


def left_out(networks: Networks, rows: Sequence[Run], fold: Callable[[Run], object]) -> dict[Run, tuple[float, float]]:
    """Predictions of each fold's runs by constants fitted on the others."""
    found: dict[Run, tuple[float, float]] = {}
    for name in sorted({fold(run) for run in rows}, key=str):
        with constants.other(fitted(networks, [r for r in rows if fold(r) != name], rounds=1)):
            found |= {run: networks.pair(run) for run in rows if fold(run) == name}
    return found


def ablations() -> Iterator[tuple[str, AbstractContextManager[object], Callable[[KernelSpec], bool]]]:
    """Each ingredient taken out: words, a context in which it is missing, and which kernels remain."""

    def every(spec: KernelSpec) -> bool:
        return True

    yield "nothing", nullcontext(), every
    yield "reordering for tensor cores", constants.other({"conv.layout_share": 1e-9}), every
    yield "the choice of a kernel without reordering", constants.other({"conv.native_share": 1e-9}), every
    yield "narrow groups side by side", patch.object(costs, "side_by_side", lambda spec: False), every
    yield "the slow gradients of groups", constants.other({"conv.grouped_gradient_flop_share": 1e9}), every
    yield "batch norm's waiting threads", constants.other({"walk.thread_mb_per_s": 1e9}), every
    yield "copies of slices", nullcontext(), lambda spec: not (isinstance(spec, Stream) and spec.name == "contiguous")
    one = {f"conv.depthwise_{way}_last_flop_share": value(f"conv.depthwise_{way}_first_flop_share") for way in PASSES}
    yield "depthwise kernels by order of channels", constants.other(one), every


def main() -> None:
    """Print everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cache", type=Path, required=True, help="folder for the kernels of networks that were run")
    parser.add_argument("--no-fit", action="store_true", help="errors of the constants as they stand, and ablations")
    asked = parser.parse_args()
    single = [*deepbench(), *neusight()]
    show_kernels("Single convolutions, without Winograd", [(row[0], _plain(row[1]), *row[2:]) for row in single])
    show_kernels("Single convolutions", single)
    rows = runs()
    kernels = kernels_of(rows, asked.cache)
    rows = [run for run in rows if run.key in kernels]
    networks = Networks(kernels)
    show_networks("timm's networks, constants as they stand", dict(zip(rows, networks.pairs(rows), strict=True)))
    if not asked.no_fit:
        everything = fitted(networks, rows)
        show_constants("Fitted on all", everything)
        with constants.other(everything):
            print(f"  {'all':44s}{errors(networks.pairs(rows))}")
        names = sorted({run.network for run in rows})
        show_networks("Networks left out", left_out(networks, rows, lambda run: names.index(run.network) % N_FOLDS))
        first = [run for run in rows if run.device == "RTX 3090"]
        on_first = fitted(networks, first)
        show_constants("Fitted on the RTX 3090 alone", on_first)
        with constants.other(on_first):
            others = [run for run in rows if run.device != "RTX 3090"]
            show_networks("The other cards by that", dict(zip(others, networks.pairs(others), strict=True)))
    print("\nWithout one ingredient, the rest as it stands")
    for words, context, keep in ablations():
        with context:
            print(f"  {words:44s}{errors(Networks(kernels, keep).pairs(rows))}")


def _plain(spec: KernelSpec) -> KernelSpec:
    return replace(spec, winograd_rows=0) if isinstance(spec, Conv) else spec


if __name__ == "__main__":
    main()
