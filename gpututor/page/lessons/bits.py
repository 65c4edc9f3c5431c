"""What a run of lesson 11 found on a machine: formats by batch, what the host pays, memory, and what is learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpututor.cards import Machine
from gpututor.charts import running_mean
from gpututor.experiments.fewer_bits import (
    ASKED_BATCH,
    BATCHES,
    MORE_TEXTS,
    N_TEXTS,
    PADDED_WORDS,
    WAYS,
    WORDS,
    learned_key,
    no_wait_key,
    photos_key,
    small_key,
    texts_key,
)
from gpututor.experiments.formats import Format
from gpututor.experiments.per_op import HostSplit
from gpututor.page.kept import Kept
from gpututor.page.lessons.splits import Steps
from gpututor.references import reference
from gpututor.text import duration, percent
from gpututor.timeline import Label, Origin

SOONER = 1.02  # as fast as fp32, or less than a fiftieth faster: not sooner
SMOOTH = 16  # steps in a mean of losses
DRAWN_BELOW = 1.5  # the first losses are many times that of a network which says nothing
ALIKE = 1.05  # times a loss that is as good: other orders of pictures make as much of a difference
GIB = 2**30
JOBS: Mapping[str, str] = {"resnet20": "ResNet-20", "resnet50": "ResNet-50", "gpt2": "GPT-2"}


def key_of(job: str, number_format: Format) -> str:
    """Names the question's step of a job in a format."""
    if job == "resnet20":
        return small_key(number_format, ASKED_BATCH)
    return photos_key(number_format) if job == "resnet50" else texts_key(number_format)


