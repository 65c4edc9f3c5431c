"""Lesson 4: the same language model with a layer that must go word by word, or needn't.

At one length every kind of layer really trains, so its loss is seen. At the other lengths only shapes are followed:
what a step takes doesn't depend on the numbers in it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from gpututor.experiments import sweeps
from gpututor.experiments.sweeps import Step, Variant
from gpututor.progress import Progress

if TYPE_CHECKING:
    import torch

WHAT = "next word"
BATCH = 32  # as in gpututor/jobs/next_word.py, which needs torch to be read
LENGTH = 64  # at which all kinds are trained
LENGTHS = (16, 128, 256)  # at which those drawn over the length are timed besides
ASKED_LENGTH = 512  # at which cuDNN's LSTM is timed for exercise 4.1
N_STEPS = 12
N_TIMED = N_KEPT = 2  # steps where only the time is asked; enough for a host that runs ahead of the card to be ahead
LOOPS = ("loop", "hoisted", "gru_words", "letters")  # thousands of kernels a step, and the host never gets ahead
KINDS = {
    "loop": "LSTM, a loop in Python",
    "hoisted": "The same, input product hoisted",
    "gru_words": "nn.GRU, a call for each word",
    "lstm": "nn.LSTM, one call",
    "gru": "nn.GRU, one call",
    "scan": "GRU whose gates don't look back",
    "transformer": "Transformer block",
}
OVER_LENGTH = {"loop": (16, 128), "lstm": LENGTHS, "scan": LENGTHS[-1:], "transformer": LENGTHS}
CHAR_RNN = {"batch": 100, "length": 200, "width": 100}  # defaults of spro/char-rnn.pytorch, train.py, November 2017
THREAD_UNITS = 1000  # of the loop in pytorch/pytorch issue 1088
THREAD_UPDATES = 100


def key_of(kind: str, length: int) -> str:
    """The name of a kind's tape at a length.

    >>> key_of("lstm", 64), key_of("lstm", 256)
    ('lstm', 'lstm_256')
    """
    return kind if length == LENGTH else f"{kind}_{length}"


def _next_word(kind: str, length: int, device: torch.device, **sizes: int) -> Step:
    from gpututor.jobs.next_word import NextWordJob

    return NextWordJob(device, kind, length, **sizes).step


def _update(device: torch.device) -> Step:
    """The loop of pytorch/pytorch issue 1088: one state, multiplied with a square matrix again and again."""
    import torch

    torch.manual_seed(0)
    weights = torch.randn(THREAD_UNITS, THREAD_UNITS, device=device) / THREAD_UNITS**0.5
    states = [torch.randn(THREAD_UNITS, device=device)]

    def step(_k: int) -> None:
        with torch.no_grad():
            for _ in range(THREAD_UPDATES):
                states[0] = weights @ torch.tanh(states[0])

    return step


def trained(length: int = LENGTH) -> list[Variant]:
    """Every kind of layer at one length, with its loss; the one that the guess is about comes first."""
    kinds = sorted(KINDS, key=lambda kind: kind != "lstm")
    return [
        Variant(kind, KINDS[kind], partial(_made, kind, length), length, BATCH * length, n_kept=_kept(kind, N_KEPT))
        for kind in kinds
    ]


def _made(kind: str, length: int, device: torch.device) -> Step:
    return _next_word(kind, length, device)


def _kept(kind: str, n_kept: int) -> int:
    return 1 if kind in LOOPS else n_kept


def _timed(
    key: str, kind: str, label: str, make: Callable[[torch.device], Step], length: int, n_samples: int
) -> Variant:
    n_steps = _kept(kind, N_TIMED)
    return Variant(key, label, make, length, n_samples, n_steps, numerics=False, n_kept=n_steps)


def timed() -> list[Variant]:
    """The kinds that are drawn over the length, at the other lengths; and one length that only an exercise asks for."""
    asked = [("lstm", ASKED_LENGTH)]
    over = [(kind, length) for kind, lengths in OVER_LENGTH.items() for length in lengths]
    return [
        _timed(key_of(kind, n), kind, f"{KINDS[kind]}, {n} words", partial(_made, kind, n), n, BATCH * n)
        for kind, n in over + asked
    ]


def threads() -> list[Variant]:
    """What two public threads timed: a GRU fed letter by letter or at once, and one state updated in a loop."""
    batch, length, width = CHAR_RNN["batch"], CHAR_RNN["length"], CHAR_RNN["width"]

    def char_rnn(kind: str, device: torch.device) -> Step:
        return _next_word(kind, length, device, batch=batch, width=width)

    return [
        _timed(
            "letters", "letters", "A GRU fed letter by letter", partial(char_rnn, "gru_words"), length, batch * length
        ),
        _timed("stretch", "stretch", "A GRU fed a stretch at once", partial(char_rnn, "gru"), length, batch * length),
        _timed("update", "update", "One state, updated in a loop", _update, THREAD_UNITS, THREAD_UPDATES),
    ]


def run(progress: Progress, *, machine: str = sweeps.MACHINE, n_steps: int = N_STEPS) -> dict[str, Any]:
    """Train every kind for `n_steps` on `machine`'s simulated card, and time the rest; see `sweeps.simulate`."""
    variants = [*trained(), *timed(), *threads()]
    return sweeps.simulate(progress, variants, what=WHAT, machine=machine, n_steps=n_steps, n_kept=N_KEPT)


def measure(progress: Progress, *, device: str = "cuda", n_steps: int = 5) -> dict[str, Any]:
    """Train every kind on this computer, and time one state's updates; see `sweeps.measure`."""
    return sweeps.measure(progress, [*trained(), threads()[-1]], what=WHAT, device=device, n_steps=n_steps)
