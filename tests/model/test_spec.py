from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpututor.errors import KernelSpecError
from gpututor.model.spec import (
    KINDS,
    Attention,
    Conv,
    DeviceCopy,
    Gemm,
    Memset,
    OpCall,
    RnnLayer,
    RnnStep,
    RowReduce,
    Stream,
    TensorMeta,
    from_dict,
    to_dict,
)

ONE_OF_EACH = [
    Gemm("gemm", 2, 3, 5, 62),
    Conv("conv", "fprop", 2, 3, 4, 25, 9, 9, 999),
    Stream("add", 24, 2),
    RowReduce("softmax", 2, 3, 48),
    RnnStep("step", 4, 2, 8),
    RnnLayer("layer", "lstm", 4, 3, 2, 8),
    Attention("attention", 2, 3, 5, 8, 480),
    DeviceCopy("copy", 16),
    Memset("fill", 16),
]
sizes = st.integers(1, 9)


@pytest.mark.parametrize("spec", ONE_OF_EACH, ids=lambda spec: spec.name)
def test_a_kernel_survives_a_file(spec):
    assert from_dict(json.loads(json.dumps(to_dict(spec)))) == spec


def test_every_kind_of_kernel_has_a_sample_here():
    assert {type(spec) for spec in ONE_OF_EACH} == set(KINDS.values())


def test_an_unknown_kind_names_those_that_exist():
    with pytest.raises(KernelSpecError, match="of kind 'fft'; known kinds: gemm, conv"):
        from_dict({"kind": "fft", "name": "x"})


def test_a_missing_field_is_named():
    with pytest.raises(KernelSpecError, match="moved_bytes"):
        from_dict({"kind": "memset", "name": "x"})


@pytest.mark.parametrize("value", [-1, 2.5, True, "4"])
def test_a_size_has_to_be_a_whole_number(value):
    with pytest.raises(KernelSpecError, match="moved_bytes = "):
        from_dict({"kind": "memset", "name": "x", "moved_bytes": value})


@given(st.lists(sizes, min_size=1, max_size=4))
def test_a_fresh_tensor_is_contiguous_and_holds_every_element_once(shape):
    meta = TensorMeta.contiguous(*shape, dtype="float16")

    assert meta.is_contiguous
    assert meta.n_bytes == 2 * meta.numel


def test_an_expanded_tensor_stores_each_number_once():
    assert TensorMeta((6, 4), (0, 1)).n_bytes == 4 * 4


def test_a_transposed_matrix_is_not_contiguous():
    assert not TensorMeta((3, 5), (1, 3)).is_contiguous


@pytest.mark.parametrize(
    ("meta", "last"),
    [
        pytest.param(TensorMeta.channels_last(2, 3, 4, 5), True, id="NHWC"),
        pytest.param(TensorMeta.contiguous(2, 3, 4, 5), False, id="NCHW"),
        pytest.param(TensorMeta.contiguous(2, 3), False, id="a matrix"),
        pytest.param(TensorMeta((2, 3, 4, 4, 5), (240, 1, 60, 15, 3)), True, id="NDHWC"),
    ],
)
def test_channels_last_is_told_by_strides(meta, last):
    assert meta.is_channels_last is last


def test_an_unknown_dtype_is_refused_with_the_known_ones():
    with pytest.raises(KernelSpecError, match=r"dtype 'float8'.*float32"):
        _ = TensorMeta.contiguous(2, dtype="float8").itemsize


def test_tensors_inside_lists_are_found_in_order():
    a, b, c = (TensorMeta.contiguous(n) for n in (1, 2, 3))

    assert OpCall("x", (a, (b, 7), None), (("out", c),)).tensors() == (a, b, c)
