# /// script
# requires-python = ">=3.10"
# dependencies = ["gpututor"]
#
# [tool.marimo.opengraph]
# title = "04 · One step after another"
# description = "Does a bigger GPU speed up an LSTM?"
#
# [tool.marimo.display]
# theme = "system"
# ///

import marimo

__generated_with = "0.25.2"
app = marimo.App(
    width="medium",
    app_title="04 · One step after another",
    css_file="look.css",
)

with app.setup(hide_code=True):
    from dataclasses import replace

    import marimo as mo

    from gpututor import page as gt
    from gpututor.cards import DEFAULT_MACHINE, card
    from gpututor.exercises import ex04
    from gpututor.expect import Band, around, compare
    from gpututor.experiments.one_after_another import (
        ASKED_LENGTH,
        KINDS,
        LENGTH,
        LENGTHS,
        OVER_LENGTH,
        THREAD_UPDATES,
        key_of,
    )
    from gpututor.ledger import rows, waits
    from gpututor.lookup import machine_named
    from gpututor.references import reference
    from gpututor.replay import play_file, with_card
    from gpututor.store import Store
    from gpututor.text import dollars, duration, percent

    LESSON = gt.lesson(4)
    N_STEPS = 12
    RENTED = machine_named(DEFAULT_MACHINE)
    SWAPPED = with_card(RENTED, card("H100-SXM"))
    ON_PAPER = SWAPPED.card.peak_flop_per_s["fp32"] / RENTED.card.peak_flop_per_s["fp32"]
    MANY_WORDS = 100_000_000  # about an epoch of WikiText-103 (Merity and others 2016: 103 million)
    QUESTION = (
        f"An LSTM trains on sequences of {LENGTH} words, each in one call of NVIDIA's cuDNN. You put an H100 in place "
        f"of the V100, {ON_PAPER:.1f} times as fast on paper. Host and program stay. One step becomes…"
    )
    OPTIONS = {
        "about as many times faster as on paper": lambda times: times >= 0.8 * ON_PAPER,
        "about twice as fast": lambda times: 1.5 <= times < 0.8 * ON_PAPER,
        "a little faster": lambda times: 1.05 <= times < 1.5,
        "no faster": lambda times: times < 1.05,
    }
    store = Store(str(mo.query_params().get("learner") or ""))


@app.cell(hide_code=True)
def head():
    gt.header(
        LESSON,
        "An LSTM reads a sentence word by word, because each state is made from the state before. A GPU is wide: it "
        "does thousands of things side by side. You rent a wider one. How much of it can such a model use?",
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
        store.tries(LESSON.key, "bigger"),
        lambda choice: store.guess(LESSON.key, "bigger", choice),
        locked=get_phase() != "ready",
    )
    return (guess,)


@app.cell(hide_code=True)
def guess_card(answer, get_phase, guess):
    (
        gt.guess_card(QUESTION, guess)
        if get_phase() == "ready"
        else gt.guess_locked(QUESTION, store.tries(LESSON.key, "bigger"), answer)
    )
    return


