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
    from gpututor.cards import DEFAULT_MACHINE
    from gpututor.exercises import ex03
    from gpututor.ledger import rows, waits
    from gpututor.lookup import machine_named
    from gpututor.store import Store
    from gpututor.text import dollars, duration

    LESSON = gt.lesson(3)
    N_IMAGENET = 1_281_167  # pictures of the training set, ILSVRC 2012
    FREE = 1.1  # a step that takes a tenth longer still counts as free
    ASKED = 8
    QUESTION = (
        f"ResNet-50 trains on a V100, one picture a step. You hand it {ASKED} pictures a step instead. One step takes…"
    )
    OPTIONS = {
        f"about {ASKED} times as long": lambda times: times >= 5.5,
        "three or four times as long": lambda times: 2.5 <= times < 5.5,
        "about twice as long": lambda times: 1.4 <= times < 2.5,
        "hardly any longer": lambda times: times < 1.4,
    }
    store = Store(str(mo.query_params().get("learner") or ""))


@app.cell(hide_code=True)
def head():
    gt.header(
        LESSON,
        "A step can learn from one picture or from hundreds. Someone must pick the number, and most people pick what "
        "fits into memory. What does the card say, and what does the loss say?",
    )
    return


@app.cell(hide_code=True)
def states():
    runner = gt.Runner(store, LESSON.key)
    get_phase, get_shown = runner.get_phase, runner.get_shown
    return get_phase, get_shown, runner


@app.cell(hide_code=True)
def guess_controls(get_phase):
    guess = gt.guess_control(
        list(OPTIONS),
        store.tries(LESSON.key, "eight"),
        lambda choice: store.guess(LESSON.key, "eight", choice),
        locked=get_phase() != "ready",
    )
    return (guess,)


@app.cell(hide_code=True)
def guess_card(answer, get_phase, guess):
    (
        gt.guess_card(QUESTION, guess)
        if get_phase() == "ready"
        else gt.guess_locked(QUESTION, store.tries(LESSON.key, "eight"), answer)
    )
    return


@app.cell(hide_code=True)
def run_controls(get_phase, guess, runner):
    buttons = gt.run_buttons(
        get_phase(),
        lambda: runner.start("gpututor.experiments.batches:run", {}, budget_s=150),
        runner.stop,
        label="Train with many batches",
        open_to_run=guess.value is not None,
    )
    return (buttons,)


@app.cell(hide_code=True)
def run_panel(buttons, get_shown, guess, runner):
    gt.run_panel(
        buttons,
        gt.progress_line(get_shown(), "step"),
        machine="Two jobs: ResNet-50 followed by its shapes, and a small network that really learns",
        hint="" if guess.value else "Opens once you have guessed.",
        trouble=runner.trouble or store.trouble,
    )
    return


@app.cell(hide_code=True)
def recall(get_phase):
    mo.stop(get_phase() not in ("ready", "queued", "running"))
    gt.recall(ex03.RECALL)
    return


@app.cell(hide_code=True)
def kept_run(get_phase, runner):
    kept = gt.kept_tapes(runner.result, get_phase())
    return (kept,)


@app.cell(hide_code=True)
def decide(kept, runner):
    # on the question's own machine, whatever is chosen below
    answer = None
    _asked = {point.x: point for point in gt.sweep_points(runner.result, kept, machine_named(DEFAULT_MACHINE))}
    if ASKED in _asked:
        _times = _asked[ASKED].step_ns / _asked[1].step_ns
        answer = next(option for option, fits in OPTIONS.items() if fits(_times))
        store.reveal(LESSON.key, "eight")
    return (answer,)


@app.cell(hide_code=True)
def picker(kept):
    mo.stop(not kept.tapes, kept.instead("Times, memory and losses open after the run."))
    on = gt.machine_control()
    return (on,)


@app.cell(hide_code=True)
def priced(kept, on, runner):
    machine = machine_named(on.value)
    points = gt.sweep_points(runner.result, kept, machine)
    timed = [point for point in points if point.key.startswith("batch")]
    learned = [point for point in points if point.key.startswith("learn")]
    fitting = [point for point in timed if point.played]
    free = max(point.x for point in fitting if point.step_ns <= FREE * fitting[0].step_ns)
    return fitting, free, learned, machine, timed


