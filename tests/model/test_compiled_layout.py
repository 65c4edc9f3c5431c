"""What torch.compile does to convolutions before it fuses, counted by hand on convolutions of one pixel."""

from __future__ import annotations

import pytest

from gpututor.model.compiled_layout import before_fusion, pays
from gpututor.model.fusion import Node, Part, fuse
from gpututor.model.kernels import Conv, Stream
from gpututor.model.spec import HostKind

BATCH, PIXELS = 8, 196


def conv(c_in, c_out, taps=9, groups=1):
    return Conv("conv fprop", "fprop", BATCH, c_in, c_out, PIXELS, PIXELS, taps, 1000, groups=groups)


def called(one, *, bias=False):
    """The operator of a convolution: tensor 0 and weights 1 (and a bias 2) to tensor 3."""
    n = BATCH * PIXELS * one.c_out
    kernels = (one, Stream("add bias", 4 * n, n, n, "fp16")) if bias else (one,)
    reads = ((0, 2 * n), (1, 100), (2, 10)) if bias else ((0, 2 * n), (1, 100))
    return Node("convolution", Part.LIBRARY, reads, ((3, 2 * n),), host=HostKind.CUDNN, kernels=kernels)


@pytest.mark.parametrize("inference", [True, False])
def test_a_wide_convolution_gets_its_channels_last(inference):
    (node,) = before_fusion([called(conv(256, 256))], inference=inference)

    assert node.kernels[0].channels_last


def test_training_leaves_the_layout_where_one_convolution_is_grouped():
    grouped, plain = conv(256, 256, groups=32), conv(256, 256)

    assert not pays([grouped, plain, plain], 3, inference=False)


def test_inference_weighs_a_grouped_convolution_by_its_work():
    # 256 wide in 32 groups is a thirty-second of the plain one's work, which gains more than the grouped one loses
    grouped, plain = conv(256, 256, groups=32), conv(256, 256)

    assert pays([grouped, plain], 2, inference=True)
    assert not pays([grouped], 1, inference=True)


def test_depthwise_is_not_grouped_here():
    assert pays([conv(256, 256, groups=256), conv(256, 256, taps=1)], 2, inference=False)


def test_training_leaves_the_layout_where_a_convolution_halves_its_channels():
    assert not pays([conv(512, 256), conv(256, 256)], 2, inference=False)
    assert pays([conv(512, 256, taps=1), conv(256, 256)], 2, inference=False)


def test_training_leaves_the_layout_where_all_are_narrow():
    assert not pays([conv(64, 64), conv(3, 64)], 2, inference=False)


def test_a_few_convolutions_among_very_many_operators_stay():
    assert pays([conv(256, 256)], 299, inference=True)
    assert not pays([conv(256, 256)], 300, inference=True)


def test_without_convolutions_nothing_changes():
    node = Node("relu", Part.ELEMENTS, ((0, 4),), ((1, 4),), 1)

    assert before_fusion([node], inference=True) == [node]


def test_a_mean_of_a_picture_does_not_lie_together_any_more():
    mean = Node("mean", Part.ROWS, ((3, 4),), ((4, 4),), BATCH * 256, PIXELS, inner=True)

    assert not before_fusion([called(conv(256, 256)), mean], inference=True)[1].inner


def test_the_bias_is_an_elementwise_operator_that_reads_what_the_convolution_wrote():
    node = called(conv(256, 256), bias=True)

    library, added = before_fusion([node], inference=True)

    assert [kernel.name for kernel in library.kernels] == ["conv fprop"]
    assert added.part is Part.ELEMENTS
    assert added.reads == (node.writes[0], (2, 10))
    assert added.writes == node.writes


def test_the_bias_joins_what_follows_it():
    node = called(conv(256, 256), bias=True)
    relu = Node("relu", Part.ELEMENTS, node.writes, ((4, node.writes[0][1]),), BATCH * PIXELS * 256)

    calls = fuse(before_fusion([node, relu], inference=True), {4})

    assert [call.name for call in calls] == ["convolution", "triton_poi_fused_add_relu"]
