# /// script
# requires-python = ">=3.10"
# dependencies = ["gpututor"]
#
# [tool.marimo.opengraph]
# title = "12 · The optimizer's turn"
# description = "Can the optimizer be the slow part?"
#
# [tool.marimo.display]
# theme = "system"
# ///

import marimo

__generated_with = "0.25.2"
app = marimo.App(
    width="medium",
    app_title="12 · The optimizer's turn",
    css_file="look.css",
)

with app.setup(hide_code=True):
    import marimo as mo

    from gpututor import page as gt
    from gpututor.exercises import ex12
    from gpututor.experiments.optimizers import deep_key
    from gpututor.jobs.rules import Rule, Way
    from gpututor.lookup import machine_named
    from gpututor.page.lessons import optimizer_figures as figures
    from gpututor.page.lessons.optimizers import FEW, MANY, turns_of
    from gpututor.replay import play_file
    from gpututor.text import duration, percent

    RENTED = machine_named()
    flow = gt.Flow(
        gt.lesson(12),
        gt.Question(
            "many",
            f"Ten million parameters lie in one tensor, or in {MANY:,} small ones. Adam updates them tensor by tensor "
            "on a V100. With the small ones, the update takes…",
            {
                "as long: there are as many numbers": lambda times: times < 1.5,
                "a few times as long": lambda times: 1.5 <= times < 8,
                "dozens of times as long": lambda times: 8 <= times < 80,
                "hundreds of times as long": lambda times: times >= 80,
            },
        ),
        gt.Experiment(
            "gpututor.experiments.optimizers:run",
            "Train with four optimizers",
            measure="gpututor.experiments.optimizers:measure",
            budget_s=150,
            on=f"Simulated {RENTED.card.name} · {RENTED.name} · updates alone, a network and a table that learn, and "
            "ResNet-50",
        ),
        ex12,
    )


@app.cell(hide_code=True)
def head():
    flow.header(
        "Forward and backward find out what to change. Then the optimizer changes it, and hardly anyone looks at what "
        "that takes. It is a few sums for each parameter. Can that be slow?",
        hero=figures.question_picture(),
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
    buttons = flow.run_buttons(get_phase(), guess.value, {})
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
    rented = turns_of(kept, RENTED)
    answer = flow.decide(rented.times)
    return answer, kept, rented


@app.cell(hide_code=True)
def result(answer, kept, rented):
    mo.stop(answer is None, kept.instead("Updates, rows of a table and losses open after the run."))
    on = gt.machine_control()
    _one, _many = (rented.update(Way.LOOP, n) for n in (FEW, MANY))
    mo.md(f"""
    ## {MANY:,} small tensors take {answer}

    One tensor takes {duration(_one.step_ns)}, and the card is busy for {percent(_one.busy_share)} of that. The small
    ones take {duration(_many.step_ns)}, and it is busy for {percent(_many.busy_share)}. Not the numbers make the
    difference but the calls: {_one.n_kernels:,.0f} kernels became {_many.n_kernels:,.0f}.
    """)
    return (on,)


@app.cell(hide_code=True)
def priced(kept, on):
    found = turns_of(kept, machine_named(on.value))
    return (found,)


@app.cell(hide_code=True)
def ways(found, on):
    mo.stop(not found.cut)
    _said = mo.md(f"""
    ## Three ways to go through the parameters

    A **loop** (`foreach=False`) takes tensor after tensor. **`foreach`**, torch's choice on a GPU, packs dozens of
    tensors into a launch, sum by sum. **`fused`** does all sums in one walk. {found.ways_said}
    """)
    gt.told(_said, figures.updates(found, on))
    return


@app.cell(hide_code=True)
def why(found):
    mo.stop(not found.compared)
    _call_ns = found.update(Way.LOOP, MANY).host_ns_per_kernel
    _said = mo.md(f"""
    ## Why

    With $t$ tensors, $k$ sums for each, $h$ of the host for a call (here {duration(_call_ns)}), $b$ bytes walked
    through and a bandwidth $B$,

    $$\\text{{loop}} \\approx \\max(t \\cdot k \\cdot h,\\; b / B)$$

    `foreach` makes $t$ small, `fused` also $k$ and $b$. The rules differ in $k$, and in what they keep: SGD nothing,
    momentum a moving mean, Adam a second one of squares. AdamW shrinks the weights as well.
    {figures.big_said(found)}
    """)
    gt.told(_said, figures.rules(found))
    return


@app.cell(hide_code=True)
def which_control(found):
    mo.stop(not found.learned)
    which = mo.ui.radio({way.value: way.key for way in Way}, value=Way.LOOP.value, inline=True, label="Adam in")
    mo.md(f"""
    ## In a whole step

    A residual network of small layers, a hundred tensors, trains on drawn shapes. Without its update a step takes
    {duration(found.rest_ns)}. In a loop Adam makes that {duration(found.deep((Rule.ADAM, Way.LOOP)).step_ns)}:
    {percent(found.update_share((Rule.ADAM, Way.LOOP)))} of the step is the optimizer's turn. Fused it is
    {percent(found.update_share((Rule.ADAM, Way.FUSED)))}.
    """)
    return (which,)


@app.cell(hide_code=True)
def one_step(found, kept, which):
    played = play_file(kept.tapes[deep_key(Rule.ADAM, Way[which.value.upper()])], found.machine)
    close = gt.close_up(played)
    view = close.view_control()
    return close, played, view


@app.cell(hide_code=True)
def timeline_head(close, view, which):
    window = close.window_control(view.value)
    close.head("One step with Adam", which, view, window)
    return (window,)


@app.cell(hide_code=True)
def timeline(close, window):
    close.chart(window.value)
    return


@app.cell(hide_code=True)
def ledger(found, played, which):
    gt.told(
        gt.ledger_figure(played.ledger, title=f"Ledger, Adam, {Way[which.value.upper()].value}"),
        figures.resnets(found),
    )
    return


@app.cell(hide_code=True)
def sparse(found):
    mo.stop(len(found.sizes) < 2)
    _said = mo.md(f"""
    ## When most gradients are nothing

    Words, users, products: a table has a row for each, and a step names a few. The usual gradient is as large as the
    table, and Adam walks through every row. With `sparse=True` it holds the named rows, and `SparseAdam` touches no
    others. {found.sparse_said}
    """)
    gt.told(_said, figures.table_rows(found))
    return


@app.cell(hide_code=True)
def learned(found):
    mo.stop(not found.learned)
    _said = mo.md(f"""
    ## Loss per second, not per step

    A rule is chosen for what a step teaches; you wait, and pay, by the clock. {found.first_said}
    """)
    gt.told(_said, figures.learning(found))
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
    case_1 = ex12.case_allowed(found.rest_ns, found.needs()) if found.learned else None
    case_2 = ex12.case_few(on.value)
    allowed, check_allowed = flow.answer_controls(ex12.ALLOWED, case_1)
    few, check_few = flow.answer_controls(ex12.FEW, case_2)
    return allowed, case_1, case_2, check_allowed, check_few, few


@app.cell(hide_code=True)
def exercises(allowed, case_1, case_2, check_allowed, check_few, few):
    gt.told(
        flow.exercise_card(ex12.ALLOWED, allowed, check_allowed, case_1),
        flow.exercise_card(ex12.FEW, few, check_few, case_2),
    )
    return


@app.cell(hide_code=True)
def ending(kept):
    flow.ending(
        kept,
        "An update costs calls before it costs sums: let it be fused, then choose the rule by loss per second.",
    )
    return


if __name__ == "__main__":
    app.run()
