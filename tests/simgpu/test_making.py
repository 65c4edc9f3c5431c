"""The ways in which a program makes a tensor: factories, conversions, default devices, pinned memory, legacy types."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

from gpututor.model.tape import CopyCall
from gpututor.simgpu import making, simulated_gpu

ON = "simgpu"


@pytest.fixture
def sim():
    with simulated_gpu() as session:
        yield session


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: torch.tensor([1.0, 2.0], device=ON), id="tensor of a list"),
        pytest.param(lambda: torch.tensor(np.array([1.0, 2.0]), device=ON), id="tensor of an array"),
        pytest.param(
            lambda: torch.tensor([torch.tensor(1.0, device=ON), torch.tensor(2.0, device=ON)], device=ON),
            id="tensor of device numbers",
        ),
        pytest.param(lambda: torch.as_tensor([1.0, 2.0], device=ON), id="as_tensor"),
        pytest.param(lambda: torch.asarray(np.array([1.0, 2.0]), device=ON), id="asarray"),
        pytest.param(lambda: torch.from_numpy(np.array([1.0, 2.0])).to(ON), id="from_numpy"),
        pytest.param(lambda: torch.tensor([1.0, 2.0]).simgpu(), id="simgpu()"),
        pytest.param(lambda: torch.tensor([1.0, 2.0]).type("torch.simgpu.FloatTensor"), id="type"),
        pytest.param(lambda: torch.tensor([1.0, 2.0]).type(torch.simgpu.FloatTensor), id="type by a legacy type"),
        pytest.param(lambda: torch.tensor([1.0, 2.0]).type_as(torch.ones(1, device=ON)), id="type_as"),
        pytest.param(lambda: torch.ones(1, device=ON).new_tensor([1.0, 2.0]), id="new_tensor"),
        pytest.param(lambda: torch.simgpu.FloatTensor([1.0, 2.0]), id="legacy type of a list"),
        pytest.param(lambda: torch.simgpu.FloatTensor(torch.tensor([1.0, 2.0])), id="legacy type of a tensor"),
        pytest.param(lambda: torch.stack([torch.tensor(1.0).to(ON), torch.tensor(2.0).to(ON)]), id="stack"),
    ],
)
def test_a_tensor_of_one_and_two_comes_to_the_device(sim, make):
    made = make()

    assert made.device == torch.device("simgpu:0")
    assert made.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("name", ["new_zeros", "new_ones", "new_empty"])
def test_a_new_tensor_is_where_the_old_one_is(sim, name):
    made = getattr(torch.ones(1, device=ON, dtype=torch.float16), name)((2, 3))

    assert (made.shape, made.dtype, made.device.type) == ((2, 3), torch.float16, ON)


def test_new_full_and_new_empty_strided_are_there_too(sim):
    x = torch.ones(1, device=ON)

    assert x.new_full((2,), 3.0).tolist() == [3.0, 3.0]
    assert x.new_empty_strided((2, 2), (1, 2)).stride() == (1, 2)


MADE: dict[str, Callable[[], torch.Tensor]] = {
    "ones": lambda: torch.ones(2),
    "tensor": lambda: torch.tensor([1]),
    "arange": lambda: torch.arange(3),
    "randperm": lambda: torch.randperm(3),
    "empty": lambda: torch.empty(2),
    "linspace": lambda: torch.linspace(0, 1, 3),
    "eye": lambda: torch.eye(2),
    "as_tensor": lambda: torch.as_tensor([1]),
    "linear": lambda: nn.Linear(2, 2).weight,
    "lstm": lambda: nn.LSTM(2, 2).weight_ih_l0,
    "attention": lambda: nn.MultiheadAttention(4, 2).in_proj_weight,
}


@pytest.mark.parametrize("name", MADE)
def test_under_a_device_context_all_is_made_there(sim, name):
    with torch.device(ON):
        assert MADE[name]().device.type == ON
    assert MADE[name]().device.type == "cpu"


def test_a_default_device_holds_until_it_is_taken_back(sim):
    torch.set_default_device(ON)
    try:
        assert {make().device.type for make in MADE.values()} == {ON}
        assert torch.from_numpy(np.ones(2)).device.type == "cpu"
    finally:
        torch.set_default_device(None)


# --- pinned memory ----------------------------------------------------------------------------------------------

ARGUMENTS: dict[str, tuple[object, ...]] = {
    "arange": (3,),
    "empty": (3,),
    "empty_like": (torch.ones(3),),
    "empty_strided": ((3,), (1,)),
    "eye": (3,),
    "full": ((3,), 1.0),
    "full_like": (torch.ones(3), 2.0),
    "linspace": (0, 1, 3),
    "logspace": (0, 1, 3),
    "ones": (3,),
    "ones_like": (torch.ones(3),),
    "rand": (3,),
    "rand_like": (torch.ones(3),),
    "randint": (5, (3,)),
    "randint_like": (torch.ones(3), 5),
    "randn": (3,),
    "randn_like": (torch.ones(3),),
    "randperm": (3,),
    "scalar_tensor": (3.0,),
    "tensor": ([1.0],),
    "zeros": (3,),
    "zeros_like": (torch.ones(3),),
}


@pytest.mark.parametrize("name", making.PINNABLE)
def test_a_factory_pins_when_asked(sim, name):
    assert getattr(torch, name)(*ARGUMENTS[name], pin_memory=True).is_pinned()
    assert not getattr(torch, name)(*ARGUMENTS[name]).is_pinned()


def test_a_copy_from_a_pinned_factory_need_not_block(sim):
    torch.zeros(10, pin_memory=True).to(ON, non_blocking=True)
    (copy,) = [e for e in sim.tape.entries if isinstance(e, CopyCall)]

    assert (copy.pinned, copy.blocking) == (True, False)


@pytest.mark.parametrize(
    ("make", "n_bytes"),
    [
        pytest.param(lambda: torch.tensor([1.0, 2.0, 3.0], device=ON), 12, id="numbers"),
        pytest.param(lambda: torch.tensor(5, device=ON), 8, id="one number"),
        pytest.param(lambda: torch.as_tensor(np.zeros(4), device=ON), 32, id="an array"),
    ],
)
def test_numbers_come_to_the_card_in_a_copy_that_the_host_waits_for(sim, make, n_bytes):
    make()
    (copy,) = [e for e in sim.tape.entries if isinstance(e, CopyCall)]

    assert (copy.to_gpu, copy.n_bytes, copy.pinned, copy.blocking) == (True, n_bytes, False, True)


def test_what_is_made_on_the_card_is_no_copy(sim):
    torch.full((3,), 2.0, device=ON)
    torch.scalar_tensor(2.0, device=ON)

    assert not any(isinstance(e, CopyCall) for e in sim.tape.entries)


def test_pinning_on_the_device_is_refused(sim):
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        torch.zeros(3, device=ON, pin_memory=True)


def test_a_factory_still_gives_its_tensor_to_out(sim):
    target = torch.empty(3)

    assert torch.zeros(3, out=target) is target


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_scripted_function_still_finds_the_factories(sim):
    def three(n: int) -> torch.Tensor:
        return torch.zeros(n) + torch.full((n,), 3.0)

    assert torch.jit.script(three)(2).tolist() == [3.0, 3.0]


# --- legacy types -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "dtype"), making.LEGACY.items(), ids=making.LEGACY)
def test_a_legacy_type_makes_its_dtype_and_knows_it_again(sim, name, dtype):
    legacy = getattr(torch.simgpu, name)
    made = legacy(2, 3)

    assert (made.shape, made.dtype, made.device.type) == ((2, 3), dtype, ON)
    assert isinstance(made, legacy)
    assert not isinstance(made.cpu(), legacy)
    assert legacy().numel() == 0
    assert legacy(torch.Size([4])).shape == (4,)
