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
    from dataclasses import replace

    import marimo as mo

    from gpututor import page as gt
    from gpututor.cards import DEFAULT_MACHINE, card
    from gpututor.exercises import ex05
    from gpututor.expect import around, compare
    from gpututor.experiments.wider_or_deeper import (
        ASKED_FACTOR,
        BATCHES,
        BENCHMARK_UNITS,
        FACTORS,
        TRAINED,
        WAYS,
        key_of,
    )
    from gpututor.jobs.tutorial import HIDDEN, TUTORIAL_STEPS
    from gpututor.ledger import rows, waits
    from gpututor.lookup import machine_named
    from gpututor.references import reference
    from gpututor.replay import play_file, with_card
    from gpututor.store import Store
    from gpututor.text import dollars, duration, percent

    LESSON = gt.lesson(5)
    N_STEPS = 40
    RENTED = machine_named(DEFAULT_MACHINE)
    OTHER = with_card(RENTED, card("H100-SXM"))
    MOST = FACTORS[-1]
    QUESTION = (
        f"His translator has one layer of {HIDDEN} units and reads one sentence a step. You double the units, or you "
        "add a second layer. Which of the two keeps the V100 busier?"
    )
    OPTIONS = {
        "the wider one, by far": lambda times: times >= 1.5,
        "the wider one, by a little": lambda times: 1.05 <= times < 1.5,
        "both the same": lambda times: 0.95 <= times < 1.05,
        "the deeper one": lambda times: times < 0.95,
    }
    GAUGES = {
        "Busy": lambda point: point.busy_share,
        "SM fill": lambda point: point.played.ledger.sm_fill_share,
        "One step (ms)": lambda point: point.step_ns / 1e6,
    }
    store = Store(str(mo.query_params().get("learner") or ""))


@app.cell(hide_code=True)
def head():
    gt.header(
        LESSON,
        "The man with the rented V100 had one more question: if I add more layers, or more hidden nodes, should I "
        "expect the GPU's usage to go up? Each is a change of one line. Make both.",
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
        store.tries(LESSON.key, "busier"),
        lambda choice: store.guess(LESSON.key, "busier", choice),
        locked=get_phase() != "ready",
    )
    return (guess,)


@app.cell(hide_code=True)
def guess_card(answer, get_phase, guess):
    (
        gt.guess_card(QUESTION, guess)
        if get_phase() == "ready"
        else gt.guess_locked(QUESTION, store.tries(LESSON.key, "busier"), answer)
    )
    return