@app.cell(hide_code=True)
def run_controls(get_phase, guess, runner):
    buttons = gt.run_buttons(
        get_phase(),
        lambda: runner.start("gpututor.experiments.one_after_another:run", {"n_steps": N_STEPS}, budget_s=120),
        runner.stop,
        label=f"Train {len(KINDS)} models",
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
    gt.recall(ex04.RECALL)
    return


@app.cell(hide_code=True)
def kept_run(get_phase, runner):
    kept = gt.kept_tapes(runner.result, get_phase())
    return (kept,)


@app.cell(hide_code=True)
def decide(kept):
    answer = None
    if "lstm" in kept.tapes:
        _times = play_file(kept.tapes["lstm"], RENTED).step_ns / play_file(kept.tapes["lstm"], SWAPPED).step_ns
        answer = next(option for option, fits in OPTIONS.items() if fits(_times))
        store.reveal(LESSON.key, "bigger")
    return (answer,)


@app.cell(hide_code=True)
def result(answer, kept):
    mo.stop(answer is None, kept.instead("The table, the curve and the timeline open after the run."))
    before, swapped = play_file(kept.tapes["lstm"], RENTED), play_file(kept.tapes["lstm"], SWAPPED)
    gt.gauges(before.ledger, f"one cuDNN call, {duration(before.step_ns)} a step")
    return before, swapped


@app.cell(hide_code=True)
def surprise(answer, before, swapped):
    _busy = (
        "This time the card isn't waiting for the host: its kernels follow each other closely. But each needs the one "
        f"before, and is so small that {percent(before.ledger.sm_fill_share)} of the SMs have work."
        if before.ledger.gpu_util_share > 0.8
        else "For most of the rest the card waits for the host, as in lesson 2."
    )
    _swapped = (
        f"The H100 needs {duration(swapped.kernel_ns)} for a kernel instead of {duration(before.kernel_ns)}, and now "
        f"waits for the host, {duration(swapped.host_ns_per_launch)} a launch."
        if swapped.ledger.gpu_util_share < 0.8
        else ""
    )
    mo.md(f"""
    ## With an H100: {answer}

    One step takes {duration(before.step_ns)} with the V100 and {duration(swapped.step_ns)} with the H100:
    {before.step_ns / swapped.step_ns:.2f} times as fast. The V100 is {percent(before.ledger.gpu_util_share)} busy.
    {_busy} {_swapped}
    """)
    return


@app.cell(hide_code=True)
def machine_choice(answer):
    mo.stop(answer is None)
    on = gt.machine_control()
    return (on,)


@app.cell(hide_code=True)
def priced(kept, on, runner):
    machine = machine_named(on.value)
    points = {point.key: point for point in gt.sweep_points(runner.result, kept, machine, KINDS)}
    trained = [points[kind] for kind in KINDS if kind in points]
    source = replace(trained[0].played.ledger.label, what="") if trained else ""
    return machine, points, source, trained


@app.cell(hide_code=True)
def table(on, source, trained):
    mo.stop(not trained)
    target = max(point.last_loss for point in trained)

    def _until(point):
        ns = point.reaches_ns(target)
        return f"{ns / point.step_ns:.0f} steps, {duration(ns)}"

    gt.figure(
        "Seven layers in the middle of one model",
        source,
        on,
        gt.points_table(
            trained,
            gt.STEP,
            gt.BUSY,
            gt.FILL,
            gt.LOSS,
            ("To the same loss", _until),
            gt.cost_column(MANY_WORDS, "100 million words"),
            first="Layer",
            marked="lstm",
        ),
        note=f"{trained[0].n_samples:,} words a step, {LENGTH} in a row. The same loss is {target:.2f}; all reach it.",
        wide=True,
    )
    return (target,)


@app.cell(hide_code=True)
def same_lstm(points, trained):
    mo.stop(len(trained) < len(KINDS))
    _loop, _hoisted, _call = (points[kind] for kind in ("loop", "hoisted", "lstm"))
    _apart = abs(_loop.last_loss - _call.last_loss)
    _losses = f"losses within {_apart:.1g} of each other" if _apart else "the same losses"
    mo.md(f"""
    ## Who runs the loop

    Three of these are one LSTM: the same weights, the same arithmetic, {_losses}. In
    Python's loop a step takes {duration(_loop.step_ns)}. Each word's input product waits for no state; taken out of the
    loop, all of them are one product, and {duration(_hoisted.step_ns)} remain. cuDNN's own loop takes
    {duration(_call.step_ns)}, {_loop.step_ns / _call.step_ns:.0f} times as fast as the first.
    """)
    return


@app.cell(hide_code=True)
def longer_ones(kept, machine, points, runner):
    _keys = [key_of(kind, n) for kind, lengths in OVER_LENGTH.items() for n in (*lengths, ASKED_LENGTH)]
    over = points | {point.key: point for point in gt.sweep_points(runner.result, kept, machine, _keys)}
    everything = "update" in kept.tapes  # the last one
    return everything, over


@app.cell(hide_code=True)
def curve(everything, over, source):
    mo.stop(not everything)
    _names = {"loop": "Python's loop", "lstm": "cuDNN's LSTM", "transformer": "Transformer"}
    _first = {kind: over[key_of(kind, LENGTHS[0])].step_ns for kind in _names}
    _lines = {
        name: [(n, over[key_of(kind, n)].step_ns / _first[kind]) for n in sorted({LENGTH, *OVER_LENGTH[kind]})]
        for kind, name in _names.items()
    }
    gt.figure(
        f"How many times as long as with {LENGTHS[0]} words",
        source,
        gt.curve(_lines, x_title="words in a row", kind="number"),
    )
    return


@app.cell(hide_code=True)
def one_more_word(everything, over):
    mo.stop(not everything)
    _more = {}
    for _kind in ("loop", "lstm", "transformer"):
        _n, _long = OVER_LENGTH[_kind][-2:]
        _added = over[key_of(_kind, _long)].step_ns - over[key_of(_kind, _n)].step_ns
        _more[_kind] = duration(_added / (_long - _n))
    _near, _far = (
        over[key_of("lstm", n)].step_ns / over[key_of("transformer", n)].step_ns for n in (LENGTHS[0], LENGTHS[-1])
    )
    _turned = (
        "With few words it is the slower one, as issue 50 of v-mipeng/LexiconAugmentedNER met."
        if _near < 1
        else "It is the faster one with few words too."
    )
    mo.md(f"""
    ## The critical path

    No card can begin word five before word four is done. That chain is the *critical path*: each further word adds
    {_more["loop"]} to Python's loop and {_more["lstm"]} to cuDNN's. A Transformer looks at all words at once, and
    {_more["transformer"]} come on top, for its arithmetic. With {LENGTHS[-1]} words it is {_far:.1f} times as fast as
    cuDNN's LSTM. {_turned}
    """)
    return


@app.cell(hide_code=True)
def which_control(trained):
    mo.stop(not trained)
    which = mo.ui.radio(
        {point.label: point.key for point in trained if point.key in ("loop", "lstm", "transformer")},
        value=KINDS["lstm"] if any(point.key == "lstm" for point in trained) else trained[0].label,
        inline=True,
        label="Layer",
    )
    return (which,)


@app.cell(hide_code=True)
def one_step(points, which):
    chosen = points[which.value]
    step = chosen.played.timeline
    idle = tuple(waits(step))
    jumps = gt.views(step, idle, launches_at=0.1)  # on the way forward, where the loop is
    view = gt.view_control(jumps)
    return chosen, idle, jumps, step, view


@app.cell(hide_code=True)
def window_slider(jumps, step, view):
    window = gt.window_control(step, jumps[view.value])
    return (window,)


@app.cell(hide_code=True)
def timeline_head(idle, step, view, which, window):
    _n = len(step.steps)
    gt.timeline_controls(
        "One step" if _n == 1 else f"The last {_n} steps", step, idle, mo.vstack([which, view]), window
    )
    return


@app.cell(hide_code=True)
def timeline(idle, step, window):
    gt.shown(lambda: gt.timeline_figure(step, idle, window.value))
    return


@app.cell(hide_code=True)
def ledger(chosen):
    _ledger = chosen.played.ledger
    _each = (
        f"{_ledger.n_kernels / _ledger.n_steps:.0f} kernels a step, {duration(chosen.played.kernel_ns)} each on average"
    )
    _why = {
        "launch_overhead": f"{_each}; the host needs {duration(chosen.played.host_ns_per_launch)} to launch one.",
        "too_few_blocks": f"{_each}: too small for all of the card's SMs.",
    }
    gt.figure("Ledger", _ledger.label, gt.waterfall(rows(_ledger), _why), wide=True)
    return


@app.cell(hide_code=True)
def why(everything, over):
    mo.stop(not everything)
    _lstm, _gru, _scan = (over[kind] for kind in ("lstm", "gru", "scan"))
    _ledger = _lstm.played.ledger
    _chain = f"{_ledger.n_kernels / _ledger.n_steps:.0f} kernels of {duration(_lstm.played.kernel_ns)}"
    _far = [duration(over[key_of(kind, LENGTHS[-1])].step_ns) for kind in ("scan", "lstm")]
    mo.md(f"""
    ## Why, and what shortens it

    $$\\text{{step}} \\ge \\text{{words}} \\times \\text{{time of one link}}$$

    In cuDNN's call the links are {_chain}, and no card takes two at once. Cheaper links help: a GRU has three gates
    instead of four, and takes {duration(_gru.step_ns)}. Fewer links help more: where gates look at the word only, links
    join two by two, in {(LENGTH - 1).bit_length()} rounds instead of {LENGTH}. That takes {duration(_scan.step_ns)}
    here, and with {LENGTHS[-1]} words {_far[0]} against the LSTM's {_far[1]}.
    """)
    return


@app.cell(hide_code=True)
def seen_beside(everything, kept):
    mo.stop(not everything)
    _on = {kind: play_file(kept.tapes[kind], RENTED) for kind in ("loop", "letters", "stretch", "update")}
    _titan = play_file(kept.tapes["loop"], with_card(RENTED, card("TITAN-Xp")))
    _cards, _call, _update = (
        reference(name)
        for name in ("LSTM, TITAN V against TITAN Xp", "GRU, letter by letter", "one state in a loop, GPU")
    )
    _range = Band(min(_cards.values), _cards.value, max(_cards.values), _cards.unit, _cards.source)
    _about, _roughly = (around(each.value, 0.3, each.unit, each.source) for each in (_call, _update))
    gt.figure(
        "What others saw",
        replace(_titan.ledger.label, card=RENTED.card.name, host=RENTED.name, what=""),
        gt.expected_table(
            [
                ("A loop on a V100, over a TITAN Xp", compare(_range, _on["loop"].step_ns / _titan.step_ns)),
                (
                    "A GRU in one call, over letter by letter",
                    compare(_about, _on["letters"].step_ns / _on["stretch"].step_ns),
                ),
                ("An update of one state", compare(_roughly, _on["update"].step_ns / THREAD_UPDATES)),
            ]
        ),
        note="The last one's small card had a processor beside it that took "
        f"{duration(reference('one state in a loop, processor').value)}. Two launches an update cost more than the "
        "work in them, whatever the card.",
    )
    return


@app.cell(hide_code=True)
def own_machine():
    own = gt.OwnMachine(store, LESSON.key, "gpututor.experiments.one_after_another:measure")
    get_own_phase, get_own_shown = own.get_phase, own.get_shown
    return get_own_phase, get_own_shown, own


@app.cell(hide_code=True)
def own_controls(get_own_phase, own):
    own_buttons = own.buttons(get_own_phase())
    return (own_buttons,)


@app.cell(hide_code=True)
def own_run(get_own_shown, kept, own, own_buttons, runner, trained):
    mo.stop(not trained)
    own.section(own_buttons, get_own_shown(), runner.result, kept)
    return


@app.cell(hide_code=True)
def learned(points, trained):
    mo.stop(not {"loop", "lstm"} <= set(points) or not trained)
    gt.figure(
        "The loop and the call learn the same",
        f"loss of {N_STEPS} steps, computed on this computer's processor",
        gt.curve(
            {"Python's loop": list(enumerate(points["loop"].losses, 1))},
            dots=list(enumerate(points["lstm"].losses, 1)),
            x_title="step",
            y_title="loss",
            kind="number",
        ),
        note="The line is the loop in Python, the circles are cuDNN's call.",
    )
    return


@app.cell(hide_code=True)
def cost(chosen, machine, target):
    _ns = chosen.reaches_ns(target)
    _many = chosen.usd(1000 * _ns / chosen.step_ns * chosen.n_samples)
    _so = "." if _many is None else f"; a thousand such runs cost {dollars(_many)}."
    gt.money(
        chosen.played.ledger,
        chosen.usd(MANY_WORDS),
        f"{MANY_WORDS:,} words with {chosen.label}. Down to a loss of {target:.2f} takes {duration(_ns)}{_so}",
        "" if _many is None else f"{machine.name} at {dollars(machine.usd_per_hour)} an hour, {machine.price_basis}.",
    )
    return


@app.cell(hide_code=True)
def exercise_controls(everything, over):
    longer_case = ex04.longer_case({key: point.step_ns for key, point in over.items()}) if everything else {}
    hoisted_case = {}
    longer = gt.answer_control(ex04.LONGER, store, longer_case)
    hoisted = gt.answer_control(ex04.HOISTED, store, hoisted_case)
    check_longer, check_hoisted = gt.check_button(), gt.check_button()
    return check_hoisted, check_longer, hoisted, hoisted_case, longer, longer_case


@app.cell(hide_code=True)
def longer_card(check_longer, longer, longer_case):
    mo.stop(not longer_case)
    gt.exercise_card(ex04.LONGER, longer, check_longer, longer_case, store)
    return


@app.cell(hide_code=True)
def hoisted_card(check_hoisted, hoisted, hoisted_case, trained):
    mo.stop(not trained)
    gt.exercise_card(ex04.HOISTED, hoisted, check_hoisted, hoisted_case, store)
    return


@app.cell(hide_code=True)
def takeaway(trained):
    mo.stop(not trained)
    gt.takeaway("A chain takes as long as its links, one after the other: a wider card takes no two of them at once.")
    return


@app.cell(hide_code=True)
def onward(trained):
    mo.stop(not trained)
    gt.next_lesson(LESSON)
    return


@app.cell(hide_code=True)
def instructors(trained):
    mo.stop(not trained or not gt.is_instructor())
    gt.instructor_notes(ex04.NOTES)
    return


if __name__ == "__main__":
    app.run()
