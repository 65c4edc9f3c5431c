"""CUDA's names lead to the simulated card for a while, and to nothing of it before or after."""

from __future__ import annotations

import pickle
import threading

import pytest
import torch

from gpututor.simgpu import as_cuda, register, simulated_gpu
from gpututor.simgpu.cuda.names import FACTORIES, LIKE, NEW

CARD = "A100-SXM4-80GB"
register()


@pytest.fixture
def cuda():
    """A simulated card under CUDA's names; gives the session."""
    with simulated_gpu(CARD) as session, as_cuda():
        yield session


def names_of_torch() -> dict[str, object]:
    """What a script can reach of torch by the names that are replaced."""
    owners = {
        "torch": torch,
        "torch.cuda": torch.cuda,
        "torch.Tensor": torch.Tensor,
        "torch.accelerator": torch.accelerator,
        "torch.backends.cudnn": torch.backends.cudnn,
        "torch.backends.cuda": torch.backends.cuda,
        "torch.version": torch.version,
        "torch.amp": torch.amp,
        "torch.autocast": torch.autocast,
        "torch.nn.Module": torch.nn.Module,
        "torch.cuda.nvtx": torch.cuda.nvtx,
        "torch.nn.parallel.comm": torch.nn.parallel.comm,
    }
    return {f"{owner}.{name}": value for owner, where in owners.items() for name, value in vars(where).items()}


def test_leaving_puts_every_name_back():
    torch.nn.parallel.comm  # noqa: B018  imported, so that it is compared
    before = names_of_torch()
    with simulated_gpu(CARD), as_cuda():
        during = names_of_torch()
    after = names_of_torch()

    assert {name for name in before if during[name] is not before[name]} >= {"torch.zeros", "torch.cuda.is_available"}
    assert [name for name in before | after if before.get(name) is not after.get(name)] == []


def test_an_error_inside_puts_every_name_back():
    before = names_of_torch()
    with pytest.raises(ZeroDivisionError), simulated_gpu(CARD), as_cuda():
        1 / 0  # noqa: B018

    assert names_of_torch() == before


def test_nested_blocks_end_with_the_outermost(cuda):
    with as_cuda():
        pass

    assert torch.ones(2, device="cuda").is_cuda


def test_a_tensor_is_on_cuda_inside_and_on_the_simulated_card_outside():
    with simulated_gpu(CARD), as_cuda():
        x = torch.ones(2).cuda()
        inside = x.device

    assert (inside, x.device.type) == (torch.device("cuda", 0), "simgpu")


@pytest.mark.parametrize("device", ["cuda", "cuda:0", torch.device("cuda"), torch.device("cuda", 0), 0])
def test_every_way_to_name_the_device_is_understood(cuda, device):
    places = [torch.zeros(2, device=device), torch.zeros(2).to(device), torch.nn.Linear(2, 2).to(device).weight]

    assert {x.device for x in places} == {torch.device("cuda:0")}


ARGUMENTS = {
    "empty_permuted": ((2, 3), (0, 1)),
    "empty_strided": ((2, 3), (3, 1)),
    "full": ((2,), 1.0),
    "arange": (3,),
    "range": (0, 3),
    "linspace": (0, 1, 3),
    "logspace": (0, 1, 3),
    "scalar_tensor": (1.0,),
    "randint": (3, (2,)),
    "randperm": (3,),
    "tril_indices": (3, 3),
    "triu_indices": (3, 3),
    "tensor": ([1.0, 2.0],),
    "as_tensor": ([1.0, 2.0],),
    "asarray": ([1.0, 2.0],),
    "full_like": (torch.ones(2), 1.0),
    "randint_like": (torch.ones(2), 3),
}
NO_DEVICE = {name for name in FACTORIES if name.startswith("sparse")} | {"normal", "complex", "kaiser_window"}
"""Sparse tensors and, in torch 2.13, Kaiser windows can't be made on a device in Python."""


@pytest.mark.filterwarnings("ignore:torch.range")
@pytest.mark.parametrize("name", [name for name in FACTORIES if name not in NO_DEVICE])
def test_a_factory_makes_its_tensor_on_the_card(cuda, name):
    given = ARGUMENTS.get(name, (torch.ones(2),) if name in LIKE else (3,))

    assert getattr(torch, name)(*given, device="cuda").is_cuda


@pytest.mark.parametrize("name", NEW)
def test_a_new_tensor_follows_its_own(cuda, name):
    given = {"new_tensor": ([1.0],), "new_full": ((2,), 1.0), "new_empty_strided": ((2,), (1,))}.get(name, ((2,),))
    on_card, on_host = torch.ones(1, device="cuda"), torch.ones(1)

    assert getattr(on_card, name)(*given).is_cuda
    assert getattr(on_host, name)(*given, device="cuda").is_cuda
    assert not getattr(on_host, name)(*given).is_cuda


