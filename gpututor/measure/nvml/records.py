"""Sampled readings in a file: JSON lines, the summary first, then one line for each series."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gpututor.errors import RecordDamaged
from gpututor.measure.nvml.columns import Figure
from gpututor.measure.nvml.devices import Device
from gpututor.measure.nvml.readings import Cost, Energy, GpuSummary, Held, Note, Sampled, Series, Summary

FORMAT, VERSION = "gpututor-sampled", 1


def save(sampled: Sampled, path: Path) -> None:
    """Write a run's readings.

    Raises:
        OSError: the file can't be written.
    """
    head = {"format": FORMAT, "version": VERSION, **asdict(sampled.summary)}
    lines = [head, *(asdict(series) for series in sampled.series)]
    text = "".join(json.dumps(line, allow_nan=False, separators=(",", ":")) + "\n" for line in lines)
    path.write_text(text, encoding="utf-8")


def load(path: Path) -> Sampled:
    """What `save` wrote.

    Raises:
        OSError: the file can't be read.
        RecordDamaged: it is not of our making, or cut short.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    found: list[Any] = []
    for number, line in enumerate(lines, 1):
        try:
            found.append(_head(json.loads(line)) if number == 1 else _series(json.loads(line)))
        except (ValueError, TypeError, KeyError) as error:
            raise RecordDamaged(
                f"line {number} of {path} holds no sampled readings ({type(error).__name__}: {error}); was the file "
                "cut short, or written by another program?"
            ) from None
    if not found:
        raise RecordDamaged(f"{path} is empty; was the disk full when it was written?")
    return Sampled(found[0], tuple(found[1:]))


def _head(entry: dict[str, Any]) -> Summary:
    if entry.pop("format") != FORMAT or entry.pop("version") != VERSION:
        raise ValueError(f"not {FORMAT} of version {VERSION}")  # becomes a sentence above
    gpus = tuple(_gpu(one) for one in entry.pop("gpus"))
    notes = tuple(Note(**one) for one in entry.pop("notes"))
    return Summary(gpus=gpus, notes=notes, cost=Cost(**entry.pop("cost")), **entry)


def _gpu(entry: Mapping[str, Any]) -> GpuSummary:
    figures = {name: Figure(**one) for name, one in entry["figures"].items()}
    held = tuple(Held(**one) for one in entry["held"])
    energy = None if entry["energy"] is None else Energy(**entry["energy"])
    parts = {"device": Device(**entry["device"]), "figures": figures, "held": held, "energy": energy}
    return GpuSummary(**{**entry, **parts})


def _series(entry: dict[str, Any]) -> Series:
    times, values = tuple(entry.pop("times_ns")), tuple(entry.pop("values"))
    if len(times) != len(values):
        raise ValueError(f"{len(times)} times and {len(values)} values")  # becomes a sentence above
    return Series(times_ns=times, values=values, **entry)
