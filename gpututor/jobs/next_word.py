"""A small language model that guesses the next word, with one layer in the middle that can be of several kinds.

Everything but that layer is the same: a table of words below it, a product to all words above it, Adam, and running
English text from our own sentences. So what the layer costs, and what it learns, can be compared.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from functools import lru_cache

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own habit
from torch import Tensor, nn

from gpututor.jobs.corpus import draw, words_of

WIDTH = 256  # the hidden size of PyTorch's seq2seq tutorial, which the course began with
BATCH = 32
HEADS = 4
MOST_WORDS = 1024  # places that the Transformer has a vector for
LEARNING_RATE = 3e-3


class LstmLoop(nn.Module):
    """An LSTM written out word by word; its arithmetic is that of nn.LSTM, whose starting weights it takes.

    `hoisted` multiplies the whole sequence with the input's weights before the loop, which doesn't need to wait for
    any state. Source of the formulas: the documentation of torch.nn.LSTM.
    """

    def __init__(self, width: int, *, hoisted: bool = False) -> None:
        super().__init__()
        self.hoisted = hoisted
        taken = (each.detach() for each in nn.LSTM(width, width).parameters())  # torch's order: weights, then biases
        self.w_in, self.w_rec, self.b_in, self.b_rec = map(nn.Parameter, taken)

    def forward(self, words: Tensor) -> Tensor:
        """States (length, batch, width) after each word of `words`, of the same shape."""
        state = memory = words.new_zeros(words.shape[1:])
        seen = F.linear(words, self.w_in, self.b_in).unbind(0) if self.hoisted else None
        states = []
        for t in range(words.shape[0]):
            from_word = F.linear(words[t], self.w_in, self.b_in) if seen is None else seen[t]
            gates = from_word + F.linear(state, self.w_rec, self.b_rec)
            enter, forget, new, leave = gates.chunk(4, 1)
            memory = torch.sigmoid(forget) * memory + torch.sigmoid(enter) * torch.tanh(new)
            state = torch.sigmoid(leave) * torch.tanh(memory)
            states.append(state)
        return torch.stack(states)


class Whole(nn.Module):
    """One of torch's recurrent layers, called once for the whole sequence."""

    def __init__(self, layer: nn.RNNBase) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, words: Tensor) -> Tensor:
        """States (length, batch, width) after each word."""
        states: Tensor = self.layer(words)[0]
        return states


class OneByOne(Whole):
    """The same layer, called anew for every word."""

    def forward(self, words: Tensor) -> Tensor:
        """States (length, batch, width) after each word."""
        states, state = [], None
        for t in range(words.shape[0]):
            out, state = self.layer(words[t : t + 1], state)
            states.append(out)
        return torch.cat(states)


class Scan(nn.Module):
    """A GRU whose gates look at the word only, never at the state: state = (1 - z) * state + z * new.

    Such steps can be joined two by two, so all states come out in as many rounds as the length can be halved.
    Sources: Feng and others 2024, "Were RNNs all we needed?" (minGRU); Hillis and Steele 1986 for the rounds.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gates = nn.Linear(width, 2 * width)

    def forward(self, words: Tensor) -> Tensor:
        """States (length, batch, width) after each word."""
        z, new = self.gates(words).chunk(2, -1)
        kept = torch.sigmoid(-z)
        added: Tensor = torch.sigmoid(z) * new
        reach = 1
        while reach < words.shape[0]:
            added = torch.cat((added[:reach], added[reach:] + kept[reach:] * added[:-reach]))
            kept = torch.cat((kept[:reach], kept[reach:] * kept[:-reach]))
            reach *= 2
        return added


class Block(nn.Module):
    """One block of a Transformer that sees what came before only, its norms first; places have vectors of their own."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.place = nn.Embedding(MOST_WORDS, width)
        self.norm, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, words: Tensor) -> Tensor:
        """What stands at each place (length, batch, width) after looking at all places before."""
        length, batch, width = words.shape
        words = words + self.place.weight[:length, None]
        heads = self.qkv(self.norm(words)).view(length, batch, 3, HEADS, width // HEADS)
        query, key, value = heads.permute(2, 1, 3, 0, 4).unbind(0)
        seen = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        words = words + self.out(seen.permute(2, 0, 1, 3).reshape(length, batch, width))
        out: Tensor = words + self.down(F.gelu(self.up(self.norm_2(words))))
        return out


LAYERS: Mapping[str, Callable[[int], nn.Module]] = {
    "loop": LstmLoop,
    "hoisted": lambda width: LstmLoop(width, hoisted=True),
    "lstm": lambda width: Whole(nn.LSTM(width, width)),
    "gru_words": lambda width: OneByOne(nn.GRU(width, width)),
    "gru": lambda width: Whole(nn.GRU(width, width)),
    "scan": Scan,
    "transformer": Block,
}
"""What can stand in the middle, by name; a new kind is one more line."""


@lru_cache(maxsize=4)
def running_text(batch: int, seed: int = 0) -> tuple[Tensor, int]:
    """Word numbers (places, batch) of our English sentences one after the other, each column a stretch of its own.

    The second value is how many different words there are.
    """
    words = list(itertools.chain.from_iterable(words_of(pair.english) for pair in draw(seed)))
    number = {word: k for k, word in enumerate(dict.fromkeys(words))}
    n_places = len(words) // batch
    rows = torch.tensor([number[word] for word in words[: n_places * batch]])
    return rows.view(batch, n_places).t().contiguous(), len(number)


class NextWordJob:
    """The language model with its text and optimizer on one device, `length` words of every column a step.

    Jobs of the same seed start with the same table of words, and those with the same arithmetic in the middle with the
    same weights. Sets torch's global seed.
    """

    def __init__(
        self, device: torch.device, layer: str, length: int, *, batch: int = BATCH, width: int = WIDTH, seed: int = 0
    ) -> None:
        text, n_words = running_text(batch, seed)
        torch.manual_seed(seed)
        self.length = length
        self.model = nn.Sequential(nn.Embedding(n_words, width), LAYERS[layer](width), nn.Linear(width, n_words))
        self.model.to(device)
        self._text = text.to(device)
        self._adam = torch.optim.Adam(self.model.parameters(), lr=LEARNING_RATE)

    def step(self, k: int) -> Tensor:
        """Train on the k-th stretch of the text; the mean loss of a word, left on the device."""
        at = k * self.length % (self._text.shape[0] - self.length - 1)
        words, following = self._text[at : at + self.length], self._text[at + 1 : at + 1 + self.length]
        self._adam.zero_grad()
        loss = F.cross_entropy(self.model(words).flatten(0, 1), following.flatten())
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it without annotations
        self._adam.step()
        return loss.detach()
