# /// script
# requires-python = ">=3.10"
# dependencies = ["gpututor"]
#
# [tool.marimo.opengraph]
# title = "18 · Watching over time"
# description = "Which of 40 runs got slower, and why?"
#
# [tool.marimo.display]
# theme = "system"
# ///

import marimo

__generated_with = "0.25.2"
app = marimo.App(
    width="medium",
    app_title="18 · Watching over time",
    css_file="look.css",
)

with app.setup(hide_code=True):
    import marimo as mo

    from gpututor import page as gt
    from gpututor.exercises import ex18
    from gpututor.exercises.planted import seed_for
    from gpututor.experiments.nights import N_NIGHTS
    from gpututor.history.changes import FLOOR_SHARE, LAST
    from gpututor.lookup import machine_named
    from gpututor.page.board_panel import BoardPanel
    from gpututor.page.lessons import nights_cost as costs
    from gpututor.page.lessons import nights_figures as figures
    from gpututor.page.lessons.nights import night_played, priced
    from gpututor.page.lessons.nights_next import why_case
    from gpututor.page.lessons.watched import events_folder, watch_figure, watched_in

    RENTED = machine_named()
    flow = gt.Flow(
        gt.lesson(18),
        gt.Question(
            "found",
            f"One job runs on {N_NIGHTS} nights, and things happen: a disk, a driver, a commit, heat. A program "
            f"compares each night with the {LAST} before that agreed. Of the nights that really got slower it finds…",
            {
                "hardly any": lambda share: share < 0.2,
                "about half": lambda share: 0.2 <= share < 0.7,
                "most of them": lambda share: 0.7 <= share < 1,
                "all of them": lambda share: share >= 1,
            },
        ),
        gt.Experiment(
            "gpututor.experiments.watching_over_time:run",
            f"Run {N_NIGHTS} nights",
            measure="gpututor.experiments.watching_over_time:measure",
            budget_s=240,
            on=f"Simulated {RENTED.card.name} · {RENTED.name} · a job that really learns, and one run watched live",
        ),
        ex18,
    )
    PARAMS = {"seed": seed_for(flow.store.learner), "n_learned": 24, "watch_s": 8.0}


@app.cell(hide_code=True)
def head():
    flow.header(
        "A job is made quick once, then runs for months. Slow weeks come by themselves: who notices, who knows why?",
    )
    return


@app.cell(hide_code=True)
def states():
    get_phase, get_shown, get_own_phase, get_own_shown = flow.states()
    board = BoardPanel()
    get_board = board.get_state
    return board, get_board, get_own_phase, get_own_shown, get_phase, get_shown


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
    buttons = flow.run_buttons(get_phase(), guess.value, PARAMS)
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
    rented = priced(kept, RENTED)
    answer = flow.decide(rented.found_share)
    return answer, kept, rented


@app.cell(hide_code=True)
def result(answer, kept, rented):
    mo.stop(answer is None, kept.instead("Nights, readings and curves open after the run."))
    on = gt.machine_control()
    mo.md(f"""
    ## It finds {answer}

    {rented.counted_said} Your nights are drawn for you; nobody has the same. Find them yourself: which got slower?
    A bar is a step of that night, split into what it went to.
    """)
    return (on,)


@app.cell(hide_code=True)
def on_machine(kept, on):
    found = priced(kept, machine_named(on.value))
    return (found,)


@app.cell(hide_code=True)
def bars(found, on):
    figures.bars(found, on)
    return


@app.cell(hide_code=True)
def night_control(rented):
    mo.stop(not rented.whole)
    number, kwh = figures.night_control(), costs.price_control()
    _said = mo.md("""
    ## One night closely

    What the history and the sampler noted of a night, beside the first ones, in which nothing happened.
    """)
    mo.vstack([_said, number])
    return kwh, number


@app.cell(hide_code=True)
def one_night(found, number):
    figures.one_night(found, number.value)
    return


@app.cell(hide_code=True)
def one_step(found, kept, number):
    close = gt.close_up(night_played(kept, found, number.value))
    view = close.view_control(last=True)
    return close, view


