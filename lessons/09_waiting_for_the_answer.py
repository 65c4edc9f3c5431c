# /// script
# requires-python = ">=3.10"
# dependencies = ["gpututor"]
#
# [tool.marimo.opengraph]
# title = "09 · Waiting for the answer"
# description = "What does printing the loss cost?"
#
# [tool.marimo.display]
# theme = "system"
# ///

import marimo

__generated_with = "0.25.2"
app = marimo.App(
    width="medium",
    app_title="09 · Waiting for the answer",
    css_file="look.css",
)

with app.setup(hide_code=True):
    import marimo as mo

    from gpututor import page as gt
    from gpututor.exercises import ex09
    from gpututor.experiments.answers import LENGTHS, MATCHED
    from gpututor.lookup import machine_named
    from gpututor.page.lessons import answer_figures as figures
    from gpututor.page.lessons.answer_tables import (
        WAYS,
        after_first_answer,
        loop_picture,
    )
    from gpututor.page.lessons.answers import answers_of
    from gpututor.replay import play_file
    from gpututor.text import duration, percent

    RENTED = machine_named()
    N_STEPS = 20
    flow = gt.Flow(
        gt.lesson(9),
        gt.Question(
            "item",
            "A stopwatch around each line says that the host spends more than a third of the step in loss.item(). You "
            "delete that line and leave the loss on the card. The step becomes…",
            {
                "more than a third shorter": lambda times: times >= 1.5,
                "about a tenth shorter": lambda times: 1.06 <= times < 1.5,
                "hardly any shorter": lambda times: 0.99 <= times < 1.06,
                "longer": lambda times: times < 0.99,
            },
        ),
        gt.Experiment(
            "gpututor.experiments.answers:run",
            f"Train with {len(WAYS)} habits",
            measure="gpututor.experiments.answers:measure",
        ),
        ex09,
    )


@app.cell(hide_code=True)
def head():
    flow.header(
        "A small network learns to write English, letter by letter. After every step its loop asks the card for the "
        "loss and prints it: four bytes. The host can't go on before they are there.",
        hero=loop_picture(),
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
    rented = answers_of(kept, RENTED)
    _both = rented.has("silent", "item")
    answer = flow.decide(rented.step_ns("item") / rented.step_ns("silent") if _both else None)
    return answer, kept, rented


@app.cell(hide_code=True)
def result(answer, kept, rented):
    mo.stop(answer is None, kept.instead("Stopwatch, timeline and curve open after the run."))
    on = gt.machine_control()
    _item = rented.watched["item"]
    mo.md(f"""
    ## Without the line: {answer}

    With `.item()` a step takes {duration(_item.step_ns)}, of which the stopwatch puts {percent(_item.read_share)} into
    that line. Without it the step takes {duration(rented.step_ns("silent"))}:
    {percent(max(0.0, rented.saved_share("item", "silent")))} is saved. {rented.stood_said}
    """)
    return (on,)


@app.cell(hide_code=True)
def priced(kept, on):
    found = answers_of(kept, machine_named(on.value))
    played = {key: play_file(kept.tapes[key], found.machine) for key in ("both", "silent") if found.has(key)}
    return found, played


@app.cell(hide_code=True)
def lines(found, on):
    mo.stop(not found.has("plain", "plain-item", "later"))
    _said = mo.md(f"""
    ## The wait that moves

    Where the card needs longer, the host must wait somewhere. Say the batch is copied the ordinary way: without pinned
    memory, `.to(device)` waits too. {found.moved_said}
    """)
    gt.told(_said, figures.line_by_line(found, on))
    return


@app.cell(hide_code=True)
def one_step(played):
    mo.stop("both" not in played)
    _both = played["both"]
    close = gt.close_up(_both, more=after_first_answer(_both.timeline.step(_both.typical_step)))
    view = close.view_control(last=True)
    return close, view


@app.cell(hide_code=True)
def timeline_head(close, view):
    window = close.window_control(view.value)
    close.head("A step that is read twice: by a bar, and by the log", view, window)
    return (window,)


@app.cell(hide_code=True)
def timeline(close, window):
    close.chart(window.value)
    return


@app.cell(hide_code=True)
def ledger(played):
    mo.stop("both" not in played)
    figures.ledger(played["both"].ledger, played["silent"].ledger)
    return


@app.cell(hide_code=True)
def why(found):
    mo.stop(not found.has("both", "silent"))
    _both = found.watched["both"]
    mo.md(f"""
    ## Why

    Call the host's work in a step $h$ and the card's $k$. Left alone, they run side by side; made to wait at every
    turn, one after the other:

    $$\\max(h, k) \\le \\text{{step}} \\le h + k$$

    A wait takes the host's lead: the card gets nothing new until the host has launched again. So waiting can cost the
    shorter of the two at most. Here $h$ is {duration(_both.launching_ns + _both.batch_ns)} and $k$ is
    {duration(_both.card_ns)}.
    """)
    return


@app.cell(hide_code=True)
def curve(found):
    mo.stop(not found.has_lengths)
    gt.line_figure(
        "Two readings a step: what the stopwatch shows, and what deleting them saves",
        found.label(f"{len(LENGTHS)} lengths"),
        found.length_lines(),
        x_title="characters a line",
        y_title="share of the step",
        kind="share",
        named=True,
        log_x=True,
        note=found.peak_said,
    )
    return


@app.cell(hide_code=True)
def habits(found):
    mo.stop(not found.has(*WAYS))
    _said = mo.md(f"""
    ## Who else asks

    A bar that is hidden still gets its number. A check for NaN asks. A boolean mask asks for a *size* (pytorch issue
    12461): an `ignore_index`, or `where`, needs none. {found.place_said} A sum on the card, read now and then, tells
    as much and costs {percent(max(0.0, found.longer_share("sum")))}.
    """)
    gt.told(_said, figures.habits(found))
    return


@app.cell(hide_code=True)
def matchings(found):
    mo.stop(not found.has(*MATCHED))
    _said = mo.md(f"""
    ## Very many answers

    A detector decides on the host which guess belongs to which object. Each table of costs was brought over by itself:
    {found.watched[MATCHED[0]].n_waits:.0f} waits a step. {found.matched_said} A wait is dear where it is one of many;
    so is everything else that is done one by one.
    """)
    gt.told(_said, figures.matchings(found), figures.elsewhere(found))
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
def learned(found, played):
    mo.stop(not found.has("silent", "item", "both"))
    gt.told(figures.learning(found), figures.money(found, played))
    return


@app.cell(hide_code=True)
def exercise_controls(found):
    case_2 = {"machine": found.machine.name}
    case_1 = {**ex09.case_most(found.watched), **case_2} if found.has_lengths else None
    most, check_most = flow.answer_controls(ex09.MOST, case_1)
    logged, check_logged = flow.answer_controls(ex09.LOGGED, case_2)
    return case_1, case_2, check_logged, check_most, logged, most


@app.cell(hide_code=True)
def exercises(case_1, case_2, check_logged, check_most, logged, most):
    gt.told(
        flow.exercise_card(ex09.MOST, most, check_most, case_1),
        flow.exercise_card(ex09.LOGGED, logged, check_logged, case_2),
    )
    return


@app.cell(hide_code=True)
def ending(kept):
    flow.ending(
        kept, "A stopwatch shows where the host waits. What the wait costs is the lead it takes, so ask rarely."
    )
    return


if __name__ == "__main__":
    app.run()
