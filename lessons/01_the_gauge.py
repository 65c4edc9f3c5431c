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
    from gpututor.cards import DEFAULT_MACHINE, card, machine
    from gpututor.exercises import ex01
    from gpututor.expect import Band, compare
    from gpututor.experiments.gauge import ADD, FP16, FP32, SOFTMAX
    from gpututor.ledger import rows
    from gpututor.model.costs.walk import block_bytes_per_s
    from gpututor.one_kernel import (
        alone,
        explained,
        fill_by_rows,
        first_kernel,
        first_span,
        roof,
        rows_for_free,
        waves,
        with_rows,
    )
    from gpututor.references import reference
    from gpututor.replay import play_file, read_tape
    from gpututor.store import Store
    from gpututor.text import dollars, duration, percent, quantity
    from gpututor.timeline import Label, Origin

    LESSON = gt.lesson(1)
    RENTED = machine(DEFAULT_MACHINE)
    OTHER_CARDS = ("T4", "A100-SXM4-80GB", "H100-SXM", "RTX-4090")
    LABEL = Label(Origin.SIMULATED, RENTED.card.name, RENTED.name)
    LOW = reference("busy worth a look")
    ALWAYS = percent(1.0)
    QUESTION = (
        f"Four programs run, and for each nvidia-smi says {ALWAYS}. Of the arithmetic that the card could do "
        "meanwhile, how much does the laziest of the four do?"
    )
    OPTIONS = {
        "about half": lambda share: share >= 0.25,
        "about a tenth": lambda share: 0.03 <= share < 0.25,
        "about a hundredth": lambda share: 0.003 <= share < 0.03,
        "a thousandth or less": lambda share: share < 0.003,
    }
    store = Store(str(mo.query_params().get("learner") or ""))


@app.cell(hide_code=True)
def head():
    gt.header(
        LESSON,
        f"A V100 costs {dollars(RENTED.usd_per_hour)} an hour, used or not. Most people look at one number to see "
        f"whether it earns that: the percentage in nvidia-smi. Today it says {ALWAYS}. What for?",
        hero=gt.two_bars(f"{ALWAYS} busy, nvidia-smi says", "used: ?"),
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
        store.tries(LESSON.key, "laziest"),
        lambda choice: store.guess(LESSON.key, "laziest", choice),
        locked=get_phase() != "ready",
    )
    return (guess,)


@app.cell(hide_code=True)
def guess_card(answer, get_phase, guess):
    (
        gt.guess_card(QUESTION, guess)
        if get_phase() == "ready"
        else gt.guess_locked(QUESTION, store.tries(LESSON.key, "laziest"), answer)
    )
    return


@app.cell(hide_code=True)
def run_controls(get_phase, guess, runner):
    buttons = gt.run_buttons(
        get_phase(),
        lambda: runner.start("gpututor.experiments.gauge:run", budget_s=60),
        runner.stop,
        label="Run four programs",
        open_to_run=guess.value is not None,
    )
    return (buttons,)


@app.cell(hide_code=True)
def run_panel(buttons, get_shown, guess, runner):
    gt.run_panel(
        buttons,
        gt.progress_line(get_shown(), "kernel"),
        machine=f"Simulated {RENTED.card.name} · {RENTED.name} · {dollars(RENTED.usd_per_hour)} an hour",
        hint="" if guess.value else "Opens once you have guessed.",
        trouble=runner.trouble or store.trouble,
    )
    return


@app.cell(hide_code=True)
def recall(get_phase):
    mo.stop(get_phase() not in ("ready", "queued", "running"))
    gt.recall(ex01.RECALL)
    return


@app.cell(hide_code=True)
def kept_run(get_phase, runner):
    kept = gt.kept_tapes(runner.result, get_phase())
    return (kept,)


@app.cell(hide_code=True)
def decide(kept):
    played = {name: play_file(path, RENTED) for name, path in kept.tapes.items()}
    answer = None
    if played:
        _laziest = min(each.ledger.mfu for each in played.values())
        answer = next(option for option, fits in OPTIONS.items() if fits(_laziest))
        store.reveal(LESSON.key, "laziest")
    return answer, played


@app.cell(hide_code=True)
def result(kept, played):
    mo.stop(not played, kept.instead("Gauges, pictures and explanation open after the run."))
    gt.figure(
        "Three gauges, one scale",
        LABEL,
        gt.gauge_table(
            [(name, each.ledger) for name, each in played.items()],
            marks={name: f"{each.ledger.n_kernels:,} kernels" for name, each in played.items()},
        ),
        note="Busy is what nvidia-smi shows, there in whole percent.",
        wide=True,
    )
    return


