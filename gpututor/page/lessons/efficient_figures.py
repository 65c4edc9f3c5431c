"""Lesson 13's figures: networks on paper and on the card, kinds of kernel, orders, ways to make one smaller, money."""

from __future__ import annotations

import marimo as mo

from gpututor.charts import css_fill
from gpututor.experiments.efficient_ways import ASKED_BATCH, Bytes, Net, Order, Slim, bytes_key, slim_key, train_key
from gpututor.experiments.slimmed import Way
from gpututor.ledger import Account
from gpututor.page.figures import figure
from gpututor.page.kept import Kept
from gpututor.page.lessons.efficient import HELPS, Paper
from gpututor.page.lessons.kernel_kinds import Kind
from gpututor.page.lessons.tiny_tables import Row, table
from gpututor.page.line_figure import line_figure
from gpututor.page.money import price_of, spent
from gpututor.references import reference
from gpututor.replay import play_file
from gpututor.text import NBSP, dollars, duration, percent

N_PHOTOS = 1_281_167  # ImageNet's, Russakovsky et al. 2015, arXiv 1409.0575
N_EPOCHS = 90  # as in He et al. 2015 and most recipes since
NOTHING = "—"


def question_picture() -> str:
    """The question as a picture: one bar of arithmetic, a tenth of it, and how much time that is unknown."""
    fill = css_fill(Account.USEFUL)
    bar = f'<i style="display:block;height:1.1rem;border-radius:3px;background:{fill};width:'
    hatched = (
        '<b style="display:grid;place-items:center;height:1.3rem;border-radius:3px;border:1px solid var(--gt-line);'
        "font-weight:400;font-size:.9rem;line-height:1;"
        'background:repeating-linear-gradient(-45deg,var(--gt-track) 0 7px,transparent 7px 14px)">?</b>'
    )
    rows = (("ResNet-50", f'{bar}100%"></i>'), ("EfficientNet-B0", f'{bar}9.5%"></i>'), ("its time", hatched))
    cells = "".join(f"<span>{name}</span>{shape}" for name, shape in rows)
    return (
        '<div role="img" aria-label="The arithmetic of ResNet-50, a tenth of it for EfficientNet-B0, and its time, '
        'which is the question" style="margin-top:1rem;display:grid;grid-template-columns:8rem 1fr;gap:.45rem .8rem;'
        f'align-items:center">{cells}</div>'
    )


def networks(found: Paper, on: object) -> mo.Html:
    """Each network on paper and on the card; `on` is the control that chooses the machine."""
    rows: list[Row] = []
    for net in Net:
        step, whole = found.step(net), found.whole(net)
        cells = (
            percent(reference(f"top-1, {net.value}").value),
            f"{found.photo_flop(net) / 1e9:.2f}{NBSP}GFLOP",
            f"{found.on_paper(net):.1f}",
            f"{found.fewer_bytes(net):.1f}",
            f"{found.times(net):.1f}",
            duration(step.step_ns),
            f"{whole.intensity or 0:.0f}",
            percent(found.mfu(net)),
        )
        rows.append((net.value, cells))
    titles = (
        "ImageNet, right",
        "A photo, forward",
        "Times less FLOP",
        "Times fewer bytes",
        "Times as fast",
        "One step",
        "FLOP a byte",
        "MFU",
    )
    return figure(
        f"Four networks learn from {ASKED_BATCH} photos a step",
        found.label("by shapes"),
        on,
        table("The network", titles, rows),
        note="fp16 by autocast, channels last, SGD. Shapes as in transformers' and timm's configurations; a multiply-"
        "add is two FLOP. Bytes: each kernel's tensors once. Right answers: torchvision's weights, first version. "
        + _winograd(found)
        + price_of(found.machine),
        wide=True,
    )


def _winograd(found: Paper) -> str:
    """Why more FLOP than there is time for can be counted; empty where there aren't."""
    if max(map(found.mfu, Net)) <= 1:
        return ""
    return "An MFU above one: Winograd's method gets by with fewer products than papers count. "


