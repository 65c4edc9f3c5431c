"""Tacotron 2: an LSTM decoder that looks back at the text for every frame of a spectrogram.

Source of every fact here: NVIDIA/DeepLearningExamples PyTorch/SpeechSynthesis/Tacotron2 at 729963d, tacotron2/model.py
unless another file is named.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

F = nn.functional
N_SYMBOLS = 148  # tacotron2/text/symbols.py
N_MELS, WIDTH, STATE, ATTENTION, PRENET = 80, 512, 1024, 128, 256  # tacotron2/arg_parser.py


def _conv(n_in: int, n_out: int, size: int, bias: bool = True) -> nn.Conv1d:
    return nn.Conv1d(n_in, n_out, size, padding=size // 2, bias=bias)


class TextEncoder(nn.Module):
    """Three convolutions over the letters and an LSTM in both directions, packed."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(N_SYMBOLS, WIDTH)
        self.convs = nn.ModuleList(nn.Sequential(_conv(WIDTH, WIDTH, 5), nn.BatchNorm1d(WIDTH)) for _ in range(3))
        self.lstm = nn.LSTM(WIDTH, WIDTH // 2, batch_first=True, bidirectional=True)

    def forward(self, text: Tensor, lengths: Tensor) -> Tensor:
        """(text, letter, 512); `lengths` lie in the host's memory and fall."""
        x = self.embedding(text).transpose(1, 2)
        for conv in self.convs:
            x = F.dropout(F.relu(conv(x)), 0.5, self.training)
        packed = nn.utils.rnn.pack_padded_sequence(x.transpose(1, 2), lengths, batch_first=True)
        out, _ = nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        return out


class LocationAttention(nn.Module):
    """Where to look, from the decoder's state, the text and where it looked before."""

    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(STATE, ATTENTION, bias=False)
        self.memory = nn.Linear(WIDTH, ATTENTION, bias=False)
        self.score = nn.Linear(ATTENTION, 1, bias=False)
        self.place_conv, self.place = _conv(2, 32, 31, bias=False), nn.Linear(32, ATTENTION, bias=False)

    def forward(self, state: Tensor, memory: Tensor, keys: Tensor, seen: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """What the text says there (text, 512), and the weights (text, letter)."""
        place = self.place(self.place_conv(seen).transpose(1, 2))
        scores = self.score(torch.tanh(self.query(state.unsqueeze(1)) + place + keys)).squeeze(2)
        weights = F.softmax(scores.masked_fill(mask, -float("inf")), dim=1)
        return torch.bmm(weights.unsqueeze(1), memory).squeeze(1), weights


class FrameDecoder(nn.Module):
    """Frame after frame: an LSTM cell, attention, a second cell, and the frame with its stop mark."""

    def __init__(self) -> None:
        super().__init__()
        self.prenet = nn.ModuleList(nn.Linear(n, PRENET, bias=False) for n in (N_MELS, PRENET))
        self.attention_cell = nn.LSTMCell(PRENET + WIDTH, STATE)
        self.attention = LocationAttention()
        self.decoder_cell = nn.LSTMCell(STATE + WIDTH, STATE)
        self.frame, self.stop = nn.Linear(STATE + WIDTH, N_MELS), nn.Linear(STATE + WIDTH, 1)

    def forward(self, memory: Tensor, mels: Tensor, mask: Tensor, n_frames: int) -> tuple[Tensor, Tensor]:
        """The first frames (text, mel, frame) and stop marks (text, frame), each frame from the true ones before it."""
        n, n_letters = memory.shape[:2]
        given = torch.cat((memory.new_zeros(1, n, N_MELS), mels.permute(2, 0, 1)), dim=0)
        for layer in self.prenet:
            given = F.dropout(F.relu(layer(given)), 0.5, True)
        first = second = (memory.new_zeros(n, STATE), memory.new_zeros(n, STATE))
        weights, total, context = (memory.new_zeros(n, size) for size in (n_letters, n_letters, WIDTH))
        keys = self.attention.memory(memory)
        frames, stops = [], []
        for k in range(n_frames):
            hidden, cell = self.attention_cell(torch.cat((given[k], context), -1), first)
            hidden = F.dropout(hidden, 0.1, self.training)
            first = hidden, cell
            seen = torch.cat((weights.unsqueeze(1), total.unsqueeze(1)), dim=1)
            context, weights = self.attention(hidden, memory, keys, seen, mask)
            total = total + weights
            hidden, cell = self.decoder_cell(torch.cat((hidden, context), -1), second)
            hidden = F.dropout(hidden, 0.1, self.training)
            second = hidden, cell
            both = torch.cat((hidden, context), dim=1)
            frames.append(self.frame(both))
            stops.append(self.stop(both).squeeze())
        return (
            torch.stack(frames).transpose(0, 1).contiguous().transpose(1, 2),
            torch.stack(stops).transpose(0, 1).contiguous(),
        )


class Postnet(nn.Module):
    """Five convolutions that refine the whole spectrogram."""

    def __init__(self) -> None:
        super().__init__()
        widths = (N_MELS, WIDTH, WIDTH, WIDTH, WIDTH, N_MELS)
        self.convs = nn.ModuleList(nn.Sequential(_conv(a, b, 5), nn.BatchNorm1d(b)) for a, b in pairwise(widths))

    def forward(self, x: Tensor) -> Tensor:
        """What to add to the frames."""
        for conv in self.convs[:-1]:
            x = F.dropout(torch.tanh(conv(x)), 0.5, self.training)
        return F.dropout(self.convs[-1](x), 0.5, self.training)


class Tacotron2(nn.Module):
    """The whole network."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder, self.postnet = TextEncoder(), FrameDecoder(), Postnet()

    def forward(
        self, text: Tensor, lengths: Tensor, host_lengths: Tensor, mels: Tensor, n_frames: int = 0
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Frames, refined frames, and stop marks of as many frames as `mels` has, or of the first `n_frames`."""
        memory = self.encoder(text, host_lengths)
        mask = torch.arange(text.shape[1], device=text.device) >= lengths.unsqueeze(1)
        frames, stops = self.decoder(memory, mels, mask, n_frames or mels.shape[2])
        return frames, frames + self.postnet(frames), stops


def frame_loss(found: tuple[Tensor, Tensor, Tensor], mels: Tensor, stops: Tensor) -> Tensor:
    """Squared errors of both spectrograms and the stop marks' cross-entropy (tacotron2/loss_function.py)."""
    frames, refined, marks = found
    errors = F.mse_loss(frames, mels) + F.mse_loss(refined, mels)
    return errors + F.binary_cross_entropy_with_logits(marks.view(-1, 1), stops.view(-1, 1))
