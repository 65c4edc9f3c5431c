# /// script
# requires-python = ">=3.10"
# dependencies = ["gpututor"]
#
# [tool.marimo.opengraph]
# title = "15 · The pauses between"
# description = "What happens between the steps?"
#
# [tool.marimo.display]
# theme = "system"
# ///

import marimo

__generated_with = "0.25.2"
app = marimo.App(
    width="medium",
    app_title="15 · The pauses between",
    css_file="look.css",
)

with app.setup(hide_code=True):
    import marimo as mo

    from gpututor import page as gt
    from gpututor.exercises import ex15
    from gpututor.experiments.pauses import EVERY
    from gpututor.lookup import machine_named
    from gpututor.page.lessons import pause_figures as figures
    from gpututor.page.lessons.pauses import FOUND, TIDY, pauses_of
    from gpututor.replay import play_file
    from gpututor.text import duration, percent, quantity

    RENTED = machine_named()
    flow = gt.Flow(
        gt.lesson(15),
        gt.Question(
            "trained",
            f"A loop trains for {EVERY} steps. Then it validates, saves a checkpoint and draws histograms of its "
            "weights, and goes on. Somebody looked at one step closely, and found nothing to mend. Of the whole time, "
            "the steps take…",
            {
                "nearly all": lambda share: share >= 0.8,
                "about two thirds": lambda share: 0.5 <= share < 0.8,
                "about a third": lambda share: 0.2 <= share < 0.5,
                "less than a fifth": lambda share: share < 0.2,
            },
        ),
        gt.Experiment(
            "gpututor.experiments.pauses:run",
            "Train, and watch the clock between",
            measure="gpututor.experiments.pauses:measure",
            budget_s=180,
            on=f"Simulated {RENTED.card.name} · {RENTED.name} · files, histograms and garbage are this computer's",
        ),
        ex15,
    )