def kinds(found: Paper, net: Net) -> mo.Html:
    """A network's step by kinds of kernel."""
    sums, whole = found.kinds(net), found.whole(net)
    rows: list[Row] = []
    for kind in Kind:
        if kind not in sums:
            continue
        each = sums[kind]
        reached = each.flop / each.ns * 1e9 / found.machine.card.top_peak_flop_per_s
        rows.append(
            (
                kind.value,
                (
                    percent(each.flop / whole.flop) if each.flop else NOTHING,
                    percent(each.moved_bytes / whole.moved_bytes),
                    percent(each.ns / whole.ns),
                    f"{each.intensity:.1f}" if each.flop and each.intensity else NOTHING,
                    percent(reached) if each.flop else NOTHING,
                ),
            )
        )
    titles = ("Of the FLOP", "Of the bytes", "Of the card's time", "FLOP a byte", "Of the card's peak")
    return figure(
        f"{net.value}, one step by kinds of kernel",
        found.label("by shapes"),
        table("Kernels", titles, rows),
        note=f"Below {found.needed_intensity:.0f} FLOP a byte this card's memory is slower than its arithmetic. "
        "A depthwise filter of 5x5 has more FLOP a byte than one of 3x3.",
        wide=True,
    )


def batches(found: Paper) -> object:
    """How many times as fast as ResNet-50 the others train, by batch."""
    return line_figure(
        "Times as fast as ResNet-50",
        found.label("by shapes"),
        found.lines(),
        x_title="photos a step",
        y_title="times as fast",
        log_x=True,
        note="On paper: "
        + ", ".join(f"{net.value} {found.on_paper(net):.1f}" for net in Net if net is not Net.RESNET50)
        + ".",
    )


def orders(found: Paper) -> mo.Html | None:
    """Each network in each format and order of channels; nothing where some weren't run."""
    if not found.ordered:
        return None
    rows: list[Row] = []
    for net in Net:
        times = (duration(found.step(net, order=order).step_ns) for order in Order)
        rows.append((net.value, (*times, f"{found.gain(net, Order.FP16_LAST, Order.FP16):.2f}")))
    titles = (*(order.value for order in Order), "Last, times as fast in fp16")
    return figure(
        f"A step of {ASKED_BATCH} photos by format and order",
        found.label("by shapes"),
        table("The network", titles, rows),
        note="In fp32 the model has no slower kernels for channels last; pytorch issue 44943 saw them on a V100.",
        wide=True,
    )


def slimmed(found: Paper) -> mo.Html | None:
    """What was done to ResNet-50, what is left on paper, and what the clock says; nothing where some weren't run."""
    if not found.slimmed:
        return None
    rows: list[Row] = []
    for slim, paper in (
        (Slim.ZEROS, "a tenth"),
        (Slim.MASKED, "a tenth"),
        (Slim.HALVED, percent(found.slim_flop(Slim.HALVED))),
    ):
        many, one = found.slim_times(slim), found.slim_times(slim, 1)
        cells = (paper, percent(found.slim_flop(slim)), f"{many:.2f}", f"{one:.2f}", judged(many))
        rows.append((slim.value, cells))
    best = found.pattern_at_best(slim_key(Slim.AS_IT_IS))
    rows.append(("two of every four weights zero", ("a half", percent(1.0), _bound(best), NOTHING, _pattern(best))))
    rows.append(("8 bits", ("the same, on bytes", percent(1.0), NOTHING, NOTHING, "no finished kernel")))
    titles = ("FLOP left, on paper", "Computed", f"Times as fast, {ASKED_BATCH} photos", "One photo", "So it")
    return figure(
        "ResNet-50 answers, made smaller",
        found.label("by shapes, fp16, channels last, without gradients"),
        table("What was done", titles, rows),
        note="For convolutions torch has no product of 2:4 weights, and of bytes on a card a prototype that was paused "
        "(its quantization FAQ); on a processor torch.ao has one, and on cards TensorRT has both. 2:4 is a bound: the "
        "one linear layer in half its time.",
        wide=True,
    )


def judged(times: float) -> str:
    """The verdict on a way to make a network smaller.

    >>> judged(1.4), judged(1.0), judged(0.9)
    ('helps', 'helps on paper only', 'is slower')
    """
    if times >= HELPS:
        return "helps"
    return "helps on paper only" if times * HELPS > 1 else "is slower"


