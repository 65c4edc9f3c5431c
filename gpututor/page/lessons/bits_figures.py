"""Lesson 11's figures: bits of a number, three jobs, cards by generation, words, memory, losses, threads, money."""

from __future__ import annotations

from collections.abc import Mapping

import marimo as mo

from gpututor.charts import css_fill
from gpututor.experiments.fewer_bits import (
    ASKED_BATCH,
    COMPILED_TEXTS,
    LENGTH,
    N_PHOTOS,
    N_TEXTS,
    PADDED_WORDS,
    WORDS,
    learned_key,
    texts_key,
)
from gpututor.experiments.formats import Format
from gpututor.ledger import Account
from gpututor.page.figures import figure
from gpututor.page.kept import Kept
from gpututor.page.lessons.bits import DRAWN_BELOW, GIB, JOBS, Bits, key_of
from gpututor.page.lessons.bits_elsewhere import CARDS, threads
from gpututor.page.lessons.tiny_tables import Row, table
from gpututor.page.line_figure import line_figure
from gpututor.page.money import price_of, spent
from gpututor.page.threads import threads_table
from gpututor.replay import play_file
from gpututor.text import NBSP, dollars, duration, percent

EXPONENT_BITS: Mapping[Format, int] = {Format.FP32: 8, Format.TF32: 8, Format.FP16: 5, Format.BF16: 8}
FRACTION_BITS: Mapping[Format, int] = {Format.FP32: 23, Format.TF32: 10, Format.FP16: 10, Format.BF16: 7}
"""Source: IEEE 754-2019 for fp32 and fp16; NVIDIA, "A100 architecture white paper", for TF32 and bf16."""
N_WORDS = 1_000_000_000
ASKED_OF = {
    "resnet20": f"{ASKED_BATCH} pictures of 32x32",
    "resnet50": f"{N_PHOTOS} photos",
    "gpt2": f"{N_TEXTS} texts of {LENGTH:,} words",
}


def least(number_format: Format) -> float:
    """The smallest number above 0.

    >>> f"{least(Format.FP16):.1e}", f"{least(Format.BF16):.1e}"
    ('6.0e-08', '9.2e-41')
    """
    return float(2.0 ** (2 - 2 ** (EXPONENT_BITS[number_format] - 1) - FRACTION_BITS[number_format]))


def most(number_format: Format) -> float:
    """The largest number that isn't infinite.

    >>> most(Format.FP16)
    65504.0
    """
    return float((2 - 2.0 ** -FRACTION_BITS[number_format]) * 2.0 ** (2 ** (EXPONENT_BITS[number_format] - 1) - 1))


def question_picture() -> str:
    """The four formats as rows of bits: sign, exponent, fraction."""
    fills = (css_fill(Account.LAUNCH_OVERHEAD), css_fill(Account.EXPOSED_COPY), css_fill(Account.USEFUL))
    names = ("sign", "exponent: how large", "fraction: how exact")
    cell = "display:block;height:1.1rem;border-radius:2px"
    rows = ""
    for each in Format:
        bits = (1, EXPONENT_BITS[each], FRACTION_BITS[each])
        drawn = "".join(f'<i style="{cell};background:{f}"></i>' * n for f, n in zip(fills, bits, strict=True))
        rows += (
            f'<span>{each.value}</span><span style="display:grid;grid-template-columns:repeat(32,1fr);gap:2px">'
            f"{drawn}</span>"
        )
    legend = "".join(f'<span><i style="background:{f}"></i>{n}</span>' for f, n in zip(fills, names, strict=True))
    spoken = "; ".join(
        f"{e.value}: 1 bit of sign, {EXPONENT_BITS[e]} of exponent, {FRACTION_BITS[e]} of fraction" for e in Format
    )
    return (
        f'<div role="img" aria-label="{spoken}" style="margin-top:1rem;display:grid;'
        f'grid-template-columns:3rem 1fr;gap:.35rem .8rem;align-items:center">{rows}</div>'
        f'<div class="gt-legend">{legend}</div>'
    )


def jobs(found: Bits, on: object) -> mo.Html:
    """The three jobs in every format; `on` is the control that chooses the machine."""
    rows: list[Row] = []
    for job, name in JOBS.items():
        plain = found.steps[key_of(job, Format.FP32)]
        others = (_times(found.times(job, each)) for each in Format if each is not Format.FP32)
        rows.append((f"{name}, {ASKED_OF[job]}", (duration(plain.step_ns), percent(plain.busy_share), *others)))
    titles = ("In fp32", "Busy", *(f"{each.value}, times as fast" for each in Format if each is not Format.FP32))
    return figure(
        "A training step of three jobs",
        found.label("by shapes"),
        on,
        table("The job", titles, rows),
        note="fp16 and bf16 by autocast, fp16 with torch's GradScaler. fp32 means no TF32 anywhere; torch allows it in "
        "convolutions unless told otherwise. " + price_of(found.machine),
        wide=True,
    )


def _times(ratio: float | None) -> str:
    return "—" if ratio is None else f"{ratio:.2f}"


def batches(found: Bits) -> object:
    """How many times as fast as fp32 ResNet-20 is, by batch."""
    return line_figure(
        "ResNet-20, times as fast as in fp32",
        found.label("by shapes"),
        found.lines(),
        x_title="pictures a step",
        y_title="times as fast",
        log_x=True,
        note="One is a step in fp32; below it, fewer bits are slower.",
    )


