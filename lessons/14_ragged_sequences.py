# /// script
# requires-python = ">=3.10"
# dependencies = ["gpututor"]
#
# [tool.marimo.opengraph]
# title = "14 · Ragged sequences"
# description = "How much of your batch is padding?"
#
# [tool.marimo.display]
# theme = "system"
# ///

import marimo

__generated_with = "0.25.2"
app = marimo.App(
    width="medium",
    app_title="14 · Ragged sequences",
    css_file="look.css",
)

with app.setup(hide_code=True):
    import marimo as mo

    from gpututor import page as gt
    from gpututor.exercises import ex14
    from gpututor.experiments.length_plans import BATCH, Way
    from gpututor.experiments.ragged import COUNTED
    from gpututor.ledger import Account
    from gpututor.lookup import machine_named
    from gpututor.page.lessons import ragged_figures as figures
    from gpututor.page.lessons.ragged import ragged_of
    from gpututor.replay import play_file
    from gpututor.text import duration, percent

    RENTED = machine_named()
    WHOLE = {way.value: way for way in Way if way is not Way.PACKED}
    flow = gt.Flow(
        gt.lesson(14),
        gt.Question(
            "padding",
            f"Texts of very different lengths train a network, {BATCH} a step, in the order in which a shuffle leaves "
            "them. Short ones are filled up to the longest of their batch. How much of what the card reads is padding?",
            {
                "hardly any": lambda share: share < 0.15,
                "about a quarter": lambda share: 0.15 <= share < 0.4,
                "about half": lambda share: 0.4 <= share < 0.58,
                "well over half": lambda share: share >= 0.58,
            },
        ),
        gt.Experiment(
            "gpututor.experiments.ragged:run",
            "Train on ragged texts",
            measure="gpututor.experiments.ragged:measure",
            budget_s=180,
            on=f"Simulated {RENTED.card.name} · {RENTED.name} · GPT-2 and convolutions by shape, an LSTM that learns",
        ),
        ex14,
    )


