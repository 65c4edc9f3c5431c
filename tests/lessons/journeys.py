"""What a reader does in each lesson, for the browser tests and for tools/page_speed.py: one entry a lesson."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gpututor.cards import DEFAULT_MACHINE, machine
from tests.browser import Server, Visit, served
from tests.lessons.reading import ROOT, Notebook

DEFAULT_CARD = machine(DEFAULT_MACHINE).card.name
BEFORE_THE_GUESS = ("head", "guess_card", "run_panel", "recall", "result")  # result: the line in its place
FOR_SOME = ("recall", "instructors")  # shown until the run, and to instructors
RUN_BUTTON = re.compile("^(Run|Train)")
SHOWN = """names => names.every(name => [...document.querySelectorAll(`[data-cell-name="${name}"]`)]
    .some(cell => cell.getBoundingClientRect().height > 0))"""
DRAWN = """drawings => drawings.map(drawing => drawing.toDataURL ? drawing.toDataURL()
    : [...drawing.querySelectorAll("path, text, rect")].map(
        mark => [mark.getAttribute("d"), mark.getAttribute("transform"), mark.textContent].join()).join())"""


@dataclass(frozen=True)
class Control:
    """One control of a lesson: how it is moved, the cell that draws what follows, and how it is moved back.

    Without `back`, moving it again goes on in the same direction.
    """

    name: str
    move: Callable[[Visit], None]
    drawn_in: str
    back: Callable[[Visit], None] | None = None


@dataclass(frozen=True)
class Journey:
    """A reader's way through one lesson. `option` is the guess; `shorter` makes its run short: (text, other text)."""

    file: str
    option: str
    controls: tuple[Control, ...]
    charts: tuple[str, ...]
    shorter: tuple[str, str] | None = None

    @property
    def later(self) -> list[str]:
        """The cells that open after the run."""
        shown = Notebook(ROOT / "lessons" / self.file).showing_cells
        return [name for name in shown if name not in FOR_SOME]

    def wait_until_open(self, page: Visit) -> None:
        """Until a new reader's page is ready for the guess: the run panel's hint is computed."""
        page.wait_for("run_panel", "Opens once you have guessed.")

    def guess(self, page: Visit) -> None:
        """Choose the option, and wait until the run opens."""
        page.cell("guess_card").get_by_text(self.option, exact=True).first.click()
        page.cell("run_panel").filter(has_not_text="Opens once").first.wait_for()

    def run(self, page: Visit) -> None:
        """Press the button."""
        page.page.get_by_role("button", name=RUN_BUTTON).first.click()

    def wait_until_finished(self, page: Visit, within_s: float = 240.0) -> None:
        """Until every later cell shows something and every chart is drawn."""
        page.page.wait_for_function(SHOWN, arg=self.later, timeout=within_s * 1000)
        for cell in self.charts:
            page.wait_for_chart(cell)


def press(cell: str, key: str, *, nth: int = 0) -> Callable[[Visit], None]:
    """Presses a key on the cell's slider."""
    return lambda page: page.cell(cell).get_by_role("slider").nth(nth).press(key)


def choose(cell: str, *, nth: int) -> Callable[[Visit], None]:
    """Chooses one of the cell's options by its place."""
    return lambda page: page.cell(cell).get_by_role("radio").nth(nth).click()


def select(cell: str, value: str) -> Callable[[Visit], None]:
    """Selects from the cell's drop-down list."""

    def move(page: Visit) -> None:
        page.cell(cell).locator("select").select_option(label=value)

    return move


