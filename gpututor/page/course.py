"""The list of lessons. A lesson whose file is not there yet is shown as coming, without a link."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from gpututor.errors import DataFileError
from gpututor.ledger import Account
from gpututor.paths import lessons_dir


class Rung(Enum):
    """The gauges of the ledger, for lessons that are about one of them."""

    WALL = "wall time"
    BUSY = "busy"
    SM_FILL = "SM fill"
    MFU = "MFU"


Topic = Account | Rung


@dataclass(frozen=True, slots=True)
class Lesson:
    """One lesson. `topics` are the rows of the ledger that it is about, the main one first.

    `sketch` is one step as three rows of 24 characters (host, copy, GPU) for the thumbnail: k a kernel, w one that
    fills the card in part; I input, C copy, S sync, L launch, M communication, U start-up, P pause; a dot is empty.
    `minutes` is how long it takes.
    """

    number: int
    stem: str
    title: str
    question: str
    topics: tuple[Topic, ...]
    sketch: tuple[str, str, str]
    minutes: int = 15

    @property
    def file(self) -> str:
        """Name of the notebook, such as "01_the_gauge.py"."""
        return f"{self.number:02d}_{self.stem}.py"

    @property
    def key(self) -> str:
        """The two digits that begin the lesson's keys in a progress file."""
        return f"{self.number:02d}"


_NO_COPY = "." * 24

START = Lesson(
    0,
    "start_here",
    "Start here",
    "What the course is, what this machine can do, and which lesson answers your question.",
    (),
    ("IIIILLLLLLLLLLLLLLLLSSSS", "....C...................", "IIIILLkLLkLLkLLkLLkLSSSS"),
)

