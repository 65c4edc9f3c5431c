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
    from gpututor.cards import card
    from gpututor.causes.kept import causes_in_file
    from gpututor.exercises import ex02
    from gpututor.lookup import machine_named
    from gpututor.page.lessons.mystery import (
        SLOWER,
        beside_figure,
        host_figure,
        kernels_us,
        launches_said,
        money,
        whose_said,
    )
    from gpututor.references import reference
    from gpututor.replay import host_sweep, play_file, with_card, with_slower_host
    from gpututor.text import dollars, duration, percent

    N_STEPS = 200
    RENTED = machine_named()
    OTHER_CARDS = ("H100-SXM", "A100-SXM4-80GB", "RTX-4090", "L4", "T4")
    SWAPPED = with_card(RENTED, card(OTHER_CARDS[0]))
    SEEN = reference("seq2seq gpu-util")
    ON_PAPER = SWAPPED.card.peak_flop_per_s["fp32"] / RENTED.card.peak_flop_per_s["fp32"]
    flow = gt.Flow(
        gt.lesson(2),
        gt.Question(
            "h100",
            f"You put an H100 into the same machine, in place of the V100. On paper it is {ON_PAPER:.1f} times as fast "
            "at this arithmetic. Host, program and sentences stay. One step becomes…",
            {
                "about as many times faster as on paper": lambda times: times >= 0.8 * ON_PAPER,
                "about twice as fast": lambda times: 1.5 <= times < 0.8 * ON_PAPER,
                "hardly any faster": lambda times: 0.97 <= times < 1.5,
                "slower": lambda times: times < 0.97,
            },
        ),
        gt.Experiment(
            "gpututor.experiments.seq2seq:train",
            f"Train {N_STEPS} sentences",
            measure="gpututor.experiments.measured:seq2seq",
            what="sentence",
            budget_s=90,
        ),
        ex02,
        own=gt.OwnGpu,
    )


