"""Move the tensors of a batch to a device, whatever the batch is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

Batch = TypeVar("Batch")


def moved(batch: Batch, to: Any) -> Batch:
    """The batch with its tensors on `to`: tensors, and what lies in tuples, lists, mappings and dataclasses.

    A batch with a `to` of its own moves itself. Anything else is left as it is.
    """
    there: Any = _moved(batch, to)
    return there  # type: ignore[no-any-return]


def _moved(batch: Any, to: Any) -> Any:
    if hasattr(batch, "to") and callable(batch.to):
        try:
            return batch.to(to, non_blocking=True)
        except TypeError:  # a batch's own `to` may take the device alone
            return batch.to(to)
    if isinstance(batch, Mapping):
        items = {key: _moved(value, to) for key, value in batch.items()}
        return items if type(batch) is dict else type(batch)(items)  # type: ignore[call-arg]
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(_moved(value, to) for value in batch))
    if isinstance(batch, (tuple, list)):
        return type(batch)(_moved(value, to) for value in batch)
    if is_dataclass(batch) and not isinstance(batch, type):
        return replace(batch, **{f.name: _moved(getattr(batch, f.name), to) for f in fields(batch) if f.init})
    return batch
