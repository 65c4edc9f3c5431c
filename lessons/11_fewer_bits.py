# /// script
# requires-python = ">=3.10"
# dependencies = ["gpututor"]
#
# [tool.marimo.opengraph]
# title = "11 · Fewer bits"
# description = "When is mixed precision slower?"
#
# [tool.marimo.display]
# theme = "system"
# ///

import marimo

__generated_with = "0.25.2"
app = marimo.App(
    width="medium",
    app_title="11 · Fewer bits",
    css_file="look.css",
)

with app.setup(hide_code=True):
    import marimo as mo

    from gpututor import page as gt
    from gpututor.exercises import ex11
    from gpututor.experiments.fewer_bits import ASKED_BATCH, N_LEARNED, N_PHOTOS, N_TEXTS, small_key
    from gpututor.experiments.formats import Format
    from gpututor.lookup import machine_named
    from gpututor.page.lessons import bits_figures as figures
    from gpututor.page.lessons.bits import bits_of
    from gpututor.page.lessons.bits_elsewhere import everywhere
    from gpututor.replay import play_file

    RENTED = machine_named()
    FASTER = RENTED.card.peak_flop_per_s["fp16"] / RENTED.card.peak_flop_per_s["fp32"]
    flow = gt.Flow(
        gt.lesson(11),
        gt.Question(
            "sooner",
            f"Three jobs on a V100 change from fp32 to mixed precision: a ResNet-20 with {ASKED_BATCH} small pictures "
            f"a step, a ResNet-50 with {N_PHOTOS} photos, and GPT-2 with {N_TEXTS} long texts. The card's sheet "
            f"promises {FASTER:.0f} times the arithmetic in fp16. How many of the three finish a step sooner?",
            {
                "all three": lambda n: n >= 2.5,
                "two": lambda n: 1.5 <= n < 2.5,
                "one": lambda n: 0.5 <= n < 1.5,
                "none": lambda n: n < 0.5,
            },
        ),
        gt.Experiment(
            "gpututor.experiments.fewer_bits:run",
            "Train in four formats",
            measure="gpututor.experiments.fewer_bits:measure",
            budget_s=150,
            on=f"Simulated {RENTED.card.name} · three networks by their shapes, and a small one that really learns",
        ),
        ex11,
    )


