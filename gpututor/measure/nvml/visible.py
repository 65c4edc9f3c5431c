"""Which GPUs a CUDA program sees, and in which order, by CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER.

NVML counts GPUs by their place on the PCI bus; CUDA counts the quickest first unless told otherwise. Where both can
differ nothing is guessed. Source: CUDA C++ programming guide, "CUDA environment variables".
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

VISIBLE, ORDER = "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"


@dataclass(frozen=True, slots=True)
class Visible:
    """UUIDs that CUDA sees. `ordered` says whether place k is CUDA's device k; `words` says why that is so or not."""

    uuids: tuple[str, ...]
    ordered: bool
    words: str


def visible(
    gpus: Sequence[tuple[str, str]], environ: Mapping[str, str], torch_says: Sequence[str] | None = None
) -> Visible:
    """What CUDA sees of `gpus`, given as (UUID, name) in NVML's order.

    `torch_says` are the UUIDs that torch found, in its order, and settles everything.
    """
    if torch_says:
        return Visible(tuple(torch_says), True, "as torch counts them")
    order = environ.get(ORDER, "FASTEST_FIRST")
    alike = len({name for _, name in gpus}) <= 1
    sure = alike or order == "PCI_BUS_ID"
    doubt = (
        f"different GPUs are here, and CUDA may count them in another order than the driver; give a UUID, or set "
        f"{ORDER}=PCI_BUS_ID before the program starts"
    )
    listed = environ.get(VISIBLE)
    everything = tuple(uuid for uuid, _ in gpus)
    if listed is None:
        return Visible(everything, sure, "all GPUs are visible" if sure else doubt)
    words = f"by {VISIBLE}={listed}"
    entries = [entry.strip() for entry in listed.split(",")]
    if entries[0].startswith(("GPU-", "MIG-")):
        return Visible(_by_uuid(entries, everything), True, words)
    places = _places(entries, len(gpus))
    if not sure and set(places) != set(range(len(gpus))) and places:
        return Visible(everything, False, doubt)
    return Visible(tuple(everything[k] for k in places), sure, words if sure else doubt)


def _places(entries: Sequence[str], n: int) -> tuple[int, ...]:
    """Whole numbers up to the first entry that is none or counts no GPU; none at all where one comes twice."""
    places: list[int] = []
    for entry in entries:
        begins = re.match(r"[+-]?\d+", entry)
        if not begins or not 0 <= int(begins.group()) < n:
            break
        places.append(int(begins.group()))
    return tuple(places) if len(set(places)) == len(places) else ()


def _by_uuid(entries: Sequence[str], everything: Sequence[str]) -> tuple[str, ...]:
    """GPUs by the beginning of their UUID, up to the first that fits none or several; the first MIG instance alone."""
    if entries[0].startswith("MIG-"):
        return (entries[0],)  # a program sees one instance
    found: list[str] = []
    for entry in entries:
        fits = [uuid for uuid in everything if uuid.startswith(entry)] if entry.startswith("GPU-") else []
        if len(fits) != 1:
            break
        found.append(fits[0])
    return tuple(found) if len(set(found)) == len(found) else ()


def torch_order() -> tuple[str, ...] | None:
    """UUIDs of the GPUs as this process's torch counts them; None where torch has not started CUDA by itself."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    try:
        if cuda is None or not cuda.is_initialized():
            return None
        properties = [cuda.get_device_properties(k) for k in range(cuda.device_count())]
        uuids = [str(getattr(each, "uuid", "")) for each in properties]
    except Exception:  # noqa: BLE001  # torch may stand for a simulated card, or be broken; the environment remains
        return None
    return tuple(map(whole, uuids)) if uuids and all(uuids) else None


def whole(uuid: str) -> str:
    """A UUID as NVML writes it; torch leaves "GPU-" out."""
    return uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"
