"""How each operator that torch's database reaches is priced: by a rule of its own, as a view, or by its bytes only.

Run `python tools/prices.py`; `--json` for a program. An operator priced by bytes is one kernel that reads its tensors
and writes its results; one without kernels costs the card nothing, which is right for views and allocations alone.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import torch

from gpututor.model.lowering import FAMILIES, RULES
from gpututor.model.spec import HostKind
from gpututor.model.tape import TapeOp
from gpututor.simgpu import simulated_gpu
from tools.opdb import chosen, run_once

NO_WORK = frozenset(
    {"empty", "empty_strided", "empty_like", "empty_permuted", "new_empty", "new_empty_strided", "resize_"}
)
"""Operators that allocate and run nothing on CUDA either."""


def family_of(name: str) -> str | None:
    """The family whose table has a rule for this operator, or None."""
    for full in (f"aten.{name}", f"gpututor.{name}"):
        if full in RULES:
            return next(f.__name__.rpartition(".")[2] for f in FAMILIES if full in f.RULES)
    return None


def seen_ops(infos: Iterable[Any], most: int) -> dict[str, set[TapeOp]]:
    """What the device was asked for while the first samples of each operator ran, forward and backward."""
    found: dict[str, set[TapeOp]] = defaultdict(set)
    for info in infos:
        backward = info.supports_autograd and torch.float32 in info.supported_backward_dtypes("cpu")
        with warnings.catch_warnings(), simulated_gpu() as sim:
            warnings.simplefilter("ignore")
            try:
                samples = list(info.sample_inputs("cpu", torch.float32, requires_grad=backward))
            except Exception:  # noqa: BLE001  the database itself lacks something here
                continue
            for sample in samples[:most]:
                sample.name = info.name
                try:
                    run_once(info.op, sample, "simgpu", backward)
                except Exception:  # noqa: BLE001  tools/opdb.py reports these
                    continue
            for entry in sim.tape.entries:
                if isinstance(entry, TapeOp):
                    found[entry.name].add(entry)
    return found


def table(found: dict[str, set[TapeOp]]) -> dict[str, list[str]]:
    """Operators by how they are priced; "nothing" holds those without a kernel that are neither view nor allocation."""
    by: dict[str, list[str]] = defaultdict(list)
    for name in sorted(found):
        ops, family = found[name], family_of(name)
        hosts = {op.host for op in ops}
        if hosts <= {HostKind.VIEW, HostKind.FREE}:
            by["view"].append(name)
        elif not any(op.kernels for op in ops):
            by["allocation" if name in NO_WORK else "nothing"].append(name)
        else:
            by[f"rule: {family}" if family else "bytes only"].append(name)
    return dict(by)


def main() -> int:
    """Print the table; 1 if an operator that is no view and no allocation is priced at nothing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=200, help="samples per operator")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    by = table(seen_ops(chosen((), 1), args.most))
    if args.json:
        print(json.dumps(by, indent=1))
    else:
        for how, names in sorted(by.items()):
            print(f"{how} ({len(names)}): {' '.join(names)}")
    return 1 if by.get("nothing") else 0


if __name__ == "__main__":
    sys.exit(main())
