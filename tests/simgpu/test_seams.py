"""Where torch offers a device in Python no hook: moved modules, errors inside backward, what must not be remembered."""

from __future__ import annotations

import threading

import pytest
import torch
from torch import nn

from gpututor.errors import NumericsOff, SessionRunning
from gpututor.model.tape import CopyCall
from gpututor.simgpu import simulated_gpu


@pytest.fixture
def sim():
    with simulated_gpu() as session:
        yield session


def test_tied_weights_stay_tied_when_a_module_moves(sim):
    a, b = nn.Linear(4, 4), nn.Linear(4, 4)
    b.weight = a.weight
    net = nn.Sequential(a, b).to("simgpu")
    assert net[0].weight is net[1].weight
    net.cpu()
    assert net[0].weight is net[1].weight
    assert net[0].weight.device.type == "cpu"


def test_an_optimizer_made_before_the_move_still_updates(sim):
    net = nn.Linear(2, 2)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    net.to("simgpu")
    before = net.weight.detach().cpu().clone()
    net(torch.ones(1, 2, device="simgpu")).sum().backward()
    opt.step()

    assert not torch.equal(net.weight.detach().cpu(), before)


class FailsInBackward(torch.autograd.Function):
    """Identity whose backward raises."""

    @staticmethod
    def forward(ctx, x, error):
        ctx.error = error
        return x * 1

    @staticmethod
    def backward(ctx, g):
        raise ctx.error


@pytest.mark.parametrize("error", [ValueError("from backward"), KeyboardInterrupt("stop")], ids=["error", "Ctrl-C"])
def test_an_error_in_backward_reaches_the_caller_and_leaves_the_device_working(sim, error):
    x = torch.ones(3, device="simgpu", requires_grad=True)
    with pytest.raises(type(error), match=str(error)):
        FailsInBackward.apply(x, error).sum().backward()

    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_a_failing_hook_in_another_thread_is_that_threads_error(sim):
    caught = []

    def work():
        x = torch.ones(3, device="simgpu", requires_grad=True)
        y = x * 2
        y.register_hook(lambda g: 1 / 0)
        try:
            y.sum().backward()
        except ZeroDivisionError as error:
            caught.append(error)

    worker = threading.Thread(target=work)
    worker.start()
    worker.join()

    assert len(caught) == 1


def test_a_full_card_inside_backward_is_an_out_of_memory_error(sim):
    x = torch.ones(4 << 20, device="simgpu", requires_grad=True)
    y = (x * 2).sum()
    torch.simgpu.empty_cache()
    sim.memory.capacity_bytes = sim.memory.reserved_bytes
    with pytest.raises(torch.OutOfMemoryError, match="out of memory"):
        y.backward()


def test_a_batch_larger_than_the_card_is_refused_before_the_host_is_full():
    with simulated_gpu(numerics=False), pytest.raises(torch.OutOfMemoryError, match=r"capacity of 15\.79 GiB"):
        torch.empty(5 * 2**30, device="simgpu")


def test_memory_is_given_back_with_the_last_view(sim):
    x = torch.zeros(1024, device="simgpu")
    view = x[:10]
    del x
    held = sim.memory.in_use_bytes
    del view

    assert held == 4096
    assert sim.memory.in_use_bytes == 0
    assert sim.memory.peak_bytes == 4096


def test_sizes_that_values_decide_are_not_remembered(sim):
    x = torch.arange(6.0).to("simgpu")

    assert [(x[x < k]).shape[0] for k in (2, 4, 1)] == [2, 4, 1]
    assert [torch.arange(0.0, 1.0, s, device="simgpu").shape[0] for s in (0.5, 0.25)] == [2, 4]


def test_true_and_one_are_different_arguments(sim):
    b = torch.ones(3, dtype=torch.bool, device="simgpu")

    assert (b * True).dtype is torch.bool
    assert (b * 1).dtype is torch.int64


def test_tensors_of_two_devices_are_refused_with_cudas_words(sim):
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        torch.ones(3, device="simgpu") + torch.ones(3)


def test_a_single_number_of_the_cpu_may_join(sim):
    assert (torch.ones(2, device="simgpu") + torch.tensor(1.5)).tolist() == [2.5, 2.5]