JOURNEYS = (
    Journey(
        "01_the_gauge.py",
        "about a hundredth",
        (
            Control("rows", press("model_head", "ArrowRight"), "model"),
            Control("card", select("model_head", "T4"), "model", select("model_head", DEFAULT_CARD)),
            Control("program in the ledger", choose("ledger", nth=2), "ledger", choose("ledger", nth=0)),
        ),
        ("model",),
    ),
    Journey(
        "02_the_25_percent_mystery.py",
        "about twice as fast",
        (
            Control("host's speed", press("model", "ArrowLeft"), "model"),
            Control(
                "view of the timeline", choose("timeline_head", nth=-1), "timeline", choose("timeline_head", nth=0)
            ),
            Control("window of the timeline", press("timeline_head", "ArrowLeft", nth=1), "timeline"),
        ),
        ("timeline", "model", "learned"),
        ("N_STEPS = 200", "N_STEPS = 12"),
    ),
    Journey(
        "03_one_sample_at_a_time.py",
        "about twice as long",
        (
            Control("machine", select("result", "H100"), "result", select("result", "V100 (p3.2xlarge)")),
            Control("batch in the ledger", choose("timeline_head", nth=1), "ledger", choose("timeline_head", nth=0)),
            Control("window of the timeline", press("timeline_head", "ArrowLeft", nth=1), "timeline"),
        ),
        ("knee", "timeline", "learning"),
        ("guess.value, {})", 'guess.value, {"batches": [1, 8, 32], "n_epochs": 1})'),
    ),
    Journey(
        "04_one_step_after_another.py",
        "about twice as fast",
        (
            Control("machine", select("table", "T4 (g4dn.xlarge)"), "table", select("table", "V100 (p3.2xlarge)")),
            Control("layer of the timeline", choose("timeline_head", nth=0), "ledger", choose("timeline_head", nth=1)),
            Control("window of the timeline", press("timeline_head", "ArrowLeft", nth=1), "timeline"),
        ),
        ("curve", "timeline", "learned"),
        ("N_STEPS = 12", "N_STEPS = 2"),
    ),
    Journey(
        "05_wider_or_deeper.py",
        "the wider one, by far",
        (
            Control(
                "machine",
                select("curve_controls", "T4 (g4dn.xlarge)"),
                "table",
                select("curve_controls", "V100 (p3.2xlarge)"),
            ),
            Control("batch", choose("curve_controls", nth=1), "curve", choose("curve_controls", nth=0)),
            Control("gauge", choose("curve_controls", nth=3), "curve", choose("curve_controls", nth=2)),
            Control("size of the timeline", choose("timeline_head", nth=1), "ledger", choose("timeline_head", nth=0)),
            Control("window of the timeline", press("timeline_head", "ArrowLeft", nth=1), "timeline"),
        ),
        ("curve", "learned", "timeline"),
        ("N_STEPS = 40", "N_STEPS = 2"),
    ),
    Journey(
        "06_feeding_the_gpu.py",
        "two",
        (
            Control(
                "who is looked at", select("timeline_head", "no workers"), "ledger", select("timeline_head", "1 worker")
            ),
            Control("window of the timeline", press("timeline_head", "ArrowLeft", nth=1), "timeline"),
        ),
        ("law", "timeline", "learned"),
        ("THINNED = 1 ", "THINNED = 8 "),
    ),
    Journey(
        "07_data_already_in_memory.py",
        "about half as long",
        (
            Control(
                "who is looked at",
                select("timeline_head", "Row by row, two workers"),
                "ledger",
                select("timeline_head", "Row by row, no workers"),
            ),
            Control("window of the timeline", press("timeline_head", "ArrowRight"), "timeline"),
        ),
        ("timeline", "learned"),
        ("N_STEPS = 96", "N_STEPS = 6"),
    ),
    Journey(
        "08_preparing_the_data.py",
        "hardly any faster",
        (
            Control("machine of the copies", select("trip", "H100"), "trip", select("trip", "V100 (p3.2xlarge)")),
            Control(
                "copy that is looked at", select("timeline_head", "bytes"), "ledger", select("timeline_head", "float32")
            ),
            Control("window of the timeline", press("timeline_head", "ArrowRight"), "timeline"),
        ),
        ("learned", "timeline", "law"),
        ('"n_steps": N_STEPS}', '"n_steps": 3}'),
    ),
    Journey(
        "09_waiting_for_the_answer.py",
        "hardly any shorter",
        (
            Control("machine", select("lines", "T4 (g4dn.xlarge)"), "curve", select("lines", "V100 (p3.2xlarge)")),
            Control(
                "view of the timeline", choose("timeline_head", nth=0), "timeline", choose("timeline_head", nth=-1)
            ),
            Control("window of the timeline", press("timeline_head", "ArrowLeft", nth=1), "timeline"),
        ),
        ("timeline", "curve", "learned"),
        ("N_STEPS = 20", "N_STEPS = 3"),
    ),
    Journey(
        "10_too_many_tiny_kernels.py",
        "about a quarter",
        (
            Control("machine", select("split", "T4 (g4dn.xlarge)"), "curve", select("split", "V100 (p3.2xlarge)")),
            Control("way in the ledger", choose("timeline_head", nth=3), "ledger", choose("timeline_head", nth=0)),
            Control("window of the timeline", press("timeline_head", "ArrowLeft", nth=1), "timeline"),
        ),
        ("curve", "timeline", "learning"),
        (
            "BATCHES = (1, 2, 4, 8, 16)\n    N_LEARNED = 120",
            "BATCHES = (1, 16)\n    N_LEARNED = 12",
        ),
    ),
    Journey(
        "11_fewer_bits.py",
        "one",
        (
            Control("machine", select("jobs", "T4 (g4dn.xlarge)"), "curve", select("jobs", "V100 (p3.2xlarge)")),
            Control("format in the ledger", choose("timeline_head", nth=0), "ledger", choose("timeline_head", nth=1)),
            Control("window of the timeline", press("timeline_head", "ArrowLeft", nth=1), "timeline"),
        ),
        ("timeline", "curve", "learning"),
        ('"n_learned": N_LEARNED', '"n_learned": 40'),
    ),
    Journey(
        "12_the_optimizers_turn.py",
        "a few times as long",
        (
            Control("machine", select("ways", "T4 (g4dn.xlarge)"), "ways", select("ways", "V100 (p3.2xlarge)")),
            Control("way in the ledger", choose("timeline_head", nth=2), "ledger", choose("timeline_head", nth=0)),
            Control("window of the timeline", press("timeline_head", "ArrowLeft", nth=1), "timeline"),
        ),
        ("ways", "timeline", "sparse", "learned"),
        ("guess.value, {})", 'guess.value, {"n_learned": 40, "n_read": 4, "batches": [4]})'),
    ),
    Journey(
        "13_efficient_on_paper.py",
        "up to twice as fast",
        (
            Control(
                "machine", select("networks", "T4 (g4dn.xlarge)"), "curve", select("networks", "V100 (p3.2xlarge)")
            ),
            Control("network in the ledger", choose("timeline_head", nth=0), "ledger", choose("timeline_head", nth=3)),
            Control("window of the timeline", press("timeline_head", "ArrowLeft", nth=1), "timeline"),
        ),
        ("timeline", "curve", "learned"),
        ("guess.value, {})", 'guess.value, {"n_learned": 16, "n_again": 4, "batches": [1, 64]})'),
    ),
    Journey(
        "14_ragged_sequences.py",
        "about half",
        (
            Control("machine", select("ways", "T4 (g4dn.xlarge)"), "ways", select("ways", "V100 (p3.2xlarge)")),
            Control("way in the ledger", choose("timeline_head", nth=0), "ledger", choose("timeline_head", nth=2)),
            Control("window of the timeline", press("timeline_head", "ArrowRight", nth=0), "timeline"),
        ),
        ("why", "timeline", "learned", "shapes"),
        ("guess.value, {})", 'guess.value, {"n_texts": 64, "n_long": 32, "n_shapes": 8})'),
    ),
    Journey(
        "15_the_pauses_between.py",
        "about two thirds",
        (
            Control("machine", select("parts", "T4 (g4dn.xlarge)"), "parts", select("parts", "V100 (p3.2xlarge)")),
            Control("manner in the ledger", choose("timeline_head", nth=1), "ledger", choose("timeline_head", nth=0)),
            Control("window of the timeline", press("timeline_head", "ArrowRight", nth=0), "timeline"),
        ),
        ("timeline", "why", "grows", "learned"),
        (
            "guess.value, {})",
            'guess.value, {"n_epochs": 1, "left_on": ["off", "anomaly"], "n_grown": 40, "resnet": False})',
        ),
    ),
    Journey(
        "16_more_than_one_gpu.py",
        "about as long as before",
        (
            Control("card", select("steps", "T4 (g4dn.xlarge)"), "curve", select("steps", "V100 (p3.2xlarge)")),
            Control("link in the ledger", choose("timeline_head", nth=0), "ledger", choose("timeline_head", nth=2)),
            Control("window of the timeline", press("timeline_head", "ArrowRight", nth=0), "timeline"),
        ),
        ("curve", "timeline", "ways", "learning"),
        ("N_STEPS = 64", "N_STEPS = 16"),
    ),
    Journey(
        "17_the_machine_itself.py",
        "a few times as long",
        (
            Control("card", select("places", "T4 (g4dn.xlarge)"), "why", select("places", "V100 (p3.2xlarge)")),
            Control("machine to look at", select("patient", "machine D"), "patient", select("patient", "machine A")),
            Control("job", choose("field", nth=2), "field", choose("field", nth=0)),
            Control("machine in the ledger", choose("timeline_head", nth=1), "ledger", choose("timeline_head", nth=0)),
            Control("window of the timeline", press("timeline_head", "ArrowRight", nth=0), "timeline"),
        ),
        ("field", "timeline"),
        ('{"n_policy": N_POLICY}', '{"n_policy": 60, "n_sentences": 4}'),
    ),
    Journey(
        "18_watching_over_time.py",
        "about half",
        (
            Control("machine", select("bars", "T4 (g4dn.xlarge)"), "bars", select("bars", "V100 (p3.2xlarge)")),
            Control("night", press("night_control", "ArrowLeft"), "one_night", press("night_control", "ArrowRight")),
            Control("price of a kWh", press("cost", "ArrowRight"), "cost", press("cost", "ArrowLeft")),
            Control("window of the timeline", press("timeline_head", "ArrowRight"), "timeline"),
        ),
        ("timeline", "why", "watch_it"),
        ('"n_learned": 24, "watch_s": 8.0', '"n_learned": 6, "watch_s": 4.0'),
    ),
    Journey(
        "19_from_25_to_80.py",
        "a fifth to a half",
        (
            Control(
                "machine", select("verdict", "T4 (g4dn.xlarge)"), "learning", select("verdict", "V100 (p3.2xlarge)")
            ),
            Control(
                "training of the timeline", choose("timeline_head", nth=0), "timeline", choose("timeline_head", nth=1)
            ),
            Control("window of the timeline", press("timeline_head", "ArrowLeft", nth=1), "timeline"),
        ),
        ("timeline", "learning"),
        (
            '{"choices": levers.value})\n    return (buttons,)',
            '{"choices": {**levers.value, "most": 256}})\n    return (buttons,)',
        ),
    ),
)


