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
    from gpututor.cards import DEFAULT_MACHINE, machine
    from gpututor.exercises import ex09
    from gpututor.experiments.answers import LENGTH, LENGTHS, MATCHED
    from gpututor.ledger import Account, rows, waits
    from gpututor.lookup import machine_named
    from gpututor.page.lessons.answer_tables import (
        WAYS,
        after_first_answer,
        answers_elsewhere,
        habits_table,
        lines_table,
        loop_picture,
        matchings_table,
    )
    from gpututor.page.lessons.answers import answers_of
    from gpututor.replay import play_file
    from gpututor.store import Store
    from gpututor.text import dollars, duration, percent

    LESSON = gt.lesson(9)
    RENTED = machine(DEFAULT_MACHINE)
    N_STEPS = 20
    MANY_STEPS = 1_000_000
    LOOP = (
        "batch.to(device)",
        "loss = model(batch)",
        "loss.backward()",
        "optimizer.step()",
        "print(loss.item())",
    )
    QUESTION = (
        "A stopwatch around each line says that the host spends more than a third of the step in loss.item(). You "
        "delete that line and leave the loss on the card. The step becomes…"
    )
    OPTIONS = {
        "more than a third shorter": lambda times: times >= 1.5,
        "about a tenth shorter": lambda times: 1.06 <= times < 1.5,
        "hardly any shorter": lambda times: 0.99 <= times < 1.06,
        "longer": lambda times: times < 0.99,
    }
    store = Store(str(mo.query_params().get("learner") or ""))


@app.cell(hide_code=True)
def head():
    gt.header(
        LESSON,
        "A small network learns to write English, letter by letter. After every step its loop asks the card for the "
        "loss and prints it: four bytes. The host can't go on before they are there.",
        hero=loop_picture(LOOP),
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
        store.tries(LESSON.key, "item"),
        lambda choice: store.guess(LESSON.key, "item", choice),
        locked=get_phase() != "ready",
    )
    return (guess,)


@app.cell(hide_code=True)
def guess_card(answer, get_phase, guess):
    (
        gt.guess_card(QUESTION, guess)
        if get_phase() == "ready"
        else gt.guess_locked(QUESTION, store.tries(LESSON.key, "item"), answer)
    )
    return


@app.cell(hide_code=True)
def run_controls(get_phase, guess, runner):
    buttons = gt.run_buttons(
        get_phase(),
        lambda: runner.start("gpututor.experiments.answers:run", {"n_steps": N_STEPS}, budget_s=120),
        runner.stop,
        label=f"Train with {len(WAYS)} habits",
        open_to_run=guess.value is not None,
    )
    return (buttons,)


@app.cell(hide_code=True)
def run_panel(buttons, get_shown, guess, runner):
    gt.run_panel(
        buttons,
        gt.progress_line(get_shown()),
        machine=f"Simulated {RENTED.card.name} · {RENTED.name} · {dollars(RENTED.usd_per_hour)} an hour",
        hint="" if guess.value else "Opens once you have guessed.",
        trouble=runner.trouble or store.trouble,
    )
    return


@app.cell(hide_code=True)
def recall(get_phase):
    mo.stop(get_phase() not in ("ready", "queued", "running"))
    gt.recall(ex09.RECALL)
    return


@app.cell(hide_code=True)
def kept_run(get_phase, runner):
    kept = gt.kept_tapes(runner.result, get_phase())
    return (kept,)


@app.cell(hide_code=True)
def decide(kept, runner):
    answer, rented = None, answers_of(runner.result, kept, RENTED)
    if rented.has("silent", "item"):
        _times = rented.step_ns("item") / rented.step_ns("silent")
        answer = next(option for option, fits in OPTIONS.items() if fits(_times))
        store.reveal(LESSON.key, "item")
    return answer, rented


@app.cell(hide_code=True)
def result(answer, kept, rented):
    mo.stop(answer is None, kept.instead("Stopwatch, timeline and curve open after the run."))
    _item = rented.watched["item"]
    mo.md(f"""
    ## Without the line: {answer}

    With `.item()` a step takes {duration(_item.step_ns)}, of which the stopwatch puts {percent(_item.read_share)} into
    that line. Without it the step takes {duration(rented.step_ns("silent"))}:
    {percent(max(0.0, rented.saved_share("item", "silent")))} is saved. {rented.stood_said}
    """)
    return


