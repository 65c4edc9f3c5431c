"""torch counts the floating point operations of its own operators; ours have to agree where it counts any."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
flop_counter = pytest.importorskip("torch.utils.flop_counter")

from gpututor.model.lowering import lower  # noqa: E402
from gpututor.model.spec import Attention, Conv, Gemm  # noqa: E402
from tests.model.record_ops import Recorded  # noqa: E402


def meta(*shape):
    return torch.empty(*shape, device="meta", requires_grad=True)


CASES = {
    "matrix product": lambda: meta(3, 5) @ meta(5, 7),
    "batched product": lambda: meta(2, 3, 5) @ meta(2, 5, 7),
    "linear": lambda: torch.nn.functional.linear(meta(4, 5), meta(7, 5), meta(7)),
    "convolution": lambda: torch.conv2d(meta(2, 3, 9, 11), meta(4, 3, 3, 3), padding=1),
    "strided convolution": lambda: torch.conv2d(meta(2, 4, 16, 16), meta(8, 4, 4, 4), stride=4),
    "one-dimensional": lambda: torch.conv1d(meta(2, 3, 9), meta(4, 3, 3)),
    "transposed": lambda: torch.conv_transpose2d(meta(2, 4, 8, 9), meta(4, 3, 2, 2), stride=2),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_forward_and_backward_count_as_torch_does(case):
    with flop_counter.FlopCounterMode(display=False) as counter, Recorded() as recorded:
        out = case()
        out.backward(torch.empty_like(out))

    kernels = [kernel for call in recorded.calls for kernel in lower(call).kernels]
    ours = sum(k.flop for k in kernels if isinstance(k, (Gemm, Conv, Attention)))
    assert ours == counter.get_total_flops()