@app.cell(hide_code=True)
def head():
    flow.header(
        "Fourteen lessons looked at a step. A run is more than its steps: now and then it stops, to see how far it is, "
        "and to keep what it has. And something may run along that was needed once, to find a fault, and never taken "
        "out.",
        hero=figures.question_picture(),
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
    rented = pauses_of(kept, RENTED)
    answer = flow.decide(rented.trained_share)
    return answer, kept, rented


@app.cell(hide_code=True)
def result(answer, kept, rented):
    mo.stop(answer is None, kept.instead("An epoch's parts, its timeline and the switches open after the run."))
    on = gt.machine_control()
    mo.md(f"""
    ## The steps take {answer}

    A step takes {duration(rented.step_ns)}, so {EVERY} of them are {duration(rented.found.steps_ns)}. The epoch takes
    {duration(rented.found.total_ns)}. Only {percent(rented.trained_share)} of that is training, and no look at a step
    could have told: the rest lies between.
    """)
    return (on,)


@app.cell(hide_code=True)
def priced(kept, on):
    found = pauses_of(kept, machine_named(on.value))
    return (found,)


@app.cell(hide_code=True)
def parts(found, on):
    mo.stop(not found.has_epochs)
    _said = mo.md(f"""
    ## Three pauses

    **Validation** came four pictures at a time, each loss was read, and each had a graph that nobody used.
    **`torch.save`** copied {quantity(found.state_bytes, "B")}, tensor by tensor, and wrote the file while the card
    waited. **Histograms** took every weight to the host to be counted there. {found.parts_said}
    """)
    gt.told(_said, figures.parts(found, on))
    return


@app.cell(hide_code=True)
def which_control(found):
    mo.stop(not found.has_epochs)
    which = mo.ui.radio({"as found": FOUND, "tidied up": TIDY}, value="as found", inline=True, label="The epoch")
    mo.md("""
    ## What the card sees of it

    The timeline holds a whole epoch. In a pause the card is not always idle: in a validation it works, in short bits.
    But nothing that it does there trains.
    """)
    return (which,)


@app.cell(hide_code=True)
def one_epoch(found, kept, which):
    played = play_file(kept.tapes[which.value], found.machine)
    close = gt.close_up(played, whole=True)
    view = close.view_control(last=True)
    return close, played, view


@app.cell(hide_code=True)
def timeline_head(close, view, which):
    window = close.window_control(view.value)
    close.head("An epoch", which, view, window)
    return (window,)


@app.cell(hide_code=True)
def timeline(close, window):
    close.chart(window.value)
    return


@app.cell(hide_code=True)
def ledger(played):
    gt.ledger_figure(played.ledger, title="Ledger of the epoch")
    return


@app.cell(hide_code=True)
def why(found):
    mo.stop(not found.has_epochs)
    _paused_ns = sum(found.found.parts_ns.values())
    _said = mo.md(f"""
    ## Why

    With $n$ steps of length $s$ between two pauses of $p$,

    $$\\text{{time in steps}} = \\frac{{n \\cdot s}}{{n \\cdot s + p}}$$

    Here $s$ is {duration(found.step_ns)} and $p$ is {duration(_paused_ns)}. So there are two ways out: pause less
    often, or make the pause short. A checkpoint is there for the day on which something breaks; how much work may be
    lost then is the question that sets $n$.
    """)
    gt.told(_said, figures.shares(found))
    return


@app.cell(hide_code=True)
def left_on(found):
    mo.stop(len(found.left_on) < 2)
    _said = mo.md("""
    ## Left on

    `CUDA_LAUNCH_BLOCKING` makes each launch wait. **Anomaly mode** keeps Python's stack for every operator, and
    searches every gradient for NaN: a wait each. **Deterministic** mode also fills new memory before its first use.
    `empty_cache()` hands memory back, which is asked for again a moment later. Each has its day, on which you look for
    a fault.
    """)
    gt.told(_said, figures.switches(found))
    return


@app.cell(hide_code=True)
def grows(found):
    mo.stop(not found.has_grown)
    _said = mo.md(f"""
    ## Steps that grow

    `sum(losses) / len(losses)` after every step adds up all that ever was, one launch for each, graphs and all. After
    {found.doubled_after:,.0f} steps it takes as long as the training. A running mean has the same value, and no
    history. Nobody sees it in the first minute.
    """)
    gt.told(_said, figures.growth(found))
    return


@app.cell(hide_code=True)
def kept_alive(found):
    mo.stop(not found.collections_ns)
    _said = mo.md("""
    ## What stays alive

    Python's garbage collector looks for cycles that nobody reaches any more, and stops everything meanwhile. The more
    lives, the longer it looks. Where you must call it, call it seldom, after `gc.freeze()`.
    """)
    gt.told(_said, figures.kept(found))
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
def learned(found, rented):
    mo.stop(not found.has_epochs)
    gt.told(figures.learning(found), figures.money(found), figures.elsewhere(rented))
    return


@app.cell(hide_code=True)
def exercise_controls(found):
    case_1 = {**ex15.case_rarely(found.found), "machine": found.machine.name} if found.has_epochs else None
    case_2 = {"machine": found.machine.name}
    rarely, check_rarely = flow.answer_controls(ex15.RARELY, case_1)
    evaluated, check_evaluated = flow.answer_controls(ex15.EVALUATED, case_2)
    return case_1, case_2, check_evaluated, check_rarely, evaluated, rarely


@app.cell(hide_code=True)
def exercises(case_1, case_2, check_evaluated, check_rarely, evaluated, rarely):
    gt.told(
        flow.exercise_card(ex15.RARELY, rarely, check_rarely, case_1),
        flow.exercise_card(ex15.EVALUATED, evaluated, check_evaluated, case_2),
    )
    return


@app.cell(hide_code=True)
def ending(kept):
    flow.ending(
        kept,
        "Time a run from its first step to its last, not a step: what lies between is paid for as well.",
    )
    return


if __name__ == "__main__":
    app.run()
