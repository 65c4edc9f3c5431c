# /// script
# requires-python = ">=3.10"
# dependencies = ["gpututor"]
#
# [tool.marimo.opengraph]
# title = "17 · The machine itself"
# description = "Is it even running on the GPU?"
#
# [tool.marimo.display]
# theme = "system"
# ///

import marimo

__generated_with = "0.25.2"
app = marimo.App(
    width="medium",
    app_title="17 · The machine itself",
    css_file="look.css",
)

with app.setup(hide_code=True):
    import marimo as mo

    from gpututor import page as gt
    from gpututor.doctor.faults import Fault
    from gpututor.exercises import ex17
    from gpututor.lookup import machine_named
    from gpututor.page.lessons import machines_figures as figures
    from gpututor.page.lessons import patients
    from gpututor.page.lessons.machines import NAMES, jobs_of
    from gpututor.page.lessons.machines_threads import elsewhere
    from gpututor.page.lessons.offers import compared_said, why_said
    from gpututor.page.lessons.panes import panes
    from gpututor.page.lessons.recorded_machines import readings

    RENTED = machine_named()
    N_POLICY = 400  # steps of the job that learns quickest
    flow = gt.Flow(
        gt.lesson(17),
        gt.Question(
            "processor",
            f"ResNet-50 trains on a {RENTED.card.name}. A package is installed, and with it a torch without CUDA. "
            "The script says nothing and trains on, on this computer's processor. A photograph takes…",
            {
                "about as long": lambda times: times < 1.5,
                "a few times as long": lambda times: 1.5 <= times < 10,
                "dozens of times as long": lambda times: 10 <= times < 150,
                "hundreds of times as long": lambda times: times >= 150,
            },
        ),
        gt.Experiment(
            "gpututor.experiments.machine_itself:run",
            "Run four jobs",
            measure="gpututor.experiments.machine_itself:measure",
            on="Four jobs on a simulated card, then three of them on this computer's processor, by the clock",
        ),
        ex17,
    )


