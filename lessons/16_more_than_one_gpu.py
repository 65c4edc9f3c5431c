# /// script
# requires-python = ">=3.10"
# dependencies = ["gpututor"]
#
# [tool.marimo.opengraph]
# title = "16 · More than one GPU"
# description = "Why can eight GPUs be slower than two?"
#
# [tool.marimo.display]
# theme = "system"
# ///

import marimo

__generated_with = "0.25.2"
app = marimo.App(
    width="medium",
    app_title="16 · More than one GPU",
    css_file="look.css",
)

with app.setup(hide_code=True):
    import marimo as mo

    from gpututor import page as gt
    from gpututor.exercises import ex16
    from gpututor.experiments.several_cards import MOST, N_MICRO, SEQUENCES
    from gpututor.lookup import machine_named
    from gpututor.page.lessons import several_figures as figures
    from gpututor.page.lessons.several import ETHERNET, several_of
    from gpututor.text import duration

    RENTED = machine_named()
    N_STEPS = 64  # of the small network
    flow = gt.Flow(
        gt.lesson(16),
        gt.Question(
            "ethernet",
            f"GPT-2 trains on one V100, {SEQUENCES} sequences a step. Now eight V100 share the same {SEQUENCES}, each "
            "in a machine of its own, joined by Ethernet of 10 gigabits a second. A step takes…",
            {
                "about an eighth of the time": lambda share: share < 0.2,
                "a quarter to a half of it": lambda share: 0.2 <= share < 0.6,
                "about as long as before": lambda share: 0.6 <= share < 1.15,
                "longer than before": lambda share: share >= 1.15,
            },
        ),
        gt.Experiment(
            "gpututor.experiments.several_cards:run",
            "Train on one to eight cards",
            measure="gpututor.experiments.several_cards:measure",
            budget_s=240,
            on="Simulated machines of one to eight cards · GPT-2 by its shapes, and a small network that really learns",
        ),
        ex16,
    )


