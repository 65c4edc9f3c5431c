"""Tacotron 2 and WaveGlow do what their programs do, loading included."""

from __future__ import annotations

import pytest
import torch

from gpututor.predict import predict
from gpututor.timeline import Activity
from gpututor.workloads.setting import Setting
from gpututor.workloads.speech.tacotron2 import Tacotron2, frame_loss
from gpututor.workloads.speech.tacotron2_training import CLIP_S, MEAN_FRAMES, TACOTRON2, clips
from gpututor.workloads.speech.waveglow import WAVEGLOW, WaveGlow, flow_loss


def n_params(net: type[torch.nn.Module]) -> int:
    with torch.device("meta"):
        return sum(p.numel() for p in net().parameters())


def test_tacotron_decodes_as_many_frames_as_the_spectrogram_has():
    batch = clips(2, 5)
    frames, refined, stops = Tacotron2()(batch.text, batch.letters, batch.letters, batch.mels)

    assert frames.shape == refined.shape == batch.mels.shape
    assert stops.shape == batch.stops.shape
    assert frame_loss((frames, refined, stops), batch.mels, batch.stops).isfinite()


def test_tacotron_has_28_million_parameters():
    # Letters and their LSTM in both directions, two cells of the decoder, and the convolutions are nearly all of them.
    conv = 5 * 512 * 512
    lstm = 2 * 4 * 256 * (512 + 256)
    cells = 4 * 1024 * (256 + 512 + 1024) + 4 * 1024 * (1024 + 512 + 1024)

    assert n_params(Tacotron2) == pytest.approx(3 * conv + lstm + cells + 3 * conv + 2 * 5 * 512 * 80, rel=0.03)


def test_frames_of_a_batch_are_the_corpus_mean_on_average():
    assert clips(104, 860).frames.float().mean().item() == pytest.approx(MEAN_FRAMES, rel=0.01)


def waited_s(per_epoch: int) -> float:
    told = predict(TACOTRON2, Setting("train", 4, options={"frames": 3, "per_epoch": per_epoch}))
    return sum(s.end_ns - s.start_ns for s in told.timeline.spans if s.activity is Activity.INPUT) / 1e9


def test_a_step_alone_waits_for_no_loader():
    assert waited_s(0) == 0


def test_a_step_carries_its_share_of_the_first_batch_and_of_validation():
    assert waited_s(2) == pytest.approx((4 + 4) * CLIP_S / 2)


def test_waveglow_keeps_the_number_of_samples():
    with torch.device("meta"):
        noise, scales, determinants = WaveGlow()(torch.empty(1, 80, 33), torch.empty(1, 8000))

    assert noise.shape == (1, 8, 1000)
    assert len(scales) == len(determinants) == 12


def test_a_flow_that_changes_nothing_costs_the_noise_alone():
    noise = torch.randn(1, 8, 10)

    assert torch.isclose(flow_loss((noise, [torch.zeros(1, 4, 10)], [torch.zeros(())])), noise.square().mean() / 2)


def test_waveglow_is_predicted():
    assert predict(WAVEGLOW, Setting("train", 1, "amp")).per_s > 0


def test_a_part_of_the_frames_takes_that_part_of_the_waiting_and_of_the_count():
    told = predict(TACOTRON2, Setting("train", 4, options={"frames": 8, "per_epoch": 2, "decoded": 2}))
    waited = sum(s.end_ns - s.start_ns for s in told.timeline.spans if s.activity is Activity.INPUT) / 1e9

    assert waited == pytest.approx((4 + 4) * CLIP_S / 2 / 4)
    assert told.n_per_step == 4 * MEAN_FRAMES / 4
