"""A step in several number formats: what computes in which, and what the scaler does."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from gpututor.experiments.formats import INIT_SCALE, Format, Training, tf32  # noqa: E402 - needs torch
from gpututor.simgpu import simulated_gpu  # noqa: E402

nn = torch.nn


def trained(number_format: Format, device: str, **options):
    """A network of one weight in that format, and the dtype in which it multiplied."""
    net = nn.Linear(4, 1, bias=False, device=device)
    with torch.no_grad():
        net.weight.fill_(1.0)
    seen = []
    train = Training(number_format, net, torch.optim.SGD(net.parameters(), lr=0.5), torch.device(device), **options)

    def loss_of():
        out = net(torch.ones(2, 4, device=device))
        seen.append(out.dtype)
        return out.mean()

    train(loss_of)
    return net, train, seen[0]


@pytest.mark.parametrize(
    ("number_format", "dtype"),
    [
        (Format.FP32, torch.float32),
        (Format.TF32, torch.float32),
        (Format.FP16, torch.float16),
        (Format.BF16, torch.bfloat16),
    ],
)
@pytest.mark.parametrize("device", ["cpu", "simgpu"])
def test_products_run_in_the_format_and_weights_stay_in_fp32(number_format, dtype, device):
    with simulated_gpu():
        net, _, seen = trained(number_format, device, init_scale=2.0**10)  # the usual one overflows here

        assert seen is dtype
        assert net.weight.dtype is torch.float32
        # the mean of two equal rows of ones: each weight's gradient is 1, and the rate is a half
        assert net.weight.detach().cpu().flatten().tolist() == [0.5] * 4


def test_only_fp16_has_a_scaler_and_only_where_it_is_asked_for():
    with simulated_gpu():
        enabled = {each: trained(each, "simgpu")[1].scaler.is_enabled() for each in Format}

        assert enabled == {each: each is Format.FP16 for each in Format}
        assert not trained(Format.FP16, "simgpu", scaled=False)[1].scaler.is_enabled()


def test_an_overflow_leaves_the_weights_and_halves_the_scale():
    with simulated_gpu():
        net, train, _ = trained(Format.FP16, "simgpu", init_scale=2.0**40)

        assert net.weight.detach().cpu().flatten().tolist() == [1.0] * 4
        assert train.scaler.get_scale() == 2.0**39


def test_the_usual_scale_is_torchs():
    assert torch.amp.GradScaler("cpu").get_scale() == INIT_SCALE


@pytest.mark.parametrize("allowed", [True, False])
def test_tf32_is_allowed_inside_the_block_alone(allowed):
    owner = torch.backends.cuda.matmul
    before = owner.fp32_precision
    with tf32(allowed):
        assert owner.fp32_precision == ("tf32" if allowed else "ieee")

    assert owner.fp32_precision == before
