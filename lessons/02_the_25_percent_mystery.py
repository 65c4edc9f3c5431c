# /// script
# requires-python = ">=3.10"
# dependencies = ["gpututor"]
#
# [tool.marimo.opengraph]
# title = "02 · The 25 % mystery"
# description = "Why does one sentence at a time leave a V100 three quarters idle?"
#
# [tool.marimo.display]
# theme = "system"
# ///

import marimo

__generated_with = "0.25.2"
app = marimo.App(
    width="medium",
    app_title="02 · The 25 % mystery",
    css_file="look.css",
)

with app.setup(hide_code=True):
    import marimo as mo

    from gpututor import page as gt
    from gpututor.cards import DEFAULT_MACHINE, card, machine
    from gpututor.causes.kept import causes_in_file
    from gpututor.exercises import ex02
    from gpututor.expect import Band, compare
    from gpututor.expect.accuracy import step_band, util_band
    from gpututor.jobs.tutorial import TUTORIAL_STEPS
    from gpututor.ledger import rows, waits
    from gpututor.references import reference
    from gpututor.replay import host_sweep, play_file, with_card, with_slower_host
    from gpututor.store import Store
    from gpututor.text import dollars, duration, percent

    LESSON = gt.lesson(2)
    N_STEPS = 200
    RENTED = machine(DEFAULT_MACHINE)
    OTHER_CARDS = ("H100-SXM", "A100-SXM4-80GB", "RTX-4090", "L4", "T4")
    SWAPPED = with_card(RENTED, card(OTHER_CARDS[0]))
    SEEN = reference("seq2seq gpu-util")
    ON_PAPER = SWAPPED.card.peak_flop_per_s["fp32"] / RENTED.card.peak_flop_per_s["fp32"]
    QUESTION = (
        f"You put an H100 into the same machine, in place of the V100. On paper it is {ON_PAPER:.1f} times as fast "
        "at this arithmetic. Host, program and sentences stay. One step becomes…"
    )
    OPTIONS = {
        "about as many times faster as on paper": lambda times: times >= 0.8 * ON_PAPER,
        "about twice as fast": lambda times: 1.5 <= times < 0.8 * ON_PAPER,
        "hardly any faster": lambda times: 0.97 <= times < 1.5,
        "slower": lambda times: times < 0.97,
    }
    store = Store(str(mo.query_params().get("learner") or ""))


@app.cell(hide_code=True)
def head():
    gt.header(
        LESSON,
        f"Somebody rents a V100 for {dollars(RENTED.usd_per_hour)} an hour and trains a translator on it, French to "
        f"English, one sentence at a time. nvidia-smi says the card is {percent(SEEN.value)} busy. What is it doing "
        "the rest of the time?",
        hero=gt.unknown_bar(SEEN.value, "busy, he saw"),
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
        store.tries(LESSON.key, "h100"),
        lambda choice: store.guess(LESSON.key, "h100", choice),
        locked=get_phase() != "ready",
    )
    return (guess,)


@app.cell(hide_code=True)
def guess_card(answer, get_phase, guess):
    (
        gt.guess_card(QUESTION, guess)
        if get_phase() == "ready"
        else gt.guess_locked(QUESTION, store.tries(LESSON.key, "h100"), answer)
    )
    return


@app.cell(hide_code=True)
def run_controls(get_phase, guess, runner):
    buttons = gt.run_buttons(
        get_phase(),
        lambda: runner.start("gpututor.experiments.seq2seq:train", {"n_steps": N_STEPS}, budget_s=90),
        runner.stop,
        label=f"Train {N_STEPS} sentences",
        open_to_run=guess.value is not None,
    )
    return (buttons,)


@app.cell(hide_code=True)
def run_panel(buttons, get_shown, guess, runner):
    gt.run_panel(
        buttons,
        gt.progress_line(get_shown(), "sentence"),
        machine=f"Simulated {RENTED.card.name} · {RENTED.name} · {dollars(RENTED.usd_per_hour)} an hour",
        hint="" if guess.value else "Opens once you have guessed.",
        trouble=runner.trouble or store.trouble,
    )
    return


@app.cell(hide_code=True)
def recall(get_phase):
    mo.stop(get_phase() not in ("ready", "queued", "running"))
    gt.recall(ex02.RECALL)
    return


@app.cell(hide_code=True)
def kept_run(get_phase, runner):
    kept = gt.kept_tapes(runner.result, get_phase())
    return (kept,)


@app.cell(hide_code=True)
def result(kept):
    mo.stop(not kept.tapes, kept.instead("Timeline, ledger and explanation open after the run."))
    tape_path = kept.tapes["tape"]
    played = play_file(tape_path, RENTED)
    gt.gauges(played.ledger, f"{played.ledger.n_steps} steps, {duration(played.step_ns)} each")
    return played, tape_path


