"""Random numbers: the CPU's by default, a stream of the card's own once a program seeds it, generators apart."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from gpututor.simgpu import rng, simulated_gpu

ON = "simgpu"


@pytest.fixture
def sim():
    with simulated_gpu() as session:
        yield session
    torch.manual_seed(0)  # the card draws from the host's generator again


def card_numbers() -> list[float]:
    return torch.rand(4, device=ON).tolist()


def host_numbers() -> list[float]:
    return torch.rand(4).tolist()


def after(seed: int) -> list[float]:
    """The first four numbers of a generator with this seed."""
    return torch.rand(4, generator=torch.Generator().manual_seed(seed)).tolist()


def test_after_one_seed_the_card_draws_the_cpus_numbers(sim):
    torch.manual_seed(5)
    first, second = host_numbers(), host_numbers()
    torch.manual_seed(5)

    assert [card_numbers(), host_numbers()] == [first, second]


def test_seeding_the_card_alone_leaves_the_hosts_numbers_alone(sim):
    torch.manual_seed(1)
    torch.simgpu.manual_seed(2)

    assert card_numbers() == after(2)
    assert host_numbers() == after(1)


@pytest.mark.parametrize("seed_the_card", ["manual_seed", "manual_seed_all"])
def test_the_usual_two_lines_keep_the_cpus_numbers(sim, seed_the_card):
    torch.manual_seed(3)
    getattr(torch.simgpu, seed_the_card)(3)
    first = host_numbers()

    assert first == after(3)
    assert card_numbers() != after(3)  # the same stream, further on


def test_torch_manual_seed_joins_host_and_card_again(sim):
    torch.simgpu.manual_seed(9)
    torch.manual_seed(4)

    assert card_numbers() == after(4)
    assert host_numbers() != after(4)


def test_a_seed_from_chance_is_told_and_can_be_used_again(sim):
    number = torch.simgpu.seed()
    first = card_numbers()
    torch.simgpu.manual_seed(number)

    assert torch.simgpu.initial_seed() == number
    assert card_numbers() == first


def test_ops_seen_before_the_seeding_draw_from_the_cards_stream_too(sim):
    x = torch.ones(64, device=ON)
    for _ in range(2):
        nn.functional.dropout(x)
        torch.bernoulli(x * 0.5)
    torch.manual_seed(1)
    torch.simgpu.manual_seed(2)
    nn.functional.dropout(x)
    torch.bernoulli(x * 0.5)
    torch.randperm(5, device=ON)

    assert host_numbers() == after(1)


@pytest.mark.parametrize("seeded_apart", [False, True])
def test_a_state_replays_the_dropout_mask(sim, seeded_apart):
    torch.manual_seed(1)
    if seeded_apart:
        torch.simgpu.manual_seed(2)
    x = torch.ones(64, device=ON)
    state = torch.simgpu.get_rng_state()
    first = nn.functional.dropout(x).tolist()
    torch.simgpu.set_rng_state(state)

    assert nn.functional.dropout(x).tolist() == first


@pytest.mark.parametrize("seeded_apart", [False, True])
def test_fork_rng_gives_both_streams_back(sim, seeded_apart):
    torch.manual_seed(1)
    if seeded_apart:
        torch.simgpu.manual_seed(2)
    with torch.random.fork_rng(device_type=ON):
        inside = card_numbers(), host_numbers()
        torch.simgpu.manual_seed(77)
        card_numbers()

    assert (card_numbers(), host_numbers()) == inside


@pytest.mark.parametrize("seeded_apart", [False, True])
@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpoint_meets_its_dropout_mask_again(sim, reentrant, seeded_apart):
    torch.manual_seed(1)
    if seeded_apart:
        torch.simgpu.manual_seed(2)
    x = torch.ones(256, device=ON, requires_grad=True)
    y = checkpoint(lambda t: nn.functional.dropout(t * 1), x, use_reentrant=reentrant, preserve_rng_state=True)
    card_numbers()
    y.sum().backward()

    assert x.grad.tolist() == y.tolist()  # 2 where kept, 0 where dropped, both ways


def test_a_generator_of_the_card_draws_a_cpu_generators_numbers(sim):
    made = torch.Generator(device=ON)

    assert made.device == torch.device("simgpu:0")
    assert torch.rand(4, device=ON, generator=made.manual_seed(6)).tolist() == after(6)


def test_a_generator_leaves_the_default_stream_alone(sim):
    torch.manual_seed(1)
    torch.randn(8, device=ON, generator=torch.Generator(ON))
    torch.ones(8, device=ON).uniform_(generator=torch.Generator(ON))

    assert card_numbers() == after(1)


def test_a_generator_of_the_cpu_is_refused_with_cudas_words(sim):
    with pytest.raises(RuntimeError, match="Expected a 'simgpu' device type for generator but found 'cpu'"):
        torch.rand(4, device=ON, generator=torch.Generator())


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g)), lambda g: g.clone_state()])
def test_a_copy_of_a_generator_goes_on_where_it_stands(sim, copied):
    made = torch.Generator(ON).manual_seed(8)
    torch.rand(3, device=ON, generator=made)
    twin = copied(made)

    assert twin.device.type == ON
    assert torch.equal(torch.rand(3, device=ON, generator=twin), torch.rand(3, device=ON, generator=made))


def test_torchs_own_generators_are_generators_still(sim):
    assert isinstance(torch.default_generator, torch.Generator)
    assert isinstance(torch.Generator(ON), torch.Generator)
    assert type(torch.Generator()) is torch._C.Generator


def test_a_dropped_generators_address_is_forgotten(sim):
    known = len(rng._of_the_card)
    torch.Generator(ON)

    assert len(rng._of_the_card) == known


def test_ops_with_a_generator_are_not_remembered(sim):
    from gpututor.simgpu.dispatch import plans

    torch.rand(7, device=ON, generator=torch.Generator(ON))
    n_plans = sum(map(len, plans[sim.numerics].values()))
    for _ in range(3):
        torch.rand(7, device=ON, generator=torch.Generator(ON))

    assert sum(map(len, plans[sim.numerics].values())) == n_plans


def test_a_loader_shuffles_by_the_cards_generator(sim):
    loader = torch.utils.data.DataLoader(range(10), batch_size=10, shuffle=True, generator=torch.Generator(ON))
    with torch.device(ON):
        (batch,) = list(loader)

    assert sorted(batch.tolist()) == list(range(10))


def test_recurrent_dropout_draws_from_the_cards_stream(sim):
    net, x = nn.GRU(4, 4, 2, dropout=0.5).to(ON), torch.ones(3, 2, 4, device=ON)
    torch.manual_seed(1)
    torch.simgpu.manual_seed(2)
    first = net(x)[0].tolist()
    assert host_numbers() == after(1)
    torch.simgpu.manual_seed(2)

    assert net(x)[0].tolist() == first
