"""Saving, loading, copying and sending: the same files as CUDA's, read anywhere."""

from __future__ import annotations

import copy
import io
import multiprocessing
import pickle
import subprocess
import sys
import zipfile
from multiprocessing.reduction import ForkingPickler

import pytest
import torch
from torch import nn

from gpututor.errors import NumericsOff
from gpututor.model.tape import CopyCall
from gpututor.simgpu import simulated_gpu

ON = "simgpu"
forks = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")  # from 3.12 on, as torch has threads


@pytest.fixture
def sim():
    with simulated_gpu() as session:
        yield session


def saved(what: object, **how: object) -> io.BytesIO:
    """What torch.save writes, ready to be read."""
    file = io.BytesIO()
    torch.save(what, file, **how)
    file.seek(0)
    return file


def relabelled(file: io.BytesIO, old: bytes, new: bytes) -> io.BytesIO:
    """The same file with another location in it, as if another device had written it."""
    out = io.BytesIO()
    with zipfile.ZipFile(file) as source, zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as target:
        for name in source.namelist():
            target.writestr(
                name, source.read(name).replace(old, new) if name.endswith("data.pkl") else source.read(name)
            )
    out.seek(0)
    return out


@pytest.mark.parametrize("how", [{}, {"_use_new_zipfile_serialization": False}], ids=["zip", "legacy"])
@pytest.mark.parametrize(
    ("place", "device"),
    [
        pytest.param({}, ON, id="as saved"),
        pytest.param({"map_location": "cpu"}, "cpu", id="to the CPU"),
        pytest.param({"map_location": torch.device("cpu")}, "cpu", id="to a torch.device"),
        pytest.param({"map_location": {"simgpu:0": "cpu"}}, "cpu", id="by a dict"),
        pytest.param({"map_location": lambda storage, where: storage}, "cpu", id="by a function"),
        pytest.param({"map_location": ON}, ON, id="to the device"),
    ],
)
def test_a_device_tensor_loads_where_it_is_wanted(sim, how, place, device):
    found = torch.load(saved(torch.arange(6.0, device=ON).view(2, 3).t(), **how), **place)

    assert found.device.type == device
    assert found.stride() == (1, 3)
    assert found.tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]


@pytest.mark.parametrize("how", [{}, {"_use_new_zipfile_serialization": False}], ids=["zip", "legacy"])
def test_a_cpu_file_loads_onto_the_device(sim, how):
    found = torch.load(saved(torch.arange(3.0), **how), map_location=ON)

    assert found.device.type == ON
    assert found.tolist() == [0.0, 1.0, 2.0]


def test_a_file_from_cuda_loads_onto_the_device(sim):
    file = relabelled(saved(torch.arange(3.0)), b"X\x03\x00\x00\x00cpu", b"X\x06\x00\x00\x00cuda:0")

    assert torch.load(file, map_location=ON).tolist() == [0.0, 1.0, 2.0]
    file.seek(0)
    assert torch.load(file, map_location={"cuda:0": "simgpu:0"}).device.type == ON


def test_a_card_that_the_machine_lacks_is_refused(sim):
    with pytest.raises(RuntimeError, match="5"):
        torch.load(saved(torch.ones(2)), map_location="simgpu:5")


def test_a_process_without_gpututor_reads_the_file_onto_the_cpu(sim, tmp_path):
    torch.save({"w": nn.Linear(2, 2).to(ON).state_dict(), "k": torch.arange(3, device=ON)}, tmp_path / "model.pt")
    code = (
        "import sys, torch; d = torch.load(sys.argv[1], map_location='cpu', weights_only=True); "
        "assert 'gpututor' not in sys.modules; print(d['k'].tolist(), d['w']['weight'].device)"
    )
    out = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "model.pt"], capture_output=True, text=True, check=True, cwd=tmp_path
    )

    assert out.stdout.split() == ["[0,", "1,", "2]", "cpu"]


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.complex64, torch.int64, torch.uint16, torch.float8_e5m2], ids=str
)
def test_every_dtype_comes_back(sim, dtype):
    found = torch.load(saved(torch.ones(3).to(ON).to(dtype)))

    assert (found.dtype, found.device.type) == (dtype, ON)
    assert found.to(torch.complex64).tolist() == [1, 1, 1]


def test_a_conjugate_is_saved_carried_out(sim):
    assert torch.load(saved(torch.tensor([1 + 2j], device=ON).conj())).tolist() == [1 - 2j]


def test_a_view_stays_a_view(sim):
    whole = torch.zeros(6, device=ON)
    loaded, part = torch.load(saved([whole, whole[2:4]]))
    part.fill_(1)

    assert loaded.tolist() == [0.0, 0.0, 1.0, 1.0, 0.0, 0.0]


def test_a_view_takes_no_memory_of_its_own(sim):
    whole = torch.zeros(1 << 20, device=ON)
    file = saved([whole, whole[1:]])
    before = sim.memory.in_use_bytes
    loaded = torch.load(file)

    assert len(loaded) == 2
    assert sim.memory.in_use_bytes - before == 4 * (1 << 20)
    del loaded
    assert sim.memory.in_use_bytes == before


