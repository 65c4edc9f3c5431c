"""Jobs on texts of many lengths: a reader of words that really learns, GPT-2 by its shapes, a network of convolutions.

What goes into a batch together is decided elsewhere; here batches are given, and filled up, or packed.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from gpututor.jobs.corpus import draw, words_of
from gpututor.jobs.lengths import rounded_up

if TYPE_CHECKING:
    from collections.abc import Iterator

F = nn.functional
TABLE, HIDDEN = 32, 64
RATE = 1e-2
N_SENTENCES, SEED = 6000, 14
FILLING, NO_WORD = 0, -100  # a word's number where a text has ended, and what cross_entropy leaves out
N_HELD_OUT = 48


@lru_cache(maxsize=1)
def running_text() -> tuple[list[int], int]:
    """Running text as numbers of words from 1 on, and how many different words there are, filling included."""
    words = [word for pair in draw(SEED, N_SENTENCES) for word in words_of(pair.english)]
    number = {word: k for k, word in enumerate(sorted(set(words)), 1)}
    return [number[word] for word in words], len(number) + 1


def texts(lengths: Sequence[int]) -> list[Tensor]:
    """A text of each length and the word that comes after it, one following the other in the running text."""
    words, _ = running_text()
    found, at = [], 0
    for length in lengths:
        found.append(torch.tensor([words[(at + k) % len(words)] for k in range(length + 1)]))
        at += length
    return found


class Reader(nn.Module):
    """A table of words, one LSTM layer and a product to all words."""

    def __init__(self, n_words: int) -> None:
        super().__init__()
        self.table = nn.Embedding(n_words, TABLE)
        self.layer = nn.LSTM(TABLE, HIDDEN)
        self.out = nn.Linear(HIDDEN, n_words)

    def forward(self, words: Tensor, batch_sizes: Tensor | None = None) -> Tensor:
        """Scores of the next word, for each of `words`: (length, batch), or those of packed texts one after another."""
        seen = self.table(words)
        if batch_sizes is None:
            scores: Tensor = self.out(self.layer(seen)[0])
        else:
            scores = self.out(self.layer(PackedSequence(seen, batch_sizes))[0].data)
        return scores


class ReaderJob:
    """The reader with its texts and Adam on one device; calling it trains on a batch.

    `batches` are indices of texts. All are filled up to `width` words, or to the batch's longest, or they are `packed`,
    on the host and before anything is timed. `counted` takes guesses of the filling into the loss, as a program does
    that forgets `ignore_index`. Sets torch's global seed.
    """

    def __init__(
        self,
        device: torch.device,
        lengths: Sequence[int],
        batches: Sequence[Sequence[int]],
        *,
        width: int = 0,
        packed: bool = False,
        counted: bool = False,
    ) -> None:
        torch.manual_seed(0)
        self.n_words = running_text()[1]
        self.net = Reader(self.n_words).to(device)
        self.optimizer = torch.optim.Adam(self.net.parameters(), RATE)
        known = texts([*lengths, *lengths[:N_HELD_OUT]])  # unseen ones are as long as the first, and other words
        self.unseen, self.device = known[len(lengths) :], device
        self.shares: list[tuple[int, float]] = []
        self.batches: list[tuple[Tensor, Tensor, Tensor | None]] = []
        for batch in batches:
            chosen = [known[i] for i in batch]
            words, following, sizes = packed_batch(chosen) if packed else filled(chosen, width, counted)
            self.batches.append((words.to(device), following.to(device), sizes))
            self.shares.append((len(batch), sum(len(text) - 1 for text in chosen) / words.numel()))

    def about(self, k: int) -> tuple[int, float]:
        """How many texts step k reads, and the part of its positions that are words."""
        return self.shares[k % len(self.shares)]

    def __call__(self, k: int) -> Tensor:
        """Train on batch number `k`; the mean loss of a word, left on the device."""
        words, following, sizes = self.batches[k % len(self.batches)]
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.net(words, sizes).view(-1, self.n_words), following.view(-1), ignore_index=NO_WORD)
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it without annotations
        self.optimizer.step()
        return loss.detach()

    def held_out(self) -> float:
        """The mean loss of a word in texts that no step trains on."""
        words, following, _ = filled(self.unseen, 0, False)
        with torch.no_grad():
            scores = self.net(words.to(self.device)).view(-1, self.n_words)
            return float(F.cross_entropy(scores, following.view(-1).to(self.device), ignore_index=NO_WORD))


def filled(chosen: Sequence[Tensor], width: int, counted: bool) -> tuple[Tensor, Tensor, None]:
    """Words and those that follow, (length, texts), filled up to `width` or to the longest."""
    longest = max(width, *(len(text) - 1 for text in chosen))
    words = torch.full((longest, len(chosen)), FILLING)
    following = torch.full_like(words, FILLING if counted else NO_WORD)
    for k, text in enumerate(chosen):
        words[: len(text) - 1, k], following[: len(text) - 1, k] = text[:-1], text[1:]
    return words, following, None


def packed_batch(chosen: Sequence[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """The same without filling, word after word, and how many texts go on at each step."""
    longest_first = sorted(chosen, key=len, reverse=True)
    words, following, _ = filled(longest_first, 0, False)
    lengths = torch.tensor([len(text) - 1 for text in longest_first])
    both = [pack_padded_sequence(each, lengths) for each in (words, following)]
    return both[0].data, both[1].data, both[0].batch_sizes


class Gpt2Job:
    """A training step of GPT-2's smallest form in fp32 with AdamW, on this process's batch of so many texts so long.

    `batches` are lengths of texts. In a process of torch.distributed gradients are exchanged with the others.
    """

    def __init__(self, device: torch.device, batches: Sequence[Sequence[int]], *, width: int = 0) -> None:
        from gpututor.jobs.several_cards import N_WORDS, PLAIN, WithLoss, spread
        from gpututor.workloads.language.gpt2 import Gpt2

        torch.manual_seed(0)
        with device:  # else half a gigabyte of numbers is drawn on the host first
            self.net = spread(WithLoss(Gpt2()), PLAIN, device)
        self.optimizer = torch.optim.AdamW(self.net.parameters())
        shapes = [(len(batch), max(width, *batch)) for batch in batches]
        self.ids = [torch.randint(0, N_WORDS, shape, device=device) for shape in shapes]
        self.shares = [(len(b), sum(b) / (n * long)) for b, (n, long) in zip(batches, shapes, strict=True)]

    def about(self, k: int) -> tuple[int, float]:
        """How many texts step k reads, and the part of its positions that are words."""
        return self.shares[k % len(self.shares)]

    def __call__(self, k: int) -> Tensor:
        """Train on batch number `k`."""
        from gpututor.jobs.several_cards import PLAIN, train_once

        ids = self.ids[k % len(self.ids)]
        return train_once(self.net, self.optimizer, PLAIN, lambda _m: self.net(ids, ids))


# --- shapes that change -----------------------------------------------------------------------------------------------

BANDS, CHANNELS, TAPS, LAYERS, SOUNDS = 80, 256, 5, 6, 64  # a small recognizer of speech, of an invented form


class FramesJob:
    """A training step of convolutions over recordings; `widths` are the frames that each batch is filled up to.

    `searches` switches cuDNN's search for the quickest algorithm on while it runs; `options` are torch.compile's.
    """

    def __init__(
        self,
        device: torch.device,
        n: int,
        widths: Sequence[int],
        *,
        multiple: int = 1,
        searches: bool = False,
        options: dict[str, Any] | None = None,
    ) -> None:
        import gpututor.compiling

        torch.manual_seed(0)
        layers: list[nn.Module] = []
        for k in range(LAYERS):
            layers += [nn.Conv1d(BANDS if k == 0 else CHANNELS, CHANNELS, TAPS, padding=TAPS // 2), nn.ReLU()]
        net: nn.Module = nn.Sequential(*layers, nn.Conv1d(CHANNELS, SOUNDS, 1)).to(device)
        self.optimizer = torch.optim.SGD(net.parameters(), 0.01)
        self.net = net if options is None else gpututor.compiling.compile(net, **options)
        frames = [rounded_up(width, multiple) for width in widths]
        self.frames = [torch.randn(n, BANDS, width, device=device) for width in frames]
        self.searches = searches

    def __call__(self, k: int) -> Tensor:
        """Train on batch number `k`."""
        with searching(self.searches):
            self.optimizer.zero_grad()
            loss: Tensor = self.net(self.frames[k % len(self.frames)]).square().mean()
            loss.backward()  # type: ignore[no-untyped-call]
            self.optimizer.step()
        return loss.detach()


class ForwardJob:
    """The forward pass of ResNet-50 without its last layers on one picture at a time, of these (rows, columns)."""

    def __init__(self, device: torch.device, sizes: Sequence[tuple[int, int]]) -> None:
        from gpututor.workloads.vision.resnets import ResNet50

        with device:
            whole = ResNet50()
        self.net = nn.Sequential(whole.stem, whole.body)
        self.pictures = [torch.randn(1, 3, *size, device=device) for size in sizes]

    def __call__(self, k: int) -> None:
        """Look at picture number `k`."""
        with searching(True):
            self.net(self.pictures[k % len(self.pictures)])


@contextmanager
def searching(on: bool) -> Iterator[None]:
    """A `with` block in which `torch.backends.cudnn.benchmark` is set so."""
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = on
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = before
