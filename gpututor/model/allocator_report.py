"""What an allocator shows of itself: CUDA's statistics, its summary as text, and a snapshot of its segments."""

from __future__ import annotations

from gpututor.model.allocator import Allocator
from gpututor.model.allocator_counts import Counts

FIGURES = ("current", "peak", "allocated", "freed")
NO_LIMIT = -1
"""`max_split_size` when none is set, as CUDA's statistics show it."""

SHOWN = (
    ("allocated_bytes", "Allocated memory"),
    ("active_bytes", "Active memory"),
    ("requested_bytes", "Requested memory"),
    ("reserved_bytes", "GPU reserved memory"),
    ("inactive_split_bytes", "Non-releasable memory"),
    ("allocation", "Allocations"),
    ("active", "Active allocs"),
    ("segment", "GPU reserved segments"),
    ("inactive_split", "Non-releasable allocs"),
)


def statistics(allocator: Allocator) -> dict[str, int]:
    """What `torch.cuda.memory_stats` gives, under its keys and in their order.

    Source: PyTorch's documentation of `torch.cuda.memory_stats`; keys of `torch/csrc/cuda/Module.cpp`.
    """
    found = {
        "max_split_size": NO_LIMIT,
        "num_alloc_retries": allocator.n_retries,
        "num_device_alloc": allocator.n_mallocs,
        "num_device_free": allocator.n_frees,
        "num_ooms": allocator.n_full,
        "num_sync_all_streams": allocator.n_waits,
    }
    for name in ("oversize_allocations", "oversize_segments"):
        found |= {f"{name}.{figure}": 0 for figure in FIGURES}
    small, large = allocator.small.by_name(), allocator.large.by_name()
    for pool, quantities in (("all", _both(allocator)), ("large_pool", large), ("small_pool", small)):
        for name, four in quantities.items():
            found |= {f"{name}.{pool}.{figure}": value for figure, value in zip(FIGURES, four, strict=True)}
    return dict(sorted(found.items()))


def _both(allocator: Allocator) -> dict[str, tuple[int, int, int, int]]:
    """The counts of both pools together: peaks are their own, totals those of the pools."""
    small, large = allocator.small.by_name(), allocator.large.by_name()
    return {
        name: (now, peak, small[name][2] + large[name][2], small[name][3] + large[name][3])
        for name, (now, peak, _, _) in allocator.all.by_name().items()
    }


def summary(allocator: Allocator, device: int, abbreviated: bool = False) -> str:
    """A table of the statistics, laid out like `torch.cuda.memory_summary`'s."""
    stats = statistics(allocator)
    rule = "|" + "=" * 75 + "|"
    lines = [
        rule,
        f"|{f'memory summary of simulated GPU {device}':^75}|",
        f"|{f'OOMs: {allocator.n_full}':^37}|{f'cudaMalloc retries: {allocator.n_retries}':^37}|",
        rule,
        "|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |",
    ]
    for name, title in SHOWN:
        lines.append("|" + "-" * 75 + "|")
        pools = [("all", title)]
        if not abbreviated:
            pools += [("large_pool", "      from large pool"), ("small_pool", "      from small pool")]
        shown = _bytes if name.endswith("_bytes") else _count
        for pool, words in pools:
            cells = " | ".join(shown(stats[f"{name}.{pool}.{figure}"]) for figure in FIGURES)
            lines.append(f"| {words:<21} | {cells} |")
    return "\n".join([*lines, rule, ""])


def _bytes(value: int) -> str:
    for unit in ("B  ", "KiB", "MiB"):
        if value < 768 << 10:
            return f"{value:6d} {unit}"
        value >>= 10
    return f"{value:6d} GiB"


def _count(value: int) -> str:
    return f"{value:7d}   "


def snapshot(allocator: Allocator, device: int) -> list[dict[str, object]]:
    """The segments and their blocks, with the keys of `torch.cuda.memory_snapshot` that have a meaning here."""
    found: list[dict[str, object]] = []
    for pieces in allocator.segments():
        blocks = []
        for piece in pieces:
            waits = allocator.is_waiting(piece)
            state = "inactive" if piece.cached else "active_pending_free" if waits else "active_allocated"
            blocks.append({"address": piece.address, "size": piece.size, "requested_size": piece.asked, "state": state})
        in_use = [p for p, b in zip(pieces, blocks, strict=True) if b["state"] == "active_allocated"]
        active = [p for p in pieces if not p.cached]
        lot = pieces[0].lot
        found.append(
            {
                "device": device,
                "address": pieces[0].address,
                "total_size": sum(p.size for p in pieces),
                "allocated_size": sum(p.size for p in in_use),
                "active_size": sum(p.size for p in active),
                "requested_size": sum(p.asked for p in active),
                "stream": lot.stream,
                "segment_type": "small" if lot.small else "large",
                "is_expandable": False,
                "blocks": blocks,
            }
        )
    return found


def fragmentation_share(counts: Counts) -> float | None:
    """Reserved bytes that no tensor uses, as a share of the reserved; None before anything is reserved."""
    return (counts.reserved - counts.size) / counts.reserved if counts.reserved else None