def _bound(times: float) -> str:
    return f"at most {times:.2f}" if times > 1 else NOTHING


def _pattern(best: float) -> str:
    if best == 1.0:
        return "no unit here"
    return "may help" if best >= HELPS else "helps on paper only"


def transformer(found: Paper) -> mo.Html | None:
    """A vision transformer, whose linear layers have such kernels; nothing where some weren't run."""
    if not found.bytes_run:
        return None
    rows: list[Row] = []
    for way in Bytes:
        step = found.steps[bytes_key(way)]
        is_int8 = way in (Bytes.INT8, Bytes.INT8_COMPILED)
        known = found.multiplies_bytes or not is_int8
        times = f"{found.bytes_times(way):.2f}" if is_int8 and known else NOTHING
        verdict = (judged(found.bytes_times(way)) if known else "no unit here") if is_int8 else NOTHING
        rows.append(
            (way.value, (duration(step.step_ns) if known else NOTHING, f"{step.n_kernels:,.0f}", times, verdict))
        )
    best = found.pattern_at_best(bytes_key(Bytes.COMPILED))
    rows.append(("2:4, compiled", (NOTHING, NOTHING, _bound(best), _pattern(best))))
    theirs = reference("2:4, feed-forward part")
    return figure(
        f"A vision transformer of linear layers, {ASKED_BATCH} photos",
        found.label("ViT-B/16 by shapes, without gradients"),
        table("Its products in", ("One answer", "Kernels", "Times as fast", "So it"), rows),
        note="int8 against fp16, compiled against compiled. 2:4 is a bound, products in half their time; "
        f"{theirs.source} saw {theirs.value:.2f} for a feed-forward part.",
        wide=True,
    )


def digits(found: Paper) -> object:
    """Losses of the two readers, and what each way to make one smaller leaves of its readings."""
    if not found.ways:
        return None
    rows: list[Row] = []
    for way in found.ways:
        told = found.told(way)
        cells = (
            f"{told['multiplications'] / 1e6:.2f}{NBSP}M",
            f"{told['weights']:,.0f}",
            percent(told["zero_share"]),
            NOTHING if way.learns else percent(told["at_once"]),
            NOTHING if way is Way.BITS else percent(told["accuracy"]),
        )
        rows.append((way.value, cells))
    titles = ("Multiply-adds", "Weights", "Of them zero", "Right, at once", "Right, after learning")
    return line_figure(
        "Handwritten digits, two readers",
        found.label("small networks that really learn"),
        found.learning_lines(),
        table("The reader", titles, rows),
        x_title="steps",
        y_title="loss",
        note="Digits by 13 people, 8 by 8 points each (Alpaydin and Kaynak 1998, UCI); shares are of 500 that were "
        "never learned from. 8 bits: weights and what goes into each layer are rounded, written out in plain torch; "
        "norms stay in fp32." + _torchs_own(found),
        wide=True,
    )


def _torchs_own(found: Paper) -> str:
    """What torch.ao's own int8 network reads, where this torch has one for this processor."""
    told = found.told(Way.BITS).get("torch_ao") if Way.BITS in found.ways else None
    if told is None:
        return ""
    return f" torch.ao's own int8 network, run on this computer's processor, reads {percent(told)} right."


def money(found: Paper, kept: Kept) -> mo.Html:
    """What ImageNet costs with ResNet-50 and with EfficientNet-B0."""
    rate = found.machine.usd_per_hour

    def ns(net: Net) -> float:
        return N_EPOCHS * N_PHOTOS / ASKED_BATCH * found.step(net).step_ns

    def usd(net: Net) -> float | None:
        return None if rate is None else ns(net) / 3600e9 * rate

    other = usd(Net.EFFICIENTNET)
    told = f"with EfficientNet-B0, {duration(ns(Net.EFFICIENTNET))}"
    if other is not None:
        told += f" and {dollars(other)}"
    played = play_file(kept.tapes[train_key(Net.RESNET50)], found.machine)
    return spent(
        played,
        usd(Net.RESNET50),
        f"{N_EPOCHS} epochs of ImageNet with ResNet-50, {duration(ns(Net.RESNET50))}, photos at hand; {told}.",
    )
