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
    from gpututor.ledger import rows, waits
    from gpututor.lookup import machine_named
    from gpututor.page.lessons.preparing import EXPOSED, NOTHING, found_in, thread_rows, whole
    from gpututor.page.threads import threads_table
    from gpututor.references import reference
    from gpututor.store import Store
    from gpututor.text import duration, percent

    LESSON = gt.lesson(8)
    SEEN = reference("SimCLR gpu-util")
    N_PAID = 1_000_000  # pictures, about as many as ImageNet has
    PAID = "A million pictures"
    QUESTION = (
        f"The host prepares {BATCH} pictures a step, one after the other: crop, scale, flip, bytes to numbers. You let "
        "it send the bytes as they are, and the card prepares the whole batch before it trains. One step becomes…"
    )
    OPTIONS = {
        "slower: the card has enough to do": lambda times: times < 0.95,
        "hardly any faster": lambda times: 0.95 <= times < 1.3,
        "up to twice as fast": lambda times: 1.3 <= times < 2,
        "more than twice as fast": lambda times: times >= 2,
    }
    store = Store(str(mo.query_params().get("learner") or ""))


@app.cell(hide_code=True)
def head():
    gt.header(
        LESSON,
        "Somebody trains a V100 on pictures that are cropped and flipped at random, and nvidia-smi shows "
        f"{percent(SEEN.value)} at best. More workers don't help: the processor is at its limit, the card is bored. "
        "Whose work is it to prepare a picture?",
        hero=gt.unknown_bar(SEEN.value, "busy, they saw"),
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
        store.tries(LESSON.key, "card"),
        lambda choice: store.guess(LESSON.key, "card", choice),
        locked=get_phase() != "ready",
    )
    return (guess,)


@app.cell(hide_code=True)
def guess_card(answer, get_phase, guess):
    (
        gt.guess_card(QUESTION, guess)
        if get_phase() == "ready"
        else gt.guess_locked(QUESTION, store.tries(LESSON.key, "card"), answer)
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
            "gpututor.experiments.preparing:run", {"machine": chosen.value, "n_steps": N_STEPS}, budget_s=120
        ),
        runner.stop,
        label="Train with each way of preparing",
        open_to_run=guess.value is not None,
    )
    return (buttons,)


@app.cell(hide_code=True)
def run_panel(buttons, chosen, get_shown, guess, runner):
    gt.run_panel(
        buttons,
        gt.progress_line(get_shown(), "step"),
        machine=chosen,
        hint="The preparing is real and takes this computer's time, on one thread as in a loader's worker; the card is "
        "simulated. Keep other programs quiet."
        if guess.value
        else "Opens once you have guessed.",
        trouble=runner.trouble or store.trouble,
    )
    return


@app.cell(hide_code=True)
def recall(get_phase):
    mo.stop(get_phase() not in ("ready", "queued", "running"))
    gt.recall(ex08.RECALL)
    return


@app.cell(hide_code=True)
def kept_run(get_phase, runner):
    kept = gt.kept_tapes(runner.result, get_phase())
    return (kept,)


@app.cell(hide_code=True)
def points_of_run(kept, runner):
    found = NOTHING
    if kept.tapes:
        _on = machine_named(runner.result.data["machine"])
        found = found_in(gt.sweep_points(runner.result, kept, _on), runner.result.data)
    return (found,)


@app.cell(hide_code=True)
def decide(found):
    answer = None
    if found.has("one by one", "card"):
        _times = found.step_ns("one by one") / found.step_ns("card")
        answer = next(option for option, fits in OPTIONS.items() if fits(_times))
        store.reveal(LESSON.key, "card")
    return (answer,)


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
def who(found):
    mo.stop(not found.has(*WHO))
    gt.figure(
        "Who prepares",
        found.played("card").ledger.label,
        gt.points_table(
            found.group(WHO),
            gt.STEP,
            gt.BUSY,
            gt.cost_column(N_PAID, PAID),
            gt.LOSS,
            found.held_out_column(),
            first="Prepared by",
            marked="card",
        ),
        note="Prices are the chosen machine's, as if its processor were this one. Workers would divide the host's part "
        "among them (lesson 6); the arithmetic stays.",
        wide=True,
    )
    return


@app.cell(hide_code=True)
def learned(found, runner):
    mo.stop(not found.has(*WHO))
    gt.figure(
        "It really trains",
        f"mean of the last five steps · torch {runner.result.data['torch']}, on this computer's processor",
        gt.curve(
            {
                "augmented": gt.running_mean(found.points["card"].losses, 5),
                "not augmented": gt.running_mean(found.points["nobody"].losses, 5),
            },
            x_title="step",
            y_title="loss in training",
            kind="number",
        ),
        note=found.learned_said,
    )
    return


@app.cell(hide_code=True)
def trip_text(found):
    mo.stop(not whole(found))
    mo.md(f"""
    ## Now the trip

    Whoever prepares, the batch must cross the link. Here are the copies alone, of {BATCH} pictures of {COPY_SIDE} by
    {COPY_SIDE} that lie ready. The host's time is the machine's this time, not this computer's, so nothing varies;
    arithmetic, the same in each line, is followed by its shapes only.
    """)
    return


@app.cell(hide_code=True)
def trip_machine(found, runner):
    mo.stop(not whole(found))
    on = gt.machine_control(runner.result.data["machine"])
    return (on,)