@app.cell(hide_code=True)
def head():
    flow.header(
        "Before you tune anything: does the work happen where you think, is that machine in order, and is it the right "
        "one for this job? Three questions that take a minute, and decide more than most tuning.",
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
    buttons = flow.run_buttons(get_phase(), guess.value, {"n_policy": N_POLICY})
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
    rented = jobs_of(kept, RENTED)
    answer = flow.decide(rented.times if rented.whole else None)
    return answer, kept, rented


@app.cell(hide_code=True)
def result(answer, kept, rented):
    mo.stop(answer is None, kept.instead("Places, machines and prices open after the run."))
    on = gt.machine_control()
    mo.md(f"""
    ## On the processor: {answer}

    {rented.times_said} And nobody is told. `"cuda" if torch.cuda.is_available() else "cpu"` is in most scripts, and
    with another wheel it takes its second half in silence. A batch that stays behind is loud; a model with its batch
    isn't.
    """)
    return (on,)


@app.cell(hide_code=True)
def priced(kept, on):
    found = jobs_of(kept, machine_named(on.value))
    return (found,)


@app.cell(hide_code=True)
def places(found, on):
    gt.told(
        figures.places(found, on), mo.md(f"The same mistake costs each job something else. {found.right_place_said}")
    )
    return


@app.cell(hide_code=True)
def choose_patient(found):
    mo.stop(not found.whole)
    who = mo.ui.dropdown(patients.letters(), value="machine A", label="Look at")
    mo.md("""
    ## Ask the doctor

    `gpututor doctor` reads what the driver, torch, the container and the system say, and changes nothing. Here are
    machines that train, each with one thing wrong that was put there. What its owner sees stands above; guess before
    you read what the doctor prints.
    """)
    return (who,)


@app.cell(hide_code=True)
def patient(who):
    patients.patient(Fault[who.value], who)
    return


@app.cell(hide_code=True)
def why(found):
    _said = mo.md(f"""
    ## A fault costs what the job needs

    A step is as long as its longest part: the host launches, the card reckons, the link carries, the loader decodes. A
    fault makes one part longer, and the step follows if that part sets the pace. {found.faults_said}
    """)
    gt.told(_said, figures.faults(found))
    return


@app.cell(hide_code=True)
def gauge(found):
    mo.stop(not found.whole)
    _said = mo.md("""
    ## Or nothing is wrong

    Windows shows a graph for each engine of the card, and the first is of the one that draws in 3D. Training doesn't
    draw. So people repair machines that work, or believe in one that waits: the graph errs both ways.
    """)
    gt.told(_said, panes(), figures.task_manager())
    return


@app.cell(hide_code=True)
def job_control(found):
    job = mo.ui.radio({NAMES[key]: key for key in found.known}, value=NAMES[found.known[0]], label="The job")
    others = mo.ui.switch(label="also machines that nobody lets by the hour")
    mo.md(f"""
    ## Which machine is cheapest?

    Not the one whose hour is. You pay for hours, and need a job done: dollars an hour, over samples a second.
    {figures.learned_said(found)} So one may choose by time and money alone.
    """)
    return job, others


@app.cell(hide_code=True)
def field(found, job):
    _said = mo.md(f"{compared_said(found.rented(job.value))} Left of it you buy time; above it you buy nothing.")
    gt.told(figures.field(found, job.value, job), _said)
    return


@app.cell(hide_code=True)
def prices(found, job, others):
    figures.offers(found, job.value, others)
    return


@app.cell(hide_code=True)
def which_control(found, job):
    chosen = figures.chosen_offers(found, job.value)
    which = mo.ui.radio(list(chosen), value=next(iter(chosen)), label="Why? Look at a step on")
    return chosen, which


@app.cell(hide_code=True)
def one_step(chosen, which):
    offer = chosen[which.value]
    close, title = figures.closely(offer)
    view = close.view_control(last=True)
    return close, offer, title, view


@app.cell(hide_code=True)
def timeline_head(close, title, view, which):
    window = close.window_control(view.value)
    close.head(title, which, view, window)
    return (window,)


@app.cell(hide_code=True)
def timeline(close, window):
    close.chart(window.value)
    return


@app.cell(hide_code=True)
def ledger(offer):
    _said = mo.md(f"{why_said(offer)} A faster card shortens what is busy. The rest you rent along with it.")
    gt.told(_said, gt.ledger_figure(offer.played.ledger, title=f"Ledger on {offer.machine.name}"))
    return


@app.cell(hide_code=True)
def cost(found, job, offer):
    gt.told(figures.cost(found, job.value, offer), readings(), elsewhere(found))
    return


@app.cell(hide_code=True)
def own_controls(get_own_phase):
    own_buttons = flow.own_buttons(get_own_phase())
    return (own_buttons,)


@app.cell(hide_code=True)
def own_run(get_own_shown, kept, own_buttons):
    mo.stop(not kept.tapes)
    _said = mo.md("## And yours?\n\nFirst the doctor looks at this computer, then the jobs run on it.")
    _section = flow.own_section(own_buttons, get_own_shown(), kept)
    gt.told(_said, _section, patients.own_paper(flow.own.runner.result))
    return


@app.cell(hide_code=True)
def exercise_controls(found, job):
    case_1, case_2 = ex17.case_machine(flow.store.learner), found.cheapest_case(job.value) or None
    wrong, check_wrong = flow.answer_controls(ex17.WRONG_WITH_IT, case_1)
    code, check_code = flow.answer_controls(ex17.CHEAPEST, case_2)
    return case_1, case_2, check_code, check_wrong, code, wrong


@app.cell(hide_code=True)
def exercises(case_1, case_2, check_code, check_wrong, code, wrong):
    _first = flow.exercise_card(ex17.WRONG_WITH_IT, wrong, check_wrong, case_1)
    gt.told(_first, flow.exercise_card(ex17.CHEAPEST, code, check_code, case_2))
    return


@app.cell(hide_code=True)
def ending(kept):
    flow.ending(
        kept, "First see that it runs on the card, then that the card is well, then that it's the one to pay for."
    )
    return


if __name__ == "__main__":
    app.run()