@app.cell(hide_code=True)
def timeline_head(close, view):
    window = close.window_control(view.value)
    close.head("A step of that night", view, window)
    return (window,)


@app.cell(hide_code=True)
def timeline(close, window):
    close.chart(window.value)
    return


@app.cell(hide_code=True)
def marks(rented):
    mo.stop(not rented.whole)
    typed, show = figures.marks_controls(flow.store, flow.lesson.key)
    _said = mo.md("""
    ## Your turn

    Type the nights in which a sample took longer than usual, whatever its step did. Two nights were disturbed by
    chance; those don't count.
    """)
    mo.vstack([_said, mo.hstack([typed, show], justify="start", wrap=True)])
    return show, typed


@app.cell(hide_code=True)
def verdict(found, kept, show, typed):
    marked = figures.Marked(typed.value, show.value)
    figures.verdict(found, marked, kept)
    return (marked,)


@app.cell(hide_code=True)
def why(found, kept, marked):
    _said = mo.md(f"""
    ## Why

    With $m$ the median of the last {LAST} runs that agreed, and $d$ their median distance from it, a run is called
    slower above

    $$m + \\max({FLOOR_SHARE:g}\\, m,\\; 3 \\cdot 1.48\\, d)$$

    A jump leaves that room at once. What creeps takes the room along, and a step may be longer because there is more in
    it. {found.told_said if marked.revealed else "What did so here stands here once you have marked."}
    """)
    gt.told(_said, costs.learning(found, kept))
    return


@app.cell(hide_code=True)
def watch_it(kept):
    mo.stop(not kept.tapes)
    watched = watched_in(kept)
    _said = mo.md(f"""
    ## While it runs

    `gpututor watch` reads GPU and processor side by side and says who waits for whom. It watched your run.
    {watched.halves_said if watched.card else watched.trouble}
    """)
    gt.told(_said, watch_figure(watched))
    return


@app.cell(hide_code=True)
def board_controls(board, get_board, kept):
    board_buttons = board.buttons(get_board(), events_folder(kept))
    return (board_buttons,)


@app.cell(hide_code=True)
def board_panel(board, board_buttons, get_board, kept):
    mo.stop(not kept.tapes)
    _said = mo.md("""
    ## In TensorBoard

    `gpututor watch --tensorboard` writes event files, and so did your run: the readings above, the losses, and the
    nights as curves by number. TensorBoard draws whatever lies in the folder.
    """)
    gt.told(_said, board.section(board_buttons, get_board(), events_folder(kept)))
    return


@app.cell(hide_code=True)
def cost(found, kwh, marked):
    _said = mo.md(f"""
    ## What slow nights cost

    {costs.energy_said(found, kwh.value)} Where a driver reads power, the sampler adds it up; where nothing does,
    the limit is all that is known.
    """)
    gt.told(_said, costs.energy(found, kwh.value, kwh, marked), costs.threads(found))
    return


@app.cell(hide_code=True)
def own_controls(get_own_phase):
    own_buttons = flow.own_buttons(get_own_phase())
    return (own_buttons,)


@app.cell(hide_code=True)
def own_run(get_own_shown, kept, own_buttons):
    mo.stop(not kept.tapes)
    gt.told(flow.own_section(own_buttons, get_own_shown(), kept), costs.own(flow.own.runner.result))
    return


@app.cell(hide_code=True)
def exercise_controls(found, kept):
    case_1 = why_case(kept, found) or None
    because, check_because = flow.answer_controls(ex18.WHY, case_1)
    code, check_code = flow.answer_controls(ex18.SLOWER, {})
    return because, case_1, check_because, check_code, code


@app.cell(hide_code=True)
def exercises(because, case_1, check_because, check_code, code):
    gt.told(
        flow.exercise_card(ex18.WHY, because, check_because, case_1),
        flow.exercise_card(ex18.SLOWER, code, check_code, {}),
    )
    return


@app.cell(hide_code=True)
def ending(kept):
    flow.ending(kept, "Keep every run, hold samples and not steps against runs that can't move, and ask what is new.")
    return


if __name__ == "__main__":
    app.run()