@app.cell(hide_code=True)
def surprise(answer, played):
    mo.stop(not played)
    _name, _least = min(played.items(), key=lambda pair: pair[1].ledger.mfu)
    mo.md(f"""
    ## The laziest: {answer}

    While *{_name}* runs, nvidia-smi shows {100 * _least.ledger.gpu_util_share:.0f} %, and for one useful operation
    the card could have done {1 / _least.ledger.mfu:,.0f}. Nobody lies. **Busy** counts the time in which *any* kernel
    runs. **SM fill** asks how many of the card's {RENTED.card.n_sms} processors, its SMs, have work. **MFU** asks
    how much useful arithmetic comes out, of all that the card could do.
    """)
    return


@app.cell(hide_code=True)
def sms(played):
    mo.stop(not played)
    _waves = {name: waves(first_span(each.timeline)[1], RENTED.card) for name, each in played.items()}
    gt.figure(
        "The SMs during one kernel",
        LABEL,
        gt.sm_pictures([gt.SmPicture(name, each.sm_shares, each.in_words) for name, each in _waves.items()]),
        note="A kernel comes in blocks, and a block runs on one SM from begin to end. Each square is an SM, filled as "
        "high as the share of the kernel's time in which it has a block.",
        wide=True,
    )
    return


@app.cell(hide_code=True)
def blocks_text(played):
    mo.stop(SOFTMAX not in played)
    mo.md("""
    ## From one block to many

    This softmax makes one block of each row. Give it more rows and watch the card fill: too few blocks, then a full
    wave, then a wave with a few left over. On another card the same rows leave other gaps.
    """)
    return


@app.cell(hide_code=True)
def card_control(played):
    mo.stop(SOFTMAX not in played)
    chosen_card = mo.ui.dropdown([RENTED.card.name, *OTHER_CARDS], value=RENTED.card.name, label="Card")
    return (chosen_card,)


