"""Whole networks of the timm library as lists of kernels, to be priced beside timm's published speeds.

The networks come from the `timm` package where it can be imported; each runs one step on the simulated GPU without
numerics, and what it asked of the card is kept in a file, so that a fit prices it again without running it. When
the way in which operators become kernels changes, what is kept is out of date: use a new folder then.
"""

from __future__ import annotations

import gzip
import importlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpututor.cards import Card, card, host
from gpututor.model.cost import price
from gpututor.model.host import op_host
from gpututor.model.queue import KERNEL_GAP_NS
from gpututor.model.spec import KernelSpec, from_dict, to_dict
from gpututor.model.tape import TapeOp
from tools.calibrate.common import read

HOST = "desktop"
ROOMY = "B200-SXM"  # kernels don't depend on the card they are recorded on, but the batch has to fit
CARDS = {"RTX 3090": "RTX-3090", "RTX 4090": "RTX-4090", "RTX 5090": "RTX-5090"}
# Of the versions of torch in the table, one for each card and mode.
VERSIONS = {("train", "RTX 3090"): "1.12", ("infer", "RTX 3090"): "2.4.0", ("infer", "RTX 4090"): "2.4.0"} | {
    ("infer", "RTX 5090"): "2.9.1"
}
# None of them is judged, nor the next size of one that is.
DENSE = (
    "inception_v3 inception_v4 darknet53 cs3darknet_m cs3darknet_l dla34 dla60 hrnet_w18 hrnet_w32 selecsls42b "
    "selecsls60 repvgg_b0 repvgg_a2 gernet_m gernet_l vovnet39a ese_vovnet39b cspdarknet53"
)
GROUPED = (
    "regnetx_016 regnetx_032 regnetx_080 regnety_032 regnety_080 regnetz_c16 dla60x dpn68b dpn92 gcresnext26ts "
    "repvgg_b1g4 nfnet_l0"
)
DEPTHWISE = (
    "mobilenetv2_100 mobilenetv2_140 mnasnet_100 semnasnet_100 spnasnet_100 fbnetc_100 fbnetv3_b lcnet_100 rexnet_100 "
    "mixnet_m hardcorenas_a hardcorenas_f ese_vovnet19b_dw convnext_tiny convnext_small efficientnetv2_rw_s xception41 "
    "xception71 convmixer_768_32 mobilevit_s"
)
KINDS = {
    name: kind
    for kind, names in (("dense", DENSE), ("grouped", GROUPED), ("depthwise", DEPTHWISE))
    for name in names.split()
}


@dataclass(frozen=True, slots=True)
class Run:
    """One published row: a network, how it was run, and the seconds that a step took."""

    network: str
    mode: str
    layout: str
    device: str
    batch: int
    side: int
    measured_s: float

    @property
    def kind(self) -> str:
        """Which convolutions it is mostly made of."""
        return KINDS[self.network]

    @property
    def key(self) -> str:
        """The name under which its kernels are kept."""
        return f"{self.network}-{self.mode}-{self.layout}-{self.batch}-{self.side}"


@dataclass(frozen=True, slots=True)
class Kernels:
    """What one step asks of the card, each kernel with how often it runs, and of the host, in seconds."""

    specs: tuple[tuple[KernelSpec, int], ...]
    host_s: float


def runs() -> list[Run]:
    """The published rows of the networks above, eager and in amp."""
    found: dict[tuple[str, str, str, str], Run] = {}
    for row in read("timm_benchmarks.csv.gz"):
        network, mode, device = row["model"].partition(".")[0], row["mode"], row["device"]
        if network not in KINDS or row["compile"] != "False" or row["precision"] != "amp":
            continue
        if device not in CARDS or row["torch"] != VERSIONS[mode, device] or not row["step_ms"]:
            continue
        if network.startswith("repvgg") and device == "RTX 5090":  # measured with its branches merged into one
            continue
        run = Run(
            network,
            mode,
            row["layout"],
            device,
            int(float(row["batch"])),
            int(float(row["img_size"])),
            float(row["step_ms"]) / 1e3,
        )
        found.setdefault((network, mode, row["layout"], device), run)
    return list(found.values())


