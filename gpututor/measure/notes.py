"""What a reader must know of a measured loop to judge its numbers."""

from __future__ import annotations

from dataclasses import replace

from gpututor.measure.devices import Device
from gpututor.measure.measurement import HAS_A_QUEUE_NS, Measurement
from gpututor.text import duration


def with_notes(found: Measurement, device: Device) -> Measurement:
    """The measurement with what a reader must know to judge its numbers."""
    notes = list(device.notes)
    if found.n_dropped:
        notes.append(f"the run was long: the last {len(found.steps):,} of its steps are kept")
    if device.kind != "cpu" and found.readings.get("memory_peak_bytes") == 0:
        notes.append(f"nothing was ever put on the {device.name}; are model and batch there?")
    elif device.kind != "cpu" and found.lead_ns < HAS_A_QUEUE_NS:
        notes.append(
            f"at no mark of the usual step is the host more than {duration(found.lead_ns)} ahead of the GPU, so "
            "the GPU waits for launches or the host for results, inside a part; profile_steps=10 shows where"
        )
    return replace(found, notes=tuple(notes))
