"""Lesson 13's digits and the ways to make a trained reader smaller: each does what it says, and nothing else."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from gpututor.jobs import digits, slimming, torch_ao  # noqa: E402
from gpututor.jobs.small_readers import Plain, multiplications, reader  # noqa: E402
from gpututor.workloads.vision.layers import conv_norm  # noqa: E402

nn = torch.nn


def test_the_digits_are_those_that_the_source_describes():
    pictures, kinds = digits.digits()

    assert tuple(pictures.shape) == (1797, 1, 8, 8)
    assert (float(pictures.min()), float(pictures.max())) == (0.0, 1.0)
    # the counts that UCI gives for optdigits.tes
    assert torch.bincount(kinds).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]


def test_no_digit_is_both_learned_from_and_asked():
    assert len(digits.to_learn()[1]) + len(digits.unseen()[1]) == len(digits.digits()[1])


def test_a_layers_multiply_adds_are_counted_as_one_does_by_hand():
    net = nn.Sequential(nn.Conv2d(2, 6, 3, padding=1, groups=2), nn.Flatten(), nn.Linear(6 * 16, 5))

    assert multiplications(net, torch.zeros(3, 2, 4, 4)) == 3 * (16 * 6 * 9 + 6 * 16 * 5)


def test_inverted_bottlenecks_need_less_than_half_the_multiplications():
    with torch.no_grad():
        plain, inverted = (multiplications(reader(inverted=each).eval(), torch.zeros(1, 1, 8, 8)) for each in (0, 1))

    assert inverted < plain / 2


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_as_many_weights_stay_as_were_asked_for_and_they_are_the_largest(share):
    weight = torch.randn(40, 25)
    mask = slimming.largest(weight, share)

    assert mask.sum() == share * 1000
    assert weight[mask == 1].abs().min() >= weight[mask == 0].abs().max()


def test_two_of_every_four_channels_in_stay_at_each_place_of_a_filter():
    mask = slimming.two_of_four(torch.randn(6, 8, 3, 3))

    assert set(mask.movedim(1, -1).reshape(-1, 4).sum(1).tolist()) == {2.0}


def test_where_no_four_fit_nothing_is_left_out():
    assert slimming.two_of_four(torch.randn(6, 9)).min() == 1


def test_masks_hold_after_an_update():
    net = reader()
    masks = slimming.Masks(net, share=0.1)
    with torch.no_grad():
        for p in net.parameters():
            p.add_(1.0)
    masks.hold()
    zeros = sum(int((layer.weight == 0).sum()) for layer in slimming.layers(net))

    assert zeros / sum(layer.weight.numel() for layer in slimming.layers(net)) == pytest.approx(masks.zero_share)
    assert masks.zero_share == pytest.approx(0.9, abs=0.01)


def test_taking_channels_out_is_the_same_as_silencing_them():
    torch.manual_seed(1)
    whole, smaller = nn.Sequential(conv_norm(1, 4, 3), Plain(4, 6)), nn.Sequential(conv_norm(1, 4, 3), Plain(4, 3))
    slimming.without_channels(whole, smaller)
    first, second = whole[1].path[0].weight, whole[1].path[3].weight
    gone = first.abs().flatten(1).sum(1).topk(3, largest=False).indices
    with torch.no_grad():
        second[:, gone] = 0
        x = torch.randn(2, 1, 8, 8)

        assert torch.allclose(whole.eval()(x), smaller.eval()(x), atol=1e-5)


def test_in_8_bits_a_layers_weights_are_at_most_127_steps_from_zero():
    net = reader()
    slimming.in_8_bits(net)
    for layer in slimming.layers(net):
        rows = layer.weight.detach().flatten(1)
        steps = rows / (rows.abs().amax(1, keepdim=True) / 127)

        assert torch.allclose(steps, steps.round(), atol=1e-3)


def test_the_product_of_bytes_is_the_linear_layers_but_for_rounding():
    torch.manual_seed(0)
    linear, x = nn.Linear(64, 24), torch.randn(3, 40, 64)
    with torch.no_grad():
        exact, ours = linear(x), slimming.Int8Linear(linear)(x)

    assert ours.shape == exact.shape
    assert (ours - exact).abs().max() < 0.03 * exact.abs().max()


def test_the_product_of_bytes_is_exact_where_nothing_needs_rounding():
    linear = nn.Linear(8, 8, bias=False)
    with torch.no_grad():
        linear.weight.copy_(127.0 * torch.eye(8))
        x = torch.full((20, 8), 127.0)

        assert torch.equal(slimming.Int8Linear(linear)(x), 127.0 * x)


def test_only_layers_whose_sizes_fit_are_replaced():
    net = nn.Sequential(nn.Linear(16, 8), nn.Sequential(nn.Linear(8, 10)))

    assert slimming.linears_in_8_bits(net) == 1
    assert isinstance(net[1][0], nn.Linear)


def test_our_8_bits_read_as_torchs_own_do():
    # torch.ao rounds otherwise: by ranges it has seen, norms folded into convolutions
    if torch_ao.engine() is None:
        pytest.skip("this torch multiplies no bytes on this processor")
    torch.manual_seed(0)
    net, (pictures, kinds) = reader(), digits.to_learn()
    adam = torch.optim.Adam(net.parameters(), 3e-3)
    for k in range(30):
        adam.zero_grad()
        nn.functional.cross_entropy(net(pictures[32 * k : 32 * k + 32]), kinds[32 * k : 32 * k + 32]).backward()
        adam.step()
    theirs = torch_ao.on_processor(net.eval(), pictures[:256])
    if theirs is None:
        pytest.skip("this torch has no torch.ao")
    with torch.no_grad():
        before = net(pictures).argmax(1)
        slimming.in_8_bits(net)
        ours, own = net(pictures).argmax(1), theirs(pictures).argmax(1)

    assert (ours == before).float().mean() > 0.95
    assert (ours == own).float().mean() > 0.95


def test_without_a_library_for_bytes_there_is_no_such_network(monkeypatch):
    monkeypatch.setattr(torch_ao, "engine", lambda: None)

    assert torch_ao.on_processor(reader(), torch.zeros(1, 1, 8, 8)) is None
