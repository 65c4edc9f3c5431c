"""From an operator to what it costs: which host work and which kernels.

Each family's module holds one dict of rules by operator name, without the overload.
To add an operator, add an entry there and a test; one that no rule names becomes a
single elementwise kernel that reads its tensors and writes its results.
"""

from __future__ import annotations

from gpututor.model.lowering import (
    attention,
    convolution,
    deterministic,
    foreach,
    indexing,
    matmul,
    norm,
    pointwise,
    pooling,
    recurrent,
    views,
)
from gpututor.model.lowering.shape import Rule, one_walk
from gpututor.model.spec import OpCall, OpCost

__all__ = ["FAMILIES", "RULES", "hangs_on_determinism", "lower"]

FAMILIES = (views, pointwise, matmul, convolution, norm, pooling, indexing, foreach, recurrent, attention)
RULES: dict[str, Rule] = {name: rule for family in FAMILIES for name, rule in family.RULES.items()}


def lower(call: OpCall) -> OpCost:
    """What `call` makes the host do and the kernels it launches, in order."""
    base = base_name(call.name)
    if call.deterministic and deterministic.is_dilated(call, base):
        cost = deterministic.dilated(call, base)
    else:
        rule = RULES.get(call.name) or RULES.get(base)
        cost = rule(call) if rule else one_walk(call)
    if call.filled and base in deterministic.FILLED:
        return OpCost(cost.host, (*deterministic.fills(call), *cost.kernels))
    return cost


def hangs_on_determinism(call: OpCall) -> bool:
    """Whether the operator is another one where a program asks for deterministic algorithms."""
    base = base_name(call.name)
    return base in deterministic.FILLED or deterministic.is_dilated(call, base)


def base_name(name: str) -> str:
    """An operator's name without its overload.

    >>> base_name("aten.addmm.default"), base_name("aten._foreach_add_.List"), base_name("gpututor.rnn.forward")
    ('aten.addmm', 'aten._foreach_add_', 'gpututor.rnn.forward')
    """
    parts = name.split(".")
    return ".".join(parts[:2]) if parts[0] == "aten" else name
