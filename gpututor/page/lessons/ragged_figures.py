"""Lesson 14's figures: one batch drawn, ways to make batches, padding by batch, losses, new shapes, several cards."""

from __future__ import annotations

import marimo as mo

from gpututor.charts import css_fill
from gpututor.experiments.length_plans import Way
from gpututor.experiments.ragged import COUNTED, MODES, N_EPOCHS, N_RANKS, N_SHAPES
from gpututor.ledger import Account
from gpututor.page.figures import figure
from gpututor.page.lessons.ragged import Ragged, padding_lines
from gpututor.page.lessons.ragged_cards import DEALT
from gpututor.page.lessons.ragged_threads import threads
from gpututor.page.lessons.tiny_tables import Row, table
from gpututor.page.line_figure import line_figure
from gpututor.page.money import price_of
from gpututor.page.threads import threads_table
from gpututor.text import NBSP, dollars, duration, percent

NONE = "—"


def batch_picture(found: Ragged) -> mo.Html:
    """The first batch as it comes: a bar for each text, and what is filled up."""
    batch = found.batches(Way.SHUFFLED)[0]
    longest, rows = max(batch), ""
    line = "display:flex;height:.85rem;border-radius:3px;overflow:hidden;border:1px solid var(--gt-line)"
    hatch = "repeating-linear-gradient(-45deg, var(--gt-track) 0 7px, transparent 7px 14px)"
    for n in batch:
        words = f'<i style="width:{100 * n / longest:.1f}%;background:{css_fill(Account.USEFUL)}"></i>'
        rows += f'<span style="{line}">{words}<i style="flex:1;background:{hatch}"></i></span>'
    spoken = ", ".join(map(str, batch))
    return figure(
        "One batch: words, and what fills them up",
        found.label("texts for GPT-2"),
        f'<div role="img" aria-label="Texts of {spoken} tokens, filled up to {longest}" '
        f'style="display:grid;gap:.25rem">{rows}</div>',
        note=f"Texts of {min(batch)} to {longest} tokens. Lengths are drawn as unevenly as in a public benchmark "
        "(transformers pull request 47340).",
        wide=True,
    )


def ways(found: Ragged, on: object) -> mo.Html | None:
    """Both networks in every way; `on` is the control that chooses the machine. Nothing where some weren't run."""
    if not found.both:
        return None
    rows = [(way.value, _way(found, way)) for way in Way]
    titles = ("Padding", "GPT-2, all texts", "Its memory", "A billion words", "LSTM, all texts")
    return figure(
        "The same texts, put together in five ways",
        found.label("GPT-2 by its shapes, fp32; a small LSTM"),
        on,
        table("Filled up, or put together", titles, rows),
        note=f"GPT-2 reads {len(found.lengths)} texts, the LSTM {len(found.short_lengths)} that are an eighth as long. "
        f"Padding is GPT-2's. {found.money_said} {price_of(found.machine)}",
        wide=True,
    )


def _way(found: Ragged, way: Way) -> tuple[str, ...]:
    lstm = duration(found.whole_ns(f"lstm-{way.key}"))
    if way is Way.PACKED:
        return ("none", NONE, NONE, NONE, lstm)
    key = f"gpt2-{way.key}"
    usd, memory = found.usd(key), found.told[key]["memory_bytes"] / 1e9
    cost = NONE if usd is None else dollars(usd)
    return percent(found.padding(way)), duration(found.whole_ns(key)), f"{memory:.1f}{NBSP}GB", cost, lstm


def by_batch() -> object:
    """Padding over the number of texts in a batch."""
    return line_figure(
        "The larger the batch, the longer its longest text",
        '<span class="gt-tag">Counted</span> from lengths alone, no card takes part',
        padding_lines(),
        x_title="texts in a batch",
        y_title="padding",
        kind="share",
        log_x=True,
        note="Sorted means: the texts of twenty batches are sorted by length, cut, and the batches shuffled.",
    )


def learning(found: Ragged) -> object:
    """Losses over this machine's time, and what each way reports and has really learned."""
    keys = [f"lstm-{way.key}" for way in Way if way is not Way.FIXED] + [f"lstm-{COUNTED}"]
    rows: list[Row] = []
    for key in keys:
        time = found.whole_ns(key.replace(COUNTED, Way.SHUFFLED.key))
        losses, held = found.losses(key), found.held_out(key)
        shown = f"{losses[-1]:.2f}", NONE if held is None else f"{held:.3f}"
        rows.append((found.told[key]["label"], (f"{len(losses)}", duration(time), *shown)))
    return line_figure(
        f"The same texts, read {N_EPOCHS} times",
        found.label("a small LSTM that guesses the next word"),
        found.learning_lines(),
        table("The way", ("Steps", "All texts, once", "Last loss it told", "Loss of a word, unseen texts"), rows),
        x_title="milliseconds of training on this card",
        y_title="loss, as the program tells it",
        note="Means of some steps. Losses are really computed, on this computer's processor.",
        wide=True,
    )


def shapes(found: Ragged) -> object:
    """Time over batches of changing length, and what was paid once."""
    rows: list[Row] = []
    for mode, (label, _) in MODES.items():
        once_ns, n_times = found.once(mode)
        once = (duration(once_ns), f"{n_times}") if n_times else (NONE, NONE)
        rows.append((label, (duration(found.since_ns(mode)[-1]), *once)))
    return line_figure(
        f"Convolutions over {N_SHAPES} batches, nearly each of another length",
        found.label("six layers of convolutions by their shapes"),
        found.shape_lines(),
        table("Run", ("All batches", "Of it searching, compiling", "How often"), rows),
        x_title="batches",
        y_title="seconds since the first",
        note="What cuDNN's search finds is in no step here: the model takes the quickest way in any case. The price of "
        "a search is an order of magnitude, from two public reports.",
        wide=True,
    )


def cards(found: Ragged) -> mo.Html | None:
    """Batches dealt to several cards; nothing where they weren't run."""
    rows: list[Row] = []
    for how in DEALT:
        shared = found.shared(how)
        if shared is None:
            return None
        rows.append((how, (duration(shared.step_ns), f"{shared.words_per_s:,.0f}", percent(shared.idle_share))))
    return figure(
        f"{N_RANKS} cards in one box, a batch for each",
        found.label("GPT-2 by its shapes, DistributedDataParallel"),
        table("Batches", ("One step", "Words a second", "Cards idle"), rows),
        note="Idle is the time in which a card computes nothing: it waits for the longest text of another, or "
        "exchanges gradients.",
        wide=True,
    )


def elsewhere(found: Ragged) -> mo.Html:
    """Public threads beside this run."""
    return figure(
        "What others ran into",
        '<span class="gt-tag gt-simulated">Simulated</span> each on cards like the asker\'s',
        threads_table(threads(found)),
        wide=True,
    )
