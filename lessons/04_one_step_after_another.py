# /// script
# requires-python = ">=3.10"
# dependencies = ["gpututor"]
#
# [tool.marimo.opengraph]
# title = "04 · One step after another"
# description = "Does a bigger GPU speed up an LSTM?"
#
# [tool.marimo.display]
# theme = "system"
# ///

import marimo

__generated_with = "0.25.2"
app = marimo.App(
    width="medium",
    app_title="04 · One step after another",
    css_file="look.css",
)

with app.setup(hide_code=True):
    import marimo as mo

    from gpututor import page as gt
    from gpututor.cards import card
    from gpututor.exercises import ex04
    from gpututor.experiments.one_after_another import KINDS, LENGTH, LENGTHS
    from gpututor.lookup import machine_named
    from gpututor.page.lessons import chains_figures as figures
    from gpututor.page.lessons.chains import chains_of, swap_said
    from gpututor.replay import play_file, with_card
    from gpututor.text import duration, percent

    N_STEPS = 12
    RENTED = machine_named()
    SWAPPED = with_card(RENTED, card("H100-SXM"))
    ON_PAPER = SWAPPED.card.peak_flop_per_s["fp32"] / RENTED.card.peak_flop_per_s["fp32"]
    flow = gt.Flow(
        gt.lesson(4),
        gt.Question(
            "bigger",
            f"An LSTM trains on sequences of {LENGTH} words, each in one call of NVIDIA's cuDNN. You put an H100 in "
            f"place of the V100, {ON_PAPER:.1f} times as fast on paper. Host and program stay. One step becomes…",
            {
                "about as many times faster as on paper": lambda times: times >= 0.8 * ON_PAPER,
                "about twice as fast": lambda times: 1.5 <= times < 0.8 * ON_PAPER,
                "a little faster": lambda times: 1.05 <= times < 1.5,
                "no faster": lambda times: times < 1.05,
            },
        ),
        gt.Experiment(
            "gpututor.experiments.one_after_another:run",
            f"Train {len(KINDS)} models",
            measure="gpututor.experiments.one_after_another:measure",
        ),
        ex04,
    )


@app.cell(hide_code=True)
def head():
    flow.header(
        "An LSTM reads a sentence word by word, because each state is made from the state before. A GPU is wide: it "
        "does thousands of things side by side. You rent a wider one. How much of it can such a model use?",
    )
    return


@app.cell(hide_code=True)
def states():
    get_phase, get_shown, get_own_phase, get_own_shown = flow.states()
    return get_own_phase, get_own_shown, get_phase, get_shown


@app.cell(hide_code=True)
def guess_controls(get_phase):
    guess = flow.guess_control(get_phase())
    return (guess,)


@app.cell(hide_code=True)
def guess_card(answer, get_phase, guess):
    flow.guess_card(get_phase(), guess, answer)
    return


@app.cell(hide_code=True)
def run_controls(get_phase, guess):
    buttons = flow.run_buttons(get_phase(), guess.value, {"n_steps": N_STEPS})
    return (buttons,)


@app.cell(hide_code=True)
def run_panel(buttons, get_shown, guess):
    flow.run_panel(buttons, get_shown(), guess.value)
    return


@app.cell(hide_code=True)
def recall(get_phase):
    flow.recall(get_phase())
    return


@app.cell(hide_code=True)
def decide(get_phase):
    kept = flow.kept(get_phase())
    before, swapped = (play_file(kept.tapes["lstm"], on) if kept.has("lstm") else None for on in (RENTED, SWAPPED))
    answer = flow.decide(before.step_ns / swapped.step_ns if before else None)
    return answer, before, kept, swapped


@app.cell(hide_code=True)
def result(answer, before, kept, swapped):
    mo.stop(answer is None, kept.instead("The table, the curve and the timeline open after the run."))
    on = gt.machine_control()
    _said = mo.md(f"""
    ## With an H100: {answer}

    One step takes {duration(before.step_ns)} with the V100 and {duration(swapped.step_ns)} with the H100:
    {before.step_ns / swapped.step_ns:.2f} times as fast. The V100 is {percent(before.ledger.gpu_util_share)} busy.
    {swap_said(before, swapped)}
    """)
    gt.told(gt.gauges(before.ledger, f"one cuDNN call, {duration(before.step_ns)} a step"), _said)
    return (on,)


@app.cell(hide_code=True)
def priced(kept, on):
    mo.stop(not kept.tapes)
    found = chains_of(kept, machine_named(on.value))
    return (found,)


@app.cell(hide_code=True)
def table(found, on):
    figures.layers(found, on)
    return


@app.cell(hide_code=True)
def same_lstm(found):
    mo.stop(not found.has(*KINDS))
    mo.md(f"""
    ## Who runs the loop

    Three of these are one LSTM: the same weights, the same arithmetic, {found.same_losses}. In
    Python's loop a step takes {duration(found.step_ns("loop"))}. Each word's input product waits for no state; taken
    out of the loop, all of them are one product, and {duration(found.step_ns("hoisted"))} remain. cuDNN's own loop
    takes {duration(found.step_ns("lstm"))}, {found.step_ns("loop") / found.step_ns("lstm"):.0f} times as fast as the
    first.
    """)
    return


