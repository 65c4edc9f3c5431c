"""The asker's translator in other sizes: any width, any number of layers, any batch; sentences of one length.

Like `seq2seq`, it calls its layers anew for every word, and has the tutorial's tables of words. Unlike there, the right
English word is always given, and all sentences are as long as each other: every step of every size reads and writes
as many words, so that times can be compared.
"""

from __future__ import annotations

import random
from functools import lru_cache

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own habit
from torch import Tensor, nn

from gpututor.jobs.corpus import Pair, draw, words_of
from gpututor.jobs.numbering import END, START, numbered
from gpututor.jobs.tutorial import DROPOUT, ENGLISH_WORDS, FRENCH_WORDS, LEARNING_RATE

FRENCH_LENGTH, ENGLISH_LENGTH = 6, 6  # words and mark; no other two lengths are as frequent among our sentences
N_HELD_OUT = 64


class Stack(nn.Module):
    """Layers of a GRU for one word at a time: in one call, or each in a call of its own."""

    def __init__(self, hidden: int, layers: int, *, a_call_each: bool) -> None:
        super().__init__()
        sizes = [1] * layers if a_call_each else [layers]
        self.calls = nn.ModuleList(nn.GRU(hidden, hidden, size) for size in sizes)
        self.sizes = sizes

    def forward(self, word: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Output (1, batch, hidden) of the last layer, and the next state (layers, batch, hidden)."""
        states = []
        for call, part in zip(self.calls, torch.split(state, self.sizes), strict=True):
            word, after = call(word, part)
            states.append(after)
        return word, states[0] if len(states) == 1 else torch.cat(states)


class Reader(nn.Module):
    """Reads one French word and carries the state on to the next."""

    def __init__(self, hidden: int, layers: int, *, a_call_each: bool) -> None:
        super().__init__()
        self.embedding = nn.Embedding(FRENCH_WORDS, hidden)
        self.stack = Stack(hidden, layers, a_call_each=a_call_each)

    def forward(self, word: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Output (1, batch, hidden) and next state, from the numbers (batch) of a word."""
        found: tuple[Tensor, Tensor] = self.stack(self.embedding(word).unsqueeze(0), state)
        return found


class Writer(nn.Module):
    """Writes one English word, having looked at what the reader said about each French one."""

    def __init__(self, hidden: int, layers: int, *, a_call_each: bool) -> None:
        super().__init__()
        self.embedding = nn.Embedding(ENGLISH_WORDS, hidden)
        self.dropout = nn.Dropout(DROPOUT)
        self.attn = nn.Linear(2 * hidden, FRENCH_LENGTH + 1)
        self.attn_combine = nn.Linear(2 * hidden, hidden)
        self.stack = Stack(hidden, layers, a_call_each=a_call_each)
        self.out = nn.Linear(hidden, ENGLISH_WORDS)

    def forward(self, word: Tensor, state: Tensor, read: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probabilities (batch, words) of the next word, and the next state; `read` is (batch, length, hidden)."""
        embedded = self.dropout(self.embedding(word))
        weights = torch.softmax(self.attn(torch.cat((embedded, state[-1]), 1)), dim=1)
        seen = torch.bmm(weights.unsqueeze(1), read).squeeze(1)
        mixed = torch.relu(self.attn_combine(torch.cat((embedded, seen), 1)))
        output, state = self.stack(mixed.unsqueeze(0), state)
        return torch.log_softmax(self.out(output[0]), dim=1), state


_drawn = lru_cache(maxsize=2)(draw)


@lru_cache(maxsize=2)
def sentences(pairs: tuple[Pair, ...]) -> tuple[Tensor, Tensor]:
    """Word numbers (length, sentences) of the pairs of one length, in French and in English, each with its end mark."""
    fitting = [
        pair
        for pair in pairs
        if len(words_of(pair.french)) == FRENCH_LENGTH and len(words_of(pair.english)) == ENGLISH_LENGTH
    ]
    french, english = (numbered(texts) for texts in zip(*((p.french, p.english) for p in pairs), strict=True))
    read = [[french[word] for word in words_of(pair.french)] + [END] for pair in fitting]
    written = [[english[word] for word in words_of(pair.english)] + [END] for pair in fitting]
    return torch.tensor(read).t().contiguous(), torch.tensor(written).t().contiguous()


class TranslatorJob:
    """A translator of one size with its sentences and optimizers on one device; calling it trains a step.

    Sets torch's global seed.
    """

    def __init__(
        self,
        device: torch.device,
        *,
        hidden: int,
        layers: int = 1,
        batch: int = 1,
        a_call_each: bool = False,
        seed: int = 0,
    ) -> None:
        self.device, self.hidden, self.layers, self.batch = device, hidden, layers, batch
        french, english = sentences(_drawn(seed))
        order = list(range(french.shape[1]))
        random.Random(seed).shuffle(order)
        self._french, self._english = french[:, order].to(device), english[:, order].to(device)
        torch.manual_seed(seed)
        self.reader = Reader(hidden, layers, a_call_each=a_call_each).to(device)
        self.writer = Writer(hidden, layers, a_call_each=a_call_each).to(device)
        self._sgd = [torch.optim.SGD(half.parameters(), lr=LEARNING_RATE) for half in (self.reader, self.writer)]

    def __call__(self, k: int) -> Tensor:
        """Train on the k-th batch of sentences; the mean loss of a word, left on the device."""
        for half in self._sgd:
            half.zero_grad()
        at = N_HELD_OUT + k * self.batch % (self._french.shape[1] - N_HELD_OUT - self.batch)
        loss = self._loss(self._french[:, at : at + self.batch], self._english[:, at : at + self.batch])
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it without annotations
        for half in self._sgd:
            half.step()
        return loss.detach() / (ENGLISH_LENGTH + 1)

    def held_out(self) -> float:
        """The mean loss of a word in sentences that no step trains on."""
        self.writer.eval()
        with torch.no_grad():
            loss = self._loss(self._french[:, :N_HELD_OUT], self._english[:, :N_HELD_OUT])
        self.writer.train()
        return float(loss) / (ENGLISH_LENGTH + 1)

    def _loss(self, french: Tensor, english: Tensor) -> Tensor:
        """The loss of a sentence's words together, mean over the sentences."""
        state = torch.zeros(self.layers, french.shape[1], self.hidden, device=self.device)
        outputs = []
        for word in french:
            output, state = self.reader(word, state)
            outputs.append(output[0])
        read = torch.stack(outputs, 1)
        word = torch.full((french.shape[1],), START, device=self.device)
        loss = torch.zeros((), device=self.device)
        for following in english:
            log_probability, state = self.writer(word, state, read)
            loss = loss + F.nll_loss(log_probability, following)
            word = following
        return loss