@app.cell(hide_code=True)
def head():
    flow.header(
        "A tensor is a rectangle, and sentences aren't. So the short ones get filled up with nothing, and the card "
        "reads nothing as carefully as it reads words. It looks busy all the while. How busy is it with your data?",
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
    rented = ragged_of(kept, RENTED)
    answer = flow.decide(rented.asked)
    return answer, kept, rented


@app.cell(hide_code=True)
def result(answer, kept, rented):
    mo.stop(answer is None, kept.instead("Padding, times and losses open after the run."))
    on = gt.machine_control()
    _said = mo.md(f"""
    ## It is {percent(rented.padding(Way.SHUFFLED))}: {answer}

    Each batch is as long as its longest text, and of {BATCH} texts one is nearly always long. Filled up to one length
    for all, {percent(rented.padding(Way.FIXED))} would be padding. With neighbours in length together it is
    {percent(rented.padding(Way.BUCKETED))}.
    """)
    gt.told(_said, figures.batch_picture(rented))
    return (on,)


@app.cell(hide_code=True)
def priced(kept, on):
    found = ragged_of(kept, machine_named(on.value))
    return (found,)


@app.cell(hide_code=True)
def ways(found, on):
    mo.stop(not found.both)
    _said = mo.md(f"""
    ## What it costs hangs on who reads

    GPT-2 reads all positions at once, so padding takes its full share of the time. An LSTM reads word after word
    (lesson 4), and while it is small, a step of its chain takes as long for two texts as for {BATCH}.
    {found.packed_said} {found.budget_said}
    """)
    gt.told(_said, figures.ways(found, on))
    return


@app.cell(hide_code=True)
def why(found):
    mo.stop(not found.asked)
    _said = mo.md(r"""
    ## Why

    A batch of $n$ texts has $n \cdot \max \ell$ positions for $\sum \ell$ words. With a cost $c$ for a position and
    $h$ for a link of the chain,

    $$\text{all at once} \approx c \cdot n \cdot \max \ell$$

    $$\text{word by word} \approx h \cdot \max \ell$$

    Packing leaves out positions, and no link. Sorting shortens the longest, which helps both. The more texts lie in a
    batch, the longer is its longest.
    """)
    gt.told(_said, figures.by_batch())
    return


@app.cell(hide_code=True)
def which_control(found):
    mo.stop(not found.both)
    which = mo.ui.radio(list(WHOLE), value=Way.SHUFFLED.value, inline=True, label="GPT-2, filled up")
    return (which,)


@app.cell(hide_code=True)
def one_step(found, kept, which):
    played = play_file(kept.tapes[f"gpt2-{WHOLE[which.value].key}"], found.machine)
    close = gt.close_up(played)
    view = close.view_control(last=True)
    return close, played, view


@app.cell(hide_code=True)
def timeline_head(close, view, which):
    window = close.window_control(view.value)
    close.head("One step of GPT-2", which, view, window)
    return (window,)


@app.cell(hide_code=True)
def timeline(close, window):
    close.chart(window.value)
    return


@app.cell(hide_code=True)
def ledger(played, which):
    _useful, _padding = (played.ledger.share(each) for each in (Account.USEFUL, Account.RECOMPUTE_AND_PADDING))
    _said = mo.md(f"""
    The gauge says {percent(played.ledger.gpu_util_share)} busy, whichever you choose. Only a program that tells how
    long its texts are lets the ledger see more: arithmetic on words would take {percent(_useful)} of the time at the
    card's best rate, that on padding {percent(_padding)}. The other rows hold both.
    """)
    gt.told(_said, gt.ledger_figure(played.ledger, title=f"Ledger, GPT-2, {which.value}"))
    return


@app.cell(hide_code=True)
def learned(found):
    mo.stop(not found.learned)
    _held = {key: f"{found.held_out(f'lstm-{key}'):.2f}" for key in ("shuffled", "bucketed", "tokens", COUNTED)}
    _said = mo.md(f"""
    ## Does it learn the same?

    Filled up or packed, losses differ by {found.apart_said} over half of the steps. Sorted batches hold other texts
    together: a word of an unseen text ends at {_held["bucketed"]}, with a budget at {_held["tokens"]}, shuffled at
    {_held["shuffled"]}. Forget to leave padding out of the loss, and the program tells
    {found.losses(f"lstm-{COUNTED}")[-1]:.2f}, for it guesses nothing after nothing. A real word is at {_held[COUNTED]}.
    """)
    gt.told(_said, figures.learning(found))
    return


@app.cell(hide_code=True)
def shapes(found):
    mo.stop(not found.shaped)
    _plain, _search, _rounded = (found.since_ns(_mode)[-1] for _mode in ("plain", "search", "search-rounded"))
    _said = mo.md(f"""
    ## Shapes that keep changing

    Two helpers work once for each shape. `cudnn.benchmark` tries every algorithm: these batches take
    {duration(_search)} with it and {duration(_plain)} without. With lengths rounded up they come again, and it is
    {duration(_rounded)}. `torch.compile` opens a length that changed once; with `dynamic=False` it compiles until it
    gives up.
    """)
    gt.told(_said, figures.shapes(found))
    return


@app.cell(hide_code=True)
def stragglers(found):
    mo.stop(not found.straggling_said)
    _said = mo.md(f"""
    ## One long text, and all cards wait

    Cards that train together (lesson 16) exchange gradients at the end of each step, and the last one decides when.
    Sorting alone takes the padding away and leaves them with batches of very different length. {found.straggling_said}
    A budget of tokens makes batches alike by itself.
    """)
    gt.told(_said, figures.cards(found), figures.elsewhere(found))
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
def exercise_controls(rented):
    _first = [n for _batch in rented.batches(Way.SHUFFLED)[:2] for n in _batch] if rented.asked else []
    case_1 = ex14.case_left(_first)
    case_2 = {} if rented.asked else None
    left, check_left = flow.answer_controls(ex14.LEFT, case_1)
    budget, check_budget = flow.answer_controls(ex14.BUDGET, case_2)
    return budget, case_1, case_2, check_budget, check_left, left


@app.cell(hide_code=True)
def exercises(budget, case_1, case_2, check_budget, check_left, left):
    gt.told(
        flow.exercise_card(ex14.LEFT, left, check_left, case_1),
        flow.exercise_card(ex14.BUDGET, budget, check_budget, case_2),
    )
    return


@app.cell(hide_code=True)
def ending(kept):
    flow.ending(
        kept,
        "Print the lengths of one batch. Let neighbours in length share it, and leave padding out of the loss.",
    )
    return


if __name__ == "__main__":
    app.run()
