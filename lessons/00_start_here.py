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
    import marimo as mo

    from gpututor import page as gt
    from gpututor.cards import DEFAULT_MACHINE, machine
    from gpututor.explain.on_page import trace_control, trace_panel
    from gpututor.ledger import rows
    from gpututor.measure.nvml import find_gpus
    from gpututor.paths import data_dir
    from gpututor.replay import play_file
    from gpututor.store import Store

    RENTED = machine(DEFAULT_MACHINE)
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
    now = gt.standing_of(store)
    done = set(now.runs)
    return done, now


@app.cell(hide_code=True)
def doors(done, now):
    _following = now.next
    _way = _following.lesson if _following else gt.LESSONS[0]
    gt.doors(
        [
            gt.Door(
                gt.address(_way),
                "Once more, from the start" if _following is None else "Continue" if done else "Begin",
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
def facts(done, now):
    _gpus = find_gpus()
    gt.facts(
        [
            gt.gpu_fact(_gpus.names, _gpus.reason),
            ("Done", f"{len(done)} of {len(now.ready)}", f"lessons that are there. {gt.kept_where()}"),
        ]
    )
    return


@app.cell(hide_code=True)
def index_text():
    mo.md("""
    ## The course

    From the first lesson to the last, each builds on the one before, but you may begin anywhere.
    """)
    return


@app.cell(hide_code=True)
def index(now):
    gt.course_index(now)
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
def mystery_run(now):
    kept = gt.kept_tapes(now.runs.get(MYSTERY.key), "done")
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
def trace_text():
    trace = trace_control()
    _said = mo.md("""
    ## Your own trace

    You have a file of torch.profiler? Drop it here, and read where its time went and what to change.
    """)
    gt.told(_said, trace)
    return (trace,)


@app.cell(hide_code=True)
def trace_says(trace):
    trace_panel(trace.value)
    return


@app.cell(hide_code=True)
def paper_text():
    mo.md("""
    ## On paper

    Two pages to print, on A4 or Letter: one for the wall, one with your name.
    """)
    return


@app.cell(hide_code=True)
def paper():
    # nothing else reads the name, so that typing it draws no button anew
    name = gt.name_control(store)
    gt.papers(store, name)
    return (name,)


@app.cell(hide_code=True)
def answers():
    gt.save_answers(store)
    return


@app.cell(hide_code=True)
def instructors(now):
    mo.stop(not gt.is_instructor())
    _links = "\n".join(
        f"- [{each.lesson.number} · {each.lesson.title}]({gt.address(each.lesson, instructor='1')})"
        for each in now.ready
    )
    gt.instructor_notes(f"""
Each lesson is one class: a guess by show of hands, the run while you talk, the ledger, the exercise alone or in pairs.
Its own notes stand at its end when you open it from here:

{_links}

{gt.class_notes()} The cheat sheet above makes a good handout for the last class.
    """)
    return


if __name__ == "__main__":
    app.run()
