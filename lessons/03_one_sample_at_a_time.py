# /// script
# requires-python = ">=3.10"
# dependencies = ["gpututor"]
#
# [tool.marimo.opengraph]
# title = "03 · One sample at a time"
# description = "How large a batch is free?"
#
# [tool.marimo.display]
# theme = "system"
# ///

import marimo

__generated_with = "0.25.2"
app = marimo.App(
    width="medium",
    app_title="03 · One sample at a time",
    css_file="look.css",
)

with app.setup(hide_code=True):
    import marimo as mo

    from gpututor import page as gt
    from gpututor.exercises import ex03
    from gpututor.lookup import machine_named
    from gpututor.page.lessons.batches import batches_of
    from gpututor.text import duration

    N_IMAGENET = 1_281_167  # pictures of the training set, ILSVRC 2012
    ASKED = 8
    flow = gt.Flow(
        gt.lesson(3),
        gt.Question(
            "eight",
            f"ResNet-50 trains on a V100, one picture a step. You hand it {ASKED} pictures a step instead. One step "
            "takes…",
            {
                f"about {ASKED} times as long": lambda times: times >= 5.5,
                "three or four times as long": lambda times: 2.5 <= times < 5.5,
                "about twice as long": lambda times: 1.4 <= times < 2.5,
                "hardly any longer": lambda times: times < 1.4,
            },
        ),
        gt.Experiment(
            "gpututor.experiments.batches:run",
            "Train with many batches",
            measure="gpututor.experiments.batches:measure",
            budget_s=150,
            on="Two jobs: ResNet-50 followed by its shapes, and a small network that really learns",
        ),
        ex03,
    )


@app.cell(hide_code=True)
def head():
    flow.header(
        "A step can learn from one picture or from hundreds. Someone must pick the number, and most people pick what "
        "fits into memory. What does the card say, and what does the loss say?",
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
    buttons = flow.run_buttons(get_phase(), guess.value, {})
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
    # on the question's own machine, whatever is chosen below
    kept = flow.kept(get_phase())
    answer = flow.decide(batches_of(kept, machine_named()).times.get(ASKED))
    return answer, kept


@app.cell(hide_code=True)
def picker(kept):
    mo.stop(not kept.tapes, kept.instead("Times, memory and losses open after the run."))
    on = gt.machine_control()
    return (on,)


@app.cell(hide_code=True)
def priced(kept, on):
    found = batches_of(kept, machine_named(on.value))
    return (found,)


@app.cell(hide_code=True)
def surprise(answer, found):
    mo.md(f"""
    ## With {ASKED} pictures on a V100: {answer or "not run"}

    {found.free_said} With {found.largest.x} pictures it takes {duration(found.largest.step_ns)}, and each picture
    {duration(found.largest.step_ns / found.largest.x)} instead of {duration(found.one.step_ns)}.
    """)
    return


@app.cell(hide_code=True)
def result(found, on):
    _columns = gt.STEP, gt.BUSY, gt.MFU, gt.MEMORY, gt.cost_column(N_IMAGENET, "An epoch of ImageNet")
    gt.figure(
        "ResNet-50, one step, by batch",
        found.one.source,
        on,
        gt.points_table(found.timed, *_columns, first="A step of", marked=found.free.key),
        note="Stressed: the largest batch that is free. " + gt.price_of(found.machine),
        wide=True,
    )
    return


@app.cell(hide_code=True)
def why(found):
    _ledger = found.one.played.ledger
    mo.md(f"""
    ## Why

    The host needs the same time whatever the batch: it launches {_ledger.n_kernels / _ledger.n_steps:.0f}
    kernels a step. The card needs longer with each picture. They work side by side, so with $h$ the host's time, $c$
    the card's time for a picture and $n$ pictures,

    $$\\text{{step}} \\approx \\max(h,\\; c \\cdot n)$$

    Flat, a knee, a straight line. Before the knee you pay for a card that waits.
    """)
    return


@app.cell(hide_code=True)
def knee(found):
    gt.line_figure(
        "The formula as a line, priced steps as circles",
        found.one.source,
        {"max(h, c n)": found.law()},
        x_title="pictures a step",
        y_title="one step (ms)",
        dots=found.dots(),
        here=(found.free.x, found.free.step_ns / 1e6),
        here_text=f"{found.free.x} are free",
        log_x=True,
        note=f"h is {found.host_ms:.3g} ms, the step of one picture; c is {found.sample_ms:.3g} ms, from the largest "
        f"batch of {len(found.timed)} that fits.",
    )
    return


@app.cell(hide_code=True)
def which_control(found):
    _labels = [point.label for point in found.chosen()]
    which = mo.ui.radio(_labels, value=_labels[0], inline=True, label="Look at a step of")
    return (which,)


@app.cell(hide_code=True)
def one_step(found, which):
    chosen = next(point.played for point in found.fitting if point.label == which.value)
    close = gt.close_up(chosen)
    view = close.view_control()
    return chosen, close, view


@app.cell(hide_code=True)
def timeline_head(close, view, which):
    window = close.window_control(view.value)
    close.head("One step", which, view, window)
    return (window,)


@app.cell(hide_code=True)
def timeline(close, window):
    close.chart(window.value)
    return


@app.cell(hide_code=True)
def ledger(chosen, which):
    gt.ledger_figure(chosen.ledger, title=f"Ledger, {which.value} a step")
    return


@app.cell(hide_code=True)
def learning_text(found):
    mo.stop(len(found.learned) < 3)
    _small, _same, _scaled = found.learned[:3]
    mo.md(f"""
    ## But does it still learn?

    A larger batch takes fewer steps through the same pictures. The small network, after {len(_small.losses):,} steps of
    {_small.n_samples}, has a loss of {_small.held_out:.2f} on pictures that it never saw. With {_same.n_samples} a step
    and the same learning rate it is {_same.held_out:.2f}: {found.worse_said}. Fewer steps must be longer ones. With the
    rate times {_scaled.n_samples // _small.n_samples} it is {_scaled.held_out:.2f}.
    """)
    return


@app.cell(hide_code=True)
def learning(found):
    mo.stop(len(found.learned) < 3)
    gt.line_figure(
        "The same pictures, and ways to learn from them",
        found.learned[0].source,
        found.learning_lines(),
        found.learning_table(),
        x_title="seconds of training on this card",
        y_title="loss",
        note="The curves are mean losses of the last 512 pictures: ten kinds of drawn shapes, four layers, SGD; all "
        f"ways see each picture equally often. {found.learning_said}",
        wide=True,
    )
    return


@app.cell(hide_code=True)
def cost(found):
    gt.spent(
        found.one.played,
        found.one.usd(N_IMAGENET),
        f"An epoch of ImageNet with one picture a step; {found.epoch_said(N_IMAGENET)}",
    )
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
def exercise_controls(found):
    case = ex03.memory_case(found.timed, found.machine.card) | {"machine": found.machine.name}
    largest, check_largest = flow.answer_controls(ex03.LARGEST, case)
    code, check_code = flow.answer_controls(ex03.ACCUMULATE, case)
    return case, check_code, check_largest, code, largest


@app.cell(hide_code=True)
def exercises(case, check_code, check_largest, code, largest):
    gt.told(
        flow.exercise_card(ex03.LARGEST, largest, check_largest, case),
        flow.exercise_card(ex03.ACCUMULATE, code, check_code, case),
    )
    return


@app.cell(hide_code=True)
def ending(kept):
    flow.ending(
        kept, "Up to the knee a larger batch is free; after it you only buy memory, and the learning rate must follow."
    )
    return


if __name__ == "__main__":
    app.run()
