"""The asker's job: translate French into English, one sentence a step, with attention.

A plain torch script of the kind that PyTorch's tutorial "Translation with a
Sequence to Sequence Network and Attention" taught from 2017 to 2023: every word
is its own call of a GRU, both halves have their own SGD, and half of the
sentences are decoded word by word from the model's own last guess.
Nothing in here knows how it is watched or which device it runs on.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from gpututor.jobs.corpus import Pair, draw, words_of
from gpututor.jobs.numbering import END, START, numbered
from gpututor.jobs.tutorial import (
    DROPOUT,
    ENGLISH_WORDS,
    FRENCH_WORDS,
    HIDDEN,
    LEARNING_RATE,
    MAX_LENGTH,
    TEACHER_FORCING,
)


class Encoder(nn.Module):
    """Reads one word and carries a hidden state on to the next."""

    def __init__(self, n_words: int = FRENCH_WORDS, hidden: int = HIDDEN) -> None:
        super().__init__()
        self.embedding = nn.Embedding(n_words, hidden)
        self.gru = nn.GRU(hidden, hidden)

    def forward(self, word: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Output and next state, both (1, 1, hidden)."""
        output, state = self.gru(self.embedding(word).view(1, 1, -1), state)
        return output, state


class AttentionDecoder(nn.Module):
    """Writes one word, having looked at what the encoder said about each word it read."""

    def __init__(self, n_words: int = ENGLISH_WORDS, hidden: int = HIDDEN, max_length: int = MAX_LENGTH) -> None:
        super().__init__()
        self.embedding = nn.Embedding(n_words, hidden)
        self.dropout = nn.Dropout(DROPOUT)
        self.attn = nn.Linear(2 * hidden, max_length)
        self.attn_combine = nn.Linear(2 * hidden, hidden)
        self.gru = nn.GRU(hidden, hidden)
        self.out = nn.Linear(hidden, n_words)

    def forward(self, word: Tensor, state: Tensor, read: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probabilities (1, n_words) of the next word, and the next state (1, 1, hidden)."""
        embedded = self.dropout(self.embedding(word).view(1, 1, -1))
        weights = torch.softmax(self.attn(torch.cat((embedded[0], state[0]), 1)), dim=1)
        seen = torch.bmm(weights.unsqueeze(0), read.unsqueeze(0))
        mixed = self.attn_combine(torch.cat((embedded[0], seen[0]), 1)).unsqueeze(0)
        output, state = self.gru(torch.relu(mixed), state)
        return torch.log_softmax(self.out(output[0]), dim=1), state


@dataclass(frozen=True, slots=True)
class Sentence:
    """One pair as word numbers on the device, each (length, 1) and ending in the end mark."""

    french: Tensor
    english: Tensor


class Seq2SeqJob:
    """The translator, its data and its optimizers on one device.

    The word tables have the tutorial's size, because table size sets how long the
    output layer and the updates take. Our corpus is smaller in words (about 400
    French and 220 English) and equal in pairs, so the rest of both tables is never looked up.
    As in the tutorial, sentences are put on the device before training:
    `n_steps` of them at once, later ones when their step comes.

    `as_in_2019` updates as torch did before 2.0: gradients are overwritten with zeros instead of dropped, and
    each parameter is updated by kernels of its own. Losses are the same, kernels and launches are more.
    Source: PyTorch 2.0 release notes (zero_grad sets to None, foreach is the default).

    Sets torch's global seed, so jobs made one after the other repeat exactly, jobs that take turns don't.
    """

    def __init__(
        self,
        device: str = "cpu",
        seed: int = 0,
        *,
        n_steps: int = 0,
        hidden: int = HIDDEN,
        pairs: tuple[Pair, ...] | None = None,
        as_in_2019: bool = False,
    ) -> None:
        self.device, self.hidden = torch.device(device), hidden
        self.pairs = draw(seed) if pairs is None else pairs
        self.french = numbered(pair.french for pair in self.pairs)
        self.english = numbered(pair.english for pair in self.pairs)
        self._choice, self._forcing = random.Random(seed), random.Random(seed + 1)
        torch.manual_seed(seed)
        self.encoder = Encoder(hidden=hidden).to(self.device)
        self.decoder = AttentionDecoder(hidden=hidden).to(self.device)
        self._drop_gradients = not as_in_2019
        foreach = False if as_in_2019 else None  # None: torch decides
        self._encoder_sgd = torch.optim.SGD(self.encoder.parameters(), lr=LEARNING_RATE, foreach=foreach)
        self._decoder_sgd = torch.optim.SGD(self.decoder.parameters(), lr=LEARNING_RATE, foreach=foreach)
        self._criterion = nn.NLLLoss()
        self._sentences: list[Sentence] = []
        self.prepare(n_steps)

    @property
    def models(self) -> tuple[nn.Module, nn.Module]:
        """Encoder and decoder."""
        return self.encoder, self.decoder

    def prepare(self, n_steps: int) -> None:
        """Put the sentences of the first `n_steps` steps on the device."""
        while len(self._sentences) < n_steps:
            pair = self._choice.choice(self.pairs)
            french = self._tensor(self.french, pair.french)
            self._sentences.append(Sentence(french, self._tensor(self.english, pair.english)))

    def _tensor(self, number: dict[str, int], text: str) -> Tensor:
        row = [number[word] for word in words_of(text)] + [END]
        return torch.tensor(row, dtype=torch.long, device=self.device).view(-1, 1)

    def step(self, k: int) -> float:
        """Train on sentence `k`; comes back with its mean loss per word.

        Its parts can also be called one by one: `sentence`, `forward`, `backward`, `update`.
        """
        sentence = self.sentence(k)
        loss = self.forward(sentence)
        self.backward(loss)
        self.update()
        return loss.item() / sentence.english.size(0)

    def sentence(self, k: int) -> Sentence:
        """The pair that step `k` trains on."""
        self.prepare(k + 1)
        return self._sentences[k]

    def forward(self, sentence: Sentence) -> Tensor:
        """The summed loss of one sentence, gradients cleared before."""
        self._encoder_sgd.zero_grad(set_to_none=self._drop_gradients)
        self._decoder_sgd.zero_grad(set_to_none=self._drop_gradients)
        state = torch.zeros(1, 1, self.hidden, device=self.device)
        read = torch.zeros(MAX_LENGTH, self.hidden, device=self.device)
        for i in range(sentence.french.size(0)):
            output, state = self.encoder(sentence.french[i], state)
            read[i] = output[0, 0]
        return self._decode(sentence.english, state, read)

    def _decode(self, english: Tensor, state: Tensor, read: Tensor) -> Tensor:
        word = torch.tensor([[START]], device=self.device)
        forced = self._forcing.random() < TEACHER_FORCING
        loss: Tensor | int = 0
        for i in range(english.size(0)):
            log_probability, state = self.decoder(word, state, read)
            loss = loss + self._criterion(log_probability, english[i])
            if forced:
                word = english[i]
            else:
                word = log_probability.topk(1)[1].squeeze().detach()
                if word.item() == END:
                    break
        return cast("Tensor", loss)  # a sentence has at least its end mark

    def backward(self, loss: Tensor) -> None:
        """Gradients of both halves."""
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it without annotations

    def update(self) -> None:
        """One SGD step of both halves."""
        self._encoder_sgd.step()
        self._decoder_sgd.step()


def train(job: Seq2SeqJob, n_steps: int) -> Iterator[float]:
    """The loss of each step, as it is made."""
    for k in range(n_steps):
        yield job.step(k)
