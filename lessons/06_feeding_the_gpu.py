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
    from gpututor.page.lessons import feeding_figures as figures
    from gpututor.page.lessons.feeding import feeding_of
    from gpututor.references import reference
    from gpututor.text import duration, percent

    N_CORES = usable_cores()
    THINNED = 1  # divides the batches of each variant
    SEEN = reference("wait for data")
    flow = gt.Flow(
        gt.lesson(6),
        gt.Question(
            "workers",
            f"A ResNet-18 trains on JPEG files, {BATCH} to a batch. Workers, which are processes, decode them ahead on "
            f"the {N_CORES} cores of this computer. The fewest that come within a tenth of the shortest step:",
            {
                "none, the training process is enough": lambda workers: workers < 0.5,
                "one": lambda workers: 0.5 <= workers < 1.5,
                "two": lambda workers: 1.5 <= workers < 2.5,
                "more than two": lambda workers: workers >= 2.5,
            },
        ),
        gt.Experiment(
            "gpututor.experiments.feeding:run",
            "Train with every number of workers",
            measure="gpututor.experiments.feeding_here:measure",
            budget_s=180,
            hint="Files, decoding and workers are this computer's own, in real time; only the card is simulated. Keep "
            "other programs quiet.",
        ),
        ex06,
    )


@app.cell(hide_code=True)
def head():
    flow.header(
        "Somebody trains a ResNet-18 on ImageNet with eight GPUs, and nvidia-smi shows next to nothing. The training "
        f"log tells why: {percent(1 - 1 / SEEN.value)} of every step goes by waiting for pictures. He pays for eight "
        "cards that wait. What should he change?",
        hero=gt.unknown_bar(1 / SEEN.value, "not waiting"),
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
def machine_choice():
    chosen = gt.machine_control()
    return (chosen,)


@app.cell(hide_code=True)
def run_controls(chosen, get_phase, guess):
    buttons = flow.run_buttons(get_phase(), guess.value, {"machine": chosen.value, "thinned": THINNED})
    return (buttons,)


@app.cell(hide_code=True)
def run_panel(buttons, chosen, get_shown, guess):
    flow.run_panel(buttons, get_shown(), guess.value, chosen)
    return


@app.cell(hide_code=True)
def recall(get_phase):
    flow.recall(get_phase())
    return


@app.cell(hide_code=True)
def decide(get_phase):
    kept = flow.kept(get_phase())
    fed = feeding_of(kept)
    answer = flow.decide(fed.enough.x if fed.has("workers-0", "workers-1", "workers-2", "workers-4") else None)
    return answer, fed, kept


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
def law(answer, fed):
    mo.stop(answer is None)
    _said = mo.md(f"""
    ## Why: the slower side sets the pace

    While the card computes one batch, $w$ workers decode the next ones. So

    $$\\text{{step}} = \\max(\\text{{load}} / w,\\ \\text{{compute}})$$

    Decoding a batch takes {duration(fed.load_ns)}, copy and compute {duration(fed.compute_ns)}. Without workers the two
    add up. {fed.law_said}
    """)
    _figure = gt.line_figure(
        "The law as a line, measured steps as circles",
        fed.label,
        {"the law": fed.law_line},
        x_title="workers",
        y_title="one step (ms)",
        dots=fed.dots,
        whole_x=True,
        note=f"The line bends where load ÷ workers is as short as compute. {fed.off_said}",
    )
    gt.told(_said, _figure)
    return


@app.cell(hide_code=True)
def beside(answer, fed):
    mo.stop(answer is None)
    figures.side_by_side(fed)
    return


@app.cell(hide_code=True)
def which_control(fed):
    mo.stop(not fed.points)
    _labels = {point.label: point.key for point in fed.sweep}
    which = mo.ui.dropdown(_labels, value=list(_labels)[min(1, len(_labels) - 1)], label="Look at")
    return (which,)


@app.cell(hide_code=True)
def one_step(fed, which):
    close = gt.close_up(fed.played(which.value))
    view = close.view_control(last=True)
    return close, view


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
def ledger(fed, which):
    gt.ledger_figure(fed.played(which.value).ledger)
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
def starts(fed):
    mo.stop(not fed.starts)
    _said = mo.md(f"""
    `persistent_workers` spares starting them again. {fed.starts_said} This system starts them with {fed.starts[0]};
    Windows and macOS use spawn. Longer epochs make the pause matter less.
    """)
    gt.told(_said, figures.pauses(fed))
    return


@app.cell(hide_code=True)
def threads(fed):
    mo.stop(not fed.has("workers-0"))
    figures.threads(fed)
    return


@app.cell(hide_code=True)
def learned(fed, kept):
    mo.stop(not fed.has("workers-0"))
    gt.told(figures.same_learning(fed, kept) if kept.data["learned"] else None, figures.money(fed))
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
def exercise_controls(fed):
    mo.stop(not fed.points)
    case = ex06.case_enough(fed.load_ns, fed.compute_ns, fed.n_cores) if fed.has("workers-0") else None
    enough, check_enough = flow.answer_controls(ex06.ENOUGH, case)
    code, check_code = flow.answer_controls(ex06.LOADER, {})
    return case, check_code, check_enough, code, enough


@app.cell(hide_code=True)
def exercises(case, check_code, check_enough, code, enough):
    gt.told(
        flow.exercise_card(ex06.ENOUGH, enough, check_enough, case),
        flow.exercise_card(ex06.LOADER, code, check_code, {}),
    )
    return


@app.cell(hide_code=True)
def ending(kept):
    flow.ending(
        kept, "A step takes as long as the slower of loading, shared among workers, and computing; count cores first."
    )
    return


if __name__ == "__main__":
    app.run()