@app.cell(hide_code=True)
def card_control(kept):
    mo.stop(not kept.tapes)
    on = mo.ui.dropdown(list(OTHER_CARDS), value=OTHER_CARDS[0], label="Another card in the same machine")
    return (on,)


@app.cell(hide_code=True)
def decide(kept):
    # apart from the figures, so that the guess card knows the answer without waiting for them
    answer = None
    if kept.tapes:
        _path = kept.tapes["tape"]
        _times = play_file(_path, RENTED).step_ns / play_file(_path, SWAPPED).step_ns
        answer = next(option for option, fits in OPTIONS.items() if fits(_times))
        store.reveal(LESSON.key, "h100")
    return (answer,)


@app.cell(hide_code=True)
def surprise(answer, on, played, tape_path):
    _swapped = play_file(tape_path, with_card(RENTED, card(on.value)))
    _times_as_fast = played.step_ns / _swapped.step_ns
    _whose = (
        "Most of the step is not the card's doing, so a better card can't win it back."
        if played.ledger.busy_share < 0.5
        else "Most of the step is the card's own work, so a better card shortens it."
    )
    mo.md(f"""
    ## With an H100: {answer}

    One step takes {duration(played.step_ns)} with the V100 and {duration(_swapped.step_ns)} with the {on.value}:
    {_times_as_fast:.2f} times as fast. A kernel runs {percent(played.ledger.gpu_util_share)} of the time on the first
    and {percent(_swapped.ledger.gpu_util_share)} on the second. {_whose} Look at one step.
    """)
    return


@app.cell(hide_code=True)
def other_card(on):
    on
    return


@app.cell(hide_code=True)
def one_step(played):
    step = played.timeline.step(played.typical_step)
    idle = tuple(waits(step))
    jumps = gt.views(step, idle)
    view = gt.view_control(jumps)
    return idle, jumps, step, view


@app.cell(hide_code=True)
def window_slider(jumps, step, view):
    window = gt.window_control(step, jumps[view.value])
    return (window,)


@app.cell(hide_code=True)
def timeline_head(idle, step, view, window):
    gt.timeline_controls("One sentence, one step", step, idle, view, window)
    return


@app.cell(hide_code=True)
def timeline(idle, step, window):
    gt.shown(lambda: gt.timeline_figure(step, idle, window.value))
    return


@app.cell(hide_code=True)
def ledger_text(played):
    mo.stop(not played)
    mo.md("""
    ## Where the time goes

    Every nanosecond belongs to exactly one account, so the bars add up to the whole. Read from the top: what is lost
    on the way from wall time to useful arithmetic?
    """)
    return


@app.cell(hide_code=True)
def ledger(played):
    _why = {
        "launch_overhead": f"{played.ledger.n_kernels / played.ledger.n_steps:.0f} kernels a step. Each runs "
        f"{duration(played.kernel_ns)}; the host needs {duration(played.host_ns_per_launch)} to launch the next.",
    }
    gt.figure("Ledger", played.ledger.label, gt.waterfall(rows(played.ledger), _why), wide=True)
    return


@app.cell(hide_code=True)
def why(played):
    mo.md(f"""
    ## Why

    Python hands the card one small kernel at a time. With $h$ the host's time for a launch and $k$ the kernel's own,

    $$\\text{{busy}} \\approx \\frac{{k}}{{\\max(h, k)}}$$

    Here $h$ is {duration(played.host_ns_per_launch)} and $k$ is {duration(played.kernel_ns)}. A faster card makes $k$
    smaller. That is why it looks *less* busy, and finishes at nearly the same moment. Move the host's speed and see.
    """)
    return


@app.cell(hide_code=True)
def model_controls(played):
    mo.stop(not played)
    host_times = mo.ui.slider(
        steps=[0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0],
        value=1.0,
        label="the host takes … times as long",
        show_value=True,
    )
    return (host_times,)


@app.cell(hide_code=True)
def sweep(played, tape_path):
    step_number = played.typical_step
    priced = host_sweep(tape_path, RENTED, ex02.HOST_TIMES, step_number)
    kernels_us = play_file(tape_path, RENTED, (step_number, step_number + 1)).kernels_us
    return kernels_us, priced, step_number


@app.cell(hide_code=True)
def model(host_times, played, priced, step_number, tape_path):
    def _figure():
        here = play_file(tape_path, with_slower_host(RENTED, host_times.value), (step_number, step_number + 1))
        k = here.kernel_ns / 1e3
        x, y = here.host_ns_per_launch / 1e3, here.ledger.gpu_util_share
        return gt.figure(
            "The formula as a line, priced runs as circles",
            played.ledger.label,
            host_times,
            gt.curve(
                {"k / max(h, k)": [(h / 2, k / max(h / 2, k)) for h in range(1, 161)]},
                x_title="host time per launch, h (µs)",
                here=(x, y),
                here_text=percent(y),
                dots=priced,
            ),
            note=f"Your point: the host needs {x:.1f} µs a launch, one step takes {duration(here.step_ns)}.",
        )

    gt.shown(_figure)
    return


