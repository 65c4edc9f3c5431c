"""cudnn.benchmark: a search for each new shape of a convolution, and none for a known one."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from torch import nn

from gpututor.cards import card
from gpututor.compiling import compile as compiled
from gpututor.ledger import Account, charge
from gpututor.model.cost import price
from gpututor.model.kernels import Conv
from gpututor.model.tape import HostWork, TapeOp
from gpututor.simgpu import simulated_gpu
from gpututor.simgpu.tuning import NAME, RUNS, SEARCH_NS, TRIED


@pytest.fixture
def searching(monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", True)


def searches(sim) -> int:
    return sum(type(entry) is HostWork and entry.name == NAME for entry in sim.tape.entries)


def layer():
    return nn.Conv1d(3, 8, 5).to("simgpu")


def sound(width: int, dtype=torch.float32):
    return torch.randn(2, 3, width, device="simgpu", dtype=dtype)


def test_switched_off_nothing_is_searched():
    with simulated_gpu() as sim:
        layer()(sound(20)).sum().backward()

        assert searches(sim) == 0


@pytest.mark.usefixtures("searching")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_a_shape_is_searched_for_once(dtype):
    with simulated_gpu(numerics=False) as sim:
        net = layer().to(dtype)
        after = []
        for width in (20, 20, 30, 20, 30):
            with torch.no_grad():
                net(sound(width, dtype))
            after.append(searches(sim))

        assert after == [1, 1, 2, 2, 2]


@pytest.mark.usefixtures("searching")
def test_each_pass_has_its_own_search():
    with simulated_gpu() as sim:
        x = sound(20).requires_grad_()
        for _ in range(2):
            layer()(x).sum().backward()

        assert searches(sim) == 3  # the result, the gradient of the input, that of the weights


@pytest.mark.usefixtures("searching")
def test_another_program_searches_anew():
    counts = []
    for _ in range(2):
        with simulated_gpu() as sim:
            layer()(sound(20))
            counts.append(searches(sim))

    assert counts == [1, 1]


@pytest.mark.usefixtures("searching")
def test_it_can_be_switched_off_again():
    with simulated_gpu() as sim:
        net = layer()
        net(sound(20))
        torch.backends.cudnn.benchmark = False
        net(sound(30))

        assert searches(sim) == 1


@pytest.mark.usefixtures("searching")
def test_results_are_the_same_with_it():
    torch.manual_seed(0)
    net, x = nn.Conv1d(3, 8, 5), torch.randn(2, 3, 20)
    with torch.no_grad():
        expected = net(x)
    with simulated_gpu():
        found = net.to("simgpu")(x.to("simgpu")).cpu()

    assert torch.equal(found, expected)


@pytest.mark.usefixtures("searching")
def test_the_search_is_start_up_and_what_it_runs_is_of_no_use():
    with simulated_gpu(numerics=False) as sim:
        sim.begin_step()
        nn.Conv1d(256, 256, 5).to("simgpu")(torch.randn(8, 256, 4000, device="simgpu"))
        sim.end_run()
        ledger = charge(sim.timeline(), sim.machine.card)

    assert ledger.charged_ns[Account.START_UP] > 0.8 * SEARCH_NS
    assert ledger.share(Account.RECOMPUTE_AND_PADDING) > 10 * ledger.share(Account.USEFUL)


def test_every_algorithm_runs_to_warm_up_and_to_be_timed():
    once = Conv("conv fprop", "fprop", 8, 64, 64, 1024, 1024, 9, 10_000_000)
    tried = Conv("trial", "fprop", 8, 64, 64, 1024, 1024, 9, 10_000_000, trials=TRIED * RUNS)
    on = card("V100-SXM2-16GB")

    assert price(tried, on).duration_ns == pytest.approx(20 * price(once, on).duration_ns, abs=20)
    assert price(tried, on).work.flop == 20 * price(once, on).work.flop
    assert price(tried, on).work.useful_flop == 0


@pytest.mark.usefixtures("searching")
def test_a_compiled_network_is_searched_for_too_and_its_kernels_stay_its_own():
    def launched(on):
        torch.backends.cudnn.benchmark = on
        with simulated_gpu(numerics=False) as sim, torch.no_grad():
            compiled(nn.Sequential(layer(), nn.ReLU()))(sound(20))
            return searches(sim), Counter(e.name for e in sim.tape.entries if type(e) is TapeOp and e.kernels)

    (n_on, kernels_on), (n_off, kernels_off) = launched(True), launched(False)

    assert (n_on, n_off) == (1, 0)
    assert kernels_on == kernels_off