@app.cell(hide_code=True)
def head():
    flow.header(
        "Each card takes a share of the batch, and before anybody may step, all must agree on the gradients. More "
        "cards have less to do each, and the same amount to say. How much of what you rent do you get?",
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
    # on the question's own machine, whatever is chosen below
    kept = flow.kept(get_phase())
    rented = several_of(kept, RENTED)
    answer = flow.decide(1 / rented.times(MOST, ETHERNET) if rented.whole else None)
    return answer, kept, rented


@app.cell(hide_code=True)
def result(answer, kept, rented):
    mo.stop(answer is None, kept.instead("Steps, curve and losses open after the run."))
    on = gt.machine_control()
    mo.md(f"""
    ## Eight V100 over Ethernet: {answer}

    {rented.ethernet_said} In one box with NVLink eight take {duration(rented.step_ns(MOST, rented.near))},
    {rented.times(MOST, rented.near):.1f} times as fast as one. The cards are the same, and so is the price.
    """)
    return (on,)


@app.cell(hide_code=True)
def priced(kept, on):
    found = several_of(kept, machine_named(on.value))
    return (found,)


@app.cell(hide_code=True)
def steps(found, on):
    figures.steps(found, on)
    return


@app.cell(hide_code=True)
def curve(found):
    _near = found.near
    _said = mo.md(f"""
    ## Why

    Of $n$ cards each does an $n$-th of the work $c$. The gradients, $S$ bytes, don't shrink: in a ring each card sends
    $S \\cdot 2(n-1)/n$ bytes, over a link of $B$ a second. What isn't hidden under the work of that is added:

    $$\\text{{step}} \\approx \\frac{{c}}{{n}} + \\text{{the rest of }} \\frac{{S}}{{B}} \\cdot \\frac{{2(n-1)}}{{n}}$$

    Here $S$ is {found.n_bytes / 1e6:,.0f} million bytes and $c$ is {duration(found.step_ns(1, ETHERNET))}. To exchange
    them among eight takes {duration(found.exchange_ns(MOST, ETHERNET))} over Ethernet, and
    {duration(found.exchange_ns(MOST, _near))} by {_near}, when nothing else goes on. {found.slower_said}
    """)
    gt.told(_said, figures.speed_up(found))
    return


@app.cell(hide_code=True)
def which_control(found):
    which = mo.ui.radio(list(found.boxes), value=ETHERNET, inline=True, label="Eight cards, joined by")
    return (which,)


@app.cell(hide_code=True)
def one_step(found, which):
    played = found.played(found.key(MOST), which.value)
    close = gt.close_up(played)
    view = close.view_control(last=True)
    return close, played, view


@app.cell(hide_code=True)
def timeline_head(close, view, which):
    window = close.window_control(view.value)
    close.head("One step, as one of the eight sees it", which, view, window)
    return (window,)


@app.cell(hide_code=True)
def timeline(close, window):
    close.chart(window.value)
    return


@app.cell(hide_code=True)
def ledger(played, which):
    gt.ledger_figure(played.ledger, title=f"Ledger of one of the eight, {which.value}")
    return


@app.cell(hide_code=True)
def ways(found):
    _said = mo.md(f"""
    ## Ways to spread a job

    **DataParallel** is one process: it copies all weights to all cards at each step and brings the gradients back to
    the first. **DistributedDataParallel** is a process for each card. It fills buckets with gradients, last layer
    first, and sends a full one while the backward pass goes on. {found.overlap_said}
    """)
    gt.told(_said, figures.ways(found), figures.buckets(found))
    return


@app.cell(hide_code=True)
def rarely(found):
    mo.stop(not found.has("each", "last"))
    mo.md(f"""
    ## Talk less often

    With a slow link, let each card do {N_MICRO} backward passes before the optimizer steps. That saves nothing as long
    as DDP exchanges after every one of them, which it does. Inside `model.no_sync()` it doesn't.
    {found.no_sync_said()} The batch is {N_MICRO} times as large, so lesson 3's rule for the rate applies.
    """)
    return


@app.cell(hide_code=True)
def learning(found):
    mo.stop(not found.has("learn-one", "learn-ddp-8", "learn-wide"))
    _one, _eight, _wide = (f"{found.held_out(f'learn-{_key}'):.2f}" for _key in ("one", "ddp-8", "wide"))
    _said = mo.md(f"""
    ## Does it learn the same?

    Same batch, same learning: over the first half of the steps the losses differ by {found.apart_said}. On
    pictures that it never saw, one card ends at {_one} and eight at {_eight}. Keep the batch of each card instead, and
    eight take an eighth of the steps: {_wide} after the same pictures. {found.small_said}
    """)
    gt.told(_said, figures.learning(found))
    return


@app.cell(hide_code=True)
def cost(found):
    figures.cost(found)
    return


@app.cell(hide_code=True)
def elsewhere(found):
    mo.stop(not found.has("paper-whole"))
    figures.elsewhere(found)
    return


@app.cell(hide_code=True)
def own_controls(get_own_phase):
    own_buttons = flow.own_buttons(get_own_phase())
    return (own_buttons,)


@app.cell(hide_code=True)
def own_run(get_own_shown, kept, own_buttons):
    mo.stop(not kept.tapes)
    _said = mo.md("""
    ## For real

    Two processes with PyTorch's own engine: `torchrun` starts them, `gloo` carries the gradients, or NCCL where you
    have two GPUs. They hear this computer only, and end with the run.
    """)
    _section = flow.own_section(own_buttons, get_own_shown(), kept)
    gt.told(_said, _section, figures.really(flow.own.runner.result))
    return


@app.cell(hide_code=True)
def exercise_controls(found, on):
    case_1 = found.rarely_case() or None
    case_2 = {"machine": on.value}
    rare, check_rare = flow.answer_controls(ex16.RARELY, case_1)
    code, check_code = flow.answer_controls(ex16.ONCE, case_2)
    return case_1, case_2, check_code, check_rare, code, rare


@app.cell(hide_code=True)
def exercises(case_1, case_2, check_code, check_rare, code, rare):
    gt.told(
        flow.exercise_card(ex16.RARELY, rare, check_rare, case_1),
        flow.exercise_card(ex16.ONCE, code, check_code, case_2),
    )
    return


@app.cell(hide_code=True)
def ending(kept):
    flow.ending(
        kept, "More cards have less to do and as much to say: what joins them decides how many are worth their price."
    )
    return


if __name__ == "__main__":
    app.run()
