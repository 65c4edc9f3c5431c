# /// script
# requires-python = ">=3.10"
# dependencies = ["gpututor"]
#
# [tool.marimo.opengraph]
# title = "05 · Wider or deeper"
# description = "Twice as wide or twice as deep: which keeps the GPU busier?"
#
# [tool.marimo.display]
# theme = "system"
# ///

import marimo

__generated_with = "0.25.2"
app = marimo.App(
    width="medium",
    app_title="05 · Wider or deeper",
    css_file="look.css",
)

with app.setup(hide_code=True):
    import marimo as mo

    from gpututor import page as gt
    from gpututor.cards import card
    from gpututor.exercises import ex05
    from gpututor.experiments.wider_or_deeper import BATCHES, TRAINED, WAYS
    from gpututor.jobs.tutorial import HIDDEN
    from gpututor.lookup import machine_named
    from gpututor.page.lessons import sizes
    from gpututor.replay import play_file, with_card
    from gpututor.text import duration, percent

    N_STEPS = 40
    RENTED = machine_named()
    OTHER = with_card(RENTED, card("H100-SXM"))
    flow = gt.Flow(
        gt.lesson(5),
        gt.Question(
            "busier",
            f"His translator has one layer of {HIDDEN} units and reads one sentence a step. You double the units, or "
            "you add a second layer. Which of the two keeps the V100 busier?",
            {
                "the wider one, by far": lambda times: times >= 1.5,
                "the wider one, by a little": lambda times: 1.05 <= times < 1.5,
                "both the same": lambda times: 0.95 <= times < 1.05,
                "the deeper one": lambda times: times < 0.95,
            },
        ),
        gt.Experiment(
            "gpututor.experiments.wider_or_deeper:run",
            "Train translators of many sizes",
            measure="gpututor.experiments.wider_or_deeper:measure",
        ),
        ex05,
    )