def kernels_of(wanted: Sequence[Run], cache: Path) -> dict[str, Kernels]:
    """The kernels of each run by its key, from the folder `cache` or by running the network."""
    cache.mkdir(parents=True, exist_ok=True)
    found: dict[str, Kernels] = {}
    for run in wanted:
        path = cache / f"{run.key}.json.gz"
        if run.key in found:
            continue
        if not path.exists():
            try:
                kept = recorded(run)
            except RuntimeError as error:
                print(f"{run.key}: left out, {error}")
                continue
            with gzip.open(path, "wt") as file:
                json.dump({"host_s": kept.host_s, "specs": [[n, to_dict(spec)] for spec, n in kept.specs]}, file)
        with gzip.open(path, "rt") as file:
            entry = json.load(file)
        found[run.key] = Kernels(tuple((from_dict(spec), n) for n, spec in entry["specs"]), entry["host_s"])
    return found


def recorded(run: Run) -> Kernels:
    """One step of a network as timm's benchmark runs it: autocast without a scaler, SGD with momentum."""
    from gpututor.simgpu.recording import tape_steps

    made: list[Callable[[int], Any]] = []

    def step(k: int) -> object:
        if not made:
            made.append(stepper(run))
        return made[0](k)

    tape = tape_steps(step, n_steps=1, warmup=1, machine=ROOMY, numerics=False)
    seen: Counter[KernelSpec] = Counter()
    host_ns, desktop = 0, host(HOST)
    for entry in tape.entries:
        if isinstance(entry, TapeOp):
            seen.update(entry.kernels)
            cost = op_host(entry.host, entry.phase, len(entry.kernels), desktop)
            host_ns += cost.python_ns + cost.dispatch_ns + len(entry.kernels) * cost.launch_ns
    return Kernels(tuple(seen.items()), host_ns / 1e9)


def stepper(run: Run) -> Callable[[int], Any]:
    """The step of `run` on the simulated GPU."""
    import torch

    try:
        timm = importlib.import_module("timm")
    except ImportError as error:
        raise SystemExit(
            f"the timm library can't be imported ({error}): its networks are what the published speeds belong to; "
            "pip install timm, or give --cache a folder in which the kernels of all runs are kept"
        ) from error
    with torch.device("simgpu"):
        net = timm.create_model(run.network)
        seen = torch.randn(run.batch, 3, run.side, run.side)
        targets = torch.randint(0, 1000, (run.batch,))
    net.train(run.mode == "train")
    if run.layout == "nhwc":
        net = net.to(memory_format=torch.channels_last)
        seen = seen.contiguous(memory_format=torch.channels_last)
    sgd = torch.optim.SGD(net.parameters(), lr=1e-4, momentum=0.9, nesterov=True)

    def train(k: int) -> Any:
        sgd.zero_grad()
        with torch.autocast("simgpu", torch.float16):
            loss = torch.nn.functional.cross_entropy(net(seen), targets)
            torch.autograd.backward(loss)
        sgd.step()

    def infer(k: int) -> Any:
        with torch.no_grad(), torch.autocast("simgpu", torch.float16):
            net(seen)

    return train if run.mode == "train" else infer


def step_s(run: Run, kernels: Kernels, change: Callable[[KernelSpec], KernelSpec] = lambda spec: spec) -> float:
    """Predicted seconds of a step, the host being no longer than the card: a long queue in front of it."""
    on = card_of(run)
    busy_ns = sum(n * (price(change(spec), on).duration_ns + KERNEL_GAP_NS) for spec, n in kernels.specs)
    return max(busy_ns / 1e9, kernels.host_s)


def card_of(run: Run) -> Card:
    """The card of a run."""
    return card(CARDS[run.device])
