# /// script
# requires-python = ">=3.10"
# dependencies = ["gpututor"]
#
# [tool.marimo.opengraph]
# title = "10 · Too many tiny kernels"
# description = "Where do 60 µs per op go?"
#
# [tool.marimo.display]
# theme = "system"
# ///

import marimo

__generated_with = "0.25.2"
app = marimo.App(
    width="medium",
    app_title="10 · Too many tiny kernels",
    css_file="look.css",
)

with app.setup(hide_code=True):
    import marimo as mo

    from gpututor import page as gt
    from gpututor.cards import DEFAULT_MACHINE, machine
    from gpututor.exercises import ex10
    from gpututor.experiments.tiny_kernels import CROWDS
    from gpututor.experiments.ways import Way
    from gpututor.ledger import rows, waits
    from gpututor.lookup import machine_named
    from gpututor.page.lessons.tiny import tiny_of
    from gpututor.page.lessons.tiny_tables import (
        crowds_table,
        learned_table,
        once_table,
        question_picture,
        sizes_table,
        split_table,
    )
    from gpututor.page.threads import threads_table
    from gpututor.replay import play_file
    from gpututor.store import Store
    from gpututor.text import dollars, duration, percent

    LESSON = gt.lesson(10)
    RENTED = machine(DEFAULT_MACHINE)
    BATCHES = (1, 2, 4, 8, 16)
    N_LEARNED = 120
    N_IMAGENET = 1_281_167  # pictures of the training set, ILSVRC 2012
    QUESTION = (
        "ResNet-50 trains on a V100, one picture a step, and the host works for each kernel that it launches. How much "
        "of that time is the driver's own launch call?"
    )
    OPTIONS = {
        "nearly all of it": lambda share: share >= 0.7,
        "about half": lambda share: 0.35 <= share < 0.7,
        "about a quarter": lambda share: 0.18 <= share < 0.35,
        "an eighth or less": lambda share: share < 0.18,
    }
    store = Store(str(mo.query_params().get("learner") or ""))


@app.cell(hide_code=True)
def head():
    gt.header(
        LESSON,
        "A call of PyTorch becomes an op, the op becomes a kernel, and with a small batch the kernel is over before "
        "the next one is there. Somebody takes the time between. Who?",
        hero=question_picture(),
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
        store.tries(LESSON.key, "launch"),
        lambda choice: store.guess(LESSON.key, "launch", choice),
        locked=get_phase() != "ready",
    )
    return (guess,)


@app.cell(hide_code=True)
def guess_card(answer, get_phase, guess):
    (
        gt.guess_card(QUESTION, guess)
        if get_phase() == "ready"
        else gt.guess_locked(QUESTION, store.tries(LESSON.key, "launch"), answer)
    )
    return


@app.cell(hide_code=True)
def run_controls(get_phase, guess, runner):
    buttons = gt.run_buttons(
        get_phase(),
        lambda: runner.start(
            "gpututor.experiments.tiny_kernels:run", {"batches": BATCHES, "n_learned": N_LEARNED}, budget_s=150
        ),
        runner.stop,
        label=f"Train in {len(Way)} ways",
        open_to_run=guess.value is not None,
    )
    return (buttons,)


@app.cell(hide_code=True)
def run_panel(buttons, get_shown, guess, runner):
    gt.run_panel(
        buttons,
        gt.progress_line(get_shown(), "step"),
        machine=f"Simulated {RENTED.card.name} · {RENTED.name} · ResNet-50 by its shapes, and a small network that "
        "really learns",
        hint="" if guess.value else "Opens once you have guessed.",
        trouble=runner.trouble or store.trouble,
    )
    return


@app.cell(hide_code=True)
def recall(get_phase):
    mo.stop(get_phase() not in ("ready", "queued", "running"))
    gt.recall(ex10.RECALL)
    return


@app.cell(hide_code=True)
def kept_run(get_phase, runner):
    kept = gt.kept_tapes(runner.result, get_phase())
    return (kept,)


@app.cell(hide_code=True)
def decide(kept, runner):
    # on the question's own machine, whatever is chosen below
    answer, rented = None, tiny_of(runner.result, kept, RENTED)
    if rented.batches:
        _share = rented.at(Way.EAGER, 1).launch_share
        answer = next(option for option, fits in OPTIONS.items() if fits(_share))
        store.reveal(LESSON.key, "launch")
    return answer, rented


@app.cell(hide_code=True)
def result(answer, kept, rented):
    mo.stop(answer is None, kept.instead("Host time, curve and losses open after the run."))
    _step = rented.at(Way.EAGER, 1)
    mo.md(f"""
    ## The launch call: {answer}

    Each kernel costs the host {duration(_step.host_ns_per_kernel)}. The driver takes
    {duration(_step.launch_ns / _step.n_kernels)} of it. Python takes {duration(_step.python_ns / _step.n_kernels)},
    autograd {duration(_step.autograd_ns / _step.n_kernels)}, and the framework
    {duration(_step.framework_ns / _step.n_kernels)}: which op for these types, how large the result, where its memory.
    The kernel itself runs for {duration(_step.card_ns / _step.n_kernels)}.
    """)
    return


