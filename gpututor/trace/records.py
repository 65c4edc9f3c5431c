"""One record of a trace as it stands in the file: the fields that we read, whatever they hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

OURS = "gpututor"
"""Name of the field in which traces that we write say what a profiler has no field for."""


UNSAID = msgspec.Raw()
"""What stands for shapes that a record doesn't have. They are kept as text, since most are the same ones again."""


class Args(msgspec.Struct, gc=False):
    """What a record says about itself; None where it says nothing."""

    correlation: Any = None
    device: Any = None
    stream: Any = None
    n_bytes: Any = msgspec.field(default=None, name="bytes")
    kind: Any = None
    grid: Any = None
    block: Any = None
    registers: Any = msgspec.field(default=None, name="registers per thread")
    smem_bytes: Any = msgspec.field(default=None, name="shared memory")
    name: Any = None
    external: Any = msgspec.field(default=None, name="External id")
    graph: Any = msgspec.field(default=None, name="graph id")
    graph_node: Any = msgspec.field(default=None, name="graph node id")
    collective: Any = msgspec.field(default=None, name="Collective name")
    group: Any = msgspec.field(default=None, name="Process Group Name")
    group_ranks: Any = msgspec.field(default=None, name="Process Group Ranks")
    dims: msgspec.Raw = msgspec.field(default=UNSAID, name="Input Dims")
    types: msgspec.Raw = msgspec.field(default=UNSAID, name="Input type")
    strides: msgspec.Raw = msgspec.field(default=UNSAID, name="Input Strides")
    concrete: msgspec.Raw = msgspec.field(default=UNSAID, name="Concrete Inputs")
    ours: Any = msgspec.field(default=None, name=OURS)


class Record(msgspec.Struct, gc=False):
    """One record. Fractions are kept as text, since a binary one can't hold a time to the nanosecond; see `exact`.

    In an event that was loaded by somebody else they are what he made of them.
    """

    ph: Any = None
    cat: Any = None
    name: Any = None
    pid: Any = None
    tid: Any = None
    ts: Any = None
    dur: Any = None
    id: Any = None
    args: Args | None = None


class Asked(msgspec.Struct, frozen=True, gc=False):
    """An operator with the texts that stand for its arguments in the file; b"" for what isn't recorded."""

    name: str
    dims: bytes
    types: bytes
    strides: bytes = b""
    concrete: bytes = b""


NO_ARGS = Args()
_FIELDS = {field.encode_name: field.name for field in msgspec.structs.fields(Args)}


def record_of(item: Mapping[str, object]) -> Record:
    """The record in a loaded event."""
    args = item.get("args")
    known = {_FIELDS[key]: value for key, value in args.items() if key in _FIELDS} if isinstance(args, Mapping) else {}
    get: Any = item.get  # whatever it holds; nothing is checked here
    return Record(
        get("ph"), get("cat"), get("name"), get("pid"), get("tid"), get("ts"), get("dur"), get("id"), Args(**known)
    )
