"""The mystery job's translator trained in any way that a reader chooses: same model, same weights, other calls.

Called word by word it is the tutorial's loop with more sentences side by side. Called with whole sentences, the encoder
is one call of cuDNN's, and what the decoder does with words alone is done for all words at once, before its loop or
after it; sums are the same but for the order.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from gpututor.errors import ExperimentError
from gpututor.jobs.levers import Bits, Choices, Launch, Layers, Lengths, Schedule
from gpututor.jobs.numbering import END, START, Rows
from gpututor.jobs.rules import Rule, Way
from gpututor.jobs.tutorial import HIDDEN, MAX_LENGTH, TEACHER_FORCING

if TYPE_CHECKING:
    import torch
    from torch import Tensor

N_BEFORE_CAPTURE = 1  # eager step, which makes the optimizer's state; PyTorch's notes on CUDA graphs take three
IGNORED = -100  # torch's own number for a word that no loss is asked of


def batches(rows: Rows, choices: Choices, seed: int) -> list[list[int]]:
    """One pass through the sentences, as lists of their places; what doesn't fill a batch waits for the next pass."""
    chance = random.Random(seed)
    order = list(range(len(rows)))
    chance.shuffle(order)
    if choices.lengths is Lengths.MIXED:
        groups = [order]
    else:
        by_length: dict[int, list[int]] = {}
        for k in order:
            by_length.setdefault(int(rows.n_english[k]), []).append(k)
        groups = list(by_length.values())
    cut = [
        group[at : at + choices.batch]
        for group in groups
        for at in range(0, len(group) - choices.batch + 1, choices.batch)
    ]
    chance.shuffle(cut)
    return cut


