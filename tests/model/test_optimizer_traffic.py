"""How often an optimizer's list operators go through the parameters' bytes, counted by hand from torch's sources.

torch/optim/sgd.py, adam.py and rmsprop.py, the `_multi_tensor_` functions: a scaling in place reads and writes (2), a
sum of two lists reads both and writes one (3), a square added reads two (3), a quotient added reads three (4).
"""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from gpututor.model.lowering import lower  # noqa: E402
from gpututor.model.spec import Stream  # noqa: E402
from tests.model.record_ops import Recorded  # noqa: E402

SCALED, ADDED, SQUARE_ADDED, QUOTIENT_ADDED = 2, 3, 3, 4
MOMENTUM = SCALED + ADDED + ADDED  # decay it, add the gradient, step
DENOMINATOR = 3 * SCALED  # a root, a division, a sum
ADAM = ADDED + SCALED + SQUARE_ADDED + DENOMINATOR + QUOTIENT_ADDED
CASES = {
    "SGD with momentum": (lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, foreach=True), MOMENTUM),
    "SGD with weight decay": (
        lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.1, foreach=True),
        ADDED + MOMENTUM,
    ),
    "Adam": (lambda p: torch.optim.Adam(p, foreach=True), ADAM),
    "AdamW": (lambda p: torch.optim.AdamW(p, foreach=True), SCALED + ADAM),
    "fused AdamW": (lambda p: torch.optim.AdamW(p, fused=True), 4 + 3),
}


@pytest.mark.parametrize(("make", "passes"), CASES.values(), ids=CASES.keys())
def test_a_step_goes_through_the_parameters_as_often_as_its_formulas(make, passes):
    parameters = [torch.nn.Parameter(torch.zeros(1000, 100)) for _ in range(3)]
    for parameter in parameters:
        parameter.grad = torch.zeros_like(parameter)
    optimizer = make(parameters)
    optimizer.step()  # the first step makes the state
    with Recorded() as recorded:
        optimizer.step()

    kernels = [kernel for call in recorded.calls for kernel in lower(call).kernels]
    moved = sum(k.moved_bytes for k in kernels if isinstance(k, Stream) and k.n_elements > len(parameters))
    assert moved == passes * 4 * 3 * 100_000
