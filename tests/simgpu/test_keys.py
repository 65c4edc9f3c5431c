"""Keys of remembered plans: what tells two calls of an op apart, and what doesn't."""

from __future__ import annotations

import pytest
import torch

from gpututor.simgpu import simulated_gpu
from gpututor.simgpu.keys import careful_key, quick_key
from gpututor.simgpu.plans import OpPlans
from gpututor.simgpu.private.tensors import FIND_RULE
from gpututor.simgpu.tensor import SimTensor

aten = torch.ops.aten
ON = "simgpu"


@pytest.fixture
def sim():
    with simulated_gpu() as session:
        yield session


@pytest.mark.parametrize("op", [aten.convolution.default, aten.native_batch_norm_backward.default, aten.add.Tensor])
def test_an_op_without_lists_of_tensors_or_fractions_has_quick_keys(op):
    assert OpPlans(op).key_of is quick_key


@pytest.mark.parametrize(
    "op", [aten.cat.default, aten.index.Tensor, aten._foreach_div_.ScalarList, aten.upsample_nearest2d.vec]
)
def test_an_op_with_a_list_of_tensors_or_fractions_has_careful_keys(op):
    assert OpPlans(op).key_of is careful_key


def test_lists_of_the_same_numbers_give_the_same_key_whatever_fraction_stands_beside(sim):
    x = torch.ones(2, 3, device=ON)

    assert quick_key((x, [3, 2], True, 0.5)) == quick_key((x, [3, 2], True, 0.1))


def test_lists_of_other_numbers_give_another_key(sim):
    x = torch.ones(2, 3, device=ON)

    assert quick_key((x, [3, 2])) != quick_key((x, [2, 3]))


@pytest.mark.parametrize("key", [quick_key, careful_key])
def test_a_boolean_is_not_taken_for_a_number(sim, key):
    x = torch.ones(2, 3, device=ON)

    assert key((x, True)) != key((x, 1))


@pytest.mark.parametrize("size", [(), (0,), (2, 0, 3), (4, 1, 3), (1, 1), (5, 4, 3, 2)])
def test_a_tensor_has_the_cpus_strides(sim, size):
    assert torch.empty(size, device=ON).stride() == torch.empty(size).stride()


def test_strides_of_a_view_that_only_its_maker_knows_are_kept(sim):
    assert torch.ones(3, 1, device=ON).as_strided((3, 1), (1, 7)).stride() == (1, 7)


def test_no_rule_stands_in_for_an_op_on_the_card(sim):
    assert FIND_RULE.now()(aten.mul.Tensor, SimTensor) is None


def test_a_rule_for_another_class_is_still_found(sim):
    class Other(torch.Tensor): ...

    def rule(*_):
        return None

    torch.library.register_torch_dispatch("aten::mul.Tensor", Other, rule)

    assert FIND_RULE.now()(aten.mul.Tensor, Other) is rule