class Raised:
    """The translator, its sentences and its optimizer on one device; a call trains the next batch.

    It draws its batches from `rows`, pass after pass. `n_seen` counts sentences; `captured` says whether the last step
    ran otherwise than those that come: as one before a capture, or with one. Sets torch's global seed.

    Raises:
        ExperimentError: these choices can't go together.
    """

    def __init__(
        self, device: torch.device, choices: Choices, rows: Rows, *, hidden: int = HIDDEN, seed: int = 0
    ) -> None:
        import torch

        from gpututor.jobs.seq2seq import AttentionDecoder, Encoder

        if choices.clash:
            raise ExperimentError(choices.clash)
        self.choices, self.rows, self.device, self.hidden = choices, rows, device, hidden
        torch.manual_seed(seed)
        self.encoder, self.decoder = Encoder(hidden=hidden).to(device), AttentionDecoder(hidden=hidden).to(device)
        self._forcing = random.Random(seed + 1)
        self.french = torch.from_numpy(rows.french).to(device)
        self.n_french = torch.from_numpy(rows.n_french).to(device)
        there = np.arange(MAX_LENGTH) < rows.n_english[:, None]
        self.wanted = torch.from_numpy(np.where(there, rows.english, IGNORED)).to(device)
        before = np.concatenate((np.full((len(rows), 1), START), rows.english[:, :-1]), 1)
        self.given = torch.from_numpy(before).to(device)
        self.parameters = [*self.encoder.parameters(), *self.decoder.parameters()]
        self.optimizer = _optimizer(choices, self.parameters, device)
        self.scaler = torch.amp.GradScaler(device.type, enabled=choices.bits is Bits.FP16)
        self.n_seen, self.captured, self._n_steps, self._seed = 0, False, 0, seed
        self._passes: list[list[int]] = []
        self._n_passes = self._at = 0
        self._order: Any = None
        self._graphs: dict[int, tuple[Any, tuple[Tensor, ...], Tensor]] = {}

    # --- a step ------------------------------------------------------------------------------------------------------

    def __call__(self) -> tuple[Tensor, float]:
        """Train the next batch: a sentence's summed loss, in the mean and left on the device, and words a sentence."""
        picked, at = self._next()
        length = int(self.rows.n_english[picked].max())
        places = MAX_LENGTH if self.choices.launch is Launch.GRAPH else int(self.rows.n_french[picked].max())
        if self.choices.launch is Launch.GRAPH and self.choices.lengths is Lengths.MIXED:
            length = MAX_LENGTH
        which = self._order[at : at + len(picked)]
        batch = (
            self.french[which][:, :places].t(),
            self.n_french[which],
            self.given[which][:, :length].t(),
            self.wanted[which][:, :length].t(),
        )
        self._set_rate()
        loss = self._graphed(length, batch) if self.choices.launch is Launch.GRAPH else self._train(batch)
        self.n_seen += len(picked)
        self._n_steps += 1
        return loss, float(self.rows.n_english[picked].sum()) / len(picked)

    def _next(self) -> tuple[list[int], int]:
        """The next batch's sentences, and where they stand in the order that lies on the device."""
        import torch

        if not self._passes:
            self._passes = batches(self.rows, self.choices, self._seed + self._n_passes)
            self._n_passes += 1
            if not self._passes:
                raise ExperimentError(f"no batch of {self.choices.batch} can be filled with {len(self.rows)} sentences")
            flat = [k for batch in self._passes for k in batch]
            self._order, self._at = torch.tensor(flat).to(self.device), 0
        picked = self._passes.pop(0)
        at, self._at = self._at, self._at + len(picked)
        return picked, at

    def _set_rate(self) -> None:
        if self.choices.schedule is Schedule.CONSTANT:
            return
        rate = self.choices.rate_at(self._n_steps)
        for group in self.optimizer.param_groups:
            if isinstance(group["lr"], float):
                group["lr"] = rate
            else:
                group["lr"].fill_(rate)

    def _train(self, batch: Sequence[Tensor]) -> Tensor:
        import torch

        self.optimizer.zero_grad()
        halves = self.choices.bits is Bits.FP16
        format_: AbstractContextManager[object] = (
            torch.autocast(self.device.type, torch.float16) if halves else nullcontext()
        )
        forward = self._whole if self.choices.layers is Layers.WHOLE else self._words
        with format_:
            loss = forward(*batch)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.detach()

    # --- graphs ------------------------------------------------------------------------------------------------------

    @property
    def _cuda(self) -> Any:
        """torch.cuda, or what takes its place on the simulated card."""
        import torch

        return getattr(torch, self.device.type)

    def _graphed(self, length: int, batch: Sequence[Tensor]) -> Tensor:
        """The step as a replay; the first ones beside it, and a capture for each length of sentence."""
        self.captured = True
        if self._n_steps < N_BEFORE_CAPTURE:
            side, here = self._cuda.Stream(), self._cuda.current_stream()
            side.wait_stream(here)
            with self._cuda.stream(side):
                loss = self._train(batch)
            here.wait_stream(side)
            return loss
        if length not in self._graphs:
            held = tuple(each.clone() for each in batch)
            graph = self._cuda.CUDAGraph()
            self.optimizer.zero_grad()
            with self._cuda.graph(graph):
                loss = self._train(held)
            self._graphs[length] = (graph, held, loss)
        else:
            self.captured = False
        graph, held, loss = self._graphs[length]
        for place, new in zip(held, batch, strict=True):
            place.copy_(new)
        graph.replay()
        return loss.clone()  # the next replay writes over it

    # --- the model, in two ways --------------------------------------------------------------------------------------

    def _words(self, french: Tensor, n_french: Tensor, given: Tensor, wanted: Tensor) -> Tensor:
        """The tutorial's loop: a call a word, half of the sentences decoded from the model's own last guess."""
        import torch
        import torch.nn.functional as F  # noqa: N812 - torch's own habit

        n = french.shape[1]
        encoder, decoder = self.encoder, self.decoder
        state = torch.zeros(1, n, self.hidden, device=self.device)
        read = torch.zeros(n, MAX_LENGTH, self.hidden, device=self.device)
        for t, words in enumerate(french):
            output, new = encoder.gru(encoder.embedding(words).unsqueeze(0), state)
            if n > 1:
                there = (t < n_french).view(1, n, 1)
                output, new = output * there, torch.where(there, new, state)
            read[:, t], state = output[0], new
        forced = self._forcing.random() < TEACHER_FORCING
        word, loss = given[0], torch.zeros((), device=self.device)
        for t, following in enumerate(wanted):
            embedded = decoder.dropout(decoder.embedding(word))
            weights = torch.softmax(decoder.attn(torch.cat((embedded, state[0]), 1)), 1)
            seen = torch.bmm(weights.unsqueeze(1), read).squeeze(1)
            mixed = torch.relu(decoder.attn_combine(torch.cat((embedded, seen), 1)))
            output, state = decoder.gru(mixed.unsqueeze(0), state)
            scores = torch.log_softmax(decoder.out(output[0]), 1)
            loss = loss + F.nll_loss(scores, following, ignore_index=IGNORED, reduction="sum")
            if forced:
                word = given[t + 1] if t + 1 < len(given) else word
            else:
                word = scores.topk(1)[1].squeeze(1).detach()
                if bool((word == END).all()):
                    break
        return loss / n

    def _whole(self, french: Tensor, n_french: Tensor, given: Tensor, wanted: Tensor) -> Tensor:
        """The same model with few calls; the right word is always given."""
        import torch
        import torch.nn.functional as F  # noqa: N812 - torch's own habit

        places, n = french.shape
        decoder, h = self.decoder, self.hidden
        outputs, _ = self.encoder.gru(self.encoder.embedding(french))
        last = (n_french - 1).view(1, n, 1).expand(1, n, h)
        state = outputs.gather(0, last)
        there = torch.arange(places, device=self.device).unsqueeze(1) < n_french
        read = (outputs * there.unsqueeze(2)).transpose(0, 1)
        words = decoder.dropout(decoder.embedding(given))
        look, look_state = decoder.attn.weight.split(h, 1)
        join, join_seen = decoder.attn_combine.weight.split(h, 1)
        looks = F.linear(words, look, decoder.attn.bias).unbind(0)
        joins = F.linear(words, join, decoder.attn_combine.bias).unbind(0)
        states = []
        for from_word, to_join in zip(looks, joins, strict=True):
            weights = torch.softmax(from_word + F.linear(state[0], look_state), 1)
            seen = torch.bmm(weights[:, :places].unsqueeze(1), read).squeeze(1)
            mixed = torch.relu(to_join + F.linear(seen, join_seen))
            output, state = decoder.gru(mixed.unsqueeze(0), state)
            states.append(output[0])
        scores = decoder.out(torch.stack(states))
        loss = F.cross_entropy(scores.flatten(0, 1), wanted.flatten(), ignore_index=IGNORED, reduction="sum")
        return loss / n


def _optimizer(choices: Choices, parameters: Any, device: torch.device) -> Any:
    """Torch's optimizer for these choices; its rate lies on the card where a graph has to see it change."""
    import torch

    rate: Any = choices.rate_at(0)
    graphed = choices.launch is Launch.GRAPH
    if graphed and choices.schedule is Schedule.FALLING:
        rate = torch.tensor(rate, device=device)
    ways = {"foreach": choices.update is Way.FOREACH, "fused": choices.update is Way.FUSED}
    make: Callable[..., Any] = torch.optim.Adam if choices.rule is Rule.ADAM else torch.optim.SGD
    return make(parameters, lr=rate, **ways, **({"capturable": True} if graphed and choices.rule is Rule.ADAM else {}))
