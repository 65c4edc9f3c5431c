"""From a point to a prediction that can be made: workload, setting, machine; or the reason why there is none."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from gpututor.bench.accuracy import recipes
from gpututor.bench.accuracy.naming import workload_of
from gpututor.bench.accuracy.placing import place_of
from gpututor.bench.accuracy.points import Point
from gpututor.bench.accuracy.wording import Said, Wording, kind_of, precision_of, wording_of
from gpututor.cards import Machine
from gpututor.errors import GpututorError, WorkloadNotKnown
from gpututor.links import wiring
from gpututor.workloads.setting import Option, Setting, Workload

# What texts call an option, and what workloads may call it.
_OPTION_NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"seq": ("length", "seq"), "optimizer": ("name",), "cell": (), "layers": (), "pass": (), "parameters": ()}
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A prediction that can be made for a point; `notes` are choices of ours, `not_understood` words of the point."""

    workload: Workload
    setting: Setting
    machine: Machine
    host_reason: str
    said: Mapping[str, Said]
    notes: tuple[str, ...] = ()
    not_understood: tuple[str, ...] = ()
    torch: str | None = None  # the version that ran there


@dataclass(frozen=True, slots=True)
class Skip:
    """Why a point is not predicted."""

    reason: str


def resolve(point: Point) -> Asked | Skip:
    """What to predict for a point, or why it can't be."""
    wording = wording_of(point.config)
    if wording.cannot:
        return Skip(wording.cannot)
    try:
        workload, in_name = workload_of(point.model, recipes.ENDINGS.get(point.repo, ""), wording.program)
        machine, host_reason = place_of(point)
        precision = precision_of(point.precision)
        kind = _kind(point, wording, workload)
        if precision is None or kind is None:
            column = "precision" if precision is None else "kind"
            return Skip(f'the {column} "{getattr(point, column)}" is none that we know')
        if cannot := _cannot(in_name):
            return Skip(cannot)
        precision = recipes.precision_there(point, precision, machine.card)
        batch = point.batch or recipes.batch_of(point, precision, machine.card) or _count(in_name.get("parameters"))
        unsaid = recipes.options_of(point, kind, precision, machine.card, batch)
        said = {**unsaid, **in_name, **wording.options}
        options, notes = _options(workload, said, quiet=frozenset(unsaid) | frozenset(in_name))
        setting = Setting(
            kind=kind,
            batch=batch,
            precision=precision,
            layout=_layout(point, wording, precision),
            mode=wording.mode or "eager",
            n_cards=point.n_gpus,
            options=MappingProxyType(options),
        )
    except WorkloadNotKnown as error:
        close = f"; the nearest are {', '.join(error.close)}" if error.close else ""
        return Skip(f'none of our workloads is called "{point.model}"{close}')
    except GpututorError as error:
        return Skip(str(error))
    notes += _doubts(point, wording, setting, workload, machine)
    version = recipes.version_of(point)
    known = MappingProxyType(said)
    return Asked(workload, setting, machine, host_reason, known, notes, wording.not_understood, version)


def _kind(point: Point, wording: Wording, workload: Workload) -> str | None:
    """The kind that the text says, else that of the column; the first that the workload is run as."""
    column = recipes.kernel_kind(point) if point.kind == "kernel" else kind_of(point.kind)
    timed = recipes.timed_kind(point, wording.program)
    wanted = [kind for kind in (timed, wording.kind, column) if kind]
    return next((kind for kind in wanted if kind in workload.kinds), wanted[0] if wanted else None)


def _cannot(in_name: Mapping[str, Said]) -> str | None:
    """What a model's name asks for that no workload does."""
    if str(in_name.get("pass", "fwd"))[0] == "b":
        return "the backward call was timed alone, and we predict it only together with the forward one"
    if in_name.get("layers", 1) != 1:
        return f"the library call has {in_name['layers']} layers; we predict one"
    return None


def _count(value: Said | None) -> int | None:
    return value if isinstance(value, int) else None


def _layout(point: Point, wording: Wording, precision: str) -> str:
    if wording.layout_by_precision:
        return "nhwc" if precision.startswith("amp") else "nchw"
    return wording.layout or recipes.layout_of(point, precision) or "nchw"


def _options(
    workload: Workload, said: Mapping[str, Said], quiet: frozenset[str]
) -> tuple[dict[str, Option], tuple[str, ...]]:
    """The workload's options among what was said, and a note on each other one, unless the workload says it too."""
    options: dict[str, Option] = {}
    notes = []
    for name, value in said.items():
        own = next((known for known in _OPTION_NAMES.get(name, (name,)) if known in workload.options), None)
        if own is not None:
            options[own] = value
        elif name not in quiet and value is not False and not _stands_in(value, workload):
            notes.append(f"{name}={value}: {workload.name} has no such option and is run as it is")
    return options, tuple(notes)


def _stands_in(value: Said, workload: Workload) -> bool:
    """Whether a number stands in the workload's name or description: 300 in ssd300."""
    return re.search(rf"(?<!\d){value}(?!\d)", f"{workload.name} {workload.what}") is not None


def _doubts(point: Point, wording: Wording, setting: Setting, workload: Workload, machine: Machine) -> tuple[str, ...]:
    """Where the point contradicts itself or leaves a choice to us."""
    notes = []
    if setting.batch is None:
        notes.append(f"the point has no batch; {workload.name}'s usual {workload.batch} is taken")
    if wording.batch is not None and point.batch not in (None, wording.batch):
        notes.append(f"the text says batch {wording.batch}, the column {point.batch}; the column is taken")
    if wording.n_cards is not None and wording.n_cards != point.n_gpus:
        notes.append(f"the text says {wording.n_cards} GPUs, the column {point.n_gpus}; the column is taken")
    if point.n_gpus > 1 and point.interconnect:
        ours, theirs = wiring(machine).cards.kind, point.interconnect.casefold()
        if theirs.startswith(("nvlink", "pcie")) and not theirs.startswith(ours.casefold()):
            notes.append(f"the point's GPUs are joined by {point.interconnect}, ours by {ours}")
    return tuple(notes)
