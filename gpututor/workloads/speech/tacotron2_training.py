"""Training Tacotron 2 on LJ Speech: its batches, the step, and what an epoch's loading adds.

Source of the step: NVIDIA/DeepLearningExamples PyTorch/SpeechSynthesis/Tacotron2 at 729963d, train.py and
tacotron2/data_function.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gpututor.workloads.setting import Job, Setting, Workload
from gpututor.workloads.speech.tacotron2 import N_MELS, N_SYMBOLS, Tacotron2, frame_loss
from gpututor.workloads.training import autocast, prepared
from gpututor.workloads.waiting import wait_for, wait_for_input

# LJ Speech 1.1 (keithito.com): clips of 6.57 s on average and 10.10 at most; at 22,050 samples a second and 256 samples
# a frame (train.py) that is 566 and 870 frames. A batch of 70 and more has nearly the longest.
MEAN_FRAMES, FRAMES = 566, 860
# filelists/ljs_audio_text_train_filelist.txt there: 100 letters on average, 187 at most; the longest of 108 texts drawn
# from it has 168 on average, the shortest few have 30.
LETTERS, SHORTEST = 168, 32
N_VALIDATED = 100  # filelists/ljs_audio_text_val_filelist.txt
# One worker reads sound files and makes spectrograms on the host (num_workers=1, `get_mel`): seconds for one clip.
# Source: lambdal/deeplearning-benchmark at aa5addb, pytorch/results: from "train_epoch_start" to the first
# "train_iter_start" of the second epoch, over the batch; median of the 22 logs of one card, which give 21 to 32 ms.
CLIP_S = 0.0224


@dataclass(frozen=True, slots=True)
class Clips:
    """One batch in the host's memory, not pinned (train.py)."""

    text: Tensor
    letters: Tensor
    mels: Tensor
    stops: Tensor
    frames: Tensor


def clips(n: int, n_frames: int) -> Clips:
    """A batch of n texts, lengths falling evenly."""
    letters = torch.linspace(LETTERS, SHORTEST, n).round().long()
    frames = torch.linspace(n_frames, max(1, 2 * MEAN_FRAMES - n_frames), n).round().long()
    text = torch.randint(1, N_SYMBOLS, (n, LETTERS))
    return Clips(text, letters, torch.zeros(n, N_MELS, n_frames), torch.zeros(n, n_frames), frames)


class Trainer:
    """One step: copies, forward, the loss read by the host, backward, gradients clipped to 1, Adam, a wait."""

    def __init__(self, setting: Setting, device: str) -> None:
        self.setting, self.device = setting, device
        self.n_decoded = int(setting.options["decoded"]) or int(setting.options["frames"])
        self.net = prepared(Tacotron2(), setting)
        self.adam = torch.optim.Adam(self.net.parameters(), lr=1e-3, weight_decay=1e-6, foreach=False)
        self.scaler = torch.amp.GradScaler(device, enabled=setting.precision == "amp")

    def loss(self, batch: Clips, n_decoded: int) -> Tensor:
        """Forward as far as so many frames, and all before it."""
        device = self.device
        text, letters = batch.text.to(device).long(), batch.letters.to(device).long()
        torch.max(letters).item()
        mels, stops = batch.mels.to(device).float(), batch.stops.to(device).float()
        n_frames = torch.sum(batch.frames.to(device).long())
        with autocast(self.setting, device):
            letters.cpu()  # for packing; without numerics its values aren't there, so the host's own are used
            found = self.net(text, letters, batch.letters, mels, n_decoded)
            loss = frame_loss(found, mels[:, :, :n_decoded], stops[:, :n_decoded].contiguous())
        loss.item()
        n_frames.item()
        return loss

    def train(self, batch: Clips) -> Tensor:
        """One training step."""
        wait_for(self.device)
        self.net.zero_grad()
        loss = self.loss(batch, self.n_decoded)
        torch.autograd.backward(self.scaler.scale(loss))
        if self.setting.kind == "train":
            self.scaler.unscale_(self.adam)
            torch.nn.utils.clip_grad_norm_(self.net.parameters(), 1.0, foreach=False)
            self.scaler.step(self.adam)
            self.scaler.update()
        wait_for(self.device)
        return loss

    def validate(self, batch: Clips, n_decoded: int) -> None:
        """One batch of validation."""
        self.net.eval()
        with torch.no_grad():
            self.loss(batch, n_decoded)
        wait_for(self.device)
        self.net.train()


def _tacotron2(setting: Setting, device: str) -> Job:
    """A step; with `per_epoch` it carries its share of an epoch of so many batches, loading and validation included.

    Each epoch makes its loader anew, so the card waits for the first batch; later ones are made while it works. Then
    100 clips are validated in batches of the same size, made by a new worker while the card waits. A step's share of
    both is the part that one batch is of the epoch. With `decoded` a step stops after so many of its frames, and waits
    in proportion: as fast, and quicker to predict.
    """
    n = setting.batch
    assert n is not None
    per_epoch, n_frames = int(setting.options["per_epoch"]), int(setting.options["frames"])
    batch = clips(n, n_frames)
    n_validated = min(n, N_VALIDATED)
    validated = clips(n_validated, n_frames)
    with torch.device(device):
        trainer = Trainer(setting, device)
    done_share = trainer.n_decoded / n_frames

    def train(k: int) -> Tensor:
        if per_epoch:
            wait_for_input(device, (n + n_validated) * CLIP_S / per_epoch * done_share)
            left = max(
                1, -(-N_VALIDATED // n) * trainer.n_decoded // per_epoch
            )  # frames of all batches, a share of them
            while left > 0:
                trainer.validate(validated, min(left, n_frames))
                left -= n_frames
        return trainer.train(batch)

    def infer(k: int) -> None:
        trainer.validate(batch, trainer.n_decoded)

    return Job(infer if setting.kind == "infer" else train, n * MEAN_FRAMES * done_share)


TACOTRON2 = Workload(
    "tacotron2",
    "Tacotron 2, LJ Speech, frames of spectrogram; per_epoch counts an epoch's batches, 0 leaves its loading out",
    "NVIDIA/DeepLearningExamples PyTorch/SpeechSynthesis/Tacotron2 at 729963d",
    "frame",
    104,
    _tacotron2,
    {"frames": FRAMES, "per_epoch": 0, "decoded": 0},
    long_step=True,
)
