"""An optimizer's step alone, over a list of parameters whose gradients are there."""

from __future__ import annotations

from typing import Any

import torch

from gpututor.errors import SettingNotPossible
from gpututor.workloads.setting import Job, Setting, Workload
from gpututor.workloads.training import data_dtype

OPTIMIZERS: dict[str, tuple[type[torch.optim.Optimizer], dict[str, Any]]] = {
    "adamw": (torch.optim.AdamW, {}),
    "adam": (torch.optim.Adam, {}),
    "sgd": (torch.optim.SGD, {"lr": 0.1}),
    "sgd_momentum": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9}),
}
FORMS = {"loop": {"foreach": False}, "foreach": {"foreach": True}, "fused": {"fused": True}}


def _step(setting: Setting, device: str) -> Job:
    assert setting.batch is not None
    name, form, width = str(setting.options["name"]), str(setting.options["form"]), int(setting.options["width"])
    for word, known in ((name, OPTIMIZERS), (form, FORMS)):
        if word not in known:
            raise SettingNotPossible(f"no optimizer step goes by {word!r}; known here: {', '.join(known)}")
    kind, own = OPTIMIZERS[name]
    with torch.device(device):
        params = [
            torch.nn.Parameter(torch.randn(width, width, dtype=data_dtype(setting))) for _ in range(setting.batch)
        ]
        for p in params:
            p.grad = torch.randn_like(p)
    optimizer = kind(params, **own, **FORMS[form])  # type: ignore[arg-type]

    def step(k: int) -> None:
        optimizer.step()

    return Job(step, 1)


OPTIMIZER_STEP = Workload(
    "optimizer_step",
    "optimizer.step() alone over as many square parameters as the batch says",
    "torch.optim; 10 weights of 1024x1024 as in pytorch/pytorch issue 120308",
    "step",
    10,
    _step,
    {"name": "adamw", "form": "foreach", "width": 1024},
    ("train",),
)