@app.cell(hide_code=True)
def head():
    flow.header(
        "The man with the rented V100 had one more question: if I add more layers, or more hidden nodes, should I "
        "expect the GPU's usage to go up? Each is a change of one line. Make both.",
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
    base, wide, deep = (play_file(kept.tapes[key], RENTED) if kept.has(*TRAINED) else None for key in TRAINED)
    answer = flow.decide(wide.ledger.gpu_util_share / deep.ledger.gpu_util_share if base else None)
    return answer, base, deep, kept, wide


@app.cell(hide_code=True)
def result(answer, base, deep, kept, wide):
    mo.stop(answer is None, kept.instead("The curve, the table and the timeline open after the run."))
    on = gt.machine_control()
    _said = mo.md(f"""
    ## Busier: {answer}

    As he ran it, kernels run {percent(base.ledger.gpu_util_share)} of the time. With {2 * HIDDEN} units it is
    {percent(wide.ledger.gpu_util_share)}, {sizes.free_said(base, wide)}. With two layers it is
    {percent(deep.ledger.gpu_util_share)}, and a step takes {duration(deep.step_ns)} instead of
    {duration(base.step_ns)}. Go on doubling.
    """)
    gt.told(gt.gauges(base.ledger, f"as he ran it, {duration(base.step_ns)} a sentence"), _said)
    return (on,)


@app.cell(hide_code=True)
def other_choices():
    _batches = {"one sentence a step": BATCHES[0], f"{BATCHES[1]} sentences": BATCHES[1]}
    batch = mo.ui.radio(_batches, value="one sentence a step", inline=True, label="Batch")
    gauge = mo.ui.radio(list(sizes.GAUGES), value="Busy", inline=True, label="Gauge")
    return batch, gauge


@app.cell(hide_code=True)
def priced(batch, kept, on):
    found = sizes.sizes_of(kept, machine_named(on.value), batch.value)
    return (found,)


@app.cell(hide_code=True)
def curve_controls(batch, found, gauge, on):
    gt.figure("The same translator, times as wide or as deep", found.source, on, batch, gauge)
    return


@app.cell(hide_code=True)
def curve(found, gauge):
    mo.stop(not found.whole)
    gt.line_figure(
        "",
        found.source,
        found.lines(gauge.value),
        x_title="times the tutorial's units or layers",
        y_title=gauge.value,
        kind="number" if "ms" in gauge.value else "share",
        log_x=True,
        joined=True,
    )
    return


@app.cell(hide_code=True)
def table(found):
    mo.stop(not found.whole)
    _said = mo.md(f"""
    ## More layers: it depends on who calls them

    He was told: more units raise it, more layers don't, because one waits for the other. With a call of its own for
    each layer, {found.layers_said} with {sizes.MOST} of them. Hand all to cuDNN in one call and it is
    {percent(found.busy_share("deep"))}. Make one layer {sizes.MOST} times as wide and it is
    {percent(found.busy_share("wide"))}.
    """)
    gt.told(_said, found.cost_figure())
    return


@app.cell(hide_code=True)
def why(found):
    mo.stop(not found.whole)
    _k = {way: duration(found.played(way).kernel_ns) for way in WAYS}
    _h = {way: duration(found.played(way).host_ns_per_launch) for way in WAYS}
    mo.md(f"""
    ## Why

    $$\\text{{busy}} \\approx \\frac{{k}}{{\\max(h, k)}}$$

    with $k$ a kernel's time and $h$ the host's for a launch. Width makes kernels longer: from
    {duration(found.played("wide", 1).kernel_ns)} to {_k["wide"]}. Layers make more of the same ({_k["each"]}), each
    with its launch, so both sides grow and the quotient stays. One call for all layers saves Python's part: $h$ is
    {_h["deep"]} instead of {_h["each"]}.
    """)
    return


@app.cell(hide_code=True)
def learned(answer, kept):
    mo.stop(answer is None)
    _said = mo.md(f"""
    ## Where it turns

    Put an H100 into the same machine, and {sizes.turned_said(kept, OTHER)} Width stops being free where kernels take
    longer than the host. Choose a T4 above, or {BATCHES[1]} sentences, and see the step grow.
    """)
    gt.told(_said, sizes.learning(kept, RENTED, N_STEPS))
    return


@app.cell(hide_code=True)
def which_control(found):
    mo.stop(not found.whole)
    which = mo.ui.radio(sizes.LOOKED_AT, value=next(iter(sizes.LOOKED_AT)), inline=True, label="Size")
    return (which,)


@app.cell(hide_code=True)
def one_step(found, which):
    chosen = found.point(*which.value)
    close = gt.close_up(chosen.played, whole=True)
    view = close.view_control()
    return chosen, close, view


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
def ledger(chosen):
    gt.ledger_figure(chosen.played.ledger, sizes.launches_said(chosen.played))
    return


@app.cell(hide_code=True)
def elsewhere(kept):
    mo.stop(not kept.has(*sizes.BENCHMARKS))
    sizes.beside_benchmark(kept, RENTED)
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
def cost(chosen):
    sizes.money(chosen)
    return


@app.cell(hide_code=True)
def exercise_controls(kept, on):
    case = sizes.asked_case(kept, machine_named(on.value))
    widest, check_widest = flow.answer_controls(ex05.WIDEST, case)
    combined, check_combined = flow.answer_controls(ex05.COMBINED, {})
    return case, check_combined, check_widest, combined, widest


@app.cell(hide_code=True)
def exercises(case, check_combined, check_widest, combined, widest):
    gt.told(
        flow.exercise_card(ex05.WIDEST, widest, check_widest, case),
        flow.exercise_card(ex05.COMBINED, combined, check_combined, {}),
    )
    return


@app.cell(hide_code=True)
def ending(kept):
    flow.ending(kept, "Width makes kernels longer and fills the card; depth makes more of them, each with its launch.")
    return


if __name__ == "__main__":
    app.run()
