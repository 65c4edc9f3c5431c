"""Phrases that every form of the report shares."""

from __future__ import annotations

from gpututor.explain.explained import Explained
from gpututor.text import duration, percent

MOST_CLASSES = 5
WINDOW_WORDS = {"span": "first to last GPU event", "steps": "the steps"}


def head_lines(one: Explained) -> list[str]:
    """Whose trace it is, and what its steps are."""
    label, ledger = one.timeline.label, one.window.ledger
    versions = ", ".join(f"{name} {version}" for name, version in label.versions)
    which = f" · GPU {one.device} of {one.n_devices}" if one.n_devices > 1 else ""
    lines = [f"{label.origin.value.capitalize()} · {label.card or 'card not known'}{which} · {one.name}"]
    if ledger.step_ns:
        n = f"{ledger.n_steps:,} step{'s' if ledger.n_steps > 1 else ''} of {duration(ledger.step_ns)}"
        lines.append(f"{n}, {one.how}; {ledger.n_kernels:,} kernels")
    else:
        lines.append(f"Steps: {one.how}; {ledger.n_kernels:,} kernels")
    return [*lines, versions] if versions else lines


def windows_rows(one: Explained) -> list[tuple[str, str, float, float, float, float]]:
    """A row for each window: name, length, and shares busy, idle, in communication, and idle in the loader."""
    return [
        (
            WINDOW_WORDS[name],
            duration(w.duration_ns),
            w.busy_share,
            w.idle_share,
            w.communication_share,
            w.loader_idle_share,
        )
        for name, w in (("span", one.span), ("steps", one.steps))
        if w is not None
    ]


def classes_said(one: Explained) -> str:
    """What kernels the time goes to, the largest classes first; empty without kernels."""
    classes = one.kernel_classes()
    whole = sum(classes.values())
    if not whole:
        return ""
    largest = list(classes.items())[:MOST_CLASSES]
    rest = whole - sum(ns for _, ns in largest)
    listed = ", ".join(f"{name} {percent(ns / whole)}" for name, ns in largest)
    return f"Kernels by time: {listed}" + (f", others {percent(rest / whole)}." if rest else ".")


def graphs_said(one: Explained) -> str:
    """How much of the busy time ran from graphs; empty where none was seen."""
    share = one.graph_share()
    return "" if share is None else f"Run from CUDA or HIP graphs: {percent(share)} of the busy time."


def cores_said(one: Explained) -> str:
    """How much of the matrix kernels' time is on tensor cores, as far as names say; empty without any."""
    cores = one.tensor_core_ns()
    whole = sum(cores.values())
    if not whole:
        return ""
    if cores["unknown"] == whole:
        return "Whether matrix kernels run on tensor cores, their names don't say."
    unknown = f", {percent(cores['unknown'] / whole)} unknown" if cores["unknown"] else ""
    return f"On tensor cores, by their names: {percent(cores['on'] / whole)} of the matrix kernels' time{unknown}."
