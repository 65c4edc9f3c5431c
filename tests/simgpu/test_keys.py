"""Keys of remembered plans: what tells two calls of an op apart, and what doesn't."""

from __future__ import annotations

import pytest
import torch

from gpututor.simgpu import simulated_gpu
from gpututor.simgpu.keys import loose_key, strict_key
from gpututor.simgpu.plans import OpPlans
from gpututor.simgpu.private.tensors import FIND_RULE
from gpututor.simgpu.tensor import SimTensor

aten = torch.ops.aten
ON = "simgpu"


@pytest.fixture
def sim():
    with simulated_gpu() as session:
        yield session


@pytest.mark.parametrize("op", [aten.convolution.default, aten.native_batch_norm.default, aten.view.default])
def test_an_op_without_free_numbers_and_lists_of_tensors_has_arguments_of_one_kind_each(op):
    assert OpPlans(op).strict


@pytest.mark.parametrize(
    "op", [aten.add.Tensor, aten.cat.default, aten.index.Tensor, aten._foreach_div_.ScalarList, aten.fill_.Scalar]
)
def test_an_op_with_a_free_number_or_a_list_of_tensors_leaves_kinds_open(op):
    assert not OpPlans(op).strict


def test_lists_of_the_same_numbers_give_the_same_strict_key(sim):
    x = torch.ones(2, 3, device=ON)

    assert strict_key((x, [3, 2], True, 0.5)) == strict_key((x, [3, 2], True, 0.1))


def test_lists_of_other_numbers_give_another_strict_key(sim):
    x = torch.ones(2, 3, device=ON)

    assert strict_key((x, [3, 2])) != strict_key((x, [2, 3]))


def test_a_boolean_is_not_taken_for_a_number_where_either_may_stand(sim):
    x = torch.ones(2, 3, device=ON)

    assert loose_key((x, True)) != loose_key((x, 1))


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
