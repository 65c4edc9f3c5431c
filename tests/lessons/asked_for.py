"""What the course was asked to answer, and where each point is shown: a lesson's cell, an exercise, or code.

The points come from questions about a recurrent tutorial on a rented card: why it is hardly busy, what that costs, and
every advice that was given. `words` are those by which a point is found in the table of the request.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    """Where a point is shown in one lesson.

    `cell` is the notebook's cell, where that is known, and `exercise` an exercise's number. `says` are words that must
    stand in the lesson, or in the modules of experiments, figures and exercises that it uses.
    """

    lesson: int
    cell: str | None = None
    exercise: str | None = None
    says: tuple[str, ...] = ()


@dataclass(frozen=True)
class Code:
    """Something of the library that shows a point, as "module:name"."""

    name: str


@dataclass(frozen=True)
class Point:
    """One thing that was asked for, in a few words of ours, with all its places."""

    words: tuple[str, ...]
    about: str
    places: tuple[Place | Code, ...]


POINTS = (
    Point(
        ("decides", "seq2seq"),
        "what a card's utilization hangs on, and the tutorial that left a V100 mostly idle",
        (
            Place(1, "blocks"),
            Place(1, "limits"),
            Place(1, "cost", says=("nvidia-smi",)),
            Place(2, "ledger"),
            Place(2, "seen_beside"),
        ),
    ),
    Point(
        ("3.06",),
        "the price of an hour, and what waiting costs of it",
        (
            Place(2, "cost"),
            Place(3, "cost"),
            Place(5, "cost"),
            Place(16, "cost"),
            Place(17, says=("price",)),
            Code("gpututor.page.money:money"),
        ),
    ),
    Point(
        ("one sample", "mini-batch"),
        "a single sample a step against many",
        (Place(3, "knee"), Place(3, "result"), Place(3, exercise="3.1")),
    ),
    Point(
        ("lstm", "transformer", "parallel"),
        "recurrence in order, attention at once, and who runs the loop",
        (
            Place(4, "same_lstm"),
            Place(4, "table", says=("Transformer", "GRU")),
            Place(4, "curve"),
            Place(4, exercise="4.2"),
        ),
    ),
    Point(
        ("hidden units", "layers"),
        "width against depth",
        (Place(5, "why"), Place(5, "curve"), Place(5, exercise="5.1")),
    ),
    Point(
        ("20–30", "expected"),
        "a low reading as a sign, and a time that can be expected",
        (Place(1, "cost"), Place(2, "own_run"), Code("gpututor.expect:compare"), Code("gpututor.predict:predict")),
    ),
    Point(
        ("four causes",),
        "the machine, the data, the model, and limits of hardware and driver",
        (
            Place(6, "law"),
            Place(7, "by_batch"),
            Place(8, "trip"),
            Place(4, "why"),
            Place(5, "why"),
            Place(13, says=("MobileNet",)),
            Place(17, says=("driver",)),
            Code("gpututor.doctor.examination:headline"),
        ),
    ),
    Point(
        ("temperature", "busy while the gpu idles"),
        "which gauge to watch, and a busy CPU beside an idle card",
        (
            Place(1, "cost", says=("temperature",)),
            Place(6, "ledger"),
            Place(18, says=("temperature",)),
            Code("gpututor.watch.meaning:verdict"),
        ),
    ),
    Point(
        ("learning rate", "scheduler"),
        "a batch's learning rate, and a schedule for it",
        (Place(3, "learning_text"), Place(3, "learning", says=("schedule",)), Place(3, exercise="3.2")),
    ),
    Point(
        ("dataparallel", "distributed"),
        "several cards, in one process and in many",
        (
            Place(16, "ways", says=("DataParallel", "DistributedDataParallel")),
            Place(16, "curve"),
            Place(16, "elsewhere", says=("torchrun",)),
            Place(16, exercise="16.2"),
        ),
    ),
    Point(
        ("mobilenet, efficientnet",),
        "networks with less arithmetic",
        (Place(13, says=("MobileNet", "EfficientNet", "depthwise")),),
    ),
    Point(
        ("loader workers", "augmentation"),
        "workers, batches ahead, crops and flips, conversions that nobody needs",
        (
            Place(6, "law"),
            Place(6, "batches_text"),
            Place(6, exercise="6.2"),
            Place(7, "workers"),
            Place(8, "trip", says=("crop", "flip", "uint8")),
            Place(8, "doubles", says=("float64",)),
        ),
    ),
    Point(
        ("adam and sgd", "sparse"),
        "the choice of an optimizer, and gradients that are mostly empty",
        (
            Place(12, "ways", says=("SGD", "Adam")),
            Place(12, "sparse"),
            Place(12, "learned"),
            Place(12, exercise="12.2"),
        ),
    ),
    Point(
        ("mixed precision",),
        "fewer bits: fewer bytes, and room for a larger batch",
        (Place(11, "curve"), Place(11, "memory"), Place(11, "learning"), Place(11, exercise="11.2")),
    ),
    Point(
        ("torchscript",),
        "a compiled program, then and now",
        (Place(10, "script", says=("torch.compile", "torch.export", "CUDA graphs")), Place(10, exercise="10.2")),
    ),
    Point(
        ("pruning", "quantization"),
        "weights left out, and weights of eight bits",
        (Place(13, says=("prun", "int8")),),
    ),
    Point(
        ("sequence handling", "lstm variants"),
        "sequences of unlike length, and kin of the LSTM",
        (Place(4, "table"), Place(14, says=("padding", "pack", "bucket"))),
    ),
    Point(
        ("tensorboard", "record every run"),
        "live monitors, and a history to look for what changed",
        (
            Place(18, says=("TensorBoard",)),
            Code("gpututor.watch.tensorboard:Events"),
            Code("gpututor.history.changes:changes"),
        ),
    ),
)
