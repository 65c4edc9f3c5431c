"""What a run of lesson 13 found on a machine: FLOP, bytes and time of networks, orders of channels, smaller ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpututor.cards import Machine
from gpututor.charts import running_mean
from gpututor.experiments.efficient_ways import (
    ASKED_BATCH,
    BATCHES,
    Bytes,
    Net,
    Order,
    Slim,
    bytes_key,
    learned_key,
    slim_key,
    train_key,
)
from gpututor.experiments.per_op import HostSplit
from gpututor.experiments.slimmed import Way
from gpututor.page.kept import Kept
from gpututor.page.lessons.kernel_kinds import Kind, Sums, by_kind, forward_flop
from gpututor.page.lessons.splits import Steps
from gpututor.text import percent
from gpututor.timeline import Label, Origin

HELPS = 1.05  # as fast as it is, or less than a twentieth faster: no help that one would notice
SMOOTH = 8  # steps in a mean of losses
SPARSE_FROM = 8.0  # compute capability; source: NVIDIA, "A100 architecture white paper", sparse tensor cores
BYTES_FROM = 6.1  # compute capability from which cards multiply bytes: CUDA programming guide, dp4a


def capability(machine: Machine) -> float | None:
    """The compute capability as a number; None for a card of another maker."""
    try:
        return float(machine.card.compute_capability)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class Paper:
    """Each variant of a run on one machine, by key."""

    machine: Machine
    steps: Mapping[str, HostSplit]
    tapes: Mapping[str, Path]
    losses: Mapping[str, tuple[float | None, ...]]
    held_out: Mapping[str, float | None]
    noted: Mapping[str, Mapping[str, float]]

    def has(self, *keys: str) -> bool:
        """Whether all of these were run."""
        return all(key in self.steps for key in keys)

    def label(self, what: str) -> Label:
        """What a figure must say that shows several variants."""
        card = self.machine.card
        return Label(Origin.SIMULATED, card.name, self.machine.name, what, n_sms=card.n_sms)

    def ratio(self, slow: str, fast: str) -> float | None:
        """How many times as long one step takes as another; None where one wasn't run."""
        return self.steps[slow].step_ns / self.steps[fast].step_ns if self.has(slow, fast) else None

    # --- networks ----------------------------------------------------------------------------------------------------

    @property
    def asked(self) -> bool:
        """Whether every network was trained as the question says."""
        return self.has(*map(train_key, Net))

    def step(self, net: Net, batch: int = ASKED_BATCH, order: Order = Order.FP16_LAST) -> HostSplit:
        """A training step."""
        return self.steps[train_key(net, batch, order)]

    def kinds(self, net: Net) -> Mapping[Kind, Sums]:
        """The kernels of the question's step."""
        return by_kind(self.tapes[train_key(net)], self.machine)

    def whole(self, net: Net) -> Sums:
        """All kernels of the question's step together."""
        found = Sums()
        for each in self.kinds(net).values():
            found = found.plus(each.ns, each.flop, each.moved_bytes)
        return found

    def photo_flop(self, net: Net) -> float:
        """FLOP of one photo's forward pass."""
        return forward_flop(self.tapes[train_key(net)]) / ASKED_BATCH

    def on_paper(self, net: Net) -> float:
        """How many times less FLOP than ResNet-50 it needs."""
        return self.photo_flop(Net.RESNET50) / self.photo_flop(net)

    def fewer_bytes(self, net: Net) -> float:
        """How many times fewer bytes than ResNet-50's step its own moves."""
        return self.whole(Net.RESNET50).moved_bytes / self.whole(net).moved_bytes

    def times(self, net: Net, batch: int = ASKED_BATCH) -> float:
        """How many times as fast as ResNet-50 it trains."""
        return self.step(Net.RESNET50, batch).step_ns / self.step(net, batch).step_ns

    def mfu(self, net: Net) -> float:
        """The share of the card's highest rate that its training uses."""
        return self.whole(net).flop / (self.step(net).step_ns / 1e9 * self.machine.card.top_peak_flop_per_s)

    @property
    def outcome(self) -> float | None:
        """How many times as fast as ResNet-50 EfficientNet-B0 trains; None where that wasn't run."""
        keys = (train_key(Net.RESNET50), train_key(Net.EFFICIENTNET))
        return self.times(Net.EFFICIENTNET) if self.has(*keys) else None

    @property
    def needed_intensity(self) -> float:
        """FLOP for each byte from which on this card's arithmetic is what one waits for."""
        return self.machine.card.top_peak_flop_per_s / self.machine.card.bandwidth_bytes_per_s

    @property
    def why_said(self) -> str:
        """Where EfficientNet's time goes."""
        kinds, whole = self.kinds(Net.EFFICIENTNET), self.whole(Net.EFFICIENTNET)
        depthwise = kinds[Kind.DEPTHWISE]
        walks = sum(kinds[kind].ns for kind in (Kind.NORM, Kind.REST) if kind in kinds)
        return (
            f"In EfficientNet-B0 they are {percent(depthwise.flop / whole.flop)} of the FLOP and "
            f"{percent(depthwise.ns / whole.ns)} of the card's time. Norms, activations and sums hardly compute, and "
            f"take {percent(walks / whole.ns)}."
        )

    @property
    def depthwise(self) -> tuple[float, float, float]:
        """The card's nanoseconds in EfficientNet's step, those of depthwise convolutions, and their share of FLOP."""
        each, whole = self.kinds(Net.EFFICIENTNET)[Kind.DEPTHWISE], self.whole(Net.EFFICIENTNET)
        return whole.ns, each.ns, each.flop / whole.flop

    # --- over the batch ----------------------------------------------------------------------------------------------

    @property
    def batches(self) -> list[int]:
        """Batches at which every network was run."""
        return [n for n in BATCHES if self.has(*(train_key(net, n) for net in Net))]

    def lines(self) -> dict[str, list[tuple[float, float | None]]]:
        """Photos a step, and how many times as fast as ResNet-50 each other network is."""
        return {net.value: [(n, self.times(net, n)) for n in self.batches] for net in Net if net is not Net.RESNET50}

    @property
    def curve_said(self) -> str:
        """What EfficientNet does with few photos and with many."""
        few, many = self.batches[0], self.batches[-1]
        first, last = (self.times(Net.EFFICIENTNET, n) for n in (few, many))
        n_kernels = [self.step(net, few).n_kernels for net in (Net.EFFICIENTNET, Net.RESNET50)]
        photo = "one photo" if few == 1 else f"{few} photos"
        said = (
            f"With {photo} a step EfficientNet-B0 is {_against(first)}: it launches {n_kernels[0]:,.0f} kernels, "
            f"ResNet-50 {n_kernels[1]:,.0f}."
        )
        return f"{said} With {many} it is {_against(last)}."

    # --- the order of channels ---------------------------------------------------------------------------------------

    @property
    def ordered(self) -> bool:
        """Whether every network was trained in every order."""
        return self.has(*(train_key(net, order=order) for net in Net for order in Order))

    def gain(self, net: Net, order: Order, over: Order) -> float:
        """How many times as fast one order is as another."""
        return self.step(net, order=over).step_ns / self.step(net, order=order).step_ns

    @property
    def order_said(self) -> str:
        """What channels last bring in fp16, and whom most."""
        halves = {net: self.gain(net, Order.FP16_LAST, Order.FP16) for net in Net}
        best = max(Net, key=lambda net: halves[net])
        if halves[best] < HELPS:
            return "On this card the order changes nothing that one would notice in fp16."
        return f"In fp16 {best.value} gains most here, and becomes {halves[best]:.1f} times as fast."

    # --- made smaller ------------------------------------------------------------------------------------------------

    @property
    def slimmed(self) -> bool:
        """Whether ResNet-50 was asked in every form at both batches."""
        return self.has(*(slim_key(slim, n) for slim in Slim for n in (ASKED_BATCH, 1)))

    def slim_times(self, slim: Slim, batch: int = ASKED_BATCH) -> float:
        """How many times as fast as it was a smaller ResNet-50 answers."""
        return self.steps[slim_key(Slim.AS_IT_IS, batch)].step_ns / self.steps[slim_key(slim, batch)].step_ns

    def slim_flop(self, slim: Slim) -> float:
        """The share of FLOP that kernels still compute."""
        now, before = (forward_flop(self.tapes[slim_key(each)]) for each in (slim, Slim.AS_IT_IS))
        return now / before

    @property
    def has_sparse_cores(self) -> bool:
        """Whether this card's tensor cores skip two of four weights."""
        known = capability(self.machine)
        return known is not None and known >= SPARSE_FROM

    def pattern_at_best(self, key: str) -> float:
        """How many times as fast the step can be at best when products of linear layers take half their time.

        Convolutions count as they are, since torch has no kernel for them; the card is taken for the one that one
        waits for. 1 where the card has no unit for it.
        """
        if not self.has_sparse_cores:
            return 1.0
        kinds = by_kind(self.tapes[key], self.machine)
        whole = sum(each.ns for each in kinds.values())
        return whole / (whole - kinds.get(Kind.PRODUCT, Sums()).ns / 2)

    @property
    def bytes_run(self) -> bool:
        """Whether the transformer was asked in every way."""
        return self.has(*(bytes_key(way) for way in Bytes))

    @property
    def multiplies_bytes(self) -> bool:
        """Whether this card has units for numbers of 8 bits that products of torch reach."""
        known = capability(self.machine)
        return known is not None and known >= BYTES_FROM and self.machine.card.peak("int8") is not None

    def bytes_times(self, way: Bytes) -> float:
        """How many times as fast as the same without 8 bits, compiled against compiled."""
        before = Bytes.COMPILED if way is Bytes.INT8_COMPILED else Bytes.HALVES
        return self.steps[bytes_key(before)].step_ns / self.steps[bytes_key(way)].step_ns

    @property
    def bytes_said(self) -> str:
        """What 8 bits do to the transformer here, written out and compiled."""
        if not self.multiplies_bytes:
            return "This card multiplies no bytes: cuBLAS refuses such a product on it."
        plain, joined = self.bytes_times(Bytes.INT8), self.bytes_times(Bytes.INT8_COMPILED)
        more = self.steps[bytes_key(Bytes.INT8)].n_kernels / self.steps[bytes_key(Bytes.HALVES)].n_kernels
        return (
            f"Operator by operator, the rounding around each product makes {more:.1f} times as many kernels: it is "
            f"{_against(plain)}. Compiled, rounding joins its neighbours, and it is {_against(joined)}."
        )

    # --- what is learned ---------------------------------------------------------------------------------------------

    @property
    def ways(self) -> list[Way]:
        """What became of the small reader, as far as it was run."""
        return [way for way in Way if self.has(learned_key(way)) and self.noted.get(learned_key(way))]

    def told(self, way: Way) -> Mapping[str, float]:
        """What was counted of it: accuracies, multiply-adds, weights."""
        return self.noted[learned_key(way)]

    def learning_lines(self) -> dict[str, Sequence[tuple[float, float]]]:
        """Steps and mean losses of the two that learn from nothing."""
        lines: dict[str, Sequence[tuple[float, float]]] = {}
        for way in self.ways:
            if way.learns:
                known = [loss for loss in self.losses[learned_key(way)] if loss is not None]
                lines[way.value] = [(int(k), mean) for k, mean in running_mean(known, SMOOTH)[SMOOTH - 1 :]]
        return lines

    @property
    def digits_said(self) -> str:
        """What the small reader loses at once by being made smaller, and after learning on; empty unless all ran."""
        if len(self.ways) < len(Way):
            return ""
        whole = self.told(Way.PLAIN)["accuracy"]
        told = {way: self.told(way) for way in Way if not way.learns}
        worst = min(told, key=lambda way: told[way]["at_once"])
        again = min(told[way]["accuracy"] for way in told)
        return (
            f"The whole one reads {percent(whole)} of unseen digits right. At once, {worst.value} leave "
            f"{percent(told[worst]['at_once'])}; after some more learning, none reads fewer than {percent(again)}. "
            f"8 bits leave {percent(told[Way.BITS]['at_once'])} without any."
        )


def _against(times: float) -> str:
    """A pace beside another one."""
    if times >= HELPS:
        return f"{times:.1f} times as fast"
    return "no faster" if times * HELPS > 1 else f"slower, at {percent(times)} of the pace"


def paper_of(kept: Kept, on: Machine) -> Paper:
    """What a run, finished or stopped half-way, has on a machine; without a run there are no variants."""
    told = [each for each in kept.data["points"] if each["key"] in kept.tapes] if kept.tapes else []
    tapes = {each["key"]: kept.tapes[each["key"]] for each in told}
    return Paper(
        on,
        Steps(tapes, on),
        tapes,
        {each["key"]: tuple(each["losses"]) for each in told},
        {each["key"]: each.get("held_out") for each in told},
        {each["key"]: each.get("noted") or {} for each in told},
    )
