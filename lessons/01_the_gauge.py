# /// script
# requires-python = ">=3.10"
# dependencies = ["gpututor"]
#
# [tool.marimo.opengraph]
# title = "01 · The gauge"
# description = "Can a GPU be 100 % busy and 1 % used?"
#
# [tool.marimo.display]
# theme = "system"
# ///

import marimo

__generated_with = "0.25.2"
app = marimo.App(
    width="medium",
    app_title="01 · The gauge",
    css_file="look.css",
)

with app.setup(hide_code=True):
    from dataclasses import replace

    import marimo as mo

    from gpututor import page as gt
    from gpututor.cards import card
    from gpututor.exercises import ex01
    from gpututor.experiments.gauge import ADD, SOFTMAX
    from gpututor.lookup import machine_named
    from gpututor.one_kernel import explained, roof
    from gpututor.page.lessons import one_kernel_figures as figures
    from gpututor.page.lessons.one_kernel import moved_by_adding, rows_of
    from gpututor.references import reference
    from gpututor.replay import play_file
    from gpututor.text import dollars, percent, quantity
    from gpututor.timeline import Label, Origin

    RENTED = machine_named()
    OTHER_CARDS = ("T4", "A100-SXM4-80GB", "H100-SXM", "RTX-4090")
    LABEL = Label(Origin.SIMULATED, RENTED.card.name, RENTED.name)
    LOW = reference("busy worth a look")
    ALWAYS = percent(1.0)
    flow = gt.Flow(
        gt.lesson(1),
        gt.Question(
            "laziest",
            f"Four programs run, and for each nvidia-smi says {ALWAYS}. Of the arithmetic that the card could do "
            "meanwhile, how much does the laziest of the four do?",
            {
                "about half": lambda share: share >= 0.25,
                "about a tenth": lambda share: 0.03 <= share < 0.25,
                "about a hundredth": lambda share: 0.003 <= share < 0.03,
                "a thousandth or less": lambda share: share < 0.003,
            },
        ),
        gt.Experiment(
            "gpututor.experiments.gauge:run",
            "Run four programs",
            measure="gpututor.experiments.measured:gauge",
            what="kernel",
            budget_s=60,
        ),
        ex01,
        own=gt.OwnGpu,
    )


