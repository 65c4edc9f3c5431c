"""Try torch's own operator database on the simulated GPU and compare with the CPU, bit for bit.

Each operator is tried with every sample input, each sample twice (the second time the remembered plan answers),
forward and, where the database says so, backward. Run `python tools/opdb.py --help`.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

from gpututor.errors import GpututorError
from gpututor.simgpu import simulated_gpu

UNINITIALISED = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}
"""Operators whose result is whatever lay in memory: shapes are compared, values are not."""

BY_DEVICE = {
    "linalg.lstsq": "the CPU's default driver is gelsy, every other device's is gels",
    "linalg.lstsq.grad_oriented": "the same",
    "nn.functional.linear_cross_entropy.chunked": "torch takes the chunked path on CPU and CUDA only",
    "nn.functional.linear_cross_entropy.chunked_none": "the same",
    "nn.LinearCrossEntropyLoss": "the same",
}
"""Operators for which torch itself chooses another algorithm by device: compared within the dtype's tolerance."""
STAYS_ON_CPU = {"tensor_split"}
"""Operators whose tensor arguments besides the first must lie on the CPU, on CUDA too."""


@dataclass(slots=True)
class Outcome:
    """How one operator fared in one dtype."""

    name: str
    dtype: str
    n_samples: int = 0
    n_backward: int = 0
    refused: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    cpu_refused: int = 0

    @property
    def verdict(self) -> str:
        """equal, refused (by name, in words), wrong, or nothing tried."""
        if self.wrong:
            return "wrong"
        if self.refused:
            return "refused"
        return "equal" if self.n_samples else "nothing tried"


def moved(x: Any, device: str) -> Any:
    """The same arguments with every tensor on `device`, keeping what asks for gradients."""
    if isinstance(x, torch.Tensor):
        y = x.detach().clone().to(device) if x.layout is torch.strided else x.to(device)
        return y.requires_grad_(x.requires_grad) if x.requires_grad else y
    if isinstance(x, (list, tuple)) and not isinstance(x, torch.Size):
        made = [moved(v, device) for v in x]
        return type(x)(*made) if hasattr(x, "_fields") else type(x)(made)
    if isinstance(x, dict):
        return {k: moved(v, device) for k, v in x.items()}
    if isinstance(x, torch.device):
        return torch.device(device)
    return device if x == "cpu" and isinstance(x, str) else x


def flat(x: Any) -> list[Any]:
    """Tensors and numbers of a result in order."""
    if isinstance(x, torch.Tensor) or not isinstance(x, (list, tuple, dict)):
        return [x]
    return [y for v in (x.values() if isinstance(x, dict) else x) for y in flat(v)]


def on_cpu(x: Any) -> Any:
    """A result's values on the CPU."""
    if not isinstance(x, torch.Tensor):
        return x
    if x.layout is not torch.strided:
        x = x.to_dense()
    host = getattr(x, "host", None)
    return host.detach() if isinstance(host, torch.Tensor) else x.detach().cpu()


def same(a: Any, b: Any, values: bool = True, exact: bool = True) -> bool:
    """Whether two results agree in shape, dtype and, to the bit if `exact`, in value (NaN equals NaN)."""
    if isinstance(a, torch.Tensor):
        if not isinstance(b, torch.Tensor) or a.shape != b.shape or a.dtype != b.dtype:
            return False
        a, b = on_cpu(a), on_cpu(b)
        if not values:
            return True
        if a.dtype is torch.complex32:
            a, b = a.to(torch.complex64), b.to(torch.complex64)
        if not exact:
            rough = 2**-4 if a.dtype in (torch.bfloat16, torch.float16) else 1e-4  # some roundings of 2**-8 each
            return bool(torch.allclose(a, b, rtol=rough, atol=rough, equal_nan=True))
        if a.is_floating_point() or a.is_complex():
            return bool(torch.equal(torch.isnan(a), torch.isnan(b)) and torch.equal(a.nan_to_num(7), b.nan_to_num(7)))
        return bool(torch.equal(a, b))
    return bool(type(a) is type(b) and (a == b or (isinstance(a, float) and math.isnan(a))))


