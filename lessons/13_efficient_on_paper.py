# /// script
# requires-python = ">=3.10"
# dependencies = ["gpututor"]
#
# [tool.marimo.opengraph]
# title = "13 · Efficient on paper"
# description = "A tenth of the FLOP, so ten times as fast?"
#
# [tool.marimo.display]
# theme = "system"
# ///

import marimo

__generated_with = "0.25.2"
app = marimo.App(
    width="medium",
    app_title="13 · Efficient on paper",
    css_file="look.css",
)

with app.setup(hide_code=True):
    import marimo as mo

    from gpututor import page as gt
    from gpututor.exercises import ex13
    from gpututor.experiments.efficient_ways import ASKED_BATCH, Net, train_key
    from gpututor.lookup import machine_named
    from gpututor.page.lessons import efficient_figures as figures
    from gpututor.page.lessons.efficient import paper_of
    from gpututor.page.lessons.efficient_elsewhere import cards_figure, everywhere, threads_figure
    from gpututor.replay import play_file

    RENTED = machine_named()
    flow = gt.Flow(
        gt.lesson(13),
        gt.Question(
            "times",
            "EfficientNet-B0 reads a photo with a tenth of ResNet-50's arithmetic, and a little better. Both train on "
            f"a V100 in mixed precision, {ASKED_BATCH} photos a step, as well laid out as can be. EfficientNet-B0's "
            "step is…",
            {
                "about ten times as fast": lambda times: times >= 6,
                "three or four times as fast": lambda times: 2.5 <= times < 6,
                "up to twice as fast": lambda times: 1.05 <= times < 2.5,
                "no faster at all": lambda times: times < 1.05,
            },
        ),
        gt.Experiment(
            "gpututor.experiments.efficient:run",
            "Train four networks",
            measure="gpututor.experiments.efficient:measure",
            budget_s=150,
            on=f"Simulated {RENTED.card.name} · four networks by their shapes, and small ones that learn real digits",
        ),
        ex13,
    )


@app.cell(hide_code=True)
def head():
    flow.header(
        "Some networks were made to need little arithmetic, and there are ways to make any network need less: leave "
        "out weights, leave out channels, use fewer bits. Papers count what is saved. Your clock may count otherwise.",
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
    rented = paper_of(kept, RENTED)
    answer = flow.decide(rented.outcome)
    return answer, kept, rented


@app.cell(hide_code=True)
def result(answer, kept, rented):
    mo.stop(answer is None or not rented.asked, kept.instead("Steps, kinds of kernel and readings open after the run."))
    on = gt.machine_control()
    _paper, _times = (ask(Net.EFFICIENTNET) for ask in (rented.on_paper, rented.times))
    mo.md(f"""
    ## On paper {_paper:.1f} times, on the card {_times:.1f}

    The arithmetic is gone as promised. But a card has more arithmetic than it can feed, and the bytes went
    down {rented.fewer_bytes(Net.EFFICIENTNET):.1f} times only. Its tenth of the FLOP runs at a small part of the peak.
    """)
    return (on,)


@app.cell(hide_code=True)
def networks(kept, on):
    found = paper_of(kept, machine_named(on.value))
    figures.networks(found, on)
    return (found,)


@app.cell(hide_code=True)
def which_control(found):
    mo.stop(not found.asked)
    which = mo.ui.radio([net.value for net in Net], value=Net.EFFICIENTNET.value, inline=True, label="One step of")
    mo.md(f"""
    ## Why

    A 3x3 convolution multiplies each number it loads with nine weights for every channel that it writes. A depthwise
    one writes one channel for each it reads: nine weights, then it is done. Its **arithmetic intensity** in fp16 is

    $$\\frac{{2 \\cdot 9}}{{2 + 2}} = {2 * 9 / 4}\\ \\text{{FLOP a byte}}$$

    and this card wants {found.needed_intensity:.0f}. {found.why_said}
    """)
    return (which,)


@app.cell(hide_code=True)
def one_step(found, kept, which):
    net = Net(which.value)
    played = play_file(kept.tapes[train_key(net)], found.machine)
    close = gt.close_up(played)
    view = close.view_control()
    return close, net, played, view


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
def ledger(found, net, played):
    gt.told(figures.kinds(found, net), gt.ledger_figure(played.ledger, title=f"Ledger, {net.value}"))
    return


@app.cell(hide_code=True)
def curve(found):
    mo.stop(len(found.batches) < 2)
    _said = mo.md(f"""
    ## It depends on the batch

    Little arithmetic doesn't mean few kernels. A deep network of thin layers keeps the host busy.
    {found.curve_said} A processor has less arithmetic to spare, and there they keep more of what they promise: measure
    it below.
    """)
    gt.told(_said, figures.batches(found))
    return


@app.cell(hide_code=True)
def order(found):
    mo.stop(not found.ordered)
    _said = mo.md(f"""
    ## Channels last

    Torch lays a picture's channels one behind the other. Tensor cores want a point's channels side by side, and
    reorder them otherwise, twice a layer. `memory_format=torch.channels_last`, said where model and pictures are moved,
    spares that. {found.order_said}
    """)
    gt.told(_said, figures.orders(found))
    return


@app.cell(hide_code=True)
def smaller(found):
    mo.stop(not found.slimmed)
    _said = mo.md("""
    ## Making a network smaller

    **Pruning** sets weights to zero. A kernel multiplies zeros like any number, so they help only where they are
    taken out: whole channels, or two of every four weights on a card whose tensor cores skip them. **8 bits** want a
    kernel too. Ask for each: who computes it here?
    """)
    gt.told(_said, figures.slimmed(found))
    return


@app.cell(hide_code=True)
def bits(found):
    mo.stop(not found.bytes_run)
    _said = mo.md(f"""
    ## Where there is a kernel

    Linear layers have what convolutions lack: torch multiplies bytes (`torchao` builds on that), and 2:4 weights from
    Ampere on. {found.bytes_said}
    """)
    gt.told(_said, figures.transformer(found))
    return


@app.cell(hide_code=True)
def learned(found):
    mo.stop(not found.ways)
    _said = mo.md(f"""
    ## What it costs in right answers

    Two small readers learn real handwritten digits. Then the first is made smaller in each way, and learns on for a
    while. {found.digits_said}
    """)
    gt.told(_said, figures.digits(found))
    return


@app.cell(hide_code=True)
def cost(found, kept, rented):
    mo.stop(not found.asked)
    _others = everywhere(kept)
    gt.told(cards_figure(_others), threads_figure(rented, _others), figures.money(found, kept))
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
    case_1 = {**ex13.case_faster(*found.depthwise), "machine": found.machine.name} if found.asked else None
    case_2 = ex13.case_smaller(on.value)
    faster, check_faster = flow.answer_controls(ex13.FASTER, case_1)
    smaller_code, check_smaller = flow.answer_controls(ex13.SMALLER, case_2)
    return case_1, case_2, check_faster, check_smaller, faster, smaller_code


@app.cell(hide_code=True)
def exercises(case_1, case_2, check_faster, check_smaller, faster, smaller_code):
    gt.told(
        flow.exercise_card(ex13.FASTER, faster, check_faster, case_1),
        flow.exercise_card(ex13.SMALLER, smaller_code, check_smaller, case_2),
    )
    return


@app.cell(hide_code=True)
def ending(kept):
    flow.ending(
        kept,
        "FLOP left out are time saved only where a kernel leaves them out, and only where arithmetic was what the card "
        "waited for.",
    )
    return


if __name__ == "__main__":
    app.run()