def cards(everywhere: Mapping[str, Bits]) -> mo.Html:
    """A card of each generation: which formats it has units for, and what they bring."""
    rows: list[Row] = []
    for name in CARDS:
        found = everywhere[name]
        card = found.machine.card
        units = [each.value for each in Format if each is not Format.FP32 and has_unit(found, each)]
        gpt2 = (_times(found.times("gpt2", each)) for each in (Format.TF32, Format.FP16, Format.BF16))
        rows.append(
            (f"{card.name}, {card.architecture}", (", ".join(units) or "none", *gpt2, _times(found.times("resnet20"))))
        )
    titles = ("Tensor cores for", "GPT-2, TF32", "GPT-2, fp16", "GPT-2, bf16", "ResNet-20, fp16")
    return figure(
        "Times as fast as in fp32, by generation",
        '<span class="gt-tag gt-simulated">Simulated</span> six cards, each in a machine that one can rent or buy',
        table("The card", titles, rows),
        note=f"ResNet-20 with {ASKED_BATCH} pictures, GPT-2 with {N_TEXTS} texts. A format without a unit still runs, "
        "at fp32's pace: what it gains is bytes, what it loses is casts.",
        wide=True,
    )


def has_unit(found: Bits, number_format: Format) -> bool:
    """Whether the card multiplies numbers of this format in tensor cores."""
    from gpututor.model.costs.rates import on_tensor_cores

    return on_tensor_cores(number_format.key, False, found.machine.card) is not None


def words(found: Bits) -> mo.Html | None:
    """GPT-2 with its vocabulary as it is and padded; nothing where that wasn't run."""
    if any(found.padded(each) is None for each in Format) or found.compiled_padded is None:
        return None
    rows: list[Row] = [
        (
            each.value,
            (
                duration(found.steps[texts_key(each)].step_ns),
                duration(found.steps[texts_key(each, words=PADDED_WORDS)].step_ns),
                _times(found.padded(each)),
            ),
        )
        for each in Format
    ]
    told = (found.steps[f"compiled-{n}"].step_ns for n in (WORDS, PADDED_WORDS))
    rows.append((f"bf16, compiled, {COMPILED_TEXTS} texts", (*map(duration, told), _times(found.compiled_padded))))
    return figure(
        "GPT-2, one step, by the size of its vocabulary",
        found.label("by shapes"),
        table("The format", (f"{WORDS:,} words", f"{PADDED_WORDS:,} words", "Times as fast"), rows),
        note="No text holds the words that are added; the network learns to give them no chance.",
        wide=True,
    )


def memory(found: Bits) -> mo.Html | None:
    """GPT-2's peak memory by format and batch, and what it does with a larger one."""
    if not found.texts:
        return None
    rows: list[Row] = []
    for n in found.texts:
        for each in (Format.FP32, Format.FP16):
            key = texts_key(each, n)
            needs = f"{found.memory_bytes[key] / GIB:.1f}{NBSP}GiB"
            rate = f"{n * LENGTH / found.steps[key].step_ns * 1e9:,.0f}" if found.fits(key) else "does not fit"
            rows.append((f"{n} texts, {each.value}", (needs, rate)))
    size = f"{found.machine.card.memory_bytes / GIB:.0f}{NBSP}GiB"
    return figure(
        f"GPT-2 in the {size} of this card",
        found.label("by shapes"),
        table("A step of", ("Peak memory", "Words a second"), rows),
        note=found.memory_said,
        wide=True,
    )


def learning(found: Bits) -> object:
    """Losses of the ways to learn, and what each ends at."""
    rows: list[Row] = []
    for way in found.ways:
        noted = found.noted[learned_key(way)]
        skipped = f"{noted['skipped']:.0f}" if "skipped" in noted else "—"
        scale = f"{noted['scale']:,.0f}" if "scale" in noted else "—"
        rows.append((way, (f"{found.left(way):.3f}", skipped, scale, percent(noted["zero_share"]))))
    titles = ("Loss, unseen pictures", "Steps left out", "Scale in the end", "Gradients that are 0")
    return line_figure(
        "The same faint pictures, with fewer bits",
        found.label("a small network that takes noise out of pictures"),
        found.learning_lines(),
        table("The way", titles, rows),
        x_title="steps",
        y_title="loss",
        note=f"Mean squared error, as the share of what a network has that always says 0; means of some steps, from "
        f"{DRAWN_BELOW:g} on downwards. bf16 lies on fp32's line.",
        wide=True,
    )


def elsewhere(rented: Bits, everywhere: Mapping[str, Bits]) -> mo.Html | None:
    """Public threads beside this run; nothing where the variants for them weren't run."""
    if not rented.has("norm-float64"):
        return None
    return figure(
        "What others ran into",
        rented.label("this run; other cards where a thread names one"),
        threads_table(threads(rented, everywhere)),
        note="No two are the same program, so a ratio within two and a half counts as so here too.",
        wide=True,
    )


def money(found: Bits, kept: Kept) -> mo.Html:
    """What GPT-2 costs for so many words in fp32, and in the format that is fastest here."""
    per_step = N_TEXTS * LENGTH
    best = max(Format, key=lambda each: found.times("gpt2", each))
    rate = found.machine.usd_per_hour

    def usd(each: Format) -> float | None:
        hours = N_WORDS / per_step * found.steps[key_of("gpt2", each)].step_ns / 3600e9
        return None if rate is None else hours * rate

    took = duration(N_WORDS / per_step * found.steps[key_of("gpt2", best)].step_ns)
    told = f"in {best.value}, the fastest here, they take {took}"
    paid = usd(best)
    if paid is not None:
        told += f" and cost {dollars(paid)}"
    played = play_file(kept.tapes[key_of("gpt2", Format.FP32)], found.machine)
    return spent(played, usd(Format.FP32), f"{N_WORDS / 1e9:.0f} billion words through GPT-2 in fp32; {told}.")
