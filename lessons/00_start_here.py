# /// script
# requires-python = ">=3.10"
# dependencies = ["gpututor"]
#
# [tool.marimo.opengraph]
# title = "00 · Start here"
# description = "What the course is, what this machine can do, and which lesson answers your question."
#
# [tool.marimo.display]
# theme = "system"
# ///

import marimo

__generated_with = "0.25.2"
app = marimo.App(
    width="medium",
    app_title="00 · Start here",
    css_file="look.css",
)

with app.setup(hide_code=True):
    from datetime import date

    import marimo as mo

    from gpututor import page as gt
    from gpututor.cards import DEFAULT_MACHINE, machine
    from gpututor.ledger import rows
    from gpututor.measure.nvml import find_gpus
    from gpututor.paths import data_dir
    from gpututor.replay import play_file
    from gpututor.store import ANYBODY, Store
    from gpututor.text import percent

    RENTED = machine(DEFAULT_MACHINE)
    READY = [each for each in gt.LESSONS if gt.is_ready(each)]
    MYSTERY = gt.lesson(2)
    store = Store(str(mo.query_params().get("learner") or ""))


@app.cell(hide_code=True)
def head():
    gt.front_header(
        "Where does a GPU's time go?",
        f"{len(gt.LESSONS)} short experiments, each on one reason why a GPU waits while somebody pays for it. You "
        "guess, you run it, and a ledger tells you where every nanosecond went.",
    )
    return


@app.cell(hide_code=True)
def damage():
    gt.trouble_line(store.trouble)
    return


@app.cell(hide_code=True)
def progress():
    results = {each.key: store.results(each.key).latest() for each in READY}
    done = {key for key, result in results.items() if result is not None}
    return done, results


@app.cell(hide_code=True)
def doors(done):
    _next = next((each for each in READY if each.key not in done), None)
    _way = _next or READY[0]
    gt.doors(
        [
            gt.Door(
                gt.address(_way),
                "Once more, from the start" if _next is None else "Continue" if done else "Begin",
                f"{_way.number} · {_way.title}",
                _way.question,
            ),
            gt.Door(
                "#where-your-time-goes",
                "I have a slow job",
                "Find your symptom",
                "Look for it in the ledger below; each row has its lessons.",
            ),
            gt.Door(
                gt.address(gt.START, instructor="1"),
                "I teach",
                "Notes for a class",
                "What to ask, what to watch for, and what to leave out when time is short.",
            ),
        ]
    )
    return


@app.cell(hide_code=True)
def facts(done):
    _gpus = find_gpus()
    gt.facts(
        [
            (
                "GPU",
                ", ".join(_gpus.names) or "none found",
                "Each lesson runs on a simulated card, as for everybody, and then measures on yours if you like."
                if _gpus.names
                else f"You need none: the lessons run on simulated cards, and say so. Here {_gpus.reason}.",
            ),
            ("Done", f"{len(done)} of {len(READY)}", "lessons that are ready. Your progress stays on this machine."),
        ]
    )
    return


@app.cell(hide_code=True)
def map_text():
    mo.md("""
    ## Where your time goes

    Time leaks away in this order, from the clock on the wall down to useful arithmetic. Find the row that sounds like
    your job and open its lesson. The bars show a run that comes with the course, and once you have run lesson 2, yours.
    """)
    return


@app.cell(hide_code=True)
def mystery_run(results):
    kept = gt.kept_tapes(results.get(MYSTERY.key), "done")
    own_tape = kept.tapes.get("tape")
    return kept, own_tape


@app.cell(hide_code=True)
def ledger_map(done, kept, own_tape):
    def _figure():
        ledger = play_file(own_tape or data_dir() / "recordings" / "seq2seq.tape.gz", RENTED).ledger
        return gt.figure(
            "The ledger, and its lessons",
            gt.source_line(ledger.label, "your run of lesson 2" if own_tape else "a run that comes with the course"),
            gt.ledger_map(rows(ledger, empty=True), lambda each: each.key in done),
            note=kept.trouble,
            wide=True,
        )

    gt.shown(_figure)
    return


@app.cell(hide_code=True)
def paper(done, own_tape):
    _name = "" if store.learner == ANYBODY else store.learner
    _before = percent(play_file(own_tape, RENTED).ledger.gpu_util_share) if own_tape else ""
    _today = date.today()  # noqa: DTZ011  the reader's own calendar
    _sheet = gt.sheet(gt.Reader(_name, len(done), _before, "", f"{_today.day} {_today:%B %Y}"))
    mo.download(_sheet.encode(), filename="where-a-gpus-time-goes.html", label="All of this on one sheet, to print")
    return


@app.cell(hide_code=True)
def answers():
    gt.save_answers(store)
    return


@app.cell(hide_code=True)
def instructors():
    mo.stop(not gt.is_instructor())
    _links = "\n".join(f"- [{each.number} · {each.title}]({gt.address(each, instructor='1')})" for each in READY)
    gt.instructor_notes(f"""
Each lesson is one class: a guess by show of hands, the run while you talk, the ledger, the exercise alone or in pairs.
Its own notes stand at its end when you open it from here:

{_links}

Give each learner an address of their own, `…&learner=their-name`, when many share one server; guesses and results are
then kept apart. The sheet above makes a good handout for the last class.
    """)
    return


if __name__ == "__main__":
    app.run()