def test_functions_in_python_inside_torch_find_the_card_too(cuda):
    attention = torch.nn.MultiheadAttention(8, 2, add_bias_kv=True, add_zero_attn=True).cuda()
    x = torch.ones(3, 2, 8, device="cuda")
    mask = torch.zeros(3, 3, dtype=torch.bool, device="cuda")

    assert attention(x, x, x, attn_mask=mask)[0].is_cuda


def test_a_default_device_is_understood(cuda):
    torch.set_default_device("cuda")
    try:
        assert torch.get_default_device() == torch.zeros(1).device == torch.device("cuda:0")
    finally:
        torch.set_default_device(None)
    with torch.device("cuda"):
        assert torch.ones(1).is_cuda
    assert not torch.ones(1).is_cuda


def test_torch_cuda_answers_for_the_simulated_card(cuda):
    assert torch.cuda.is_available()
    assert torch.cuda.device_count() == 1
    assert CARD in torch.cuda.get_device_name("cuda:0")
    assert torch.cuda.get_device_capability() == (8, 0)
    assert torch.cuda.get_arch_list() == ["sm_80"]
    assert torch.cuda.is_bf16_supported()
    assert torch.accelerator.current_accelerator().type == "cuda"


def test_a_sensor_that_a_simulated_card_lacks_is_refused_in_words(cuda):
    with pytest.raises(NotImplementedError, match=r"torch.cuda.temperature reads a sensor of a real card"):
        torch.cuda.temperature()


def test_events_measure_virtual_time(cuda):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    torch.ones(1 << 20, device="cuda").add_(1)
    end.record()
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()), torch.cuda.stream(None):
        pass

    assert begin.elapsed_time(end) > 0


@pytest.mark.parametrize("autocast", [lambda: torch.autocast("cuda"), torch.cuda.amp.autocast])
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_autocast_computes_in_half(cuda, autocast):
    model = torch.nn.Linear(4, 4).cuda()
    with autocast():
        assert torch.is_autocast_enabled()
        assert model(torch.ones(2, 4, device="cuda")).dtype is torch.float16


def test_a_generator_for_cuda_draws_on_the_card(cuda):
    draws = [torch.randn(4, device="cuda", generator=torch.Generator("cuda").manual_seed(3)) for _ in range(2)]

    assert draws[0].tolist() == draws[1].tolist()
    assert isinstance(torch.default_generator, torch.Generator)


def test_a_generator_says_that_it_is_cudas(cuda):
    made = torch.Generator(device="cuda")

    assert made.device == made.clone_state().device == torch.device("cuda:0")
    assert pickle.loads(pickle.dumps(made)).device == torch.device("cuda:0")
    assert torch.Generator().device == torch.device("cpu")


def test_a_generator_has_its_own_name_again_afterwards():
    with simulated_gpu(CARD):
        with as_cuda():
            made = torch.Generator(device="cuda")

        assert made.device == torch.device("simgpu:0")


@pytest.mark.parametrize("where", [None, "cuda", "cuda:0", torch.device("cuda"), {"cuda:0": "cuda:0"}])
def test_a_saved_model_comes_back_to_the_card(cuda, tmp_path, where):
    model = torch.nn.Linear(2, 2).cuda()
    torch.save(model.state_dict(), tmp_path / "model.pt")
    back = torch.load(tmp_path / "model.pt", map_location=where)

    assert back["weight"].is_cuda
    assert back["weight"].tolist() == model.weight.tolist()


def test_old_tensor_types_make_convert_and_name(cuda):
    x = torch.cuda.FloatTensor([1.0, 2.0])

    assert torch.cuda.LongTensor(2, 3).shape == (2, 3)
    assert x.type() == "torch.cuda.FloatTensor"
    assert x.type(torch.cuda.HalfTensor).dtype is torch.float16
    assert torch.ones(2).type("torch.cuda.FloatTensor").is_cuda
    assert isinstance(x, torch.cuda.FloatTensor)
    assert not isinstance(x, torch.cuda.HalfTensor)


def test_data_parallel_over_one_card_is_the_model_itself(cuda):
    model = torch.nn.Linear(4, 2).cuda()
    x = torch.ones(3, 4, device="cuda")

    assert torch.nn.DataParallel(model)(x).tolist() == model(x).tolist()


def test_compile_leaves_results_as_they_are(cuda):
    model = torch.nn.Linear(4, 2).cuda()
    x = torch.ones(3, 4, device="cuda")

    assert torch.compile(model)(x).tolist() == model(x).tolist()
    assert torch.compile(mode="max-autotune")(torch.neg)(x).tolist() == (-x).tolist()


def test_threads_see_the_card_too(cuda):
    seen = []
    thread = threading.Thread(target=lambda: seen.append(torch.ones(2, device="cuda").is_cuda))
    thread.start()
    thread.join()

    assert seen == [True]


def test_pinned_memory_can_be_asked_of_a_factory(cuda):
    assert torch.empty(4, pin_memory=True).is_pinned()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_scripted_functions_still_know_torchs_factories(cuda):
    def padded(x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, torch.zeros(2)])

    assert torch.jit.script(padded)(torch.ones(1)).tolist() == [1, 0, 0]