def run_once(op: Callable[..., Any], sample: Any, device: str, backward: bool) -> list[Any]:
    """Results, and gradients of the inputs, of one call on one device."""
    torch.manual_seed(0)
    rest = "cpu" if sample.name in STAYS_ON_CPU else device
    args = [moved(sample.input, device), *moved(sample.args, rest)]
    kwargs = moved(sample.kwargs, rest)
    out = op(*args, **kwargs)
    if getattr(sample, "output_process_fn_grad", None) is not None and backward:
        out = sample.output_process_fn_grad(out)
    found = flat(out)
    if not backward:
        return found
    leaves = [t for t in flat([args, kwargs]) if isinstance(t, torch.Tensor) and t.requires_grad]
    tops = [t for t in found if isinstance(t, torch.Tensor) and t.requires_grad]
    if leaves and tops:
        seeds = [torch.ones_like(t) for t in tops]
        found = found + list(torch.autograd.grad(tops, leaves, seeds, allow_unused=True))
    return found


def worded(error: BaseException) -> bool:
    """Whether an error is a refusal in words: ours, or NotImplementedError naming the operator."""
    return isinstance(error, (GpututorError, NotImplementedError))


def try_op(info: Any, dtype: torch.dtype, *, backward: bool, most: int | None) -> Outcome:
    """One operator of the database in one dtype."""
    outcome = Outcome(info.full_name if hasattr(info, "full_name") else info.name, str(dtype).removeprefix("torch."))
    backward = backward and info.supports_autograd and dtype in info.supported_backward_dtypes("cpu")
    try:
        samples = list(info.sample_inputs("cpu", dtype, requires_grad=backward))
    except Exception:  # noqa: BLE001  the database itself lacks something here
        outcome.cpu_refused += 1
        return outcome
    values = info.name not in UNINITIALISED
    exact = outcome.name not in BY_DEVICE
    for k, sample in enumerate(samples[:most]):
        sample.name = info.name
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                expected = run_once(info.op, sample, "cpu", backward)
            except Exception:  # noqa: BLE001  what the CPU refuses proves nothing
                outcome.cpu_refused += 1
                continue
            outcome.n_samples += 1
            outcome.n_backward += backward
            for attempt in (1, 2):
                try:
                    found = run_once(info.op, sample, "simgpu", backward)
                except Exception as error:  # noqa: BLE001  every kind is reported
                    text = f"sample {k}, try {attempt}: {type(error).__name__}: {str(error)[:160]}".replace("\n", " ")
                    (outcome.refused if worded(error) else outcome.wrong).append(text)
                    break
                if len(found) != len(expected) or not all(
                    same(a, b, values, exact) for a, b in zip(expected, found, strict=True)
                ):
                    outcome.wrong.append(f"sample {k}, try {attempt}: results differ")
                    break
    return outcome


def chosen(names: Iterable[str], every: int) -> list[Any]:
    """The operators to try: those named, or every n-th of the database."""
    from torch.testing._internal.common_methods_invocations import op_db

    wanted = set(names)
    return [info for info in op_db if info.name in wanted] if wanted else list(op_db)[::every]


def main() -> int:
    """Print a line an operator that is not equal, and the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="operators; all by default")
    parser.add_argument("--every", type=int, default=1, help="try only each n-th operator")
    parser.add_argument("--most", type=int, default=None, help="samples per operator")
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], action="append")
    parser.add_argument("--no-backward", action="store_true")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    infos = chosen(args.names, args.every)  # loaded before the device is registered: it asks what torch has
    began, outcomes = time.perf_counter(), []
    with simulated_gpu(keep_tape=False):
        for name in args.dtype or ["float32", "bfloat16"]:
            dtype = getattr(torch, name)
            for info in infos:
                if dtype in info.supported_dtypes("cpu"):
                    outcomes.append(try_op(info, dtype, backward=not args.no_backward, most=args.most))
                    last = outcomes[-1]
                    if last.verdict in ("wrong", "refused") and not args.json:
                        why = (last.wrong or last.refused)[0]
                        print(f"{last.verdict:8} {last.dtype:9} {last.name}: {why}", flush=True)
    counts = Counter(f"{o.dtype} {o.verdict}" for o in outcomes)
    if args.json:
        print(json.dumps({"counts": counts, "outcomes": [asdict(o) | {"verdict": o.verdict} for o in outcomes]}))
    else:
        print(dict(counts), f"{time.perf_counter() - began:.0f} s")
    return 1 if any(o.verdict == "wrong" for o in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
