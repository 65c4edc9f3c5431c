# /// script
# requires-python = ">=3.10"
# dependencies = ["gpututor"]
#
# [tool.marimo.opengraph]
# title = "19 · From 25 % to 80 %"
# description = "Can you take the mystery job from 25 % to 80 % with the same final loss?"
#
# [tool.marimo.display]
# theme = "system"
# ///

import marimo

__generated_with = "0.25.2"
app = marimo.App(
    width="medium",
    app_title="19 · From 25 % to 80 %",
    css_file="look.css",
)

with app.setup(hide_code=True):
    import marimo as mo

    from gpututor import page as gt
    from gpututor import readers
    from gpututor.causes.kept import causes_in_file
    from gpututor.exercises import ex19
    from gpututor.experiments.capstone import ASKED, MYSTERY, YOURS, mystery
    from gpututor.lookup import machine_named
    from gpututor.page.lessons import raising_figures as figures
    from gpututor.page.lessons.raising import RAISED_SHARE, note_attempt, outcome, raising_of
    from gpututor.references import reference
    from gpututor.replay import play_file
    from gpututor.text import dollars, duration, percent

    RENTED = machine_named()
    CHEAP = machine_named("g4dn.xlarge")
    SEEN = reference("seq2seq gpu-util")
    flow = gt.Flow(
        gt.lesson(19),
        gt.Question(
            "batch",
            f"The mystery job of lesson 2 trains on a V100, one sentence a step. You give it {ASKED.batch} sentences a "
            "step, and change nothing else. A kernel then runs…",
            {
                "less than a fifth of the time": lambda share: share < 0.2,
                "a fifth to a half": lambda share: 0.2 <= share < 0.5,
                "a half to four fifths": lambda share: 0.5 <= share < RAISED_SHARE,
                "more than that": lambda share: share >= RAISED_SHARE,
            },
        ),
        gt.Experiment(
            "gpututor.experiments.capstone:run",
            "Train it",
            measure="gpututor.experiments.capstone:measure",
            budget_s=150,
        ),
        ex19,
    )