@app.cell(hide_code=True)
def machine_choice(answer):
    mo.stop(answer is None)
    on = gt.machine_control()
    return (on,)


@app.cell(hide_code=True)
def on_it(kept, on, runner):
    found = tiny_of(runner.result, kept, machine_named(on.value))
    return (found,)


@app.cell(hide_code=True)
def ways_text(found):
    _graph = found.at(Way.GRAPH, 1)
    mo.md(f"""
    ## Four ways to spare the host

    **TorchScript** runs the same ops without Python. **Compiled** code does several ops in one walk through memory, and
    calls its kernels by a short cut. **A graph** notes all kernels of a step once; to replay them is one call,
    {duration(_graph.host_ns)} of host work for {_graph.n_kernels:.0f} kernels. **Compiled, in graphs** is both, with
    an optimizer outside.
    """)
    return


@app.cell(hide_code=True)
def split(found, on):
    gt.figure(
        "ResNet-50, one picture a step: the host's time for a kernel",
        found.label("ResNet-50"),
        on,
        split_table(found, 1),
        note=f"{found.machine.name}. The host's time does not depend on the batch.",
        wide=True,
    )
    return


@app.cell(hide_code=True)
def script(found):
    mo.md(f"""
    ## What became of TorchScript

    {found.script_said} Torch still runs it, and warns that it is deprecated. What people used it for has
    three heirs: `torch.compile` for speed, CUDA graphs for tiny kernels, `torch.export` to run without Python.
    Not simulated are its interpreter's own time and its fuser, which joins a few neighbours.
    """)
    return


@app.cell(hide_code=True)
def until(found):
    mo.md(f"""
    ## Until where it helps

    Host and card work side by side; the step is the longer of the two. Sparing the host helps while it is the host.
    Here: {found.until_said}. {found.fused_said}
    """)
    return


@app.cell(hide_code=True)
def curve(found):
    _lines = found.lines()
    gt.shown(
        lambda: gt.figure(
            "Times as fast as it is, over the batch",
            found.label("ResNet-50"),
            gt.lines_legend(list(_lines)),
            gt.curve(
                _lines,
                x_title="pictures a step",
                y_title="times as fast",
                kind="number",
                log_x=True,
                named=False,
            ),
            note="One is the step as it is.",
        )
    )
    return


@app.cell(hide_code=True)
def way_controls(found):
    mo.stop(not found.batches)
    looked_at = mo.ui.radio(
        {way.value: way.key for way in Way}, value=Way.EAGER.value, inline=True, label="One picture a step"
    )
    return (looked_at,)


@app.cell(hide_code=True)
def one_step(found, kept, looked_at):
    played = play_file(kept.tapes[f"{looked_at.value}-1"], found.machine)
    step = played.timeline  # all that was kept: a host that replays graphs is steps ahead of its card
    idle = tuple(waits(step))
    jumps = gt.views(step, idle)
    view = gt.view_control(jumps)
    return idle, jumps, played, step, view


@app.cell(hide_code=True)
def window_slider(jumps, step, view):
    window = gt.window_control(step, jumps[view.value])
    return (window,)


@app.cell(hide_code=True)
def timeline_head(idle, looked_at, played, step, view, window):
    mo.vstack([looked_at, gt.timeline_controls(f"{played.ledger.n_steps} steps", step, idle, view, window)])
    return


@app.cell(hide_code=True)
def timeline(idle, step, window):
    gt.shown(lambda: gt.timeline_figure(step, idle, window.value))
    return


@app.cell(hide_code=True)
def ledger(looked_at, played):
    _way = next(way.value for way in Way if way.key == looked_at.value)
    gt.figure(f"Ledger, {_way}", played.ledger.label, gt.waterfall(rows(played.ledger), {}), wide=True)
    return


@app.cell(hide_code=True)
def once_text(found):
    mo.stop(found.once_ns(Way.BOTH) is None)
    _n = found.paid_after(Way.COMPILED, 1)
    mo.md(f"""
    ## What it costs first

    Compiling takes {duration(found.once_ns(Way.COMPILED))} before the first steps are through.
    {"Here it never pays for itself." if _n is None else f"It has paid after {_n:,.0f} steps of one picture."}
    Capturing a graph takes {duration(found.once_ns(Way.GRAPH))}. Neither is for a script that you start, look at and
    stop.
    """)
    return


@app.cell(hide_code=True)
def once(found):
    mo.stop(found.once_ns(Way.BOTH) is None)
    gt.figure(
        "One picture a step: what each way takes once, and when that has paid",
        found.label("ResNet-50"),
        once_table(found, 1, N_IMAGENET),
        note="Compiling is simulated as a base and an amount for each op, right to an order of magnitude. What "
        "TorchScript compiles is not counted.",
        wide=True,
    )
    return