@app.cell(hide_code=True)
def rows_control(chosen_card, kept):
    other = card(chosen_card.value)
    row_kernel = first_kernel(read_tape(kept.tapes[SOFTMAX]))
    most_rows = 4 * other.n_sms
    filled = fill_by_rows(row_kernel, other, most_rows + other.n_sms // 2)
    n_rows = mo.ui.slider(1, most_rows, value=1, label="Rows, one block each", show_value=True, full_width=True)
    return filled, most_rows, n_rows, other, row_kernel


@app.cell(hide_code=True)
def model_head(chosen_card, n_rows, other):
    gt.figure("SM fill against blocks", replace(LABEL, card=other.name, host=None), chosen_card, n_rows)
    return


@app.cell(hide_code=True)
def model(filled, most_rows, n_rows, other, row_kernel):
    _here, _one = (alone(with_rows(row_kernel, n), other) for n in (n_rows.value, 1))
    _fill = _here.ledger.sm_fill_share
    gt.figure(
        "",
        _here.ledger.label,
        gt.curve(
            {"SM fill": filled}, x_title="rows, one block each", here=(n_rows.value, _fill), here_text=percent(_fill)
        ),
        note=f"{waves(_here.work, other).in_words} Time: {duration(_here.duration_ns)}, for a single row "
        f"{duration(_one.duration_ns)}. Up to {rows_for_free(row_kernel, other, most_rows)} rows take no longer, if "
        f"the {row_kernel.threads_per_block:,} threads of a block draw no more than "
        f"{block_bytes_per_s(row_kernel.threads_per_block) / 1e9:.3g} GB/s: fitted on V100 and "
        "RTX 3090, assumed for other cards.",
        joined=True,
    )
    return


@app.cell(hide_code=True)
def ledger_control(played):
    mo.stop(not played)
    looked_at = mo.ui.radio(list(played), value=next(iter(played)), inline=True, label="Show")
    return (looked_at,)


@app.cell(hide_code=True)
def ledger(looked_at, played):
    _chosen = played[looked_at.value]
    gt.figure(
        "Ledger: where the time goes",
        _chosen.ledger.label,
        looked_at,
        gt.waterfall(rows(_chosen.ledger), explained(_chosen)),
        wide=True,
    )
    return


@app.cell(hide_code=True)
def why(played):
    mo.stop(not played)
    mo.md(f"""
    ## Why

    A kernel has two limits. It must move its bytes, and memory gives
    {quantity(RENTED.card.bandwidth_bytes_per_s, "B/s")}. It must do its FLOP, and the SMs give
    {quantity(RENTED.card.peak_flop_per_s["fp32"], "FLOP/s")} in fp32,
    {quantity(RENTED.card.peak_flop_per_s["fp16"], "FLOP/s")} in fp16:

    $$t \\geq \\max\\left(\\frac{{\\text{{bytes}}}}{{\\text{{bandwidth}}}},
    \\frac{{\\text{{FLOP}}}}{{\\text{{peak}}}}\\right)$$

    The longer one, in bold, is the least time that the kernel can take. Compare it with the time it took.
    """)
    return


@app.cell(hide_code=True)
def limits(played):
    mo.stop(not played)
    _roofs = {name: roof(each) for name, each in played.items()}
    gt.figure(
        "One kernel: limits and time",
        LABEL,
        gt.limits_table([(name, r.number_format, r.bytes_ns, r.flop_ns, r.took_ns) for name, r in _roofs.items()]),
        note=" · ".join(f"{name}: {1 / r.reached_share:.3g} times its limit" for name, r in _roofs.items()) + ".",
        wide=True,
    )
    return


@app.cell(hide_code=True)
def reading(played):
    mo.stop(not played)
    mo.md("""
    Near its limit a kernel is as good as the card allows, whatever its MFU: adding arrays is all memory and hardly any
    arithmetic. The fp32 product is near its limit too, in a slow format. Only the softmax is far from both, because
    most of the card stands empty. So ask in this order: is it busy, is it full, is it fast?
    """)
    return


@app.cell(hide_code=True)
def seen_beside(played):
    _compared = []
    for _name, _key in ((FP32, "V100 large matmul, fp32"), (FP16, "V100 large matmul, fp16")):
        if _name in played:
            _seen = reference(_key)
            _band = Band(min(_seen.values), _seen.value, max(_seen.values), _seen.unit, _seen.source)
            _took_ns, _work = first_span(played[_name].timeline)
            _compared.append((_name, compare(_band, 1e9 * _work.flop / _took_ns)))
    mo.stop(not _compared)
    gt.figure(
        "What others measured",
        LABEL,
        gt.expected_table(_compared),
        note="The model's rates were fitted on products of that table, so this checks the fit. Its shapes are others.",
    )
    return


@app.cell(hide_code=True)
def own_gpu():
    own = gt.OwnGpu(store, LESSON.key, "gpututor.experiments.measured:gauge")
    get_own_phase, get_own_shown = own.get_phase, own.get_shown
    return get_own_phase, get_own_shown, own


@app.cell(hide_code=True)
def own_controls(get_own_phase, own):
    own_buttons = own.buttons(get_own_phase(), {}, label="Measure it on my GPU")
    return (own_buttons,)


@app.cell(hide_code=True)
def recorded(kept):
    elsewhere = gt.recorded(LESSON.number, kept.tapes) if kept.tapes else None
    return (elsewhere,)


@app.cell(hide_code=True)
def own_run(elsewhere, get_own_shown, kept, own, own_buttons):
    mo.stop(not kept.tapes)
    own.section(own_buttons, get_own_shown(), lambda run: gt.measured_gauges(run, kept.tapes), "program", elsewhere)
    return


@app.cell(hide_code=True)
def watch(played):
    mo.stop(not played)
    mo.md(f"""
    ## What nvidia-smi is good for

    `watch -n 1 nvidia-smi` shows busy, memory held and temperature, once a second. A low number means something: if it
    stays below {percent(min(LOW.values))} or {percent(max(LOW.values))}, you pay for waiting, and the next lesson is
    about such a job. A high one says only that *something* runs. Then compare the time that your step takes with the
    time it should take.
    """)
    return


@app.cell(hide_code=True)
def cost(played):
    mo.stop(not played)
    gt.figure(
        f"Of every {dollars(RENTED.usd_per_hour)}, useful arithmetic gets",
        LABEL,
        gt.useful_money([(name, each.ledger) for name, each in played.items()], RENTED.usd_per_hour),
        note=f"{RENTED.name} at {dollars(RENTED.usd_per_hour)} an hour, {RENTED.price_basis}. Beside it, the account "
        "that takes most of the rest. What memory-bound time costs isn't wasted: it moves the data.",
        wide=True,
    )
    return


@app.cell(hide_code=True)
def exercise_controls(filled, other, played):
    mo.stop(ADD not in played, gt.ghost("The exercises need the first two programs; let the run go on to its end."))
    _took_ns, _work = first_span(played[ADD].timeline)
    _moved = ex01.by_adding(_work.moved_bytes, _took_ns, RENTED.card.bandwidth_bytes_per_s)
    case_1, case_2 = ex01.bandwidth_case(_moved), ex01.waves_case(filled, other.n_sms)
    typed, code = gt.answer_control(ex01.BANDWIDTH, store, case_1), gt.answer_control(ex01.WAVES, store, case_2)
    check_1, check_2 = gt.check_button(), gt.check_button()
    return case_1, case_2, check_1, check_2, code, typed


@app.cell(hide_code=True)
def exercise_1(case_1, check_1, typed):
    gt.exercise_card(ex01.BANDWIDTH, typed, check_1, case_1, store)
    return


@app.cell(hide_code=True)
def exercise_2(case_2, check_2, code):
    gt.exercise_card(ex01.WAVES, code, check_2, case_2, store)
    return


@app.cell(hide_code=True)
def ending(played):
    mo.stop(not played)
    gt.ending(
        LESSON,
        "Busy says that something runs. Ask how much of the card it fills, and how much arithmetic comes out.",
        ex01.NOTES,
    )
    return


if __name__ == "__main__":
    app.run()