def test_saving_and_loading_are_copies_across_the_link(sim):
    torch.load(saved(torch.ones(10, device=ON)))
    copies = [(e.to_gpu, e.n_bytes, e.blocking) for e in sim.tape.entries if isinstance(e, CopyCall)]

    assert copies == [(False, 40, True), (True, 40, True)]


class Tied(nn.Module):
    """Two layers with one weight, and a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(3, 3), nn.Linear(3, 3)
        self.two.weight = self.one.weight
        self.register_buffer("seen", torch.zeros(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.two(self.one(x))


def test_training_goes_on_from_a_file_as_if_it_had_not_stopped(sim):
    def made() -> tuple[nn.Module, torch.optim.Optimizer]:
        torch.manual_seed(0)
        net = Tied().to(ON)
        return net, torch.optim.AdamW(net.parameters(), lr=0.1)

    def step(net: nn.Module, opt: torch.optim.Optimizer) -> float:
        loss = net(torch.ones(2, 3, device=ON)).square().sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.item()

    net, opt = made()
    step(net, opt)
    file = saved({"net": net.state_dict(), "opt": opt.state_dict()})
    expected = [step(net, opt) for _ in range(3)]
    net, opt = made()
    state = torch.load(file, map_location=ON, weights_only=True)
    net.load_state_dict(state["net"])
    opt.load_state_dict(state["opt"])

    assert [step(net, opt) for _ in range(3)] == expected
    assert net.two.weight is net.one.weight


def test_a_cpu_models_state_loads_into_a_device_model(sim):
    torch.manual_seed(0)
    on_cpu, there = nn.Linear(3, 3), nn.Linear(3, 3).to(ON)
    there.load_state_dict(on_cpu.state_dict())

    assert torch.equal(there.weight.detach().cpu(), on_cpu.weight.detach())
    assert there.weight.device.type == ON


def test_a_pickled_parameter_is_a_parameter_with_what_was_noted_on_it(sim):
    weight = nn.Parameter(torch.ones(2, device=ON), requires_grad=False)
    weight.decays = False
    twin = pickle.loads(pickle.dumps(weight))

    assert isinstance(twin, nn.Parameter)
    assert (twin.device.type, twin.requires_grad, twin.decays) == (ON, False, False)


def test_a_deep_copy_has_memory_of_its_own_and_keeps_ties(sim):
    net = Tied().to(ON)
    twin = copy.deepcopy(net)
    with torch.no_grad():
        twin.one.weight.fill_(7)

    assert twin.two.weight is twin.one.weight
    assert twin.two.weight.tolist() == [[7.0] * 3] * 3
    assert 7.0 not in net.one.weight.flatten().tolist()


def test_a_result_with_a_history_has_no_deep_copy(sim):
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(torch.ones(2, device=ON, requires_grad=True) * 2)


def test_with_numerics_off_files_are_read_by_shape_and_not_written():
    file = saved(torch.zeros(1 << 20))
    with simulated_gpu(numerics=False) as session:
        found = torch.load(file, map_location=ON)
        assert found.shape == (1 << 20,)
        assert session.memory.in_use_bytes == 4 << 20
        with pytest.raises(NumericsOff, match="saving"):
            saved(found)


# --- other processes --------------------------------------------------------------------------------------------


def test_a_tensor_on_its_way_to_another_process_is_refused_with_the_way_out(sim):
    with pytest.raises(RuntimeError, match=r"send x\.cpu\(\)"):
        ForkingPickler.dumps([torch.ones(2, device=ON)])


class Batches(torch.utils.data.Dataset):
    """Rows of a table; on the device if asked, which a forked worker must not do."""

    def __init__(self, device: str) -> None:
        self.device = device

    def __len__(self) -> int:
        return 6

    def __getitem__(self, k: int) -> torch.Tensor:
        return torch.full((2,), float(k), device=self.device)


@forks
def test_a_loaders_workers_collate_on_the_cpu_as_ever(sim):
    loader = torch.utils.data.DataLoader(Batches("cpu"), batch_size=3, num_workers=2, multiprocessing_context="fork")

    assert [b.to(ON)[:, 0].tolist() for b in loader] == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


@forks
def test_the_device_in_a_forked_worker_is_refused_as_cuda_refuses_it(sim):
    loader = torch.utils.data.DataLoader(Batches(ON), batch_size=3, num_workers=1, multiprocessing_context="fork")

    with pytest.raises(RuntimeError, match="Cannot re-initialize"):
        next(iter(loader))


def _asks(queue: multiprocessing.Queue[bool]) -> None:
    queue.put(torch.simgpu._is_in_bad_fork())


@forks
def test_a_forked_process_knows_that_it_is_one(sim):
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_asks, args=(queue,))
    child.start()
    answer = queue.get(timeout=60)
    child.join()

    assert answer
    assert not torch.simgpu._is_in_bad_fork()