@app.cell(hide_code=True)
def head():
    flow.header(
        f"Somebody rents a V100 for {dollars(RENTED.usd_per_hour)} an hour and trains a translator on it, French to "
        f"English, one sentence at a time. nvidia-smi says the card is {percent(SEEN.value)} busy. What is it doing "
        "the rest of the time?",
        hero=gt.unknown_bar(SEEN.value, "busy, he saw"),
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
    tape_path = kept.tapes.get("tape")
    played, _swapped = (play_file(tape_path, on) if tape_path else None for on in (RENTED, SWAPPED))
    answer = flow.decide(played.step_ns / _swapped.step_ns if played else None)
    return answer, kept, played, tape_path


@app.cell(hide_code=True)
def result(kept, played):
    mo.stop(not played, kept.instead("Timeline, ledger and explanation open after the run."))
    gt.gauges(played.ledger, f"{played.ledger.n_steps} steps, {duration(played.step_ns)} each")
    return


@app.cell(hide_code=True)
def surprise(answer, on, played, tape_path):
    _swapped = play_file(tape_path, with_card(RENTED, card(on.value)))
    mo.md(f"""
    ## With an H100: {answer}

    One step takes {duration(played.step_ns)} with the V100 and {duration(_swapped.step_ns)} with the {on.value}:
    {played.step_ns / _swapped.step_ns:.2f} times as fast. A kernel runs {percent(played.ledger.gpu_util_share)} of the
    time on the first and {percent(_swapped.ledger.gpu_util_share)} on the second. {whose_said(played)} Look at one
    step.
    """)
    return


@app.cell(hide_code=True)
def other_card(kept):
    mo.stop(not kept.tapes)
    on = mo.ui.dropdown(list(OTHER_CARDS), value=OTHER_CARDS[0], label="Another card in the same machine")
    on
    return (on,)


@app.cell(hide_code=True)
def one_step(played):
    mo.stop(not played)
    close = gt.close_up(played)
    view = close.view_control()
    return close, view


@app.cell(hide_code=True)
def timeline_head(close, view):
    window = close.window_control(view.value)
    close.head("One sentence, one step", view, window)
    return (window,)


@app.cell(hide_code=True)
def timeline(close, window):
    close.chart(window.value)
    return


@app.cell(hide_code=True)
def ledger(played):
    mo.stop(not played)
    _said = mo.md("""
    ## Where the time goes

    Every nanosecond belongs to exactly one account, so the bars add up to the whole. Read from the top: what is lost
    on the way from wall time to useful arithmetic?
    """)
    gt.told(_said, gt.ledger_figure(played.ledger, launches_said(played)))
    return


@app.cell(hide_code=True)
def why(played, tape_path):
    mo.stop(not played)
    priced = host_sweep(tape_path, RENTED, ex02.HOST_TIMES, played.typical_step)
    host_times = mo.ui.slider(steps=SLOWER, value=1.0, label="the host takes … times as long", show_value=True)
    mo.md(f"""
    ## Why

    Python hands the card one small kernel at a time. With $h$ the host's time for a launch and $k$ the kernel's own,

    $$\\text{{busy}} \\approx \\frac{{k}}{{\\max(h, k)}}$$

    Here $h$ is {duration(played.host_ns_per_launch)} and $k$ is {duration(played.kernel_ns)}. A faster card makes $k$
    smaller. That is why it looks *less* busy, and finishes at nearly the same moment. Move the host's speed and see.
    """)
    return host_times, priced


@app.cell(hide_code=True)
def model(host_times, played, priced, tape_path):
    gt.shown(lambda: host_figure(tape_path, with_slower_host(RENTED, host_times.value), played, priced, host_times))
    return


@app.cell(hide_code=True)
def seen_beside(played):
    mo.stop(not played)
    _factor = SEEN.value / played.ledger.gpu_util_share
    _said = mo.md(f"""
    He saw {percent(SEEN.value)}; this machine gives {percent(played.ledger.gpu_util_share)}. For his number, kernels
    would have to run {_factor:.1f} times as long as the model says, or the host launch {_factor:.1f} times as fast.
    Which it was can't be told from one glance at a number that changes every second. Either way the card waits for
    the host.
    """)
    gt.told(beside_figure(played, SEEN.value), _said)
    return


@app.cell(hide_code=True)
def own_controls(get_own_phase):
    own_buttons = flow.own_buttons(get_own_phase(), {"n_steps": N_STEPS})
    return (own_buttons,)


@app.cell(hide_code=True)
def recorded(kept):
    others = gt.recorded(flow.lesson.number) if kept.tapes else None
    return (others,)


@app.cell(hide_code=True)
def own_run(get_own_shown, others, own_buttons, tape_path):
    mo.stop(not tape_path)
    flow.own.section(own_buttons, get_own_shown(), lambda run: gt.measured_steps(run, tape_path), "sentence", others)
    return


@app.cell(hide_code=True)
def learned(kept):
    mo.stop(not kept.tapes)
    _losses = [row[3] for row in kept.data["steps"]]
    gt.line_figure(
        "It really trains",
        f"loss of {len(_losses)} sentences, mean of the last 20 · torch {kept.data['torch']}, on this computer's CPU",
        {"loss": gt.running_mean(_losses, 20)},
        x_title="sentence",
    )
    return


@app.cell(hide_code=True)
def cost(kept, played, tape_path):
    mo.stop(not played)
    gt.told(money(kept, played), gt.shown(lambda: gt.findings(causes_in_file(tape_path, RENTED)[:2])))
    return


@app.cell(hide_code=True)
def exercise_controls(played, priced, tape_path):
    case_1 = ex02.fewer_case(played.host_ns_per_launch, played.kernel_ns)
    case_2 = ex02.queue_case(kernels_us(tape_path, RENTED, played.typical_step), priced)
    typed, check_typed = flow.answer_controls(ex02.FEWER, case_1)
    code, check_code = flow.answer_controls(ex02.QUEUE, case_2)
    return case_1, case_2, check_code, check_typed, code, typed


@app.cell(hide_code=True)
def exercises(case_1, case_2, check_code, check_typed, code, typed):
    gt.told(
        flow.exercise_card(ex02.FEWER, typed, check_typed, case_1),
        flow.exercise_card(ex02.QUEUE, code, check_code, case_2),
    )
    return


@app.cell(hide_code=True)
def ending(kept):
    flow.ending(
        kept, "If launching takes longer than running, the host sets the pace, and a faster card only waits faster."
    )
    return


if __name__ == "__main__":
    app.run()