@app.cell(hide_code=True)
def surprise(answer, fitting, free, machine):
    _last = fitting[-1]
    _more = (
        f"On this {machine.card.name} up to {free} pictures are free: one step takes {duration(fitting[0].step_ns)} "
        f"with 1 and {duration(next(p.step_ns for p in fitting if p.x == free))} with {free}."
        if free > 1
        else f"On this {machine.card.name} nothing is free: one picture keeps it busy already."
    )
    mo.md(f"""
    ## With {ASKED} pictures on a V100: {answer or "not run"}

    {_more} With {_last.x} pictures it takes {duration(_last.step_ns)}, and each picture
    {duration(_last.step_ns / _last.x)} instead of {duration(fitting[0].step_ns)}.
    """)
    return


@app.cell(hide_code=True)
def result(fitting, free, machine, on, timed):
    gt.figure(
        "ResNet-50, one step, by batch",
        fitting[0].source,
        on,
        gt.points_table(
            timed,
            gt.STEP,
            gt.BUSY,
            gt.MFU,
            gt.MEMORY,
            gt.cost_column(N_IMAGENET, "An epoch of ImageNet"),
            first="A step of",
            marked=f"batch-{free}",
        ),
        note=f"Stressed: the largest batch that is free. {machine.name}"
        + (
            f" at {dollars(machine.usd_per_hour)} an hour."
            if machine.usd_per_hour
            else ", for which there is no price."
        ),
        wide=True,
    )
    return


@app.cell(hide_code=True)
def why(fitting):
    _played = fitting[0].played
    mo.md(f"""
    ## Why

    The host needs the same time whatever the batch: it launches {_played.ledger.n_kernels / _played.ledger.n_steps:.0f}
    kernels a step. The card needs longer with each picture. They work side by side, so with $h$ the host's time, $c$
    the card's time for a picture and $n$ pictures,

    $$\\text{{step}} \\approx \\max(h,\\; c \\cdot n)$$

    Flat, a knee, a straight line. Before the knee you pay for a card that waits.
    """)
    return


@app.cell(hide_code=True)
def knee(fitting, free, timed):
    _h = fitting[0].step_ns / 1e6
    _c = fitting[-1].step_ns / fitting[-1].x / 1e6
    _law = [(2 ** (k / 8), max(_h, _c * 2 ** (k / 8))) for k in range(8 * (len(fitting) - 1) + 1)]
    _at = next(point for point in fitting if point.x == free)
    gt.shown(
        lambda: gt.figure(
            "The formula as a line, priced steps as circles",
            fitting[0].source,
            gt.curve(
                {"max(h, c n)": _law},
                x_title="pictures a step",
                y_title="one step (ms)",
                dots=[(point.x, point.step_ns / 1e6) for point in fitting],
                here=(free, _at.step_ns / 1e6),
                here_text=f"{free} are free",
                kind="number",
                log_x=True,
            ),
            note=f"h is {_h:.3g} ms, the step of one picture; c is {_c:.3g} ms, from the largest batch of "
            f"{len(timed)} that fits.",
        )
    )
    return


@app.cell(hide_code=True)
def batch_controls(fitting, free):
    _few = dict.fromkeys(point.label for point in fitting if point.x in (1, free, fitting[-1].x))
    looked_at = mo.ui.radio(list(_few), value=fitting[0].label, inline=True, label="Look at a step of")
    return (looked_at,)


@app.cell(hide_code=True)
def one_step(fitting, looked_at):
    chosen = next(point.played for point in fitting if point.label == looked_at.value)
    step = chosen.timeline.step(chosen.typical_step)
    idle = tuple(waits(step))
    jumps = gt.views(step, idle)
    view = gt.view_control(jumps)
    return chosen, idle, jumps, step, view


@app.cell(hide_code=True)
def window_slider(jumps, step, view):
    window = gt.window_control(step, jumps[view.value])
    return (window,)


@app.cell(hide_code=True)
def timeline_head(idle, looked_at, step, view, window):
    mo.vstack([looked_at, gt.timeline_controls("One step", step, idle, view, window)])
    return


@app.cell(hide_code=True)
def timeline(idle, step, window):
    gt.shown(lambda: gt.timeline_figure(step, idle, window.value))
    return


@app.cell(hide_code=True)
def ledger(chosen, looked_at):
    gt.figure(f"Ledger, {looked_at.value} a step", chosen.ledger.label, gt.waterfall(rows(chosen.ledger)), wide=True)
    return


