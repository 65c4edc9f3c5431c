# /// script
# requires-python = ">=3.10"
# dependencies = ["gpututor"]
#
# [tool.marimo.opengraph]
# title = "07 · Data already in memory"
# description = "Why can more workers be slower than none?"
#
# [tool.marimo.display]
# theme = "system"
# ///

import marimo

__generated_with = "0.25.2"
app = marimo.App(
    width="medium",
    app_title="07 · Data already in memory",
    css_file="look.css",
)

with app.setup(hide_code=True):
    import marimo as mo

    from gpututor import page as gt
    from gpututor.exercises import ex07
    from gpututor.experiments.data_in_memory import BATCH, GROUPS, LARGE_BATCH
    from gpututor.page.lessons import in_memory_figures as figures
    from gpututor.page.lessons.in_memory import found_of, with_h100_ns
    from gpututor.page.rows import rows_to_batch
    from gpututor.page.step_bars import step_bars
    from gpututor.references import reference
    from gpututor.text import duration

    N_STEPS = 96
    SEEN = reference("one worker to none")
    flow = gt.Flow(
        gt.lesson(7),
        gt.Question(
            "fetch",
            f"Without workers, the loader asks the table for one row at a time, {BATCH} times a batch, and stacks what "
            f"it got. You let it ask once, with all {BATCH} indices. The wait for a batch becomes…",
            {
                "about the same: as many bytes are copied": lambda times: times < 1.4,
                "about half as long": lambda times: 1.4 <= times < 3,
                "a fifth or a tenth as long": lambda times: 3 <= times < 20,
                "a thirtieth, or even less": lambda times: times >= 20,
            },
        ),
        gt.Experiment(
            "gpututor.experiments.data_in_memory:run",
            "Run every way of handing out batches",
            measure="gpututor.experiments.data_in_memory:measure",
            budget_s=180,
            hint="Python, loader and workers are this computer's own, in real time; only the card is simulated. Keep "
            "other programs quiet.",
        ),
        ex07,
    )


@app.cell(hide_code=True)
def head():
    flow.header(
        "A small network learns from a table that fits into memory. The card is mostly idle, so somebody adds a "
        f"worker, and the loader takes {SEEN.value:.1f} times as long as with none. Begin with a smaller question: "
        "what does it take to make a batch of rows that are already there?",
        hero=rows_to_batch(f"{BATCH} rows somewhere in a table", "one batch"),
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
    buttons = flow.run_buttons(get_phase(), guess.value, {"machine": chosen.value, "n_steps": N_STEPS})
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
    found = found_of(kept)
    _both = found.has("rows-0", "batch-0")
    answer = flow.decide(found.fetch_ns("rows-0") / found.fetch_ns("batch-0") if _both else None)
    return answer, found, kept


@app.cell(hide_code=True)
def result(found, kept):
    mo.stop(not found.points, kept.instead("Timeline, ledger and explanation open after the run."))
    gt.gauges(found.played("rows-0").ledger, f"{duration(found.step_ns('rows-0'))} a step")
    return


@app.cell(hide_code=True)
def surprise(answer, found):
    mo.stop(answer is None)
    mo.md(f"""
    ## The wait: {answer}

    Asked row by row, a batch of {BATCH} keeps you waiting {duration(found.fetch_ns("rows-0"))}. Asked once, it takes
    {duration(found.fetch_ns("batch-0"))}, for the same numbers. {found.row_said} {found.noise}
    """)
    return


@app.cell(hide_code=True)
def which_control(found):
    mo.stop(not found.points)
    _labels = {found.points[key].label: key for key in GROUPS["workers"] if found.has(key)}
    which = mo.ui.dropdown(_labels, value=next(iter(_labels)), label="Look at")
    return (which,)


@app.cell(hide_code=True)
def one_step(found, which):
    close = gt.close_up(found.played(which.value))
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
def ledger(found, which):
    gt.ledger_figure(found.played(which.value).ledger)
    return


@app.cell(hide_code=True)
def workers(found):
    mo.stop(not found.has(*GROUPS["workers"]))
    _said = mo.md(f"""
    ## Now the workers

    Somebody else could walk through the rows while you train. Here are none, one and two workers, already started, for
    both ways of asking. {found.workers_said}
    """)
    _figure = gt.figure(
        "A step with no worker, one and two",
        found.label,
        step_bars(found.group("workers"), lambda p: f"waits {duration(found.fetch_ns(p.key))} for a batch"),
        wide=True,
    )
    gt.told(_said, _figure)
    return


@app.cell(hide_code=True)
def by_batch(found):
    mo.stop(not found.has(*GROUPS["workers"], *GROUPS["by batch"]))
    _said = mo.md(f"""
    ## Why

    A worker takes work $w$ off your hands, but a batch made in another process has to be handed over: into shared
    memory, its address through a pipe, unpacked again. Call that $h$. A worker pays where

    $$w > h$$

    Here $w$, walking through {BATCH} rows, is {duration(found.work_ns)}. {found.break_even_said}
    """)
    gt.told(_said, figures.by_batch(found))
    return


@app.cell(hide_code=True)
def elsewhere(found, kept):
    mo.stop(not found.has(*GROUPS["texts"], *GROUPS["files"]))
    _said = mo.md(f"""
    ## Where else it hides

    Samplers, lists of indices, lists of arrays, text that is cut into tokens in the loop, a small file for each row:
    each runs Python once a sample. {found.elsewhere_said} With an H100 instead, the step with tokens made in the loop
    would take {duration(with_h100_ns(kept, "text-loop"))}.
    """)
    gt.told(_said, figures.elsewhere(found))
    return


@app.cell(hide_code=True)
def learned(found, kept):
    mo.stop(not found.has("rows-0", "batch-0", "rows-2"))
    figures.learning(found, kept)
    return


@app.cell(hide_code=True)
def cost(found):
    mo.stop(not found.has("rows-0", "batch-0"))
    figures.money(found)
    return


@app.cell(hide_code=True)
def threads(found):
    mo.stop(not found.has("rows-0", "batch-0"))
    figures.threads(found)
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
    mo.stop(not found.points)
    case = None
    if found.has("rows-0", "batch-0", "rows-large"):
        case = ex07.case_larger({key: point.step_ns for key, point in found.points.items()}, BATCH, LARGE_BATCH)
    larger, check_larger = flow.answer_controls(ex07.LARGER, case)
    code, check_code = flow.answer_controls(ex07.BATCHES, {})
    return case, check_code, check_larger, code, larger


@app.cell(hide_code=True)
def exercises(case, check_code, check_larger, code, larger):
    gt.told(
        flow.exercise_card(ex07.LARGER, larger, check_larger, case),
        flow.exercise_card(ex07.BATCHES, code, check_code, {}),
    )
    return


@app.cell(hide_code=True)
def ending(kept):
    flow.ending(
        kept, "Don't give Python's walk through the samples to a worker; ask for the whole batch, and it is gone."
    )
    return


if __name__ == "__main__":
    app.run()
