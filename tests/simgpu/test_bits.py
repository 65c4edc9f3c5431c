"""Complex tensors, and conjugates and negatives that are carried out when they are read."""

from __future__ import annotations

import pytest
import torch

from gpututor.model.tape import TapeOp
from gpututor.simgpu import simulated_gpu

ON = "simgpu"
Z = [1 + 2j, 3 - 1j]


@pytest.fixture
def sim():
    with simulated_gpu() as session:
        yield session


@pytest.mark.parametrize(
    "op",
    [
        pytest.param(lambda z: z.real, id="real"),
        pytest.param(lambda z: z.imag, id="imag"),
        pytest.param(lambda z: z.conj(), id="conj"),
        pytest.param(lambda z: z.conj().imag, id="imag of conj"),
        pytest.param(lambda z: z.conj().real, id="real of conj"),
        pytest.param(lambda z: z.conj() + 1, id="conj read"),
        pytest.param(lambda z: z.conj().conj(), id="conj twice"),
        pytest.param(lambda z: z.conj()[1:], id="view of conj"),
        pytest.param(lambda z: z.conj().clone(), id="clone of conj"),
        pytest.param(lambda z: z.clone().conj().mul_(2j), id="conj in place"),
        pytest.param(lambda z: torch.stack(z.conj().unbind()), id="parts of conj"),
        pytest.param(lambda z: z.view(1, 2) @ z.view(1, 2).mH, id="product with the adjoint"),
        pytest.param(torch.abs, id="abs"),
        pytest.param(torch.angle, id="angle"),
        pytest.param(torch.view_as_real, id="view_as_real"),
        pytest.param(lambda z: torch.view_as_complex(torch.view_as_real(z) * 2), id="view_as_complex"),
        pytest.param(lambda z: torch.complex(z.real, z.imag), id="complex"),
        pytest.param(lambda z: torch.polar(z.abs(), z.angle()), id="polar"),
        pytest.param(torch.fft.fft, id="fft"),
        pytest.param(lambda z: torch.fft.irfft(z, 4), id="irfft"),
        pytest.param(lambda z: z.conj().resolve_conj(), id="resolve_conj"),
        pytest.param(lambda z: z.conj().imag.resolve_neg(), id="resolve_neg"),
        pytest.param(lambda z: z.to(torch.complex128), id="complex128"),
    ],
)
def test_a_complex_op_gives_the_cpus_result(sim, op):
    expected, found = op(torch.tensor(Z)), op(torch.tensor(Z, device=ON))

    assert (found.dtype, found.is_conj(), found.is_neg()) == (expected.dtype, expected.is_conj(), expected.is_neg())
    assert found.tolist() == expected.tolist()
    assert torch.equal(found.cpu(), expected)


def test_writing_through_the_imaginary_part_changes_the_tensor(sim):
    z = torch.tensor(Z, device=ON)
    z.imag.zero_()

    assert z.tolist() == [1, 3]


def test_gradients_through_a_conjugate_equal_the_cpus(sim):
    def gradient(device: str) -> list[complex]:
        z = torch.tensor(Z, device=device, requires_grad=True)
        (z * z.conj()).real.sum().backward()
        return z.grad.tolist()

    assert gradient(ON) == gradient("cpu") == [2 + 4j, 6 - 2j]  # twice z


def test_viewing_a_conjugate_as_real_is_refused_as_on_cuda(sim):
    with pytest.raises(RuntimeError, match="resolve_conj"):
        torch.view_as_real(torch.tensor(Z, device=ON).conj())


@pytest.mark.parametrize("numerics", [True, False])
def test_bits_follow_views_with_numerics_on_and_off(numerics):
    with simulated_gpu(numerics=numerics):
        z = torch.ones(4096, 2, dtype=torch.complex64, device=ON)

        assert z.conj().is_conj()
        assert z.conj()[1:].is_conj()
        assert z.conj().t().is_conj()
        assert not z.conj().conj().is_conj()
        assert z.conj().imag.is_neg()
        assert not (z.conj() + 1).is_conj()


def test_taking_the_conjugate_runs_no_kernel_and_reading_it_does(sim):
    z = torch.ones(8, dtype=torch.complex64, device=ON)

    def n_kernels(work) -> int:
        first = len(sim.tape.entries)
        work()
        return sum(len(e.kernels) for e in sim.tape.entries[first:] if isinstance(e, TapeOp))

    assert n_kernels(z.conj) == 0
    assert n_kernels(lambda: z + 1) == 1
    assert n_kernels(lambda: z.conj() + 1) == 2