@app.cell(hide_code=True)
def seen_beside(played):
    _steps = reference("seq2seq step")
    _band = Band(min(_steps.values), _steps.value, max(_steps.values), _steps.unit, _steps.source)
    gt.figure(
        "What others saw",
        played.ledger.label,
        gt.expected_table(
            [
                ("Our step among theirs", compare(_band, played.step_ns)),
                ("Their step in our band", compare(step_band(played.timeline, played.ledger), _steps.value)),
                ("His busy share in our band", compare(util_band(played.timeline, played.ledger), SEEN.value)),
            ]
        ),
        note=f"{_steps.note} Nothing in the simulated machine was set to these numbers.",
    )
    return


@app.cell(hide_code=True)
def verdict_text(played):
    _factor = SEEN.value / played.ledger.gpu_util_share
    mo.md(f"""
    He saw {percent(SEEN.value)}; this machine gives {percent(played.ledger.gpu_util_share)}. For his number, kernels
    would have to run {_factor:.1f} times as long as the model says, or the host launch {_factor:.1f} times as fast.
    Which it was can't be told from one glance at a number that changes every second. Either way the card waits for
    the host.
    """)
    return


@app.cell(hide_code=True)
def own_gpu():
    own = gt.OwnGpu(store, LESSON.key, "gpututor.experiments.measured:seq2seq")
    get_own_phase, get_own_shown = own.get_phase, own.get_shown
    return get_own_phase, get_own_shown, own


@app.cell(hide_code=True)
def own_controls(get_own_phase, own):
    own_buttons = own.buttons(get_own_phase(), {"n_steps": N_STEPS}, label="Measure it on my GPU")
    return (own_buttons,)


@app.cell(hide_code=True)
def recorded(kept):
    elsewhere = gt.recorded(LESSON.number) if kept.tapes else None
    return (elsewhere,)


@app.cell(hide_code=True)
def own_run(elsewhere, get_own_shown, own, own_buttons, tape_path):
    mo.stop(not tape_path)
    own.section(own_buttons, get_own_shown(), lambda run: gt.measured_steps(run, tape_path), "sentence", elsewhere)
    return


@app.cell(hide_code=True)
def learned(played, runner):
    mo.stop(not played)
    _data = runner.result.data
    _losses = [row[3] for row in _data["steps"]]
    _points = gt.running_mean(_losses, 20)
    gt.figure(
        "It really trains",
        f"loss of {len(_losses)} sentences, mean of the last 20 · torch {_data['torch']}, on this computer's CPU",
        gt.curve({"loss": _points}, x_title="sentence", kind="number"),
    )
    return


@app.cell(hide_code=True)
def cost(played, runner):
    mo.stop(not played)
    _steps = runner.result.data["steps"]  # every sentence of the run, not just those whose kernels were kept
    _run_ns = TUTORIAL_STEPS * sum(row[0] for row in _steps) / len(_steps)
    gt.money(
        played.ledger,
        _run_ns / 3600e9 * RENTED.usd_per_hour,
        f"The tutorial's {TUTORIAL_STEPS:,} sentences take {duration(_run_ns)}.",
        f"{RENTED.name} at {dollars(RENTED.usd_per_hour)} an hour, {RENTED.price_basis}.",
    )
    return


@app.cell(hide_code=True)
def finding(tape_path):
    gt.shown(lambda: gt.findings(causes_in_file(tape_path, RENTED)[:2]))
    return


@app.cell(hide_code=True)
def exercise_controls(kernels_us, played, priced):
    case_1 = ex02.fewer_case(played.host_ns_per_launch, played.kernel_ns)
    case_2 = ex02.queue_case(kernels_us, priced)
    typed, code = gt.answer_control(ex02.FEWER, store, case_1), gt.answer_control(ex02.QUEUE, store, case_2)
    check_1, check_2 = gt.check_button(), gt.check_button()
    return case_1, case_2, check_1, check_2, code, typed


@app.cell(hide_code=True)
def exercise_1(case_1, check_1, typed):
    gt.exercise_card(ex02.FEWER, typed, check_1, case_1, store)
    return


@app.cell(hide_code=True)
def exercise_2(case_2, check_2, code):
    gt.exercise_card(ex02.QUEUE, code, check_2, case_2, store)
    return


@app.cell(hide_code=True)
def ending(played):
    mo.stop(not played)
    gt.ending(
        LESSON,
        "If launching takes longer than running, the host sets the pace, and a faster card only waits faster.",
        ex02.NOTES,
    )
    return


if __name__ == "__main__":
    app.run()