@dataclass(frozen=True, slots=True)
class Bits:
    """Each variant of a run on one machine, by key."""

    machine: Machine
    steps: Mapping[str, HostSplit]
    losses: Mapping[str, tuple[float | None, ...]]
    held_out: Mapping[str, float | None]
    noted: Mapping[str, Mapping[str, float]]
    memory_bytes: Mapping[str, int]

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

    # --- the question ------------------------------------------------------------------------------------------------

    @property
    def asked(self) -> bool:
        """Whether the three jobs were run in every format."""
        return self.has(*(key_of(job, each) for job in JOBS for each in Format))

    def times(self, job: str, number_format: Format = Format.FP16) -> float:
        """How many times as fast as fp32 a job's step is."""
        return self.steps[key_of(job, Format.FP32)].step_ns / self.steps[key_of(job, number_format)].step_ns

    @property
    def n_sooner(self) -> int | None:
        """How many of the three jobs finish a step sooner in fp16; None where they weren't run."""
        return sum(self.times(job) > SOONER for job in JOBS) if self.asked else None

    @property
    def sooner_said(self) -> str:
        """What fp16 does to each of the three."""
        parts = []
        for job, name in JOBS.items():
            times = self.times(job)
            if times > SOONER:
                parts.append(f"{name} is {times:.1f} times as fast")
            elif times * SOONER < 1:
                parts.append(f"{name} takes {percent(1 / times - 1)} longer")
            else:
                parts.append(f"{name} takes as long as before")
        return "; ".join(parts)

    # --- over the batch ----------------------------------------------------------------------------------------------

    def small(self, number_format: Format, batch: int) -> HostSplit:
        """A step of ResNet-20."""
        return self.steps[small_key(number_format, batch)]

    @property
    def batches(self) -> list[int]:
        """Batches at which ResNet-20 was run in every format."""
        return [n for n in BATCHES if self.has(*(small_key(each, n) for each in Format))]

    def lines(self) -> dict[str, list[tuple[float, float | None]]]:
        """Batch, and how many times as fast as fp32 each other format is."""
        return {
            each.value: [(n, self.small(Format.FP32, n).step_ns / self.small(each, n).step_ns) for n in self.batches]
            for each in Format
            if each is not Format.FP32
        }

    @property
    def ends(self) -> tuple[tuple[float, float], tuple[float, float], int] | None:
        """A step in fp32 and in fp16 with the fewest pictures, and with the most, and how many those are."""
        if len(self.batches) < 2:
            return None
        few, many = (
            (self.small(Format.FP32, n).step_ns, self.small(Format.FP16, n).step_ns)
            for n in (self.batches[0], self.batches[-1])
        )
        return few, many, self.batches[-1]

    @property
    def curve_said(self) -> str:
        """Where fp16 begins to pay, or that it doesn't."""
        times = dict(self.lines()[Format.FP16.value])
        few, many = self.batches[0], self.batches[-1]
        first, last = times[few] or 0.0, times[many] or 0.0
        if last <= SOONER:
            return f"On this card fp16 pays at no batch: with {many:,} pictures it takes as long as fp32, or longer."
        if first > SOONER:
            return f"On this card fp16 pays from {few} pictures on, and is {last:.1f} times as fast with {many:,}."
        how = f"takes {percent(1 / first - 1)} longer" if first * SOONER < 1 else "takes as long"
        return f"With {few} pictures fp16 {how}. With {many:,} it is {last:.1f} times as fast."

    # --- what it costs the host --------------------------------------------------------------------------------------

    @property
    def why_said(self) -> str:
        """What fp16 takes from the card and puts on the host, at the question's batch."""
        plain, half = (self.small(each, ASKED_BATCH) for each in (Format.FP32, Format.FP16))
        card = f"The card's work for {ASKED_BATCH} pictures changes from {duration(plain.card_ns)} to "
        return (
            card + f"{duration(half.card_ns)}. The host launches {half.n_kernels - plain.n_kernels:.0f} kernels more, "
            f"{half.n_kernels:.0f} in all, and its work grows from {duration(plain.host_ns)} to "
            f"{duration(half.host_ns)}."
        )

    @property
    def no_wait_said(self) -> str:
        """What it brings when the optimizer looks at the scaler's check by itself; empty where that wasn't run."""
        if not self.has(no_wait_key()):
            return ""
        waits, fused = self.small(Format.FP16, ASKED_BATCH).step_ns, self.steps[no_wait_key()].step_ns
        if fused * SOONER > waits:
            return "With `fused=True` the optimizer looks for itself. Here that changes little."
        return (
            "With `fused=True` the optimizer looks for itself, and nobody waits: "
            f"{duration(fused)} instead of {duration(waits)}."
        )

    # --- words -------------------------------------------------------------------------------------------------------

    def padded(self, number_format: Format) -> float | None:
        """How many times as fast GPT-2 is with a padded vocabulary."""
        return self.ratio(texts_key(number_format), texts_key(number_format, words=PADDED_WORDS))

    @property
    def compiled_padded(self) -> float | None:
        """The same for compiled GPT-2 in bf16."""
        return self.ratio(f"compiled-{WORDS}", f"compiled-{PADDED_WORDS}")

    def padding_said(self, a100: Bits) -> str:
        """What padding brings on this card, and on an A100 beside what its best-known report says."""
        gains = {each: (self.padded(each) or 1.0) - 1 for each in Format}
        best = max(gains, key=lambda each: gains[each])
        card = self.machine.card.name
        if gains[best] < SOONER - 1:
            said = f"On this {card} it brings nothing: no tensor core multiplies these numbers."
        else:
            said = f"On this {card} the step is {percent(gains[best])} faster for it in {best.value}."
        theirs, ours = reference("vocabulary, A100").value, a100.compiled_padded
        if ours is None:
            return said
        return (
            f"{said} Andrej Karpathy saw about {percent(theirs - 1)} on an A100, compiled; simulated that is "
            f"{percent(ours - 1)}."
        )

    # --- memory ------------------------------------------------------------------------------------------------------

    @property
    def texts(self) -> list[int]:
        """Numbers of texts for which memory is known in fp32 and in fp16."""
        counts = (N_TEXTS, *MORE_TEXTS)
        return [n for n in counts if self.has(*(texts_key(each, n) for each in (Format.FP32, Format.FP16)))]

    def fits(self, key: str) -> bool:
        """Whether the card has the memory for it."""
        return self.memory_bytes[key] <= self.machine.card.memory_bytes

    @property
    def memory_said(self) -> str:
        """How much less memory fp16 takes, and what the freed part is good for."""
        less = {
            job: 1 - self.memory_bytes[key_of(job, Format.FP16)] / self.memory_bytes[key_of(job, Format.FP32)]
            for job in ("resnet50", "gpt2")
        }
        said = (
            f"ResNet-50 takes {percent(less['resnet50'])} less, GPT-2 only {percent(less['gpt2'])}: weights, Adam's "
            "state and the losses of all words stay in fp32."
        )
        most = {
            each: max((n for n in self.texts if self.fits(texts_key(each, n))), default=0)
            for each in (Format.FP32, Format.FP16)
        }
        plain, half = most[Format.FP32], most[Format.FP16]
        if not half:
            return said
        rate = {n: n / self.steps[texts_key(Format.FP16, n)].step_ns for n in {plain, half} if n}
        if half == plain:
            return f"{said} All of these batches fit here in both."
        if not plain:
            return f"{said} In fp32 not even {self.texts[0]} texts fit here, in fp16 {half} do."
        more = percent(rate[half] / rate[plain] - 1)
        return f"{said} Here {half} texts fit instead of {plain}, which is {more} more words a second."

    # --- what is learned ---------------------------------------------------------------------------------------------

    @property
    def ways(self) -> list[str]:
        """Ways to learn that were run."""
        return [way for way in WAYS if self.has(learned_key(way))]

    def means(self, way: str) -> list[tuple[int, float]]:
        """Steps, and the mean of the last losses then."""
        known = [loss for loss in self.losses[learned_key(way)] if loss is not None]
        return [(int(k), mean) for k, mean in running_mean(known, SMOOTH)[SMOOTH - 1 :]]

    def learning_lines(self) -> dict[str, Sequence[tuple[float, float]]]:
        """Steps and mean losses, of four ways, once they are low enough to compare; bf16 lies on fp32's line."""
        means = {way: self.means(way)[::2] for way in self.ways if way != "bf16"}
        return {way: [(k, mean) for k, mean in pairs if mean <= DRAWN_BELOW] for way, pairs in means.items()}

    def left(self, way: str) -> float:
        """The loss on pictures that it never saw."""
        return self.held_out[learned_key(way)] or 0.0

    @property
    def learned_said(self) -> str:
        """Whether fewer bits learn the same, and what becomes of it without a scale or with one far too high."""
        if len(self.ways) < len(WAYS):
            return ""
        plain, half, bf16, raw, high = (self.left(w) for w in ("fp32", "fp16, scaled", "bf16", *list(WAYS)[3:]))
        zeros = self.noted[learned_key("fp16, not scaled")]["zero_share"]
        usual = self.noted[learned_key("fp32")]["zero_share"]
        skipped = self.noted[learned_key("fp16, scale far too high")]["skipped"]
        same = max(half, bf16) <= ALIKE * plain
        return (
            f"fp32 ends at {plain:.3f}, bf16 at {bf16:.3f}, fp16 with a scaler at {half:.3f}: "
            f"{'the same' if same else 'not quite the same'}. "
            f"Without a scale it is {raw:.3f}, for in the end {percent(zeros)} of the gradients are exactly nothing, "
            f"where in fp32 {percent(usual)} are. A scale that begins far too high overflows: the scaler left "
            f"out {skipped:.0f} steps, halving each time, and learning began late ({high:.3f})."
        )


def bits_of(kept: Kept, on: Machine) -> Bits:
    """What a run, finished or stopped half-way, has on a machine; without a run there are no variants."""
    told = [each for each in kept.data["points"] if each["key"] in kept.tapes] if kept.tapes else []
    return Bits(
        on,
        Steps({each["key"]: kept.tapes[each["key"]] for each in told}, on),
        {each["key"]: tuple(each["losses"]) for each in told},
        {each["key"]: each.get("held_out") for each in told},
        {each["key"]: each.get("noted") or {} for each in told},
        {each["key"]: each["memory_bytes"] for each in told},
    )