def test_a_second_gpu_is_not_there(sim):
    with pytest.raises(RuntimeError, match="no simulated GPU 1"):
        torch.ones(2, device="simgpu:1")


def test_numpy_is_refused_as_cuda_refuses_it(sim):
    with pytest.raises(TypeError, match=r"Use Tensor\.cpu"):
        torch.ones(2, device="simgpu").numpy()


def test_a_tensor_prints_its_values_and_device(sim):
    assert repr(torch.tensor([1.0, 2.0], device="simgpu")) == "tensor([1., 2.], device='simgpu:0')"


def test_two_simulated_gpus_at_once_are_one_sentence(sim):
    with pytest.raises(SessionRunning, match="already at work"), simulated_gpu("H100-SXM"):
        pass


def test_a_second_thread_waits_for_its_turn_and_gets_the_same_numbers():
    def work(found):
        with simulated_gpu() as session:
            torch.manual_seed(0)
            net = nn.Sequential(nn.Linear(8, 32), nn.Dropout(0.5), nn.Linear(32, 1)).to("simgpu")
            opt = torch.optim.Adam(net.parameters())
            for _ in range(10):
                loss = net(torch.ones(16, 8, device="simgpu")).square().mean()
                loss.backward()
                opt.step()
                opt.zero_grad()
            found.append((loss.item(), session.host_ns))

    found = []
    workers = [threading.Thread(target=work, args=(found,)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert len(found) == 3
    assert len(set(found)) == 1


def test_without_numerics_shapes_are_followed_and_values_refused():
    with simulated_gpu(numerics=False):
        x = torch.randn(64, 128, device="simgpu")
        y = nn.functional.relu(x @ torch.randn(128, 32, device="simgpu"))

        assert y.shape == (64, 32)
        assert y.host is None
        with pytest.raises(NumericsOff, match="numerics=True"):
            y.cpu()


def test_inside_a_users_dispatch_mode_factories_still_work(sim):
    from torch.utils._python_dispatch import TorchDispatchMode

    class Passes(TorchDispatchMode):
        def __torch_dispatch__(self, op, types, args=(), kwargs=None):
            return op(*args, **(kwargs or {}))

    with Passes():
        x = torch.tensor([1.0, 2.0], device="simgpu") + torch.zeros(2, device="simgpu")

    assert x.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("within", [torch.inference_mode, torch.no_grad])
def test_a_module_moves_to_the_card_under_inference_mode_too(within):
    with simulated_gpu() as sim:
        net = torch.nn.Linear(3, 2)
        kept = net.weight.tolist()
        with within():
            net.to("simgpu")
            answer = net(torch.ones(1, 3).to("simgpu"))
        copied = [e.n_bytes for e in sim.tape.entries if isinstance(e, CopyCall) and e.to_gpu]

    assert net.weight.device.type == "simgpu"
    assert net.weight.tolist() == kept
    assert answer.shape == (1, 2)
    assert copied == [4 * 6, 4 * 2, 4 * 3]  # weights, bias, the sample


def test_inference_mode_gives_the_same_numbers(sim):
    torch.manual_seed(0)
    net, x = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.Linear(4, 2)), torch.randn(3, 4)
    with torch.no_grad():
        expected = net(x)
    net.to("simgpu")
    with torch.inference_mode():
        found = net(x.to("simgpu"))

    assert torch.equal(found.cpu(), expected)


def test_assigning_data_takes_over_size_values_and_memory(sim):
    p = nn.Parameter(torch.ones(2, device="simgpu"))
    p.data = torch.full((3,), 5.0, device="simgpu")

    assert (p + 1).tolist() == [6.0, 6.0, 6.0]
    with pytest.raises(TypeError, match="move one of them first"):
        p.data = torch.ones(2)


@pytest.mark.parametrize("lazy", [lambda: nn.LazyLinear(3), lambda: nn.LazyConv1d(3, 2)], ids=["linear", "conv"])
def test_a_lazy_module_moved_before_its_first_batch_gets_its_size_on_the_card(sim, lazy):
    net, x = lazy().to("simgpu"), torch.ones(2, 4, 5)
    y = net(x.to("simgpu"))

    assert y.shape[1 if "Conv" in type(net).__name__ else -1] == 3
    assert net.weight.device.type == "simgpu"
