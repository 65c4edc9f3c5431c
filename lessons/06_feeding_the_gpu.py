# /// script
# requires-python = ">=3.10"
# dependencies = ["gpututor"]
#
# [tool.marimo.opengraph]
# title = "06 · Feeding the GPU"
# description = "How many workers are enough?"
#
# [tool.marimo.display]
# theme = "system"
# ///

import marimo

__generated_with = "0.25.2"
app = marimo.App(
    width="medium",
    app_title="06 · Feeding the GPU",
    css_file="look.css",
)

with app.setup(hide_code=True):
    import marimo as mo

    from gpututor import page as gt
    from gpututor.exercises import ex06
    from gpututor.experiments.feeds import BATCH, usable_cores
    from gpututor.ledger import rows, waits
    from gpututor.lookup import machine_named
    from gpututor.page.lessons.feeding import feeding_in
    from gpututor.page.lessons.feeding_tables import columns, epoch_columns, thread_rows
    from gpututor.page.threads import threads_table
    from gpututor.references import reference
    from gpututor.store import Store
    from gpututor.text import dollars, duration, percent

    LESSON = gt.lesson(6)
    N_CORES = usable_cores()
    THINNED = 1  # divides the batches of each variant
    N_IMAGENET = 1_281_167  # pictures to train on; Russakovsky et al. 2015, table 2
    SEEN = reference("wait for data")
    QUESTION = (
        f"A ResNet-18 trains on JPEG files, {BATCH} to a batch. Workers, which are processes, decode them ahead on the "
        f"{N_CORES} cores of this computer. The fewest that come within a tenth of the shortest step:"
    )
    OPTIONS = {
        "none, the training process is enough": lambda workers: workers < 0.5,
        "one": lambda workers: 0.5 <= workers < 1.5,
        "two": lambda workers: 1.5 <= workers < 2.5,
        "more than two": lambda workers: workers >= 2.5,
    }
    store = Store(str(mo.query_params().get("learner") or ""))


@app.cell(hide_code=True)
def head():
    gt.header(
        LESSON,
        "Somebody trains a ResNet-18 on ImageNet with eight GPUs, and nvidia-smi shows next to nothing. The training "
        f"log tells why: {percent(1 - 1 / SEEN.value)} of every step goes by waiting for pictures. He pays for eight "
        "cards that wait. What should he change?",
        hero=gt.unknown_bar(1 / SEEN.value, "not waiting"),
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
        store.tries(LESSON.key, "workers"),
        lambda choice: store.guess(LESSON.key, "workers", choice),
        locked=get_phase() != "ready",
    )
    return (guess,)


@app.cell(hide_code=True)
def guess_card(answer, get_phase, guess):
    (
        gt.guess_card(QUESTION, guess)
        if get_phase() == "ready"
        else gt.guess_locked(QUESTION, store.tries(LESSON.key, "workers"), answer)
    )
    return


@app.cell(hide_code=True)
def machine_choice():
    chosen = gt.machine_control()
    return (chosen,)


@app.cell(hide_code=True)
def run_controls(chosen, get_phase, guess, runner):
    buttons = gt.run_buttons(
        get_phase(),
        lambda: runner.start(
            "gpututor.experiments.feeding:run", {"machine": chosen.value, "thinned": THINNED}, budget_s=180
        ),
        runner.stop,
        label="Train with every number of workers",
        open_to_run=guess.value is not None,
    )
    return (buttons,)


@app.cell(hide_code=True)
def run_panel(buttons, chosen, get_shown, guess, runner):
    gt.run_panel(
        buttons,
        gt.progress_line(get_shown(), "step"),
        machine=chosen,
        hint="Files, decoding and workers are this computer's own, in real time; only the card is simulated. Keep "
        "other programs quiet."
        if guess.value
        else "Opens once you have guessed.",
        trouble=runner.trouble or store.trouble,
    )
    return


@app.cell(hide_code=True)
def recall(get_phase):
    mo.stop(get_phase() not in ("ready", "queued", "running"))
    gt.recall(ex06.RECALL)
    return


@app.cell(hide_code=True)
def kept_run(get_phase, runner):
    kept = gt.kept_tapes(runner.result, get_phase())
    return (kept,)


@app.cell(hide_code=True)
def points_of_run(kept, runner):
    fed = feeding_in((), {})
    if kept.tapes:
        _data = runner.result.data
        fed = feeding_in(gt.sweep_points(runner.result, kept, machine_named(_data["machine"])), _data)
    return (fed,)


