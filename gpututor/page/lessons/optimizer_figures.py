"""Lesson 12's figures: three ways over the number of tensors, four rules, a table's rows, losses, threads and money."""

from __future__ import annotations

import marimo as mo

from gpututor.charts import css_fill
from gpututor.experiments.optimizers import BATCHES, COMPARED, N_NUMBERS, deep_key, pieces_key, resnet_key
from gpututor.jobs.rules import Rule, Way
from gpututor.ledger import Account
from gpututor.page.figures import figure
from gpututor.page.kept import Kept
from gpututor.page.lessons.optimizers import MANY, How, Turns, words
from gpututor.page.lessons.tiny_tables import Row, table
from gpututor.page.line_figure import line_figure
from gpututor.page.money import price_of, spent
from gpututor.page.threads import threads_table
from gpututor.references import Reference, reference
from gpututor.replay import play_file
from gpututor.text import NBSP, dollars, duration, percent

N_RUNS = 1000  # trainings of a search for good settings
N_BIG = 7e9  # parameters of a large language model


def question_picture(n_small: int = 60) -> str:
    """The question as a picture: the same area as many small squares, and as one block."""
    fill = css_fill(Account.USEFUL)
    small = f'<i style="background:{fill};border-radius:2px"></i>' * n_small
    cells = "display:grid;grid-template-columns:repeat(15,1fr);grid-auto-rows:.7rem;gap:.2rem"
    return (
        '<div role="img" aria-label="Many small tensors beside one large one; they hold as many numbers" '
        'style="margin-top:1rem;display:grid;grid-template-columns:1fr auto 1fr;gap:1rem;align-items:center">'
        f'<span style="{cells}">{small}</span><span>or</span>'
        f'<i style="display:block;height:3.4rem;border-radius:4px;background:{fill}"></i></div>'
    )


def updates(found: Turns, on: object) -> object:
    """Adam's update over the number of tensors; `on` is the control that chooses the machine."""
    if not found.cut:
        return None
    return line_figure(
        f"Adam updates {N_NUMBERS / 1e6:.1f} million parameters",
        found.label("updates alone"),
        found.update_lines(),
        x_title="tensors that they lie in",
        y_title="one update (ms)",
        log_x=True,
        log_base=10,
        log_y=True,
        note="Both axes multiply: a straight rise is as many times the time as tensors. " + price_of(found.machine),
        above=on,
    )


def rules(found: Turns) -> mo.Html | None:
    """Each rule in each way, and what it keeps; nothing where some weren't run."""
    if not found.compared:
        return None
    rows: list[Row] = []
    for rule in Rule:
        times = (duration(found.update(way, COMPARED, rule).step_ns) for way in Way)
        kept = (f"{size:.0f}{NBSP}B" for size in (found.state_bytes(rule), found.extra_bytes(rule)))
        rows.append((rule.value, (f"{found.kernels_a_tensor(rule):.0f}", *times, *kept)))
    titles = ("Kernels", "Loop", "Foreach", "Fused", "State", "Foreach, on top")
    return figure(
        f"The same parameters in {COMPARED} tensors, updated by four rules",
        found.label("updates alone"),
        table("The rule", titles, rows),
        note="Kernels are the loop's, for a tensor. Bytes are for a parameter, from peak memory, beyond itself and its "
        "gradient in fp32.",
        wide=True,
    )


def big_said(found: Turns) -> str:
    """What a large model's training keeps, beyond activations, with SGD and with Adam."""
    sgd, adam = (N_BIG * (8 + found.state_bytes(rule)) / 1e9 for rule in (Rule.SGD, Rule.ADAM))
    return (
        f"A model of {N_BIG / 1e9:.0f} billion parameters, all in fp32, takes {sgd:.0f}{NBSP}GB with SGD and "
        f"{adam:.0f}{NBSP}GB with Adam before the first activation."
    )


def resnets(found: Turns) -> mo.Html | None:
    """ResNet-50's step by batch, in a loop and fused; nothing where that was not run."""
    keys = [resnet_key(way, n) for n in BATCHES for way in (Way.LOOP, Way.FUSED)]
    if not found.has(*keys):
        return None
    rows: list[Row] = []
    for n in BATCHES:
        loop, fused = (found.steps[resnet_key(way, n)].step_ns for way in (Way.LOOP, Way.FUSED))
        shares = (percent(found.resnet_share(way, n)) for way in (Way.LOOP, Way.FUSED))
        rows.append((f"{n} pictures", (duration(loop), duration(fused), *shares)))
    titles = ("In a loop", "Fused", "Update, loop", "Update, fused")
    return figure(
        "ResNet-50 with Adam: a step, and the part of it that is the update",
        found.label("ResNet-50"),
        table("A step of", titles, rows),
        note=found.hidden_said,
        wide=True,
    )