@app.cell(hide_code=True)
def head():
    flow.header(
        "A number in four bytes can be told in two, with less reach or fewer digits. Memory moves half the bytes, and "
        "newer cards have cores that multiply nothing else so fast. It takes two lines. What can go wrong?",
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
    buttons = flow.run_buttons(get_phase(), guess.value, {"n_learned": N_LEARNED})
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
    rented = bits_of(kept, RENTED)
    answer = flow.decide(rented.n_sooner)
    return answer, kept, rented


@app.cell(hide_code=True)
def result(answer, kept, rented):
    mo.stop(answer is None, kept.instead("Steps, memory and losses open after the run."))
    on = gt.machine_control()
    mo.md(f"""
    ## Sooner: {answer}

    {rented.sooner_said}. Same card, same switch. The peak that the sheet promises is for products of large matrices.
    How much of your step is that, and is it the card that you wait for?
    """)
    return (on,)


@app.cell(hide_code=True)
def jobs(kept, on):
    found = bits_of(kept, machine_named(on.value))
    figures.jobs(found, on)
    return (found,)


@app.cell(hide_code=True)
def which_control(found):
    mo.stop(not found.asked)
    which = mo.ui.radio(
        {each.value: each.name for each in Format if each is not Format.TF32},
        value=Format.FP16.value,
        inline=True,
        label="ResNet-20 in",
    )
    mo.md(f"""
    ## Why

    {found.why_said} Autocast casts each weight, and what goes in and out. The scaler multiplies the loss, takes the
    factor out of every gradient and asks the card whether one of them is infinite: the host **waits** for the answer,
    and its lead is gone.
    {found.no_wait_said}
    """)
    return (which,)


@app.cell(hide_code=True)
def one_step(found, kept, which):
    played = play_file(kept.tapes[small_key(Format[which.value], ASKED_BATCH)], found.machine)
    close = gt.close_up(played)
    view = close.view_control()
    return close, played, view


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
def ledger(played, which):
    gt.ledger_figure(played.ledger, title=f"Ledger, ResNet-20, {Format[which.value].value}")
    return


@app.cell(hide_code=True)
def curve(found):
    mo.stop(len(found.batches) < 2)
    _said = mo.md(f"""
    ## When it pays

    With $h$ the host's time, $c$ the card's for a picture and $n$ pictures, a step takes about $\\max(h, c \\cdot n)$.
    Fewer bits make $c$ smaller and $h$ larger. {found.curve_said}
    """)
    gt.told(_said, figures.batches(found))
    return


@app.cell(hide_code=True)
def cards(kept):
    mo.stop(not kept.tapes)
    others = everywhere(kept)
    _said = mo.md("""
    ## Ask which card

    Torch takes every format on every card. Whether a core multiplies it is another question. Volta and Turing have
    cores for fp16, Ampere and later for TF32 and bf16 too. TF32 is fp32 in memory with fewer digits inside products:
    one line before the loop, no cast, no scaler. bf16 reaches as far as fp32, so no scaler, no check, no wait.
    """)
    gt.told(_said, figures.cards(others) if others[RENTED.name].asked else None)
    return (others,)


@app.cell(hide_code=True)
def words(found, others):
    mo.stop(not found.asked)
    _said = mo.md(f"""
    ## A multiple of 8

    Tensor cores read rows in pieces of 16 bytes: 8 halves. GPT-2 knows {figures.WORDS:,} words, an odd number, and
    some of its products have that many columns. So people add words that no text holds, up to
    {figures.PADDED_WORDS:,}. {found.padding_said(others["A100-SXM4-80GB"])}
    """)
    gt.told(_said, figures.words(found))
    return


@app.cell(hide_code=True)
def memory(found):
    mo.stop(not found.texts)
    _said = mo.md("""
    ## Half the bits, half the memory?

    What the forward pass keeps for the backward pass shrinks by half. Weights, gradients and the optimizer's state
    don't: autocast keeps them in fp32, and adds casts.
    """)
    gt.told(_said, figures.memory(found))
    return


@app.cell(hide_code=True)
def learning(found):
    mo.stop(not found.ways)
    _said = mo.md(f"""
    ## Does it still learn?

    fp16 knows nothing between 0 and {figures.least(Format.FP16):.0e}, nor beyond {figures.most(Format.FP16):,.0f}.
    Small gradients vanish. The scaler multiplies them out of reach, and leaves out a step where they overflow.
    {found.learned_said}
    """)
    gt.told(_said, figures.learning(found))
    return


@app.cell(hide_code=True)
def cost(found, kept, others, rented):
    mo.stop(not found.asked)
    gt.told(figures.elsewhere(rented, others), figures.money(found, kept))
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
    case_1 = ex11.case_pays(*found.ends) if found.ends else None
    case_2 = ex11.case_scaler(on.value)
    pays, check_pays = flow.answer_controls(ex11.PAYS, case_1)
    scaler, check_scaler = flow.answer_controls(ex11.SCALER, case_2)
    return case_1, case_2, check_pays, check_scaler, pays, scaler


@app.cell(hide_code=True)
def exercises(case_1, case_2, check_pays, check_scaler, pays, scaler):
    gt.told(
        flow.exercise_card(ex11.PAYS, pays, check_pays, case_1),
        flow.exercise_card(ex11.SCALER, scaler, check_scaler, case_2),
    )
    return


@app.cell(hide_code=True)
def ending(kept):
    flow.ending(
        kept,
        "Fewer bits help a busy card that has units for them; a card that waits for its host they make wait longer.",
    )
    return


if __name__ == "__main__":
    app.run()