@app.cell(hide_code=True)
def sizes(found):
    mo.stop(not found.has("ragged-fixed", "ragged-padded"))
    gt.figure(
        "When sizes change, it is compiled anew",
        found.label("a network on molecules"),
        sizes_table(found),
        note=f"{found.compiled_anew_said} In pytorch issue 174704 eight shapes took half an hour, after an upgrade "
        "hours. A graph has one size for good.",
        wide=True,
    )
    return


@app.cell(hide_code=True)
def learning_text(found):
    mo.stop(not found.has(f"learned-{Way.BOTH.key}"))
    mo.md(f"""
    ## Does it learn the same?

    A network passes messages along the bonds of small molecules: dozens of kernels, hardly any work. It trains in each
    way on the same molecules. {found.same_loss_said}
    """)
    return


@app.cell(hide_code=True)
def learning(found):
    mo.stop(not found.has(f"learned-{Way.BOTH.key}"))
    _lines = found.learned_lines()
    gt.shown(
        lambda: gt.figure(
            "The same losses, sooner",
            found.label("a network on molecules"),
            gt.lines_legend(list(_lines)),
            gt.curve(
                _lines,
                x_title="seconds of training on this card, compiling left out",
                y_title="loss",
                kind="number",
                named=False,
            ),
            learned_table(found),
            note="Means of some losses, computed on this computer's processor; the seconds are the simulated card's. "
            f"{found.small_said}",
            wide=True,
        )
    )
    return


@app.cell(hide_code=True)
def crowd(found):
    mo.stop(not found.has(*(f"crowd-{n}" for n in CROWDS)))
    gt.figure(
        "The oldest way: more in one step",
        found.label("a network on molecules, as it is"),
        crowds_table(found),
        note=f"{found.crowd_said} One at a time a processor may be faster (LexiconAugmentedNER issue 26): "
        "measure yours below.",
        wide=True,
    )
    return


@app.cell(hide_code=True)
def elsewhere(rented):
    mo.stop(not rented.has("crowd-200"))
    gt.figure("What others saw", rented.label("this run"), threads_table(rented.threads()), wide=True)
    return


@app.cell(hide_code=True)
def cost(found, kept):
    _slow, _fast = (found.at(way, 1).step_ns * N_IMAGENET for way in (Way.EAGER, Way.GRAPH))
    _rate = found.machine.usd_per_hour
    gt.money(
        play_file(kept.tapes[f"{Way.EAGER.key}-1"], found.machine).ledger,
        None if _rate is None else _slow / 3600e9 * _rate,
        f"An epoch of ImageNet, one picture a step, as it is; as a graph it takes {duration(_fast)}"
        + (f" and costs {dollars(_fast / 3600e9 * _rate)}" if _rate else "")
        + f", {percent(max(0.0, 1 - _fast / _slow))} less.",
        f"{found.machine.name}, {found.machine.price_basis}." if _rate else "",
    )
    return


@app.cell(hide_code=True)
def own_machine():
    own = gt.OwnMachine(store, LESSON.key, "gpututor.experiments.tiny_kernels:measure")
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
def paid_controls(found):
    paid_case = ex10.case_paid(
        found.once_ns(Way.COMPILED) or 0.0,
        {n: (found.at(Way.EAGER, n).step_ns, found.at(Way.COMPILED, n).step_ns) for n in found.batches if n > 1},
    )
    paid = gt.answer_control(ex10.PAID, store, paid_case)
    check_paid = gt.check_button()
    return check_paid, paid, paid_case


@app.cell(hide_code=True)
def paid_card(check_paid, paid, paid_case):
    mo.stop(not paid_case)
    gt.exercise_card(ex10.PAID, paid, check_paid, paid_case, store)
    return


@app.cell(hide_code=True)
def replayed_controls(on):
    replayed_case = {"machine": on.value}
    replayed = gt.answer_control(ex10.REPLAYED, store, replayed_case)
    check_replayed = gt.check_button()
    return check_replayed, replayed, replayed_case


@app.cell(hide_code=True)
def replayed_card(check_replayed, replayed, replayed_case):
    mo.stop(not replayed_case)
    gt.exercise_card(ex10.REPLAYED, replayed, check_replayed, replayed_case, store)
    return


@app.cell(hide_code=True)
def takeaway(answer):
    mo.stop(answer is None)
    gt.takeaway("Tiny kernels cost the host, not the card: do more in one call, or make one call for many kernels.")
    return


@app.cell(hide_code=True)
def onward(answer):
    mo.stop(answer is None)
    gt.next_lesson(LESSON)
    return


@app.cell(hide_code=True)
def instructors(answer):
    mo.stop(answer is None or not gt.is_instructor())
    gt.instructor_notes(ex10.NOTES)
    return


if __name__ == "__main__":
    app.run()