@app.cell(hide_code=True)
def head():
    flow.header(
        "Raise the mystery job from 25 % to 80 %: the translator of lesson 2, the same model, as good in the end on "
        "sentences that it never saw, for as little money as you can. Everything that you have learned is allowed.",
        hero=gt.unknown_bar(SEEN.value, "busy, he saw", "yours to raise"),
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
def lever_controls():
    levers = figures.levers_controls(flow.store)
    return (levers,)


@app.cell(hide_code=True)
def run_controls(get_phase, guess, levers):
    buttons = flow.run_buttons(get_phase(), guess.value, {"choices": levers.value})
    return (buttons,)


@app.cell(hide_code=True)
def run_panel(answer, buttons, get_shown, guess, levers):
    _usual = f"Simulated {RENTED.card.name} · {RENTED.name} · {dollars(RENTED.usd_per_hour)} an hour"
    _beside = _usual if answer is None else figures.levers_shown(levers)
    flow.run_panel(buttons, get_shown(), guess.value, _beside)
    return


@app.cell(hide_code=True)
def recall(get_phase):
    flow.recall(get_phase())
    return


@app.cell(hide_code=True)
def decide(get_phase):
    # on the question's own machine, whatever is chosen below
    kept = flow.kept(get_phase())
    rented = raising_of(kept, RENTED)
    answer = flow.decide(outcome(flow.store, rented))
    return answer, kept, rented


@app.cell(hide_code=True)
def result(answer, kept, rented):
    mo.stop(answer is None or not rented.mystery, kept.instead("Both trainings and their ledgers open after the run."))
    note_attempt(flow.store, rented, kept.result.at)
    _before = rented.mystery
    mo.md(f"""
    ## With {ASKED.batch} sentences a step: {answer}

    One at a time, a kernel runs {percent(_before.busy_share)} of the time. A batch makes each kernel a little longer,
    and there are as many as before: one for each word, sum and layer. It has learned from {ASKED.batch} sentences at
    once, but moved as far as after one. So the gauge hardly moves, and the loss is late.
    """)
    return


@app.cell(hide_code=True)
def goal(rented):
    mo.stop(not rented.mystery)
    on = gt.machine_control()
    _known = mystery()
    mo.md(f"""
    ## Your turn

    The mystery job took {_known["n_sentences"]:,} sentences to a loss of {rented.target:.2f}, and
    {duration(rented.mystery.run_ns)}. Be there with a card that is busy for {percent(RAISED_SHARE)}, and cheaper.
    The levers stand in the card above; each was a lesson. Choose, train, and come back here. A run ends when it
    is there, or when it has seen the sentences that you allow.
    """)
    return (on,)


@app.cell(hide_code=True)
def priced(kept, on):
    found = raising_of(kept, machine_named(on.value))
    return (found,)


@app.cell(hide_code=True)
def verdict(found, on):
    _said = mo.md(f"""
    **Your newest attempt.** {found.verdict_said} {found.next_said}
    """)
    gt.told(_said, figures.side_by_side(found, on))
    return


@app.cell(hide_code=True)
def learning(found):
    figures.learning(found)
    return


@app.cell(hide_code=True)
def ledgers(found):
    _said = mo.md("""
    ## Before and after

    The bars are shares. A share that grows is no loss by itself: when the host's part shrinks, all others fill the
    room. Read the step's time beside them.
    """)
    gt.told(_said, figures.ledgers(found))
    return


@app.cell(hide_code=True)
def why(found):
    mo.stop(not found.mystery)
    _before = found.mystery.usual
    mo.md(f"""
    ## What you pay for

    With $n$ steps to the loss, $k$ of kernels and $h$ of the host in each, and a price $p$,

    $$\\text{{cost}} \\approx n \\cdot \\max(h, k) \\cdot p \\qquad \\text{{busy}} \\approx \\frac{{k}}{{\\max(h, k)}}$$

    At first $h$ is {duration(_before.step_ns)} for {_before.ledger.n_kernels / _before.ledger.n_steps:,.0f} kernels.
    Fewer calls and graphs shrink $h$. Batch and bits shrink $k$ for a sentence. Optimizer, rate and batch decide $n$,
    and an instance $p$. Only the first of these moves the gauge; all of them move the bill.
    """)
    return


@app.cell(hide_code=True)
def which_control(found):
    mo.stop(not found.mystery)
    which = mo.ui.radio(
        {"the mystery job": MYSTERY, **({"yours": YOURS} if found.yours else {})},
        value="yours" if found.yours else "the mystery job",
        inline=True,
        label="Steps of",
    )
    return (which,)


@app.cell(hide_code=True)
def one_step(found, kept, which):
    played = play_file(kept.tapes[which.value], found.mystery.machine)
    # in a graph the host runs ahead, so one step of it is not one step of the card
    close = gt.close_up(played, whole=which.value == YOURS)
    view = close.view_control()
    return close, view


@app.cell(hide_code=True)
def timeline_head(close, view, which):
    window = close.window_control(view.value)
    close.head("Usual steps, closely", which, view, window)
    return (window,)


@app.cell(hide_code=True)
def timeline(close, window):
    close.chart(window.value)
    return


@app.cell(hide_code=True)
def holding_up(found, kept):
    mo.stop(not found.mystery)
    _tape = kept.tapes[YOURS if found.yours else MYSTERY]
    gt.shown(lambda: gt.findings(causes_in_file(_tape, found.mystery.machine)[:2]))
    return


@app.cell(hide_code=True)
def cost(kept):
    mo.stop(not kept.has(YOURS))
    _said = mo.md(f"""
    ## A cheaper hour

    An hour of a {RENTED.card.name} costs {RENTED.usd_per_hour / CHEAP.usd_per_hour:.1f} times that of a
    {CHEAP.card.name}. Whoever can't fill a large card rents the small one. And a model as small as this one may be best
    off on a processor: try it below.
    """)
    gt.told(_said, figures.prices(kept))
    return


@app.cell(hide_code=True)
def own_controls(get_own_phase, levers):
    own_buttons = flow.own_buttons(get_own_phase(), {"choices": levers.value})
    return (own_buttons,)


@app.cell(hide_code=True)
def own_run(get_own_shown, kept, own_buttons):
    flow.own_section(own_buttons, get_own_shown(), kept)
    return


@app.cell(hide_code=True)
def tried(rented):
    mo.stop(not rented.mystery)
    figures.attempts_table(flow.store)
    return


@app.cell(hide_code=True)
def exercise_controls(found, kept, on):
    mo.stop(not found.mystery)
    case_1 = figures.priced_case(found, kept)
    case_2 = ex19.case_raised(on.value)
    price, check_price = flow.answer_controls(ex19.PRICED, case_1)
    code, check_code = flow.answer_controls(ex19.RAISED, case_2)
    return case_1, case_2, check_code, check_price, code, price


@app.cell(hide_code=True)
def exercises(case_1, case_2, check_code, check_price, code, price):
    gt.told(
        flow.exercise_card(ex19.PRICED, price, check_price, case_1),
        flow.exercise_card(ex19.RAISED, code, check_code, case_2),
    )
    return


@app.cell(hide_code=True)
def board_controls():
    name = figures.name_control(flow.store)
    return (name,)


@app.cell(hide_code=True)
def board(check_code, name, rented):
    mo.stop(not rented.mystery)
    # drawn again by a check and by a name
    figures.class_board(flow.store, name, readers.in_a_class(), check_code, name.value)
    return


@app.cell(hide_code=True)
def ending(kept):
    mo.stop(not kept.tapes)
    gt.told(
        figures.our_solution(),
        flow.ending(
            kept, "Find out who waits for whom, change that, look again; and pay for the loss, not for the gauge."
        ),
    )
    return


if __name__ == "__main__":
    app.run()
