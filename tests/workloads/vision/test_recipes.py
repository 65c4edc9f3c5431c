"""The picture networks' steps do what the benchmarks' programs do around them."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from gpututor.errors import SettingNotPossible
from gpututor.model.kernels import Conv, Gemm
from gpututor.model.tape import CopyCall
from gpututor.predict import predict
from gpututor.simgpu.recording import tape_steps
from gpututor.timeline import Activity
from gpututor.workloads.setting import Setting, Workload
from gpututor.workloads.vision.convnexts import CONVNEXTS
from gpututor.workloads.vision.densenets import DENSENETS
from gpututor.workloads.vision.ghostnets import GHOSTNET
from gpututor.workloads.vision.hrnets import HRNETS
from gpututor.workloads.vision.inceptions import INCEPTION_V3
from gpututor.workloads.vision.inverted import EFFICIENTNETS, MOBILENETS
from gpututor.workloads.vision.loading import mixed_loss
from gpututor.workloads.vision.recipes import network
from gpututor.workloads.vision.regnets import REGNETS
from gpututor.workloads.vision.repvggs import REPVGGS
from gpututor.workloads.vision.resnets import RESNET50, RESNETS
from gpututor.workloads.vision.small_nets import SMALL_NETS
from gpututor.workloads.vision.unets import UNET
from gpututor.workloads.vision.vggs import ALEXNET, VGGS
from gpututor.workloads.vision.vits import VITS, fuses

F = nn.functional
RESNET18 = RESNETS[0]
ONE_OF_EACH: tuple[Workload, ...] = (
    *(RESNETS[0], RESNETS[-2], RESNETS[-1], MOBILENETS[1], EFFICIENTNETS[0], EFFICIENTNETS[5], VGGS[1], ALEXNET),
    *(DENSENETS[0], GHOSTNET, CONVNEXTS[0], VITS[0], REGNETS[4], INCEPTION_V3, *SMALL_NETS[1:], REPVGGS[1], HRNETS[0]),
    UNET,
)


def small(recipe: str, kind: str = "train", **options: str | int) -> Setting:
    return Setting(kind, 2, options={"side": 32, "recipe": recipe, **options})


def tape_of(workload: Workload, setting: Setting):
    jobs = []

    def step(k: int) -> object:
        if not jobs:
            jobs.append(workload.build(setting, "simgpu"))
        return jobs[0].step(k)

    return tape_steps(step, n_steps=1, warmup=2, numerics=False)


@pytest.mark.parametrize("workload", ONE_OF_EACH, ids=lambda w: w.name)
@pytest.mark.parametrize(
    "setting",
    [
        pytest.param(Setting("train", 2, "amp", "nhwc"), id="training in amp, channels last"),
        pytest.param(Setting("infer", 2, "fp16"), id="inference in fp16"),
    ],
)
def test_a_network_of_each_kind_takes_its_step_on_the_simulated_gpu(workload, setting):
    assert predict(workload, setting).step_s > 0


@pytest.mark.parametrize("recipe", ["timm", "dle", "lambda"])
def test_a_step_on_the_cpu_gives_a_loss_near_that_of_chance(recipe):
    torch.manual_seed(1)

    loss = RESNET18.build(small(recipe), "cpu").step(0)
    assert float(loss.detach()) == pytest.approx(math.log(1000), abs=1.5)


@pytest.mark.parametrize("recipe", ["timm", "dle", "lambda"])
def test_inference_on_the_cpu_runs(recipe):
    assert RESNET18.build(small(recipe, "infer"), "cpu").step(0) is None


@pytest.mark.parametrize(("update_batch", "changes_in"), [(0, [0, 1, 2, 3]), (4, [1, 3]), (8, [3])])
def test_nvidias_recipe_updates_once_in_its_update_batch(update_batch, changes_in, monkeypatch):
    updates = []
    monkeypatch.setattr(torch.optim.SGD, "step", lambda self, *_: updates.append(k))
    job = RESNET18.build(small("dle", update_batch=update_batch), "cpu")
    for k in range(4):
        job.step(k)

    assert updates == changes_in


@pytest.mark.parametrize("recipe", ["timm", "lambda"])
def test_gradients_alone_leave_the_weights(recipe, monkeypatch):
    monkeypatch.setattr(torch.optim.SGD, "step", lambda self, *_: pytest.fail("an optimizer ran"))

    RESNET18.build(small(recipe, "gradients"), "cpu").step(0)


def test_before_torch_2_every_tensor_has_optimizer_kernels_of_its_own():
    n_parameters = len(list(network("resnet18").parameters()))
    before, since = (
        sum(len(op.kernels) for op in tape_of(RESNET18, small("timm", torch=version)).entries if in_optimizer(op))
        for version in ("1.12", "2.0")
    )

    assert before >= 3 * n_parameters  # momentum's product, its sum, the weights'
    assert since < n_parameters


def in_optimizer(entry: object) -> bool:
    return getattr(entry, "phase", None) == "optimizer"


@pytest.mark.parametrize(
    ("recipe", "kind", "n_bytes"),
    [
        ("timm", "train", 0),
        ("lambda", "train", 0),
        ("dle", "train", 2 * 3 * 32 * 32 + 2 * 8 + 2 * 8),  # pictures as bytes, labels, and the order of the mixup
        ("dle", "infer", 0),
    ],
)
def test_only_nvidias_training_copies_a_batch_each_step(recipe, kind, n_bytes):
    copies = [e for e in tape_of(RESNET18, small(recipe, kind)).entries if isinstance(e, CopyCall)]

    assert sum(c.n_bytes for c in copies if c.to_gpu) == n_bytes


@pytest.mark.parametrize("recipe", ["timm", "dle", "lambda"])
def test_nothing_is_read_back_inside_a_step_in_fp32(recipe):
    copies = [e for e in tape_of(RESNET18, small(recipe)).entries if isinstance(e, CopyCall)]

    assert all(c.to_gpu for c in copies)


def test_every_recipe_waits_for_the_card_in_each_step():
    timeline = predict(RESNET18, Setting("infer", 64)).timeline

    assert sum(span.activity is Activity.SYNC for span in timeline.spans) >= 2  # two steps are predicted


def test_the_recorded_products_are_those_of_the_layers():
    tape = tape_of(RESNET50, Setting("infer", 1, options={"recipe": "timm"}))
    kernels = [k for e in tape.entries for k in getattr(e, "kernels", ()) if isinstance(k, Conv | Gemm)]

    assert sum(k.flop for k in kernels) == pytest.approx(2 * 4.089e9, rel=0.001)  # torchvision's "_ops" of ResNet-50


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
def test_the_loss_of_unmixed_labels_is_smoothed_cross_entropy(smoothing):
    torch.manual_seed(2)
    scores, targets = torch.randn(8, 11), torch.randint(0, 11, (8,))

    expected = F.cross_entropy(scores, targets, label_smoothing=smoothing)
    assert mixed_loss(scores, F.one_hot(targets, 11), smoothing) == pytest.approx(float(expected), rel=1e-5)


def test_fused_attention_gives_what_the_products_and_the_softmax_give():
    torch.manual_seed(3)
    apart = network("vit_small_patch16_224", attention="unfused", side=32)
    fused = network("vit_small_patch16_224", attention="fused", side=32)
    fused.load_state_dict(apart.state_dict())
    seen = torch.randn(2, 3, 32, 32)

    torch.testing.assert_close(fused(seen), apart(seen), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("asked", "version", "expected"), [("auto", "1.13", False), ("auto", "2.0", True), ("unfused", "2.4", False)]
)
def test_attention_is_fused_since_torch_2_unless_asked_for(asked, version, expected):
    assert fuses(Setting(options={"attention": asked, "torch": version})) is expected


@pytest.mark.parametrize(
    ("options", "seen"),
    [
        ({"recipe": "keras"}, "recipe is 'keras'; it has to be one of timm, dle, lambda"),
        ({"torch": "new"}, "torch is 'new'; it has to be a version such as 1.12 or 2.4"),
        ({"attention": "flash"}, "attention is 'flash'; it has to be one of auto, fused, unfused"),
    ],
)
def test_an_option_that_nobody_ran_is_refused(options, seen):
    with pytest.raises(SettingNotPossible, match=seen):
        VITS[0].build(Setting(batch=1, options=options), "cpu")