LESSONS: tuple[Lesson, ...] = (
    Lesson(
        1,
        "the_gauge",
        "The gauge",
        "Can a GPU be 100 % busy and 1 % used?",
        (Rung.BUSY, Rung.SM_FILL),
        ("L.......................", _NO_COPY, "wwwwwwwwwwwwwwwwwwwwwwww"),
    ),
    Lesson(
        2,
        "the_25_percent_mystery",
        "The 25 % mystery",
        "Why does one sentence at a time leave a V100 three quarters idle?",
        (Account.LAUNCH_OVERHEAD,),
        ("LLLLLLLLLLLLLLLLLLLLLLLL", _NO_COPY, "LLLkLLLkLLLkLLLkLLLkLLLk"),
    ),
    Lesson(
        3,
        "one_sample_at_a_time",
        "One sample at a time",
        "How large a batch is free?",
        (Account.LAUNCH_OVERHEAD,),
        ("LLLLLLLLL...............", _NO_COPY, "LLLkLLkkLkkkkkkkkkkkkkkk"),
    ),
    Lesson(
        4,
        "one_step_after_another",
        "One step after another",
        "Does a bigger GPU speed up an LSTM?",
        (Account.TOO_FEW_BLOCKS,),
        ("LLLLLLLLLLLLLLLLLLLLLLLL", _NO_COPY, "wLwLwLwLwLwLwLwLwLwLwLwL"),
    ),
    Lesson(
        5,
        "wider_or_deeper",
        "Wider or deeper",
        "Twice as wide or twice as deep: which keeps the GPU busier?",
        (Account.TOO_FEW_BLOCKS,),
        ("LLLLLLLLLLLL............", _NO_COPY, "wwwwwwwwwwwwkkkkkkkkkkkk"),
    ),
    Lesson(
        6,
        "feeding_the_gpu",
        "Feeding the GPU",
        "How many workers are enough?",
        (Account.WAITING_FOR_INPUT,),
        ("IIIIIIIL..IIIIIIIL..IIII", _NO_COPY, "IIIIIIIIkkIIIIIIIIkkIIII"),
    ),
    Lesson(
        7,
        "data_already_in_memory",
        "Data already in memory",
        "Why can more workers be slower than none?",
        (Account.WAITING_FOR_INPUT,),
        ("IIIL.IIIIL.IIIIIL.IIIIIL", _NO_COPY, "IIIIkIIIIIkIIIIIIkIIIIII"),
    ),
    Lesson(
        8,
        "preparing_the_data",
        "Preparing the data",
        "Who should crop and flip?",
        (Account.EXPOSED_COPY, Account.WAITING_FOR_INPUT),
        ("IIICCCL.IIICCCL.IIICCCL.", "...CCC.....CCC.....CCC..", "IIICCCCkIIICCCCkIIICCCCk"),
    ),
    Lesson(
        9,
        "waiting_for_the_answer",
        "Waiting for the answer",
        "What does printing the loss cost?",
        (Account.BLOCKING_SYNC,),
        ("LLSSSSLLLLSSSSLLLLSSSSLL", _NO_COPY, "LkkkkSSSLkkkkSSSLkkkkSSS"),
    ),
    Lesson(
        10,
        "too_many_tiny_kernels",
        "Too many tiny kernels",
        "Where do 60 µs per op go?",
        (Account.LAUNCH_OVERHEAD,),
        ("LLLLLLLLLLLLLLLL........", _NO_COPY, "LkLkLkLkLkLkLkLkkkkkkkkk"),
    ),
    Lesson(
        11,
        "fewer_bits",
        "Fewer bits",
        "When is mixed precision slower?",
        (Account.SLOWER_FORMAT,),
        ("LLLLLL..................", _NO_COPY, "LkkkkkkkkkkkkwwwwwwwLLLL"),
    ),
    Lesson(
        12,
        "the_optimizers_turn",
        "The optimizer's turn",
        "Can the optimizer be the slow part?",
        (Account.LATENCY_BOUND, Account.LAUNCH_OVERHEAD),
        ("LLLL........LLLLLLLLLLLL", _NO_COPY, "LkkkkkkkkkkkLwLwLwLwLwLw"),
    ),
    Lesson(
        13,
        "efficient_on_paper",
        "Efficient on paper",
        "A tenth of the FLOP, so ten times as fast?",
        (Account.MEMORY_BOUND,),
        ("LLLLLL..................", _NO_COPY, "LkwwwwkwwwwkwwwwkwwwwkLL"),
    ),
    Lesson(
        14,
        "ragged_sequences",
        "Ragged sequences",
        "How much of your batch is padding?",
        (Account.RECOMPUTE_AND_PADDING, Account.START_UP),
        ("LLLL....................", _NO_COPY, "LkkkkwwwkkwwwwwkkkwwkwwL"),
    ),
    Lesson(
        15,
        "the_pauses_between",
        "The pauses between",
        "What happens between the steps?",
        (Account.PAUSE,),
        ("L....PPPPPL....PPPPPL...", _NO_COPY, "kkkkkPPPPPkkkkkPPPPPkkkk"),
    ),
    Lesson(
        16,
        "more_than_one_gpu",
        "More than one GPU",
        "Why can eight GPUs be slower than two?",
        (Account.EXPOSED_COMMUNICATION,),
        ("LL......LL......LL......", _NO_COPY, "kkkkkMMMkkkkkMMMkkkkkMMM"),
    ),
    Lesson(
        17,
        "the_machine_itself",
        "The machine itself",
        "Is it even running on the GPU?",
        (Account.START_UP, Rung.WALL),
        ("UUUUUUUUUULLLLLLLLLLLLLL", _NO_COPY, "UUUUUUUUUULwLwLwLwLwLwLw"),
    ),
    Lesson(
        18,
        "watching_over_time",
        "Watching over time",
        "Which of 40 runs got slower, and why?",
        (Rung.WALL,),
        ("L...L...L...LL..LLLLLLLL", _NO_COPY, "kkkkkkkkkkkkLkkkLLkkLLLk"),
    ),
    Lesson(
        19,
        "from_25_to_80",
        "From 25 % to 80 %",
        "Can you take the mystery job from 25 % to 80 % with the same final loss?",
        (Rung.MFU,),
        ("LLLLLLLLLLLL............", _NO_COPY, "LLLkLLLkLLkkLkkkkkkkkkkk"),
    ),
)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the course: its title, one line on what it is about, and its first and last lesson."""

    title: str
    about: str
    first: int
    last: int

    @property
    def lessons(self) -> tuple[Lesson, ...]:
        """Its lessons, in order."""
        return LESSONS[self.first - 1 : self.last]


PARTS: tuple[Part, ...] = (
    Part("What the gauges say", "Busy isn't used, and a quarter busy has a reason.", 1, 2),
    Part("More work at a time", "Batches, sequences and widths that fill the card.", 3, 5),
    Part("Data on its way", "From files and memory to the card, in time.", 6, 8),
    Part("The host in the way", "Waits for values, and launches by the thousand.", 9, 10),
    Part("The same result for less", "Number formats, optimizers, lean networks, no padding.", 11, 14),
    Part("Beyond one step", "What happens between steps, on other cards, on this machine, over weeks.", 15, 18),
    Part("All of it", "The job of lesson 2 once more, with everything you know.", 19, 19),
)


def lesson(number: int) -> Lesson:
    """The lesson with this number; 0 is the front page."""
    return START if number == 0 else LESSONS[number - 1]


def is_ready(each: Lesson) -> bool:
    """Whether the lesson's file is there to be opened."""
    try:
        return (lessons_dir() / each.file).is_file()
    except DataFileError:
        return False


def next_ready(after: int) -> Lesson | None:
    """The first lesson after this number whose file is there."""
    return next((each for each in LESSONS if each.number > after and is_ready(each)), None)
