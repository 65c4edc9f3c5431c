# /// script
# requires-python = ">=3.10"
# dependencies = ["gpututor"]
#
# [tool.marimo.opengraph]
# title = "08 · Preparing the data"
# description = "Who should crop and flip?"
#
# [tool.marimo.display]
# theme = "system"
# ///

import marimo

__generated_with = "0.25.2"
app = marimo.App(
    width="medium",
    app_title="08 · Preparing the data",
    css_file="look.css",
)

with app.setup(hide_code=True):
    import marimo as mo

    from gpututor import page as gt
    from gpututor.exercises import ex08
    from gpututor.experiments.preparing import BATCH, COPIES, COPY_SIDE, N_STEPS, WHO
    from gpututor.lookup import machine_named
    from gpututor.page.lessons import preparing_figures as figures
    from gpututor.page.lessons.preparing import found_of, whole
    from gpututor.references import reference
    from gpututor.text import duration, percent

    SEEN = reference("SimCLR gpu-util")
    flow = gt.Flow(
        gt.lesson(8),
        gt.Question(
            "card",
            f"The host prepares {BATCH} pictures a step, one after the other: crop, scale, flip, bytes to numbers. You "
            "let it send the bytes as they are, and the card prepares the whole batch before it trains. One "
            "step becomes…",
            {
                "slower: the card has enough to do": lambda times: times < 0.95,
                "hardly any faster": lambda times: 0.95 <= times < 1.3,
                "up to twice as fast": lambda times: 1.3 <= times < 2,
                "more than twice as fast": lambda times: times >= 2,
            },
        ),
        gt.Experiment(
            "gpututor.experiments.preparing:run",
            "Train with each way of preparing",
            measure="gpututor.experiments.preparing:measure",
            hint="The preparing is real and takes this computer's time, on one thread as in a loader's worker; the "
            "card is simulated. Keep other programs quiet.",
        ),
        ex08,
    )


@app.cell(hide_code=True)
def head():
    flow.header(
        "Somebody trains a V100 on pictures that are cropped and flipped at random, and nvidia-smi shows "
        f"{percent(SEEN.value)} at best. More workers don't help: the processor is at its limit, the card is bored. "
        "Whose work is it to prepare a picture?",
        hero=gt.unknown_bar(SEEN.value, "busy, they saw"),
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
    _both = found.has("one by one", "card")
    answer = flow.decide(found.step_ns("one by one") / found.step_ns("card") if _both else None)
    return answer, found, kept


@app.cell(hide_code=True)
def result(found, kept):
    mo.stop(not found.has("one by one"), kept.instead("Timeline, ledger and explanation open after the run."))
    gt.gauges(found.played("one by one").ledger, f"picture by picture, {duration(found.step_ns('one by one'))} a step")
    return


@app.cell(hide_code=True)
def surprise(answer, found):
    mo.stop(answer is None)
    _extra = duration(found.kernels_ns("card") - found.kernels_ns("batch"))
    mo.md(f"""
    ## Prepared by the card: {answer}

    Picture by picture, the host needs {duration(found.making_ns("one by one"))} for a batch, and a step takes
    {duration(found.step_ns("one by one"))}. The card prepares all {BATCH} with {_extra} of kernels; a step takes
    {duration(found.step_ns("card"))}. {found.batch_said}
    """)
    return


@app.cell(hide_code=True)
def learned(found, kept):
    mo.stop(not found.has(*WHO))
    gt.told(figures.who_prepares(found), figures.learning(found, kept))
    return


@app.cell(hide_code=True)
def trip_text(found, kept):
    mo.stop(not whole(found))
    on = gt.machine_control(kept.data["machine"])
    mo.md(f"""
    ## Now the trip

    Whoever prepares, the batch must cross the link. Here are the copies alone, of {BATCH} pictures of {COPY_SIDE} by
    {COPY_SIDE} that lie ready. The host's time is the machine's this time, not this computer's, so nothing varies;
    arithmetic, the same in each line, is followed by its shapes only.
    """)
    return (on,)


@app.cell(hide_code=True)
def trip_points(kept, on):
    copied = found_of(kept, machine_named(on.value))
    return (copied,)


@app.cell(hide_code=True)
def trip(copied, on):
    figures.trip(copied, on)
    return


@app.cell(hide_code=True)
def which_control(copied):
    mo.stop(not copied.points)
    which = mo.ui.dropdown({label: key for key, label in COPIES.items()}, value=COPIES["copy"], label="Look at")
    return (which,)


@app.cell(hide_code=True)
def one_step(copied, which):
    close = gt.close_up(copied.played(which.value))
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
def ledger(copied, which):
    gt.ledger_figure(copied.played(which.value).ledger)
    return


@app.cell(hide_code=True)
def law(copied):
    _said = mo.md(f"""
    ## Why

    Ordinary memory can be moved by the system, so the driver copies it through a buffer of its own while the host
    stands by. Pinned memory stays where it is: the card fetches it. {copied.pinned_said} In a stream of its own a copy
    of length $c$ runs beside the work $w$ on the batch before:

    $$w + c \\quad\\text{{becomes}}\\quad \\max(w, c)$$
    """)
    _figure = gt.line_figure(
        "The rules as lines, priced runs as circles",
        copied.played("copy").ledger.label,
        copied.law(),
        x_title="bytes a value, as it is copied",
        y_title="one step (ms)",
        dots=copied.dots(),
        named=True,
        note=f"{copied.ahead_said} {copied.bytes_said}",
    )
    gt.told(_said, _figure)
    return


@app.cell(hide_code=True)
def doubles(copied):
    mo.md(f"""
    ## The float64 that nobody asked for

    Numpy's arrays are float64, and one of them turns a whole batch into its like:
    {duration(copied.copy_ns("copy fp64"))} on the link in place of {duration(copied.copy_ns("copy"))}. On the card a
    mean left in float64 does the same to what it meets: those kernels take {copied.promoted:.1f} times as long. Nothing
    warns you; look at `dtype`.
    """)
    return


@app.cell(hide_code=True)
def cost(found):
    mo.stop(not found.has(*WHO))
    gt.told(figures.money(found), figures.threads(found) if whole(found) else None)
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
    if whole(found):
        case = ex08.hidden_case(found.copy_ns("pinned"), found.work_ns, found.step_ns("ahead"))
    hidden, check_hidden = flow.answer_controls(ex08.HIDDEN, case)
    ahead, check_ahead = flow.answer_controls(ex08.AHEAD, {})
    return ahead, case, check_ahead, check_hidden, hidden


@app.cell(hide_code=True)
def exercises(ahead, case, check_ahead, check_hidden, hidden):
    gt.told(
        flow.exercise_card(ex08.HIDDEN, hidden, check_hidden, case),
        flow.exercise_card(ex08.AHEAD, ahead, check_ahead, {}),
    )
    return


@app.cell(hide_code=True)
def ending(kept):
    flow.ending(
        kept, "Send the fewest bytes, from pinned memory, one batch ahead; and let whoever is idle prepare them."
    )
    return


if __name__ == "__main__":
    app.run()