@app.cell(hide_code=True)
def decide(fed):
    answer = None
    if fed.has("workers-0", "workers-1", "workers-2", "workers-4"):
        answer = next(option for option, fits in OPTIONS.items() if fits(fed.enough.x))
        store.reveal(LESSON.key, "workers")
    return (answer,)


@app.cell(hide_code=True)
def result(fed, kept):
    mo.stop(not fed.points, kept.instead("Timeline, ledger and explanation open after the run."))
    gt.gauges(fed.played("workers-0").ledger, f"no workers, {duration(fed.step_ns('workers-0'))} a step")
    return


@app.cell(hide_code=True)
def surprise(answer, fed):
    mo.stop(answer is None)
    mo.md(f"""
    ## Enough: {answer}

    Without workers a step takes {duration(fed.step_ns("workers-0"))}, and the card is busy
    {percent(fed.points["workers-0"].busy_share)} of it. The fastest had {fed.best.label}:
    {duration(fed.best.step_ns)}, {percent(fed.best.busy_share)} busy. {fed.enough_said} {fed.noise_said}
    """)
    return


@app.cell(hide_code=True)
def law_text(answer, fed):
    mo.stop(answer is None)
    mo.md(f"""
    ## Why: the slower side sets the pace

    While the card computes one batch, $w$ workers decode the next ones. So

    $$\\text{{step}} = \\max(\\text{{load}} / w,\\ \\text{{compute}})$$

    Decoding a batch takes {duration(fed.load_ns)}, copy and compute {duration(fed.compute_ns)}. Without workers the two
    add up. {fed.law_said}
    """)
    return


@app.cell(hide_code=True)
def law(answer, fed):
    mo.stop(answer is None)
    gt.figure(
        "The law as a line, measured steps as circles",
        fed.label,
        gt.curve(
            {"the law": fed.law_line},
            x_title="workers",
            y_title="one step (ms)",
            kind="number",
            dots=fed.dots,
            whole_x=True,
        ),
        note=f"The line bends where load ÷ workers is as short as compute. {fed.off_said}",
    )
    return


@app.cell(hide_code=True)
def beside(answer, fed):
    mo.stop(answer is None)
    gt.figure(
        "Card and cores, side by side",
        fed.label,
        gt.points_table(
            fed.sweep,
            gt.STEP,
            *columns(fed),
            gt.BUSY,
            gt.cost_column(N_IMAGENET, "An epoch of ImageNet"),
            marked=fed.enough.key,
        ),
        note="Cores busy: workers, training process, and our simulation in it. Where cores are busy and the card is "
        "not, it is the loader.",
        wide=True,
    )
    return


@app.cell(hide_code=True)
def which_control(fed):
    mo.stop(not fed.points)
    _labels = {point.label: point.key for point in fed.sweep}
    which = mo.ui.dropdown(_labels, value=list(_labels)[min(1, len(_labels) - 1)], label="Look at")
    return (which,)


@app.cell(hide_code=True)
def one_step(fed, which):
    _played = fed.played(which.value)
    step = _played.timeline.step(_played.typical_step)
    idle = tuple(waits(step))
    jumps = gt.views(step, idle)
    view = gt.view_control(jumps, chosen=list(jumps)[-1])
    return idle, jumps, step, view


@app.cell(hide_code=True)
def window_slider(jumps, step, view):
    window = gt.window_control(step, jumps[view.value])
    return (window,)


@app.cell(hide_code=True)
def timeline_head(idle, step, view, which, window):
    mo.vstack([which, gt.timeline_controls("One step", step, idle, view, window)])
    return


@app.cell(hide_code=True)
def timeline(idle, step, window):
    gt.shown(lambda: gt.timeline_figure(step, idle, window.value))
    return


@app.cell(hide_code=True)
def ledger(fed, which):
    _ledger = fed.played(which.value).ledger
    gt.figure("Ledger", _ledger.label, gt.waterfall(rows(_ledger)), wide=True)
    return


@app.cell(hide_code=True)
def batches_text(fed):
    mo.stop(not fed.has("prefetch-1", "prefetch-8", "few-0", "few-1"))
    mo.md(f"""
    ## What the other settings do

    `prefetch_factor` is how many batches each worker may be ahead. {fed.prefetch_said}

    {fed.few_said}
    """)
    return


@app.cell(hide_code=True)
def threads_text(fed):
    mo.stop(not fed.has("threads-1", "threads-n"))
    mo.md(f"""
    Workers bring threads. Torch allows each one thread, but OpenCV and others take as many as there are cores, in
    every process. Here a blur runs that way in two workers. {fed.threads_said}
    """)
    return