@app.cell(hide_code=True)
def run_controls(get_phase, guess, runner):
    buttons = gt.run_buttons(
        get_phase(),
        lambda: runner.start("gpututor.experiments.wider_or_deeper:run", {"n_steps": N_STEPS}, budget_s=120),
        runner.stop,
        label="Train translators of many sizes",
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
    gt.recall(ex05.RECALL)
    return


@app.cell(hide_code=True)
def kept_run(get_phase, runner):
    kept = gt.kept_tapes(runner.result, get_phase())
    return (kept,)


@app.cell(hide_code=True)
def decide(kept):
    answer = None
    if set(TRAINED) <= set(kept.tapes):
        _wide, _deep = (play_file(kept.tapes[key_of(way, 2)], RENTED).ledger for way in ("wide", "deep"))
        _times = _wide.gpu_util_share / _deep.gpu_util_share
        answer = next(option for option, fits in OPTIONS.items() if fits(_times))
        store.reveal(LESSON.key, "busier")
    return (answer,)


@app.cell(hide_code=True)
def result(answer, kept):
    mo.stop(answer is None, kept.instead("The curve, the table and the timeline open after the run."))
    base, wide, deep = (play_file(kept.tapes[key], RENTED) for key in TRAINED)
    gt.gauges(base.ledger, f"as he ran it, {duration(base.step_ns)} a sentence")
    return base, deep, wide


@app.cell(hide_code=True)
def surprise(answer, base, deep, wide):
    _free = (
        "and width comes free: the step is as long as before"
        if wide.step_ns < 1.05 * base.step_ns
        else f"and a step takes {duration(wide.step_ns)}"
    )
    mo.md(f"""
    ## Busier: {answer}

    As he ran it, kernels run {percent(base.ledger.gpu_util_share)} of the time. With {2 * HIDDEN} units it is
    {percent(wide.ledger.gpu_util_share)}, {_free}. With two layers it is {percent(deep.ledger.gpu_util_share)}, and a
    step takes {duration(deep.step_ns)} instead of {duration(base.step_ns)}. Go on doubling.
    """)
    return


@app.cell(hide_code=True)
def machine_choice(answer):
    mo.stop(answer is None)
    on = gt.machine_control()
    return (on,)


@app.cell(hide_code=True)
def other_choices():
    batch = mo.ui.radio(
        {"one sentence a step": BATCHES[0], f"{BATCHES[1]} sentences": BATCHES[1]},
        value="one sentence a step",
        inline=True,
        label="Batch",
    )
    gauge = mo.ui.radio(list(GAUGES), value="Busy", inline=True, label="Gauge")
    return batch, gauge


@app.cell(hide_code=True)
def priced(batch, kept, on, runner):
    machine = machine_named(on.value)
    _keys = [key_of(way, factor, batch.value) for way in WAYS for factor in (1, *FACTORS)]
    points = {point.key: point for point in gt.sweep_points(runner.result, kept, machine, _keys)}
    whole = set(_keys) <= set(points)
    source = replace(next(iter(points.values())).played.ledger.label, what="") if points else ""
    return machine, points, source, whole


@app.cell(hide_code=True)
def curve_controls(batch, gauge, on, source):
    mo.stop(not source)
    gt.figure("The same translator, times as wide or as deep", source, on, batch, gauge)
    return


@app.cell(hide_code=True)
def curve(batch, gauge, points, source, whole):
    mo.stop(not whole)
    _lines = {
        name: [(factor, GAUGES[gauge.value](points[key_of(way, factor, batch.value)])) for factor in (1, *FACTORS)]
        for way, name in WAYS.items()
    }
    gt.figure(
        "",
        source,
        gt.lines_legend(list(_lines)),
        gt.curve(
            _lines,
            x_title="times the tutorial's units or layers",
            y_title=gauge.value,
            kind="number" if "ms" in gauge.value else "share",
            log_x=True,
            named=False,
        ),
        joined=True,
    )
    return


@app.cell(hide_code=True)
def who_calls(batch, points, whole):
    mo.stop(not whole)
    _busy = {way: points[key_of(way, MOST, batch.value)].busy_share for way in WAYS}
    _before = points[key_of("wide", 1, batch.value)].busy_share
    _each = (
        "the busy share hardly moves, as he was told"
        if _busy["each"] < 1.25 * _before
        else "the busy share goes up all the same"
    )
    mo.md(f"""
    ## More layers: it depends on who calls them

    He was told: more units raise it, more layers don't, because one waits for the other. With a call of its own for
    each layer, {_each}: from {percent(_before)} to {percent(_busy["each"])} with {MOST} of them. Hand all to cuDNN in
    one call and it is {percent(_busy["deep"])}. Make one layer {MOST} times as wide and it is {percent(_busy["wide"])}.
    """)
    return


@app.cell(hide_code=True)
def table(batch, points, source, whole):
    mo.stop(not whole)
    _shown = [points[key_of(way, factor, batch.value)] for factor in (2, MOST) for way in WAYS]
    gt.figure(
        "What it costs",
        source,
        gt.points_table(
            [points[key_of("wide", 1, batch.value)], *_shown],
            gt.STEP,
            gt.BUSY,
            gt.FILL,
            gt.MFU,
            gt.cost_column(TUTORIAL_STEPS, "All his sentences"),
            first="Size",
        ),
        note=f"He trained on {TUTORIAL_STEPS:,} sentences. Every size reads and writes sentences of the same length.",
        wide=True,
    )
    return


@app.cell(hide_code=True)
def why(batch, points, whole):
    mo.stop(not whole)
    _size = {
        name: points[key_of(way, factor, batch.value)].played
        for name, way, factor in (("base", "wide", 1), *((way, way, MOST) for way in WAYS))
    }
    _k = {name: duration(played.kernel_ns) for name, played in _size.items()}
    _h = {name: duration(played.host_ns_per_launch) for name, played in _size.items()}
    mo.md(f"""
    ## Why

    $$\\text{{busy}} \\approx \\frac{{k}}{{\\max(h, k)}}$$

    with $k$ a kernel's time and $h$ the host's for a launch. Width makes kernels longer: from {_k["base"]} to
    {_k["wide"]}. Layers make more of the same ({_k["each"]}), each with its launch, so both sides grow and the
    quotient stays. One call for all layers saves Python's part: $h$ is {_h["deep"]} instead of {_h["each"]}.
    """)
    return


@app.cell(hide_code=True)
def where_it_turns(answer, kept):
    mo.stop(answer is None)
    _wide, _deep = (play_file(kept.tapes[key_of(way, 2)], OTHER).ledger for way in ("wide", "deep"))
    _turned = _deep.gpu_util_share > _wide.gpu_util_share
    _said = (
        "the order turns: a kernel twice as wide takes hardly longer there, so layers win on the gauge"
        if _turned
        else "the order is the same"
    )
    _fill = (
        "Look at SM fill, and the wider one is ahead again"
        if _wide.sm_fill_share > _deep.sm_fill_share
        else "SM fill agrees"
    )
    mo.md(f"""
    ## Where it turns

    Put an H100 into the same machine, and {_said}: {percent(_deep.gpu_util_share)} with two layers,
    {percent(_wide.gpu_util_share)} with {2 * HIDDEN} units. {_fill}: {percent(_wide.sm_fill_share)} against
    {percent(_deep.sm_fill_share)}. Width stops being free where kernels take longer than the host. Choose a T4 above,
    or {BATCHES[1]} sentences, and see the step grow.
    """)
    return


@app.cell(hide_code=True)
def learned(answer, kept, runner):
    mo.stop(answer is None)
    _learners = gt.sweep_points(runner.result, kept, RENTED, TRAINED)
    _tail = max(1, N_STEPS // 5)
    _lines = {point.label: point.smooth(_tail) for point in _learners}
    _target = max(points[-1][1] for points in _lines.values())
    gt.figure(
        "It really trains",
        replace(_learners[0].played.ledger.label, what=f"loss, mean of the last {_tail} sentences"),
        gt.lines_legend(list(_lines)),
        gt.curve(_lines, x_title="seconds of training", kind="number", named=False),
        gt.points_table(
            _learners,
            gt.WHOLE,
            (f"Down to {_target:.2f}", lambda point: duration(point.reaches_ns(_target, _tail))),
            (
                "A thousand such runs",
                lambda point: dollars(point.usd(1000 * point.reaches_ns(_target, _tail) / point.step_ns)),
            ),
            gt.HELD_OUT,
            first="Size",
        ),
        note=f"{N_STEPS} sentences say who starts faster, not who translates better in the end.",
    )
    return


@app.cell(hide_code=True)
def which_control(whole):
    mo.stop(not whole)
    which = mo.ui.radio(
        {
            "as he ran it": ("wide", 1),
            f"{2 * HIDDEN} units": ("wide", 2),
            "2 layers": ("deep", 2),
            "2 layers, a call each": ("each", 2),
        },
        value="as he ran it",
        inline=True,
        label="Size",
    )
    return (which,)


@app.cell(hide_code=True)
def one_step(batch, points, which):
    chosen = points[key_of(*which.value, batch.value)]
    step = chosen.played.timeline
    idle = tuple(waits(step))
    jumps = gt.views(step, idle)
    view = gt.view_control(jumps)
    return chosen, idle, jumps, step, view


@app.cell(hide_code=True)
def window_slider(jumps, step, view):
    window = gt.window_control(step, jumps[view.value])
    return (window,)


@app.cell(hide_code=True)
def timeline_head(idle, step, view, which, window):
    gt.timeline_controls("One step", step, idle, mo.vstack([which, view]), window)
    return


@app.cell(hide_code=True)
def timeline(idle, step, window):
    gt.shown(lambda: gt.timeline_figure(step, idle, window.value))
    return


@app.cell(hide_code=True)
def ledger(chosen):
    _ledger = chosen.played.ledger
    _why = {
        "launch_overhead": f"{_ledger.n_kernels:,} kernels of {duration(chosen.played.kernel_ns)}; the host needs "
        f"{duration(chosen.played.host_ns_per_launch)} to launch one.",
    }
    gt.figure("Ledger", _ledger.label, gt.waterfall(rows(_ledger), _why), wide=True)
    return


@app.cell(hide_code=True)
def seen_beside(kept):
    _keys = [f"units_{units}" for units in BENCHMARK_UNITS]
    mo.stop(not set(_keys) <= set(kept.tapes))
    _few, _many = (play_file(kept.tapes[key], RENTED) for key in _keys)
    _seen = reference("LSTM, 500 units against 100")
    gt.figure(
        "What others saw",
        replace(_few.ledger.label, what="an LSTM called word by word"),
        gt.expected_table(
            [
                (
                    f"A step with {BENCHMARK_UNITS[1]} units, over one with {BENCHMARK_UNITS[0]}",
                    compare(around(_seen.value, 0.1, _seen.unit, _seen.source), _many.step_ns / _few.step_ns),
                )
            ]
        ),
        note=f"Kernels run {percent(_few.ledger.gpu_util_share)} of the time with few units here and "
        f"{percent(_many.ledger.gpu_util_share)} with many. In NervanaSystems/neon issue 323, a recurrent network at a "
        "quarter got the same verdict: small layers, so Python is the limit; wider ones would load the card.",
    )
    return


@app.cell(hide_code=True)
def own_machine():
    own = gt.OwnMachine(store, LESSON.key, "gpututor.experiments.wider_or_deeper:measure")
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
def cost(chosen, machine):
    _usd = chosen.usd(TUTORIAL_STEPS)
    gt.money(
        chosen.played.ledger,
        _usd,
        f"{TUTORIAL_STEPS:,} sentences, {chosen.label}, {duration(TUTORIAL_STEPS / chosen.samples_per_s * 1e9)}.",
        "" if _usd is None else f"{machine.name} at {dollars(machine.usd_per_hour)} an hour, {machine.price_basis}.",
    )
    return


@app.cell(hide_code=True)
def exercise_controls(kept, machine, runner):
    _keys = [key_of("wide", factor) for factor in (1, *FACTORS[-2:], ASKED_FACTOR)]
    _wide = {point.x: point for point in gt.sweep_points(runner.result, kept, machine, _keys)}
    widest_case = {}
    if len(_wide) == len(_keys):
        _run_ns = {x: point.played.ledger.gpu_util_ns for x, point in _wide.items()}
        widest_case = ex05.widest_case({x: point.step_ns for x, point in _wide.items()}, _run_ns)
    combined_case = {}
    widest = gt.answer_control(ex05.WIDEST, store, widest_case)
    combined = gt.answer_control(ex05.COMBINED, store, combined_case)
    check_widest, check_combined = gt.check_button(), gt.check_button()
    return check_combined, check_widest, combined, combined_case, widest, widest_case


@app.cell(hide_code=True)
def widest_card(check_widest, widest, widest_case):
    mo.stop(not widest_case)
    gt.exercise_card(ex05.WIDEST, widest, check_widest, widest_case, store)
    return


@app.cell(hide_code=True)
def combined_card(answer, check_combined, combined, combined_case):
    mo.stop(answer is None)
    gt.exercise_card(ex05.COMBINED, combined, check_combined, combined_case, store)
    return


@app.cell(hide_code=True)
def takeaway(answer):
    mo.stop(answer is None)
    gt.takeaway("Width makes kernels longer and fills the card; depth makes more of them, each with its launch.")
    return


@app.cell(hide_code=True)
def onward(answer):
    mo.stop(answer is None)
    gt.next_lesson(LESSON)
    return


@app.cell(hide_code=True)
def instructors(answer):
    mo.stop(answer is None or not gt.is_instructor())
    gt.instructor_notes(ex05.NOTES)
    return


if __name__ == "__main__":
    app.run()
