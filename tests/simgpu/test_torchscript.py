"""TorchScript on the simulated GPU: the same ops and numbers, accounted without Python between them."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import nn

from gpututor.model.tape import ModuleCall, TapeOp
from gpututor.simgpu import simulated_gpu

HOWS = ("script", "trace")


class Small(nn.Module):
    """Two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """One number a row."""
        return self.second(torch.relu(self.first(x)))


def made(how: str, net: nn.Module, x: torch.Tensor):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return torch.jit.script(net) if how == "script" else torch.jit.trace(net, x)


def phases(how: str, *, grad: bool = True) -> tuple[list[str], int]:
    """The phases of what has kernels, and how often Python called a module, in a call after those that it watches."""
    with simulated_gpu() as sim, torch.set_grad_enabled(grad):
        net, x = Small().to("simgpu"), torch.ones(3, 4, device="simgpu")
        scripted = made(how, net, x)
        for _ in range(3):
            n_before = len(sim.tape.entries)
            scripted(x)
        entries = sim.tape.entries[n_before:]
    ops = [e.phase for e in entries if type(e) is TapeOp and e.kernels]
    return ops, sum(type(e) is ModuleCall for e in entries)


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize(("grad", "phase"), [(True, "scripted"), (False, "scripted_no_grad")])
def test_its_operators_are_called_by_the_interpreter(how, grad, phase):
    ops, _ = phases(how, grad=grad)

    assert set(ops) == {phase}
    assert len(ops) >= 3


@pytest.mark.parametrize("how", HOWS)
def test_python_calls_one_module_whatever_is_inside(how):
    assert phases(how)[1] == 1


@pytest.mark.parametrize("how", HOWS)
def test_what_comes_after_it_is_pythons_again(how):
    with simulated_gpu() as sim:
        net, x = Small().to("simgpu"), torch.ones(3, 4, device="simgpu")
        scripted = made(how, net, x)
        y = scripted(x)
        n_before = len(sim.tape.entries)
        y.exp()

    assert {e.phase for e in sim.tape.entries[n_before:] if type(e) is TapeOp} == {"forward"}


@pytest.mark.parametrize("how", HOWS)
def test_gradients_are_those_of_the_same_network_as_it_is(how):
    with simulated_gpu():
        torch.manual_seed(0)
        net, x = Small().to("simgpu"), torch.randn(3, 4, device="simgpu")
        scripted = made(how, net, x)
        for called in (net, scripted, scripted, scripted):
            net.zero_grad()
            called(x).square().sum().backward()
            grads = [p.grad.cpu() for p in net.parameters()]
            if called is net:
                plain = grads

        assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(plain, grads, strict=True))
