"""Points, rows and predictions by hand, for the tests beside this file."""

from __future__ import annotations

from typing import Any

from gpututor.bench.accuracy.points import Point
from gpututor.bench.accuracy.resolve import Asked, resolve
from gpututor.bench.accuracy.rows import Row
from gpututor.predict import Prediction
from gpututor.timeline import KernelWork
from tests.draw import draw

HEADER = "id,regime,kind,model,config,precision,gpu,n_gpus,batch_per_gpu,metric,measured,unit"
PICTURES = "R1,pictures,infer,resnet50,224px eager,fp32,T4,1,8,throughput,400,img/s"


def point(name: str = "R1", **changed: Any) -> Point:
    """ResNet-50's inference on a T4, 400 pictures a second, but for what is changed."""
    fields: dict[str, Any] = {
        "id": name, "regime": "pictures", "kind": "infer", "model": "resnet50", "config": "224px eager",
        "precision": "fp32", "gpu": "T4", "n_gpus": 1, "batch": 8, "metric": "throughput", "measured": 400.0,
        "unit": "img/s",
    }  # fmt: skip
    return Point(**{**fields, **changed})


def asked(one: Point) -> Asked:
    """What is asked for a point that can be predicted."""
    found = resolve(one)
    assert isinstance(found, Asked), found
    return found


def row(one: Point, predicted: float, error: float = 0.0) -> Row:
    """A row of a time, as if it had been predicted."""
    return Row(one, asked(one), predicted=predicted, error=error)


def predicting(step_s: float, n_per_step: float = 8.0, gpu: str = "########"):
    """A predictor that always says this; `gpu` draws what the card does in one step."""

    def predict(workload: Any, setting: Any, machine: Any, torch: Any = None) -> Prediction:
        work = KernelWork("convolution", flop=1.0, moved_bytes=1.0, n_blocks=1000, blocks_per_sm=1)
        timeline = draw(gpu=gpu, work=work)
        return Prediction(workload.name, setting, machine, step_s, n_per_step, workload.unit, timeline)

    return predict
