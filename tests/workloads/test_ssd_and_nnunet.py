"""Networks that find and outline things have the published shapes and losses."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch

from gpututor.predict import predict
from gpututor.timeline import Activity
from gpututor.workloads.detection.ssd import N_BOXES, N_CLASSES, SSD300, Ssd300
from gpututor.workloads.segmentation.nnunet import NNUNET_2D, NNUNET_3D, NnUnet, dice_and_cross_entropy
from gpututor.workloads.setting import Setting


def test_ssd_gives_a_place_and_scores_for_each_of_its_8732_boxes():
    with torch.device("meta"):
        places, scores = Ssd300()(torch.empty(2, 3, 300, 300))

    assert places.shape == (2, 4, N_BOXES)
    assert scores.shape == (2, N_CLASSES, N_BOXES)


@pytest.mark.parametrize("dim", [2, 3])
def test_nnunet_has_two_blocks_a_level_and_transposed_convolutions(dim):
    widths = {2: (32, 64, 128, 256, 512, 512), 3: (32, 64, 128, 256, 320, 320)}[dim]
    pairs = list(pairwise(widths))
    tap, corners = 3**dim, 2**dim
    norms = 4  # two norms a block, a weight and a bias each
    blocks = sum(tap * (n_in * n + n * n) + norms * n for n_in, n in ((4, 32), *pairs, *((2 * a, a) for a, _ in pairs)))
    counted = blocks + sum(corners * a * b + a for a, b in pairs) + 32 * 4 + 4

    with torch.device("meta"):
        net = NnUnet(dim)

    assert sum(p.numel() for p in net.parameters()) == counted


def test_scores_are_as_large_as_the_picture():
    with torch.device("meta"):
        assert NnUnet(2)(torch.empty(1, 4, 192, 160)).shape == (1, 4, 192, 160)


def test_a_perfect_outline_loses_nearly_nothing():
    labels = torch.randint(0, 4, (2, 1, 8, 8))
    sure = 50.0 * torch.nn.functional.one_hot(labels[:, 0], 4).permute(0, 3, 1, 2).float()

    assert dice_and_cross_entropy(sure, labels).item() == pytest.approx(0.0, abs=1e-4)


@pytest.mark.parametrize("workload", [SSD300, NNUNET_2D, NNUNET_3D], ids=lambda w: w.name)
@pytest.mark.parametrize("kind", ["train", "infer"])
def test_each_is_predicted_in_the_layouts_that_were_measured(workload, kind):
    told = predict(workload, Setting(kind, 2, "amp", "nhwc"))

    assert told.per_s > 0


def test_the_loss_is_read_before_backward():
    spans = predict(NNUNET_2D, Setting("train", 1)).timeline.spans

    assert any(s.activity is Activity.COPY_TO_HOST for s in spans)