@app.cell(hide_code=True)
def machine_choice(answer):
    mo.stop(answer is None)
    on_machine = gt.machine_control()
    return (on_machine,)


@app.cell(hide_code=True)
def on_it(kept, on_machine, runner):
    found = answers_of(runner.result, kept, machine_named(on_machine.value))
    played = {key: play_file(kept.tapes[key], found.machine) for key in ("both", "silent") if found.has(key)}
    return found, played


@app.cell(hide_code=True)
def moved(found):
    mo.stop(not found.has("plain", "plain-item"))
    mo.md(f"""
    ## The wait that moves

    Where the card needs longer, the host must wait somewhere. Say the batch is copied the ordinary way: without pinned
    memory, `.to(device)` waits too. {found.moved_said}
    """)
    return


@app.cell(hide_code=True)
def lines(found, on_machine):
    mo.stop(not found.has("plain", "plain-item", "later"))
    gt.figure(
        "One step, line by line",
        found.label(f"{LENGTH} characters a line"),
        on_machine,
        lines_table(found),
        note=f"Read a step later, the loss is waited for as well; that makes the step "
        f"{percent(max(0.0, found.longer_share('later')))} longer.",
        wide=True,
    )
    return


@app.cell(hide_code=True)
def one_step(played):
    mo.stop("both" not in played)
    step = played["both"].timeline.step(played["both"].typical_step)
    idle = tuple(waits(step))
    jumps = after_first_answer(step) | gt.views(step, idle)
    view = gt.view_control(jumps, chosen=list(jumps)[-1])
    return idle, jumps, step, view


@app.cell(hide_code=True)
def window_slider(jumps, step, view):
    window = gt.window_control(step, jumps[view.value])
    return (window,)


@app.cell(hide_code=True)
def timeline_head(idle, step, view, window):
    gt.timeline_controls("A step that is read twice: by a bar, and by the log", step, idle, view, window)
    return


@app.cell(hide_code=True)
def timeline(idle, step, window):
    gt.shown(lambda: gt.timeline_figure(step, idle, window.value))
    return


@app.cell(hide_code=True)
def ledger(played):
    mo.stop("both" not in played)
    _both, _silent = played["both"].ledger, played["silent"].ledger
    _why = {
        "blocking_sync": "Only from the card's last kernel until the host goes on. While the card worked, nothing was "
        "lost.",
        "launch_overhead": f"{percent(_silent.share(Account.LAUNCH_OVERHEAD))} in the loop that never reads. Any more "
        "here are launches that a waiting host could not do ahead.",
    }
    gt.figure("Ledger", _both.label, gt.waterfall(rows(_both), _why), wide=True)
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
    gt.figure(
        "Two readings a step: what the stopwatch shows, and what deleting them saves",
        found.label(f"{len(LENGTHS)} lengths"),
        gt.curve(found.length_lines(), x_title="characters a line", y_title="share of the step", log_x=True),
        note=found.peak_said,
    )
    return


@app.cell(hide_code=True)
def who_else(found):
    mo.stop(not found.has(*WAYS))
    mo.md(f"""
    ## Who else asks

    A bar that is hidden still gets its number. A check for NaN asks. A boolean mask asks for a *size* (pytorch issue
    12461): an `ignore_index`, or `where`, needs none. {found.place_said} A sum on the card, read now and then, tells
    as much and costs {percent(max(0.0, found.longer_share("sum")))}.
    """)
    return


@app.cell(hide_code=True)
def habits(found):
    mo.stop(not found.has("silent", "item"))
    _same = found.same_loss(WAYS)
    gt.figure(
        "The same training, watched in different ways",
        found.label(f"{LENGTH} characters a line"),
        habits_table(found),
        note="The loss is the same at every step, to the last digit." if _same else "The losses differ.",
        wide=True,
    )
    return


