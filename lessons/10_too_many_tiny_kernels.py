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
    from gpututor.exercises import ex10
    from gpututor.experiments.ways import Way
    from gpututor.lookup import machine_named
    from gpututor.page.lessons import tiny_figures as figures
    from gpututor.page.lessons.tiny import NAMED, tiny_of
    from gpututor.page.lessons.tiny_tables import question_picture
    from gpututor.replay import play_file
    from gpututor.text import duration

    RENTED = machine_named()
    BATCHES = (1, 2, 4, 8, 16)
    N_LEARNED = 120
    flow = gt.Flow(
        gt.lesson(10),
        gt.Question(
            "launch",
            "ResNet-50 trains on a V100, one picture a step, and the host works for each kernel that it launches. How "
            "much of that time is the driver's own launch call?",
            {
                "nearly all of it": lambda share: share >= 0.7,
                "about half": lambda share: 0.35 <= share < 0.7,
                "about a quarter": lambda share: 0.18 <= share < 0.35,
                "an eighth or less": lambda share: share < 0.18,
            },
        ),
        gt.Experiment(
            "gpututor.experiments.tiny_kernels:run",
            f"Train in {len(Way)} ways",
            measure="gpututor.experiments.tiny_kernels:measure",
            budget_s=150,
            on=f"Simulated {RENTED.card.name} · {RENTED.name} · ResNet-50 by its shapes, and a small network that "
            "really learns",
        ),
        ex10,
    )


@app.cell(hide_code=True)
def head():
    flow.header(
        "A call of PyTorch becomes an op, the op becomes a kernel, and with a small batch the kernel is over before "
        "the next one is there. Somebody takes the time between. Who?",
        hero=question_picture(),
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
    buttons = flow.run_buttons(get_phase(), guess.value, {"batches": BATCHES, "n_learned": N_LEARNED})
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
    rented = tiny_of(kept, RENTED)
    answer = flow.decide(rented.at(Way.EAGER, 1).launch_share if rented.batches else None)
    return answer, kept, rented


@app.cell(hide_code=True)
def result(answer, kept, rented):
    mo.stop(answer is None, kept.instead("Host time, curve and losses open after the run."))
    on = gt.machine_control()
    _step = rented.at(Way.EAGER, 1)
    mo.md(f"""
    ## The launch call: {answer}

    Each kernel costs the host {duration(_step.host_ns_per_kernel)}. The driver takes
    {duration(_step.launch_ns / _step.n_kernels)} of it. Python takes {duration(_step.python_ns / _step.n_kernels)},
    autograd {duration(_step.autograd_ns / _step.n_kernels)}, and the framework
    {duration(_step.framework_ns / _step.n_kernels)}: which op for these types, how large the result, where its memory.
    The kernel itself runs for {duration(_step.card_ns / _step.n_kernels)}.
    """)
    return (on,)


@app.cell(hide_code=True)
def priced(kept, on):
    found = tiny_of(kept, machine_named(on.value))
    return (found,)


@app.cell(hide_code=True)
def split(found, on):
    _graph = found.at(Way.GRAPH, 1)
    _said = mo.md(f"""
    ## Four ways to spare the host

    **TorchScript** runs the same ops without Python. **Compiled** code does several ops in one walk through memory, and
    calls its kernels by a short cut. **A graph** notes all kernels of a step once; to replay them is one call,
    {duration(_graph.host_ns)} of host work for {_graph.n_kernels:.0f} kernels. **Compiled, in graphs** is both, with
    an optimizer outside.
    """)
    gt.told(_said, figures.host_split(found, on))
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
def curve(found):
    _said = mo.md(f"""
    ## Until where it helps

    Host and card work side by side; the step is the longer of the two. Sparing the host helps while it is the host.
    Here: {found.until_said}. {found.fused_said}
    """)
    _figure = gt.line_figure(
        "Times as fast as it is, over the batch",
        found.label("ResNet-50"),
        found.lines(),
        x_title="pictures a step",
        y_title="times as fast",
        log_x=True,
        note="One is the step as it is.",
    )
    gt.told(_said, _figure)
    return


@app.cell(hide_code=True)
def which_control(found):
    mo.stop(not found.batches)
    which = mo.ui.radio(NAMED, value=Way.EAGER.value, inline=True, label="One picture a step")
    return (which,)


@app.cell(hide_code=True)
def one_step(found, kept, which):
    played = play_file(kept.tapes[f"{which.value}-1"], found.machine)
    close = gt.close_up(played, whole=True)  # a host that replays graphs is steps ahead of its card
    view = close.view_control()
    return close, played, view


@app.cell(hide_code=True)
def timeline_head(close, played, view, which):
    window = close.window_control(view.value)
    close.head(f"{played.ledger.n_steps} steps", which, view, window)
    return (window,)


@app.cell(hide_code=True)
def timeline(close, window):
    close.chart(window.value)
    return


@app.cell(hide_code=True)
def ledger(played, which):
    _way = next(name for name, key in NAMED.items() if key == which.value)
    gt.ledger_figure(played.ledger, title=f"Ledger, {_way}")
    return


@app.cell(hide_code=True)
def once(found):
    mo.stop(found.once_ns(Way.BOTH) is None)
    _n = found.paid_after(Way.COMPILED, 1)
    _said = mo.md(f"""
    ## What it costs first

    Compiling takes {duration(found.once_ns(Way.COMPILED))} before the first steps are through.
    {"Here it never pays for itself." if _n is None else f"It has paid after {_n:,.0f} steps of one picture."}
    Capturing a graph takes {duration(found.once_ns(Way.GRAPH))}. Neither is for a script that you start, look at and
    stop.
    """)
    gt.told(_said, figures.paid_once(found), figures.sizes(found))
    return


@app.cell(hide_code=True)
def learning(found):
    mo.stop(not found.has(f"learned-{Way.BOTH.key}"))
    _said = mo.md(f"""
    ## Does it learn the same?

    A network passes messages along the bonds of small molecules: dozens of kernels, hardly any work. It trains in each
    way on the same molecules. {found.same_loss_said}
    """)
    gt.told(_said, figures.learning(found), figures.crowds(found))
    return


@app.cell(hide_code=True)
def cost(found, kept, rented):
    gt.told(figures.elsewhere(rented), figures.money(found, kept))
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
def exercise_controls(found, on):
    case_1 = ex10.case_paid(found.once_ns(Way.COMPILED) or 0.0, found.paid_steps_ns()) or None
    case_2 = {"machine": on.value}
    case_3 = ex10.case_recorded(flow.store.learner)
    paid, check_paid = flow.answer_controls(ex10.PAID, case_1)
    replayed, check_replayed = flow.answer_controls(ex10.REPLAYED, case_2)
    held_up, check_held_up = flow.answer_controls(ex10.HELD_UP, case_3)
    return case_1, case_2, case_3, check_held_up, check_paid, check_replayed, held_up, paid, replayed


@app.cell(hide_code=True)
def exercises(case_1, case_2, case_3, check_held_up, check_paid, check_replayed, held_up, paid, replayed):
    gt.told(
        flow.exercise_card(ex10.PAID, paid, check_paid, case_1),
        flow.exercise_card(ex10.REPLAYED, replayed, check_replayed, case_2),
        flow.exercise_card(ex10.HELD_UP, held_up, check_held_up, case_3),
    )
    return


@app.cell(hide_code=True)
def ending(kept):
    flow.ending(
        kept, "Tiny kernels cost the host, not the card: do more in one call, or make one call for many kernels."
    )
    return


if __name__ == "__main__":
    app.run()