@app.cell(hide_code=True)
def trip_points(kept, on, runner):
    copied = found_in(gt.sweep_points(runner.result, kept, machine_named(on.value)), runner.result.data)
    return (copied,)


@app.cell(hide_code=True)
def trip(copied, on):
    gt.figure(
        "Ways to copy a batch",
        copied.played("copy").ledger.label,
        on,
        gt.points_table(copied.group(COPIES), gt.STEP, gt.BUSY, EXPOSED, first="Copied as", marked="bytes ahead"),
        note="Pageable unless pinned. Pinning itself is left out: a loader's own thread does it ahead of time.",
        wide=True,
    )
    return


@app.cell(hide_code=True)
def which_control(copied):
    mo.stop(not copied.points)
    which = mo.ui.dropdown({label: key for key, label in COPIES.items()}, value=COPIES["copy"], label="Look at")
    return (which,)


@app.cell(hide_code=True)
def one_step(copied, which):
    _played = copied.played(which.value)
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
def ledger(copied, which):
    _ledger = copied.played(which.value).ledger
    gt.figure("Ledger", _ledger.label, gt.waterfall(rows(_ledger)), wide=True)
    return


@app.cell(hide_code=True)
def why(copied):
    mo.stop(not copied.points)
    mo.md(f"""
    ## Why

    Ordinary memory can be moved by the system, so the driver copies it through a buffer of its own while the host
    stands by. Pinned memory stays where it is: the card fetches it. {copied.pinned_said} In a stream of its own a copy
    of length $c$ runs beside the work $w$ on the batch before:

    $$w + c \\quad\\text{{becomes}}\\quad \\max(w, c)$$
    """)
    return


@app.cell(hide_code=True)
def law(copied):
    mo.stop(not copied.points)

    def _figure():
        return gt.figure(
            "The rules as lines, priced runs as circles",
            copied.played("copy").ledger.label,
            gt.curve(
                copied.law(),
                x_title="bytes a value, as it is copied",
                y_title="one step (ms)",
                kind="number",
                dots=copied.dots(),
            ),
            note=f"{copied.ahead_said} {copied.bytes_said}",
        )

    gt.shown(_figure)
    return


@app.cell(hide_code=True)
def doubles(copied):
    mo.stop(not copied.points)
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
    _slow, _fast = found.points["one by one"], found.points["card"]
    _machine = _slow.played.machine
    gt.money(
        _slow.played.ledger,
        _slow.usd(N_PAID),
        f"A million pictures: {duration(1e9 * N_PAID / _slow.samples_per_s)} prepared by the host, "
        f"{duration(1e9 * N_PAID / _fast.samples_per_s)} by the card, to the same loss.",
        f"{_machine.name}, {_machine.price_basis}.",
    )
    return


@app.cell(hide_code=True)
def threads(found):
    mo.stop(not whole(found))
    gt.figure(
        "What others ran into",
        "times as long, or as fast · theirs beside this run",
        threads_table(thread_rows(found)),
        note=f"{SEEN.source}: at most {percent(SEEN.value)} busy; picture by picture, here, "
        f"{percent(found.busy_share('one by one'))}. pytorch/vision#483: the card is busier without augmentation; here "
        f"{percent(found.busy_share('nobody'))}. pytorch/pytorch#48065: non_blocking seems to do nothing; unless "
        f"memory is pinned, so it is here: {duration(found.step_ns('asked'))} with it, "
        f"{duration(found.step_ns('copy'))} without.",
        wide=True,
    )
    return


@app.cell(hide_code=True)
def own_machine():
    own = gt.OwnMachine(store, LESSON.key, "gpututor.experiments.preparing:measure")
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
def hidden_controls(found):
    mo.stop(not whole(found))
    hidden_case = ex08.hidden_case(found.copy_ns("pinned"), found.work_ns, found.step_ns("ahead"))
    hidden = gt.answer_control(ex08.HIDDEN, store, hidden_case)
    check_hidden = gt.check_button()
    return check_hidden, hidden, hidden_case


@app.cell(hide_code=True)
def hidden_exercise(check_hidden, hidden, hidden_case):
    gt.exercise_card(ex08.HIDDEN, hidden, check_hidden, hidden_case, store)
    return


@app.cell(hide_code=True)
def ahead_controls(found):
    mo.stop(not found.points)
    ahead_case = {}
    ahead = gt.answer_control(ex08.AHEAD, store, ahead_case)
    check_ahead = gt.check_button()
    return ahead, ahead_case, check_ahead


@app.cell(hide_code=True)
def ahead_exercise(ahead, ahead_case, check_ahead):
    gt.exercise_card(ex08.AHEAD, ahead, check_ahead, ahead_case, store)
    return


@app.cell(hide_code=True)
def takeaway(found):
    mo.stop(not found.points)
    gt.takeaway("Send the fewest bytes, from pinned memory, one batch ahead; and let whoever is idle prepare them.")
    return


@app.cell(hide_code=True)
def onward(found):
    mo.stop(not found.points)
    gt.next_lesson(LESSON)
    return


@app.cell(hide_code=True)
def instructors(found):
    mo.stop(not found.points or not gt.is_instructor())
    gt.instructor_notes(ex08.NOTES)
    return


if __name__ == "__main__":
    app.run()
