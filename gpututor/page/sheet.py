"""The sheet to print: each account's symptom, check and first change on one page, and at its foot what a reader did.

A whole HTML page in one string, without scripts or requests, for `mo.download`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpututor.charts import WORDS, css_fill
from gpututor.ledger import Account
from gpututor.page.course import LESSONS, Rung, Topic
from gpututor.page.parts import escape
from gpututor.page.waterfall import GAUGE_WORDS

GAUGES = {Rung.WALL: "wall", Rung.BUSY: "busy", Rung.SM_FILL: "sm_fill", Rung.MFU: "mfu"}
A = Account
ROWS: Sequence[tuple[Topic, str, str, str]] = (
    (Rung.WALL, "", "", ""),
    (A.WAITING_FOR_INPUT, "idle before a step's first kernel", "run the loader without the model", "workers, caching"),
    (A.EXPOSED_COPY, "a copy with no kernel beside it", "is the memory pinned?", "pin_memory, non_blocking, uint8"),
    (A.BLOCKING_SYNC, "the host stands in .item() or print", "count the syncs of a step", "log every n steps"),
    (
        A.LAUNCH_OVERHEAD,
        "the host is busy, the GPU in crumbs",
        "kernels shorter than launches?",
        "batch, fuse, compile",
    ),
    (A.EXPOSED_COMMUNICATION, "an all-reduce with nothing under it", "who arrives last?", "overlap, larger buckets"),
    (A.START_UP, "the first steps take longest", "time them apart", "warm up once, fix the shapes"),
    (A.PAUSE, "good steps, poor hours", "first step to last, by the clock", "check and save less often"),
    (Rung.BUSY, "nvidia-smi calls it GPU-Util", "", ""),
    (A.TOO_FEW_BLOCKS, "busy, yet little power drawn", "blocks against SMs", "batch, width, join products"),
    (A.LAST_WAVE_TAIL, "sizes just past a multiple", "blocks over one wave's", "other sizes"),
    (Rung.SM_FILL, "", "", ""),
    (A.MEMORY_BOUND, "bytes set the time, not FLOP", "FLOP a byte against the ridge", "fuse, fewer bits"),
    (A.LATENCY_BOUND, "many short kernels in a row", "time by kernel length", "fuse, fused optimizer"),
    (A.SLOWER_FORMAT, "fp32 where the card has better", "which kernels run?", "bf16, fp16, TF32"),
    (A.RECOMPUTE_AND_PADDING, "much work, few samples", "share of padding", "bucket by length, pack"),
    (Rung.MFU, "useful FLOP over peak and time", "", ""),
)
CHECKS = ("nvidia-smi dmon -s pucm", "nvidia-smi -q -d PERFORMANCE", "gpututor lessons")
STYLE = """
@page { size: A4; margin: 12mm 14mm }
* { box-sizing: border-box }
body { font: 9.5pt/1.3 "PT Sans", "Segoe UI", Helvetica, Arial, sans-serif; color: #14181d; max-width: 182mm;
  margin: 0 auto; padding: 8mm 0 }
@media print { body { padding: 0 } }
h1 { font: 600 21pt/1.1 Lora, Georgia, serif; margin: 0 0 2mm }
h2 { font: 600 13pt/1.2 Lora, Georgia, serif; margin: 6mm 0 2mm }
p { margin: 0 0 3mm; color: #444c55 }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; vertical-align: top; padding: 1.1mm 2mm 1.1mm 0; border-top: .3pt solid #c9ced4;
  font-weight: 400 }
thead th { font-size: 8.5pt; color: #444c55; border: 0 }
tbody th { white-space: nowrap; padding-left: 4mm }
.g th, .g td { background: #f2f3f5 }
.g th { font-weight: 700; padding-left: 1.5mm }
i { display: inline-block; width: 3mm; height: 3mm; border-radius: .6mm; margin-right: 1.6mm;
  print-color-adjust: exact }
.mine td { border: .3pt solid #c9ced4; padding: 1.5mm; height: 9mm; font-size: 8.5pt; color: #444c55; width: 25% }
footer { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 3mm 8mm; margin-top: 6mm;
  border-top: 1.2pt solid #14181d; padding-top: 3mm }
footer b { display: block; font: 600 13pt/1.3 Lora, Georgia, serif }
footer span, .foot { font-size: 8.5pt; color: #444c55 }
.foot { margin-top: 3mm }
"""


@dataclass(frozen=True, slots=True)
class Reader:
    """What stands at the foot of the sheet; texts, empty where there is nothing to say yet."""

    name: str
    n_done: int
    before: str
    after: str
    date: str


def sheet(reader: Reader) -> str:
    """The page as HTML, about one sheet of A4."""
    lines = "".join(_line(*row) for row in ROWS)
    boxes = "".join(f"<td>{name}</td>" for name in ("Job and card", "Busy", "SM fill", "MFU"))
    more = "".join(
        f"<td>{name}</td>" for name in ("Largest account", "I change", "Step before, after", "Saved a month")
    )
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Where a GPU\'s time goes</title>'
        f"<style>{STYLE}</style><h1>Where a GPU's time goes</h1>"
        "<p>Read from the top: each account takes its share from what stands above. Begin with the largest.</p>"
        "<table><thead><tr><th>Account</th><th>You see</th><th>Make sure</th><th>First change</th><th>Lesson</th></tr>"
        f"</thead><tbody>{lines}</tbody></table><h2>My own job</h2>"
        f'<table class="mine"><tr>{boxes}</tr><tr>{more}</tr></table><footer>{_foot(reader)}</footer>'
        f'<p class="foot">Quick checks: {" · ".join(CHECKS)}</p></html>'
    )


def _line(topic: Topic, see: str, check: str, change: str) -> str:
    lessons = " ".join(str(each.number) for each in LESSONS if topic in each.topics)
    if isinstance(topic, Rung):
        return f'<tr class="g"><th>{GAUGE_WORDS[GAUGES[topic]]}</th><td colspan="3">{see}</td><td>{lessons}</td></tr>'
    return (
        f'<tr><th><i style="background:{css_fill(topic)}"></i>{WORDS[topic]}</th><td>{see}</td><td>{check}</td>'
        f"<td>{change}</td><td>{lessons}</td></tr>"
    )


def _foot(reader: Reader) -> str:
    """Name, lessons, own before and after, and the date; lines without content are left for a pen."""
    step = f"{reader.before} → {reader.after}" if reader.before and reader.after else ""
    lines = (
        ("Worked through by", reader.name),
        ("Lessons", f"{reader.n_done} of {len(LESSONS)}"),
        ("The mystery job, busy", step),
        ("Date", reader.date),
    )
    return "".join(f"<div><span>{name}</span><b>{escape(value)}&nbsp;</b></div>" for name, value in lines)