@app.cell(hide_code=True)
def head():
    flow.header(
        f"A V100 costs {dollars(RENTED.usd_per_hour)} an hour, used or not. Most people look at one number to see "
        f"whether it earns that: the percentage in nvidia-smi. Today it says {ALWAYS}. What for?",
        hero=gt.two_bars(f"{ALWAYS} busy, nvidia-smi says", "used: ?"),
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
    buttons = flow.run_buttons(get_phase(), guess.value)
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
    played = {name: play_file(path, RENTED) for name, path in kept.tapes.items()}
    answer = flow.decide(min((each.ledger.mfu for each in played.values()), default=None))
    return answer, kept, played


@app.cell(hide_code=True)
def result(answer, kept, played):
    mo.stop(not played, kept.instead("Gauges, pictures and explanation open after the run."))
    _name, _least = min(played.items(), key=lambda pair: pair[1].ledger.mfu)
    _said = mo.md(f"""
    ## The laziest: {answer}

    While *{_name}* runs, nvidia-smi shows {100 * _least.ledger.gpu_util_share:.0f} %, and for one useful operation
    the card could have done {1 / _least.ledger.mfu:,.0f}. Nobody lies. **Busy** counts the time in which *any* kernel
    runs. **SM fill** asks how many of the card's {RENTED.card.n_sms} processors, its SMs, have work. **MFU** asks
    how much useful arithmetic comes out, of all that the card could do.
    """)
    gt.told(figures.three_gauges(played), _said, figures.sms(played))
    return


@app.cell(hide_code=True)
def blocks(played):
    mo.stop(SOFTMAX not in played)
    chosen_card = mo.ui.dropdown([RENTED.card.name, *OTHER_CARDS], value=RENTED.card.name, label="Card")
    mo.md("""
    ## From one block to many

    This softmax makes one block of each row. Give it more rows and watch the card fill: too few blocks, then a full
    wave, then a wave with a few left over. On another card the same rows leave other gaps.
    """)
    return (chosen_card,)


@app.cell(hide_code=True)
def model_head(chosen_card, kept):
    softmax = rows_of(kept.tapes[SOFTMAX], card(chosen_card.value))
    n_rows = mo.ui.slider(1, softmax.most, value=1, label="Rows, one block each", show_value=True, full_width=True)
    gt.figure("SM fill against blocks", replace(LABEL, card=softmax.card.name, host=None), chosen_card, n_rows)
    return n_rows, softmax


@app.cell(hide_code=True)
def model(n_rows, softmax):
    _here = softmax.with_rows(n_rows.value)
    _fill = _here.ledger.sm_fill_share
    gt.line_figure(
        "",
        _here.ledger.label,
        {"SM fill": softmax.filled},
        x_title="rows, one block each",
        here=(n_rows.value, _fill),
        here_text=percent(_fill),
        kind="share",
        note=softmax.said(n_rows.value),
        joined=True,
    )
    return


@app.cell(hide_code=True)
def which_control(played):
    mo.stop(not played)
    which = mo.ui.radio(list(played), value=next(iter(played)), inline=True, label="Show")
    return (which,)


@app.cell(hide_code=True)
def ledger(played, which):
    _chosen = played[which.value]
    gt.ledger_figure(_chosen.ledger, explained(_chosen), title="Ledger: where the time goes", control=which)
    return


@app.cell(hide_code=True)
def limits(played):
    mo.stop(not played)
    _said = mo.md(f"""
    ## Why

    A kernel has two limits. It must move its bytes, and memory gives
    {quantity(RENTED.card.bandwidth_bytes_per_s, "B/s")}. It must do its FLOP, and the SMs give
    {quantity(RENTED.card.peak_flop_per_s["fp32"], "FLOP/s")} in fp32,
    {quantity(RENTED.card.peak_flop_per_s["fp16"], "FLOP/s")} in fp16:

    $$t \\geq \\max\\left(\\frac{{\\text{{bytes}}}}{{\\text{{bandwidth}}}},
    \\frac{{\\text{{FLOP}}}}{{\\text{{peak}}}}\\right)$$

    The longer one, in bold, is the least time that the kernel can take. Compare it with the time it took.
    """)
    _roofs = {name: roof(each) for name, each in played.items()}
    gt.told(_said, figures.limits(played))
    return


@app.cell(hide_code=True)
def elsewhere(played):
    mo.stop(not played)
    _said = mo.md("""
    Near its limit a kernel is as good as the card allows, whatever its MFU: adding arrays is all memory and hardly any
    arithmetic. The fp32 product is near its limit too, in a slow format. Only the softmax is far from both, because
    most of the card stands empty. So ask in this order: is it busy, is it full, is it fast?
    """)
    gt.told(_said, figures.elsewhere(played))
    return


@app.cell(hide_code=True)
def own_controls(get_own_phase):
    own_buttons = flow.own_buttons(get_own_phase())
    return (own_buttons,)


@app.cell(hide_code=True)
def recorded(kept):
    others = gt.recorded(flow.lesson.number, kept.tapes) if kept.tapes else None
    return (others,)


@app.cell(hide_code=True)
def own_run(get_own_shown, kept, others, own_buttons):
    mo.stop(not kept.tapes)
    flow.own.section(own_buttons, get_own_shown(), lambda run: gt.measured_gauges(run, kept.tapes), "program", others)
    return


@app.cell(hide_code=True)
def cost(played):
    mo.stop(not played)
    _said = mo.md(f"""
    ## What nvidia-smi is good for

    `watch -n 1 nvidia-smi` shows busy, memory held and temperature, once a second. A low number means something: if it
    stays below {percent(min(LOW.values))} or {percent(max(LOW.values))}, you pay for waiting, and the next lesson is
    about such a job. A high one says only that *something* runs. Then compare the time that your step takes with the
    time it should take.
    """)
    gt.told(_said, figures.money(played))
    return


@app.cell(hide_code=True)
def exercise_controls(played, softmax):
    mo.stop(ADD not in played, gt.ghost("The exercises need the first two programs; let the run go on to its end."))
    case_1 = ex01.bandwidth_case(moved_by_adding(played[ADD])) | {"machine": RENTED.name}
    case_2 = ex01.waves_case(softmax.filled, softmax.card.n_sms)
    typed, check_typed = flow.answer_controls(ex01.BANDWIDTH, case_1)
    code, check_code = flow.answer_controls(ex01.WAVES, case_2)
    return case_1, case_2, check_code, check_typed, code, typed


@app.cell(hide_code=True)
def exercises(case_1, case_2, check_code, check_typed, code, typed):
    gt.told(
        flow.exercise_card(ex01.BANDWIDTH, typed, check_typed, case_1),
        flow.exercise_card(ex01.WAVES, code, check_code, case_2),
    )
    return


@app.cell(hide_code=True)
def ending(kept):
    flow.ending(
        kept, "Busy says that something runs. Ask how much of the card it fills, and how much arithmetic comes out."
    )
    return


if __name__ == "__main__":
    app.run()
