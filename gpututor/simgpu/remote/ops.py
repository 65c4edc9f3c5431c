"""Which operators a program may ask a card in another process for: those that the simulated GPU meets by dispatch.

That is aten's, on at least one tensor of the card; and those that make a tensor of the card from numbers, which are
listed. So nothing that opens a file, and nothing that only computes on the host's tensors.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from gpututor.simgpu.private import operators
from gpututor.simgpu.private.tensors import schema_of
from gpututor.simgpu.remote.wire import foul
from gpututor.simgpu.tensor import SimTensor

aten = torch.ops.aten

FROM_NUMBERS = frozenset(
    """
    empty empty_strided empty_permuted zeros ones full scalar_tensor arange range linspace logspace eye rand randn
    randint randperm tril_indices triu_indices normal bartlett_window blackman_window hamming_window hann_window
    kaiser_window
    """.split()
)
"""Ops without a tensor among their arguments."""

NEVER = ("from_file", "cuda", "test", "debug", "print", "fw_primal", "pin_memory", "record_stream", "sobol")
"""Parts of names of aten's that no program reaches on a card, or that reach beyond it."""

ACCOUNTED = frozenset({operators.ITEM, operators.TO_COPY, aten.equal.default, operators.PACK, operators.LEFT_ALIGNED})
"""Ops that hand a value to the host and account it themselves; any other that does is accounted as a wait."""

_known: dict[str, Any] = {}
_OVERLOAD: Any = type(aten.add.Tensor)


def op_named(name: Any) -> Any:
    """The operator, by its schema's name: "aten::add.Tensor".

    Raises:
        Foul: there is none, or a card has no such op.
    """
    if type(name) is not str or len(name) > 100:
        raise foul("no name of an operator")
    op = _known.get(name)
    if op is None:
        space, _, rest = name.partition("::")
        base, _, overload = rest.partition(".")
        packet = getattr(aten, base, None) if space == "aten" and base.isidentifier() else None
        op = getattr(packet, overload or "default", None) if not overload or overload.isidentifier() else None
        if not isinstance(op, _OVERLOAD) or any(part in base for part in NEVER):
            raise foul(f"an operator that a card doesn't have ({name[:60]!r})")
        _known[name] = op
    return op


def on_card(op: Any, args: Any, kwargs: dict[str, Any]) -> None:
    """See that the op belongs on the card.

    Raises:
        Foul: it has no tensor of the card, and makes none.
    """
    if any(type(t) is SimTensor for t in flat((*args, *kwargs.values()))):
        return
    device = kwargs.get("device")
    makes = isinstance(device, torch.device) and device.type != "cpu"
    base = str(schema_of(op).name).removeprefix("aten::")
    if not (makes and (base in FROM_NUMBERS or op is operators.TO_COPY)):
        raise foul(f"an operator on nothing of the card ({base[:60]!r})")


def flat(values: Any) -> Iterator[Any]:
    """The values, lists opened."""
    for value in values:
        if type(value) is list or type(value) is tuple:
            yield from flat(value)
        else:
            yield value


def tells_host(out: Any) -> bool:
    """Whether a result holds numbers that the host can see."""
    if isinstance(out, tuple | list):
        return any(map(tells_host, out))
    return out is not None and type(out) is not SimTensor
