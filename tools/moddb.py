"""Try torch's databases of modules and of optimizers on the simulated GPU and compare with the CPU, bit for bit.

Run `python tools/moddb.py`. Every module is built on the CPU, copied to the device, and run forward and backward on
each of its sample inputs, training and not; every optimizer takes three steps in each of its configurations.
"""

from __future__ import annotations

import copy
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

import torch

from gpututor.simgpu import simulated_gpu
from tools.opdb import BY_DEVICE, Outcome, flat, moved, same, worded

N_STEPS = 3
CLOSURE_ONLY = {"LBFGS"}
"""Optimizers that call the loss themselves; tried with a closure."""


def try_module(info: Any, dtype: torch.dtype) -> Outcome:
    """One module of the database in one dtype."""
    outcome = Outcome(info.name, str(dtype).removeprefix("torch."))
    for training in (True, False) if info.train_and_eval_differ else (True,):
        try:
            samples = list(info.module_inputs_func(info, "cpu", dtype, True, training))
        except Exception:  # noqa: BLE001  the database itself lacks something here
            outcome.cpu_refused += 1
            continue
        for k, sample in enumerate(samples):
            _try_sample(info, dtype, training, k, sample, outcome)
    return outcome


def _try_sample(info: Any, dtype: torch.dtype, training: bool, k: int, sample: Any, outcome: Outcome) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            torch.manual_seed(0)
            made = sample.constructor_input
            module = info.module_cls(*made.args, **made.kwargs).to(dtype).train(training)
            twin = copy.deepcopy(module)
            expected = _run(module, sample, "cpu")
        except Exception:  # noqa: BLE001  what the CPU refuses proves nothing
            outcome.cpu_refused += 1
            return
        outcome.n_samples += 1
        try:
            found = _run(twin.to("simgpu"), sample, "simgpu")
        except Exception as error:  # noqa: BLE001  every kind is reported
            text = f"sample {k}: {type(error).__name__}: {str(error)[:160]}".replace("\n", " ")
            (outcome.refused if worded(error) else outcome.wrong).append(text)
            return
        exact = info.name not in BY_DEVICE
        if len(found) != len(expected) or not all(
            same(a, b, exact=exact) for a, b in zip(expected, found, strict=True)
        ):
            outcome.wrong.append(f"sample {k}: results differ")


def _run(module: torch.nn.Module, sample: Any, device: str) -> list[Any]:
    """Results, and gradients of parameters and inputs."""
    torch.manual_seed(0)
    given = sample.forward_input
    args, kwargs = moved(list(given.args), device), moved(given.kwargs, device)
    out = module(*args, **kwargs)
    found = [t for t in flat(out) if isinstance(t, torch.Tensor)]
    leaves = [t for t in [*flat([args, kwargs]), *module.parameters()] if isinstance(t, torch.Tensor)]
    leaves = [t for t in leaves if t.requires_grad and t.is_leaf]
    tops = [t for t in found if t.requires_grad]
    if leaves and tops:
        found += torch.autograd.grad(tops, leaves, [torch.ones_like(t) for t in tops], allow_unused=True)
    return found


def try_optimizer(info: Any) -> Outcome:
    """One optimizer of the database, in every configuration."""
    outcome = Outcome(info.optim_cls.__name__, "float32")
    for k, (kwargs, what) in enumerate(_configurations(info)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                expected = _steps(info, kwargs, "cpu")
            except Exception:  # noqa: BLE001  what the CPU refuses proves nothing
                outcome.cpu_refused += 1
                continue
            outcome.n_samples += 1
            try:
                found = _steps(info, kwargs, "simgpu")
            except Exception as error:  # noqa: BLE001  every kind is reported
                text = f"{what} ({k}): {type(error).__name__}: {str(error)[:160]}".replace("\n", " ")
                (outcome.refused if worded(error) else outcome.wrong).append(text)
                continue
            if not all(same(a, b) for a, b in zip(expected, found, strict=True)):
                outcome.wrong.append(f"{what} ({k}): parameters differ")
    return outcome


def _configurations(info: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """The database's own configurations, each with every way of running it."""
    for given in info.optim_inputs_func("cpu"):
        plain = dict.fromkeys(info.supported_impls, False)
        yield {**plain, **given.kwargs}, given.desc
        for flag in info.supported_impls:
            if flag != "fused" or "cpu" in info.supports_fused_on:
                yield {**plain, **given.kwargs, flag: True}, f"{given.desc}, {flag}"


def _steps(info: Any, kwargs: dict[str, Any], device: str) -> list[torch.Tensor]:
    """Parameters after some steps with gradients of a seed."""
    torch.manual_seed(0)
    start = [torch.randn(5, 4), torch.randn(4)]
    params = [torch.nn.Parameter(t.to(device)) for t in start]
    optimizer = info.optim_cls(params, **moved(kwargs, device))
    for _ in range(N_STEPS):
        grads = [torch.randn_like(t) for t in start]
        for p, g in zip(params, grads, strict=True):
            p.grad = (g.to_sparse() if info.only_supports_sparse_grads else g).to(device)
        if info.step_requires_closure or info.optim_cls.__name__ in CLOSURE_ONLY:
            optimizer.step(lambda: sum((p * p).sum() for p in params))
        else:
            optimizer.step()
    return [p.detach() for p in params]


def outcomes() -> Iterator[Outcome]:
    """Every module in float32, then every optimizer."""
    from torch.testing._internal.common_modules import module_db
    from torch.testing._internal.common_optimizers import optim_db

    with simulated_gpu(keep_tape=False):
        yield from (try_module(info, torch.float32) for info in module_db if torch.float32 in info.dtypes)
        yield from map(try_optimizer, optim_db)


def main() -> int:
    """Print a line for each that is not equal, and the counts."""
    torch.set_num_threads(1)
    counts: Counter[str] = Counter()
    for outcome in outcomes():
        counts[outcome.verdict] += 1
        if outcome.verdict in ("wrong", "refused"):
            print(f"{outcome.verdict:8} {outcome.name}: {(outcome.wrong or outcome.refused)[0]}", flush=True)
    print(dict(counts))
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