@app.cell(hide_code=True)
def learning_text(learned):
    mo.stop(len(learned) < 3)
    _small, _same, _scaled = learned[0], learned[1], learned[2]
    _worse = _same.held_out > 1.3 * _small.held_out
    mo.md(f"""
    ## But does it still learn?

    A larger batch takes fewer steps through the same pictures. The small network, after {len(_small.losses):,} steps of
    {_small.n_samples}, has a loss of {_small.held_out:.2f} on pictures that it never saw. With {_same.n_samples} a step
    and the same learning rate it is {_same.held_out:.2f}: {"faster, and worse" if _worse else "about as good"}. Fewer
    steps must be longer ones. With the rate times {_scaled.n_samples // _small.n_samples} it is {_scaled.held_out:.2f}.
    """)
    return


@app.cell(hide_code=True)
def learning(learned):
    mo.stop(len(learned) < 3)
    _ways = (*learned[:3], learned[-2])
    gt.shown(
        lambda: gt.figure(
            "The same pictures, four ways to learn from them",
            learned[0].source,
            gt.lines_legend([point.label for point in _ways]),
            gt.curve(
                {point.label: point.smooth() for point in _ways},
                x_title="seconds of training on this card",
                y_title="loss",
                kind="number",
                named=False,
            ),
            note="Mean loss of the last 512 pictures. Ten kinds of drawn shapes, four layers, SGD; all ways see each "
            "picture equally often.",
        )
    )
    return


@app.cell(hide_code=True)
def learning_table(learned):
    mo.stop(len(learned) < 6)
    _target = learned[0].smooth()[-1][1] * 1.1
    _until = ("To the first one's loss", lambda point: duration(t) if (t := point.reaches_ns(_target)) else "never")
    _first, _last, _steady, _scheduled = learned[0], learned[-1], *learned[-3:-1]
    _end = (
        "and it ends somewhere: the last line is beyond"
        if _last.held_out > 1.5 * _first.held_out
        else "and it holds to the last line here"
    )
    gt.figure(
        "What each way costs, and what it reaches",
        _first.source,
        gt.points_table(learned, gt.STEPS, gt.WHOLE, _until, gt.HELD_OUT, first="The way"),
        note=f"The first one's loss: {_target:.2f}, a tenth above where it ends. A rate in proportion to the batch "
        f"is a rule of thumb (Goyal et al. 2017), {_end}. A schedule warms up, then calms down: at batch "
        f"{_scheduled.n_samples} {_scheduled.held_out:.2f}, without it {_steady.held_out:.2f}.",
        wide=True,
    )
    return


@app.cell(hide_code=True)
def cost(fitting, free, machine):
    _one, _best = fitting[0], next(point for point in fitting if point.x == free)
    gt.money(
        _one.played.ledger,
        _one.usd(N_IMAGENET),
        f"An epoch of ImageNet with one picture a step; with {free} it takes "
        f"{duration(N_IMAGENET / _best.samples_per_s * 1e9)}"
        + (f" and costs {dollars(_best.usd(N_IMAGENET))}." if machine.usd_per_hour else "."),
        f"{machine.name}, {machine.price_basis}." if machine.usd_per_hour else "",
    )
    return


@app.cell(hide_code=True)
def own_machine():
    own = gt.OwnMachine(store, LESSON.key, "gpututor.experiments.batches:measure")
    get_own_phase, get_own_shown = own.get_phase, own.get_shown
    return get_own_phase, get_own_shown, own


@app.cell(hide_code=True)
def own_controls(get_own_phase, own):
    own_buttons = own.buttons(get_own_phase())
    return (own_buttons,)


@app.cell(hide_code=True)
def own_run(get_own_shown, kept, own, own_buttons, runner):
    mo.stop(not kept.tapes)
    own.section(own_buttons, get_own_shown(), runner.result, kept)
    return


@app.cell(hide_code=True)
def exercise_controls(machine, timed):
    case = ex03.memory_case(timed, machine.card)
    largest, code = (gt.answer_control(one, store, case) for one in (ex03.LARGEST, ex03.ACCUMULATE))
    check_largest, check_code = gt.check_button(), gt.check_button()
    return case, check_code, check_largest, code, largest


@app.cell(hide_code=True)
def exercise_1(case, check_largest, largest):
    gt.exercise_card(ex03.LARGEST, largest, check_largest, case, store)
    return


@app.cell(hide_code=True)
def exercise_2(case, check_code, code):
    gt.exercise_card(ex03.ACCUMULATE, code, check_code, case, store)
    return


@app.cell(hide_code=True)
def ending(kept):
    mo.stop(not kept.tapes)
    gt.ending(
        LESSON,
        "Up to the knee a larger batch is free; after it you only buy memory, and the learning rate must follow.",
        ex03.NOTES,
    )
    return


if __name__ == "__main__":
    app.run()