def picture(page: Visit, cell: str) -> str:
    """What a cell shows, as text that changes when its chart or its words do."""
    drawn = page.cell(cell).locator(".vega-embed svg, .vega-embed canvas").evaluate_all(DRAWN)
    return "\n".join([*page.cell(cell).all_inner_texts(), *drawn])


def shortened(folder: Path, *, long: str = "") -> Path:
    """A copy of the lessons with short runs, below `folder`; `long` names a lesson of which a second, whole copy lies
    beside the short one, as long_NAME."""
    copied = folder / "lessons"
    shutil.copytree(ROOT / "lessons", copied, ignore=shutil.ignore_patterns("session", "cache", "__pycache__"))
    if long:
        shutil.copy(copied / long, copied / f"long_{long}")
    for journey in JOURNEYS:
        if journey.shorter:
            path = copied / journey.file
            source = path.read_text(encoding="utf-8")
            assert source.count(journey.shorter[0]) == 1, f"{journey.file} has no single {journey.shorter[0]!r}"
            path.write_text(source.replace(*journey.shorter), encoding="utf-8")
    return copied


@contextmanager
def course(lessons: Path, scratch: Path) -> Iterator[Server]:
    """These lessons served with a home of their own, `scratch`/home."""
    env = {"PYTHONPATH": str(ROOT), "GPUTUTOR_HOME": str(scratch / "home"), "OMP_NUM_THREADS": "1"}
    env["GPUTUTOR_LOCK_DIR"] = str(scratch)  # what else is measured on this machine doesn't hold up a test
    with served(lessons, scratch, env) as server:
        yield server