@app.cell(hide_code=True)
def starts_text(fed):
    mo.stop(not fed.starts)
    mo.md(f"""
    `persistent_workers` spares starting them again. {fed.starts_said} This system starts them with {fed.starts[0]};
    Windows and macOS use spawn. Longer epochs make the pause matter less.
    """)
    return


@app.cell(hide_code=True)
def starts(fed):
    mo.stop(not fed.starts)
    _keys = [f"{method}-{way}" for method in fed.starts for way in ("anew", "stay")]
    gt.figure(
        "The pause before an epoch",
        fed.label,
        gt.points_table([fed.points[key] for key in _keys], *epoch_columns(fed), first="Start"),
        note="One worker. The first batch's own decoding is in it.",
    )
    return


@app.cell(hide_code=True)
def threads(fed):
    mo.stop(not fed.has("workers-0"))
    gt.figure(
        "What others ran into",
        "times as long, or as many · the same comparison on this computer",
        threads_table(thread_rows(fed)),
        wide=True,
    )
    return


@app.cell(hide_code=True)
def learned(fed, runner):
    mo.stop(not fed.points or not runner.result.data["learned"])
    gt.figure(
        "It learns the same",
        f"a small ResNet on the same files, no workers · torch {runner.result.data['torch']}, on this computer's CPU",
        gt.curve(
            {"loss": gt.running_mean(runner.result.data["learned"][0]["losses"], 1)},
            x_title="step",
            y_title="loss",
            kind="number",
        ),
        note=f"{fed.same_losses} Above, the card follows shapes only: your cores are busy decoding.",
    )
    return


@app.cell(hide_code=True)
def cost(fed):
    mo.stop(not fed.has("workers-0"))
    _none, _machine = fed.points["workers-0"], fed.played("workers-0").machine
    gt.money(
        _none.played.ledger,
        _none.usd(N_IMAGENET),
        f"An epoch of ImageNet: {duration(1e9 * N_IMAGENET / _none.samples_per_s)} without workers, "
        f"{duration(1e9 * N_IMAGENET / fed.best.samples_per_s)} and {dollars(fed.best.usd(N_IMAGENET))} with "
        f"{fed.best.label}, to the same loss, if its cores were these.",
        f"{_machine.name}, {_machine.price_basis}.",
    )
    return


@app.cell(hide_code=True)
def own_machine():
    own = gt.OwnMachine(store, LESSON.key, "gpututor.experiments.feeding_here:measure")
    get_own_phase, get_own_shown = own.get_phase, own.get_shown
    return get_own_phase, get_own_shown, own


@app.cell(hide_code=True)
def own_controls(get_own_phase, own):
    own_buttons = own.buttons(get_own_phase())
    return (own_buttons,)


@app.cell(hide_code=True)
def own_run(fed, get_own_shown, kept, own, own_buttons, runner):
    mo.stop(not fed.points)
    own.section(own_buttons, get_own_shown(), runner.result, kept)
    return


@app.cell(hide_code=True)
def enough_controls(fed):
    mo.stop(not fed.has("workers-0"))
    enough_case = ex06.case_enough(fed.load_ns, fed.compute_ns, fed.n_cores)
    enough = gt.answer_control(ex06.ENOUGH, store, enough_case)
    check_enough = gt.check_button()
    return check_enough, enough, enough_case


@app.cell(hide_code=True)
def enough_exercise(check_enough, enough, enough_case):
    gt.exercise_card(ex06.ENOUGH, enough, check_enough, enough_case, store)
    return


@app.cell(hide_code=True)
def loader_controls(fed):
    mo.stop(not fed.points)
    code = gt.answer_control(ex06.LOADER, store, {})
    check_code = gt.check_button()
    return check_code, code


@app.cell(hide_code=True)
def loader_exercise(check_code, code):
    gt.exercise_card(ex06.LOADER, code, check_code, {}, store)
    return


@app.cell(hide_code=True)
def takeaway(fed):
    mo.stop(not fed.points)
    gt.takeaway(
        "A step takes as long as the slower of loading, shared among workers, and computing; count cores first."
    )
    return


@app.cell(hide_code=True)
def onward(fed):
    mo.stop(not fed.points)
    gt.next_lesson(LESSON)
    return


@app.cell(hide_code=True)
def instructors(fed):
    mo.stop(not fed.points or not gt.is_instructor())
    gt.instructor_notes(ex06.NOTES)
    return


if __name__ == "__main__":
    app.run()
