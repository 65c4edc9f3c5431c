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
    from gpututor.cards import card
    from gpututor.exercises import ex07
    from gpututor.experiments.data_in_memory import BATCH, GROUPS, LARGE_BATCH
    from gpututor.ledger import rows, waits
    from gpututor.lookup import machine_named
    from gpututor.page.lessons.in_memory import Found, found_in, thread_rows
    from gpututor.page.rows import rows_to_batch
    from gpututor.page.step_bars import step_bars
    from gpututor.page.threads import threads_table
    from gpututor.references import reference
    from gpututor.replay import play_file, with_card
    from gpututor.store import Store
    from gpututor.text import dollars, duration, percent

    LESSON = gt.lesson(7)
    N_STEPS = 96
    N_PAID = 200_000_000  # rows: ten million, twenty times
    SEEN = reference("one worker to none")
    QUESTION = (
        f"Without workers, the loader asks the table for one row at a time, {BATCH} times a batch, and stacks what it "
        f"got. You let it ask once, with all {BATCH} indices. The wait for a batch becomes…"
    )
    OPTIONS = {
        "about the same: as many bytes are copied": lambda times: times < 1.4,
        "about half as long": lambda times: 1.4 <= times < 3,
        "a fifth or a tenth as long": lambda times: 3 <= times < 20,
        "a thirtieth, or even less": lambda times: times >= 20,
    }
    store = Store(str(mo.query_params().get("learner") or ""))


@app.cell(hide_code=True)
def head():
    gt.header(
        LESSON,
        "A small network learns from a table that fits into memory. The card is mostly idle, so somebody adds a "
        f"worker, and the loader takes {SEEN.value:.1f} times as long as with none. Begin with a smaller question: "
        "what does it take to make a batch of rows that are already there?",
        hero=rows_to_batch(f"{BATCH} rows somewhere in a table", "one batch"),
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
        store.tries(LESSON.key, "fetch"),
        lambda choice: store.guess(LESSON.key, "fetch", choice),
        locked=get_phase() != "ready",
    )
    return (guess,)


@app.cell(hide_code=True)
def guess_card(answer, get_phase, guess):
    (
        gt.guess_card(QUESTION, guess)
        if get_phase() == "ready"
        else gt.guess_locked(QUESTION, store.tries(LESSON.key, "fetch"), answer)
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
            "gpututor.experiments.data_in_memory:run", {"machine": chosen.value, "n_steps": N_STEPS}, budget_s=180
        ),
        runner.stop,
        label="Run every way of handing out batches",
        open_to_run=guess.value is not None,
    )
    return (buttons,)


@app.cell(hide_code=True)
def run_panel(buttons, chosen, get_shown, guess, runner):
    gt.run_panel(
        buttons,
        gt.progress_line(get_shown(), "step"),
        machine=chosen,
        hint="Python, loader and workers are this computer's own, in real time; only the card is simulated. Keep other "
        "programs quiet."
        if guess.value
        else "Opens once you have guessed.",
        trouble=runner.trouble or store.trouble,
    )
    return


@app.cell(hide_code=True)
def recall(get_phase):
    mo.stop(get_phase() not in ("ready", "queued", "running"))
    gt.recall(ex07.RECALL)
    return


@app.cell(hide_code=True)
def kept_run(get_phase, runner):
    kept = gt.kept_tapes(runner.result, get_phase())
    return (kept,)


@app.cell(hide_code=True)
def points_of_run(kept, runner):
    found = Found({}, {}, None)
    if kept.tapes:
        _on = machine_named(runner.result.data["machine"])
        found = found_in(gt.sweep_points(runner.result, kept, _on), runner.result.data)
    return (found,)


@app.cell(hide_code=True)
def decide(found):
    answer = None
    if found.has("rows-0", "batch-0"):
        _times = found.fetch_ns("rows-0") / found.fetch_ns("batch-0")
        answer = next(option for option, fits in OPTIONS.items() if fits(_times))
        store.reveal(LESSON.key, "fetch")
    return (answer,)


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
    _played = found.played(which.value)
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
def ledger(found, which):
    _ledger = found.played(which.value).ledger
    gt.figure("Ledger", _ledger.label, gt.waterfall(rows(_ledger)), wide=True)
    return


@app.cell(hide_code=True)
def workers_text(found):
    mo.stop(not found.has(*GROUPS["workers"]))
    mo.md(f"""
    ## Now the workers

    Somebody else could walk through the rows while you train. Here are none, one and two workers, already started, for
    both ways of asking. {found.workers_said}
    """)
    return


@app.cell(hide_code=True)
def workers(found):
    mo.stop(not found.has(*GROUPS["workers"]))
    gt.figure(
        "A step with no worker, one and two",
        found.label,
        step_bars(found.group("workers"), lambda p: f"waits {duration(found.fetch_ns(p.key))} for a batch"),
        wide=True,
    )
    return


@app.cell(hide_code=True)
def why(found):
    mo.stop(not found.has(*GROUPS["workers"]))
    mo.md(f"""
    ## Why

    A worker takes work $w$ off your hands, but a batch made in another process has to be handed over: into shared
    memory, its address through a pipe, unpacked again. Call that $h$. A worker pays where

    $$w > h$$

    Here $w$, walking through {BATCH} rows, is {duration(found.work_ns)}. {found.break_even_said}
    """)
    return