@app.cell(hide_code=True)
def asks_often(found):
    mo.stop(not found.has(*MATCHED))
    mo.md(f"""
    ## Very many answers

    A detector decides on the host which guess belongs to which object. Each table of costs was brought over by itself:
    {found.watched[MATCHED[0]].n_waits:.0f} waits a step. {found.matched_said} A wait is dear where it is one of many;
    so is everything else that is done one by one.
    """)
    return


@app.cell(hide_code=True)
def matchings(found):
    mo.stop(not found.has(*MATCHED))
    gt.figure("A detector's loss", found.label("a small detector"), matchings_table(found), wide=True)
    return


@app.cell(hide_code=True)
def elsewhere(found):
    mo.stop(not found.has(*MATCHED))
    gt.figure("What others saw", found.label("this run"), answers_elsewhere(found), wide=True)
    return


@app.cell(hide_code=True)
def own_machine():
    own = gt.OwnMachine(store, LESSON.key, "gpututor.experiments.answers:measure")
    get_own_phase, get_own_shown = own.get_phase, own.get_shown
    return get_own_phase, get_own_shown, own


@app.cell(hide_code=True)
def own_controls(get_own_phase, own):
    own_buttons = own.buttons(get_own_phase())
    return (own_buttons,)


@app.cell(hide_code=True)
def own_run(answer, get_own_shown, kept, own, own_buttons, runner):
    mo.stop(answer is None)
    own.section(own_buttons, get_own_shown(), runner.result, kept)
    return


@app.cell(hide_code=True)
def learned(found):
    mo.stop(not found.has("silent", "item"))
    gt.figure(
        "It really trains",
        f"loss of {len(found.losses['silent'])} steps, computed on this computer's processor",
        gt.curve(
            {"never read": list(enumerate(found.losses["silent"], 1))},
            dots=list(enumerate(found.losses["item"], 1)),
            x_title="step",
            y_title="loss",
            kind="number",
        ),
        note="The line was read after the run, the circles at every step.",
    )
    return


@app.cell(hide_code=True)
def cost(found, played):
    mo.stop("both" not in played)
    _rate, _slow, _fast = found.machine.usd_per_hour, found.step_ns("both"), found.step_ns("silent")
    _usd = None if _rate is None else MANY_STEPS * _slow / 3600e9 * _rate
    _less = "" if _usd is None else f", for {dollars(_usd * _fast / _slow)}"
    gt.money(
        played["both"].ledger,
        _usd,
        f"{MANY_STEPS:,} steps with bar and log take {duration(MANY_STEPS * _slow)}; unread they take "
        f"{duration(MANY_STEPS * _fast)}{_less}.",
        f"{found.machine.name} at {dollars(_rate)} an hour, {found.machine.price_basis}." if _rate else "",
    )
    return


@app.cell(hide_code=True)
def most_controls(found):
    most_case = ex09.case_most(found.watched) if found.has_lengths else {}
    most = gt.answer_control(ex09.MOST, store, most_case)
    check_most = gt.check_button()
    return check_most, most, most_case


@app.cell(hide_code=True)
def most_card(check_most, most, most_case):
    mo.stop(not most_case)
    gt.exercise_card(ex09.MOST, most, check_most, most_case, store)
    return


@app.cell(hide_code=True)
def logged_controls(on_machine):
    logged_case = {"machine": on_machine.value}
    logged = gt.answer_control(ex09.LOGGED, store, logged_case)
    check_logged = gt.check_button()
    return check_logged, logged, logged_case


@app.cell(hide_code=True)
def logged_card(check_logged, logged, logged_case):
    mo.stop(not logged_case)
    gt.exercise_card(ex09.LOGGED, logged, check_logged, logged_case, store)
    return


@app.cell(hide_code=True)
def takeaway(answer):
    mo.stop(answer is None)
    gt.takeaway("A stopwatch shows where the host waits. What the wait costs is the lead it takes, so ask rarely.")
    return


@app.cell(hide_code=True)
def onward(answer):
    mo.stop(answer is None)
    gt.next_lesson(LESSON)
    return


@app.cell(hide_code=True)
def instructors(answer):
    mo.stop(answer is None or not gt.is_instructor())
    gt.instructor_notes(ex09.NOTES)
    return


if __name__ == "__main__":
    app.run()