@app.cell(hide_code=True)
def longer_ones(found, kept):
    over = chains_of(kept, found.machine, all_lengths=True)
    return (over,)


@app.cell(hide_code=True)
def curve(over):
    mo.stop(not over.whole)
    gt.line_figure(
        f"How many times as long as with {LENGTHS[0]} words",
        over.source,
        over.length_lines(),
        x_title="words in a row",
        named=True,
    )
    return


@app.cell(hide_code=True)
def one_more_word(over):
    mo.stop(not over.whole)
    _more = {kind: duration(over.word_ns(kind)) for kind in ("loop", "lstm", "transformer")}
    mo.md(f"""
    ## The critical path

    No card can begin word five before word four is done. That chain is the *critical path*: each further word adds
    {_more["loop"]} to Python's loop and {_more["lstm"]} to cuDNN's. A Transformer looks at all words at once, and
    {_more["transformer"]} come on top, for its arithmetic. With {LENGTHS[-1]} words it is
    {over.times_as_fast(LENGTHS[-1]):.1f} times as fast as cuDNN's LSTM. {over.few_words_said}
    """)
    return


@app.cell(hide_code=True)
def which_control(found):
    _kinds = {point.label: point.key for point in found.trained if point.key in ("loop", "lstm", "transformer")}
    which = mo.ui.radio(
        _kinds, value=KINDS["lstm"] if "lstm" in _kinds.values() else next(iter(_kinds)), inline=True, label="Layer"
    )
    return (which,)


@app.cell(hide_code=True)
def one_step(found, which):
    close = gt.close_up(found.played(which.value), whole=True, launches_at=0.1)  # on the way forward, where the loop is
    view = close.view_control()
    return close, view


@app.cell(hide_code=True)
def timeline_head(close, view, which):
    window = close.window_control(view.value)
    _n = len(close.timeline.steps)
    close.head("One step" if _n == 1 else f"The last {_n} steps", which, view, window)
    return (window,)


@app.cell(hide_code=True)
def timeline(close, window):
    close.chart(window.value)
    return


@app.cell(hide_code=True)
def ledger(found, which):
    gt.ledger_figure(found.played(which.value).ledger, found.ledger_said(which.value))
    return


@app.cell(hide_code=True)
def why(over):
    mo.stop(not over.whole)
    _scan, _lstm = (duration(over.step_ns(kind, LENGTHS[-1])) for kind in ("scan", "lstm"))
    mo.md(f"""
    ## Why, and what shortens it

    $$\\text{{step}} \\ge \\text{{words}} \\times \\text{{time of one link}}$$

    In cuDNN's call the links are {over.kernels_said("lstm")}, and no card takes two at once. Cheaper links help: a GRU
    has three gates instead of four, and takes {duration(over.step_ns("gru"))}. Fewer links help more: where gates look
    at the word only, links join two by two, in {(LENGTH - 1).bit_length()} rounds instead of {LENGTH}. That takes
    {duration(over.step_ns("scan"))} here, and with {LENGTHS[-1]} words {_scan} against the LSTM's {_lstm}.
    """)
    return


@app.cell(hide_code=True)
def own_controls(get_own_phase):
    own_buttons = flow.own_buttons(get_own_phase())
    return (own_buttons,)


@app.cell(hide_code=True)
def own_run(get_own_shown, kept, own_buttons):
    flow.own_section(own_buttons, get_own_shown(), kept)
    return


@app.cell(hide_code=True)
def learned(kept, over):
    mo.stop(not over.has("loop", "lstm"))
    gt.told(figures.elsewhere(kept) if over.whole else None, figures.learning(over))
    return


@app.cell(hide_code=True)
def cost(found, which):
    figures.money(found, which.value)
    return


@app.cell(hide_code=True)
def exercise_controls(over):
    steps_ns = {key: point.step_ns for key, point in over.points.items()}
    case = {**ex04.longer_case(steps_ns), "machine": over.machine.name} if over.whole else None
    longer, check_longer = flow.answer_controls(ex04.LONGER, case)
    hoisted, check_hoisted = flow.answer_controls(ex04.HOISTED, {})
    return case, check_hoisted, check_longer, hoisted, longer


@app.cell(hide_code=True)
def exercises(case, check_hoisted, check_longer, hoisted, longer):
    gt.told(
        flow.exercise_card(ex04.LONGER, longer, check_longer, case),
        flow.exercise_card(ex04.HOISTED, hoisted, check_hoisted, {}),
    )
    return


@app.cell(hide_code=True)
def ending(kept):
    flow.ending(
        kept, "A chain takes as long as its links, one after the other: a wider card takes no two of them at once."
    )
    return


if __name__ == "__main__":
    app.run()