@app.cell(hide_code=True)
def by_batch(found):
    mo.stop(not found.has(*GROUPS["by batch"]))
    gt.figure(
        "Drop the work instead of moving it",
        found.label,
        step_bars(
            found.group("by batch"),
            lambda p: f"busy {percent(p.busy_share)}, {dollars(p.usd(N_PAID))} for {N_PAID / 1e6:,.0f} million rows",
        ),
        note=f"The same batches in the same order: {found.same_losses('by batch')}.",
        wide=True,
    )
    return


@app.cell(hide_code=True)
def elsewhere_text(found, kept):
    mo.stop(not found.has(*GROUPS["texts"], *GROUPS["files"]))
    _faster = with_card(found.played("text-loop").machine, card("H100-SXM"))
    mo.md(f"""
    ## Where else it hides

    Samplers, lists of indices, lists of arrays, text that is cut into tokens in the loop, a small file for each row:
    each runs Python once a sample. {found.elsewhere_said} With an {_faster.card.name} instead, the step with tokens
    made in the loop would take {duration(play_file(kept.tapes["text-loop"], _faster).step_ns)}.
    """)
    return


@app.cell(hide_code=True)
def elsewhere(found):
    mo.stop(not found.has(*GROUPS["texts"], *GROUPS["files"]))
    gt.figure(
        "The same habit in other places",
        found.label,
        *(
            step_bars(
                found.group(group),
                lambda p: f"busy {percent(p.busy_share)}, last loss {p.last_loss:.4f}",
                heading=group.capitalize(),
            )
            for group in ("samplers", "arrays", "texts", "files")
        ),
        note="The files were just written, so they come from memory; a disk or a network would be slower still.",
        wide=True,
    )
    return


@app.cell(hide_code=True)
def learned(found, runner):
    mo.stop(not found.has("rows-0", "batch-0", "rows-2"))
    gt.figure(
        "It really trains",
        f"row by row, with two workers, and a batch at once · torch {runner.result.data['torch']}",
        gt.curve(
            {"loss": gt.running_mean(found.points["rows-0"].losses, 5)}, x_title="step", y_title="loss", kind="number"
        ),
        note=f"All of them: {found.same_losses('workers')}. Faster here costs nothing in what is learned.",
    )
    return


@app.cell(hide_code=True)
def cost(found):
    mo.stop(not found.has("rows-0", "batch-0"))
    _slow, _fast = found.points["rows-0"], found.points["batch-0"]
    _machine = _slow.played.machine
    gt.money(
        _slow.played.ledger,
        _slow.usd(N_PAID),
        f"Ten million rows, twenty times: {duration(1e9 * N_PAID / _slow.samples_per_s)} row by row and "
        f"{duration(1e9 * N_PAID / _fast.samples_per_s)} a batch at once, to the same loss, if its host were this one.",
        f"{_machine.name}, {_machine.price_basis}.",
    )
    return


@app.cell(hide_code=True)
def threads(found):
    mo.stop(not found.has("rows-0", "batch-0"))
    gt.figure(
        "What others ran into",
        "times as long, or as fast · the scripts of these threads or their like, on this computer",
        threads_table(thread_rows(found)),
        wide=True,
    )
    return


@app.cell(hide_code=True)
def own_machine():
    own = gt.OwnMachine(store, LESSON.key, "gpututor.experiments.data_in_memory:measure")
    get_own_phase, get_own_shown = own.get_phase, own.get_shown
    return get_own_phase, get_own_shown, own


@app.cell(hide_code=True)
def own_controls(get_own_phase, own):
    own_buttons = own.buttons(get_own_phase())
    return (own_buttons,)


@app.cell(hide_code=True)
def own_run(found, get_own_shown, kept, own, own_buttons, runner):
    mo.stop(not found.points)
    own.section(own_buttons, get_own_shown(), runner.result, kept)
    return


@app.cell(hide_code=True)
def larger_controls(found):
    mo.stop(not found.has("rows-0", "batch-0", "rows-large"))
    larger_case = ex07.case_larger({k: p.step_ns for k, p in found.points.items()}, BATCH, LARGE_BATCH)
    larger = gt.answer_control(ex07.LARGER, store, larger_case)
    check_larger = gt.check_button()
    return check_larger, larger, larger_case


@app.cell(hide_code=True)
def larger_exercise(check_larger, larger, larger_case):
    gt.exercise_card(ex07.LARGER, larger, check_larger, larger_case, store)
    return


@app.cell(hide_code=True)
def batches_controls(found):
    mo.stop(not found.points)
    code = gt.answer_control(ex07.BATCHES, store, {})
    check_code = gt.check_button()
    return check_code, code


@app.cell(hide_code=True)
def batches_exercise(check_code, code):
    gt.exercise_card(ex07.BATCHES, code, check_code, {}, store)
    return


@app.cell(hide_code=True)
def takeaway(found):
    mo.stop(not found.points)
    gt.takeaway("Don't give Python's walk through the samples to a worker; ask for the whole batch, and it is gone.")
    return


@app.cell(hide_code=True)
def onward(found):
    mo.stop(not found.points)
    gt.next_lesson(LESSON)
    return


@app.cell(hide_code=True)
def instructors(found):
    mo.stop(not found.points or not gt.is_instructor())
    gt.instructor_notes(ex07.NOTES)
    return


if __name__ == "__main__":
    app.run()