def table_rows(found: Turns) -> object:
    """A step of the job with a table, by its rows; nothing where too few sizes were run."""
    if len(found.sizes) < 2:
        return None
    return line_figure(
        "A step that names a thousand rows, by the size of the table",
        found.label("a table of rows"),
        found.rows_lines(),
        x_title="rows in the table",
        y_title="one step (ms)",
        log_x=True,
        log_base=10,
        note=f"{found.sparse_loss_said} pytorch issue 81162 saw SparseAdam lose to Adam on a graph of 20,000 nodes.",
    )


def learning(found: Turns) -> object:
    """Losses over this machine's seconds, and what each rule and way needs to the same loss."""
    rows = [(words(how), _learned(found, how)) for how in found.hows]
    at = f"Steps to {found.target:.2f}"
    titles = ("One step", "Update", at, "Time to it", f"{N_RUNS:,} runs to it", "Loss, unseen")
    return line_figure(
        "The same pictures, four rules, by the clock",
        found.label("a deep network on drawn shapes"),
        found.learning_lines(),
        table("The rule", titles, rows),
        x_title="seconds of training on this card",
        y_title="loss",
        note=f"Means of some losses. {found.target:.2f} is what every rule reaches. {found.same_said} "
        "Each rule has the best rate of a few.",
        wide=True,
    )


def _learned(found: Turns, how: How) -> tuple[str, ...]:
    rule = how[0]
    usd, held = found.usd(N_RUNS * found.until_ns(how)), found.held_out[deep_key(rule, Way.FUSED)]
    return (
        duration(found.deep(how).step_ns),
        percent(found.update_share(how)),
        f"{found.steps_to_target(rule)}",
        duration(found.until_ns(how)),
        "—" if usd is None else dollars(usd),
        "—" if held is None else f"{held:.2f}",
    )


def money(found: Turns, kept: Kept) -> mo.Html | None:
    """What a search costs with Adam in a loop, and fused; nothing where that was not run."""
    if not found.learned:
        return None
    slow_ns, fast_ns = (N_RUNS * found.until_ns((Rule.ADAM, way)) for way in (Way.LOOP, Way.FUSED))
    usd = found.usd(fast_ns)
    fused = f"fused they take {duration(fast_ns)}" + ("." if usd is None else f" and cost {dollars(usd)}.")
    return spent(
        play_file(kept.tapes[deep_key(Rule.ADAM, Way.LOOP)], found.machine),
        found.usd(slow_ns),
        f"{N_RUNS:,} runs to the same loss with Adam in a loop, {duration(slow_ns)}; {fused}",
    )


def threads(found: Turns) -> list[tuple[Reference, float | None]]:
    """Each public thread of the lesson with the same ratio from this run, None where it wasn't run."""
    loop, each, fused = (pieces_key(Rule.ADAM, way, COMPARED) for way in Way)
    momentum = [pieces_key(Rule.MOMENTUM, way, COMPARED) for way in (Way.LOOP, Way.FOREACH)]
    steps = [deep_key(Rule.ADAM, way) for way in (Way.FUSED, Way.FOREACH)]
    memory = found.memory_bytes[each] / found.memory_bytes[loop] if found.has(each, loop) else None
    return [
        (reference("3,000 tensors to one, Adam"), found.times),
        (reference("loop to foreach, Adam"), found.ratio(loop, each)),
        (reference("loop to foreach, SGD"), found.ratio(*momentum)),
        (reference("foreach to fused, update"), found.ratio(each, fused)),
        (reference("fused to foreach, step"), found.ratio(*steps)),
        (reference("memory, foreach to loop"), memory),
    ]


def elsewhere(found: Turns) -> mo.Html | None:
    """Public threads beside this run; nothing where even the first was not run."""
    if not found.has(pieces_key(Rule.ADAM, Way.FOREACH, MANY)):
        return None
    return figure("What others saw", found.label("this run"), threads_table(threads(found)), wide=True)
