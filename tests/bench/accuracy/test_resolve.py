"""A point's words become a workload, a setting and a machine, and what isn't understood is said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpututor.bench.accuracy.naming import workload_of
from gpututor.bench.accuracy.placing import DLE, LAMBDA, card_of, place_of
from gpututor.bench.accuracy.points import default_points, read_points
from gpututor.bench.accuracy.recipes import torch_of
from gpututor.bench.accuracy.resolve import Asked, Skip, resolve
from gpututor.bench.accuracy.wording import precision_of, wording_of
from gpututor.errors import WorkloadNotKnown
from gpututor.links import wiring
from tests.bench.accuracy.made_points import asked, point


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("resnet50_FP32", "resnet50"),
        ("ResNet-50", "resnet50"),
        ("GNMT v2 (4-layer, 1024 hidden, attention)", "gnmt"),
        ("SSD300 resnet50 backbone", "ssd300"),
        ("BERT-large SQuAD fine-tune", "bert-large-squad"),
        ("bert_base_squad_FP16", "bert-base-squad"),
        ("nnU-Net 2D", "nnunet_2d"),
        ("cuDNN LSTM 1 layer fwd", "lstm_layer"),
        ("AdamW.step on 10 params of 1M", "optimizer_step"),
    ],
)
def test_one_network_goes_by_many_names(model, name):
    assert workload_of(model)[0].name == name


def test_a_name_that_differs_in_a_hyphen_alone_is_its_own_when_both_exist():
    assert workload_of("resnext101-32x4d")[0].name == "resnext101-32x4d"
    assert workload_of("resnext101_32x4d")[0].name == "resnext101_32x4d"


def test_an_unknown_network_lists_near_ones():
    with pytest.raises(WorkloadNotKnown, match=r"resnet5000.*resnet50"):
        workload_of("resnet5000")


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("224x224 eval, NHWC, eager", {"side": 224}),
        ("192x160 patch", {"height": 192, "width": 160}),
        ("hidden=512 T=25 CUDNN_SKIP_INPUT (any text)", {"hidden": 512, "steps": 25, "skip_input": True}),
        ("seq 384, 24L d1024 h16, fused LN/Adam (apex)", {"seq": 384}),
        ("gradient checkpointing, seq512", {"checkpointing": True, "seq": 512}),
        ("without gradient checkpointing", {"checkpointing": False}),
        ("eager AdamW foreach=False, 10x Linear(1024,1024) no bias", {"form": "loop", "parameters": 10, "width": 1024}),
    ],
)
def test_a_text_says_options(text, options):
    wording = wording_of(text)

    assert dict(wording.options) == options
    assert wording.not_understood == ()


@pytest.mark.parametrize(
    ("text", "mode", "kind"),
    [
        ("torch.compile reduce-overhead fwd+bwd", "graphs", "gradients"),
        ("torch.compile, forward no_grad", "compiled", "infer"),
        ("eager fp32, fwd+bwd (no optimizer step)", "eager", "gradients"),
        ("timm, 224px", None, None),
    ],
)
def test_a_text_says_mode_and_kind(text, mode, kind):
    assert (wording_of(text).mode, wording_of(text).kind) == (mode, kind)


def test_words_that_no_rule_knows_are_kept():
    assert wording_of("224px, ZeRO stage 3, eager").not_understood == ("ZeRO stage 3",)


def test_the_layout_may_go_by_precision():
    text = "224px; amp = NHWC, fp32/tf32 = NCHW"

    assert asked(point(config=text, precision="amp")).setting.layout == "nhwc"
    assert asked(point(config=text, precision="tf32", gpu="A100")).setting.layout == "nchw"


def test_a_precision_may_carry_a_remark():
    assert precision_of("tf32 (cuDNN/cuBLAS default in NGC)") == "tf32"


@pytest.mark.parametrize(
    ("gpu", "key", "name"),
    [
        ("Tesla_V100-SXM2-32GB", "", "V100-SXM2-32GB"),
        ("NVIDIA_H100_80GB_HBM3", "", "H100-SXM"),
        ("GeForce_RTX_2080_Ti", "", "RTX-2080Ti"),
        ("GTX 1080Ti", "", "GTX-1080Ti"),
        ("A100", "A100-SXM4-80GB", "A100-SXM4-80GB"),
        ("B200", "B200-SXM", "B200-SXM"),
    ],
)
def test_a_card_goes_by_many_names(gpu, key, name):
    assert card_of(point(gpu=gpu, gpu_key=key)).name == name


def test_the_host_follows_from_who_measured_and_where():
    ours = place_of(point(gpu="V100-SXM2-16GB", repo=DLE))[0]
    amazons = place_of(point(gpu="V100-SXM2-16GB", repo=LAMBDA, path="pytorch/results/p3.2xlarge/x.txt"))[0]

    assert ours.host.name == "dgx1-e5-2698v4"
    assert amazons.host.name == "broadwell-e5-2686v4"


def test_several_cards_of_nvidias_tables_are_in_a_machine_whose_links_are_known():
    machine, _ = place_of(point(gpu="V100-SXM2-16GB", repo=DLE, n_gpus=8))

    assert (machine.name, machine.n_cards) == ("DGX-1", 8)


@pytest.mark.parametrize(
    ("gpu", "path", "interconnect", "name"),
    [
        ("GeForce_RTX_3090", "8x3090/x.txt", "PCIe (no NVLink)", "pcie-geforce"),
        ("A40", "4xA40/x.txt", "", "pcie4-server"),
        ("NVIDIA_H100_PCIe", "8xH100_80GB_PCIe5_v1/x.txt", "", "pcie5-server"),
        ("NVIDIA_H100_PCIe", "8xH100_80GB_PCIe_v1/x.txt", "", "pcie-virtual"),
        ("NVIDIA_H100_80GB_HBM3", "8xH100_80GB_SXM5_v1/x.txt", "NVLink4", "nvlink4"),
        ("Tesla_V100-SXM2-16GB", "LambdaCloud_4xV100_16GB_v1/x.txt", "NVLink", "pcie-virtual"),
        ("Tesla_V100-SXM2-16GB", "LambdaCloud_8xV10016G/x.txt", "", "nvlink2"),
        ("Tesla_V100-SXM2-32GB", "8xV100/x.txt", "NVLink", "nvlink2"),
        ("A100-SXM4-40GB", "8xA100_p4/x.txt", "", "nvlink3"),
        ("NVIDIA_A100-SXM4-40GB", "8xA100_40GB_SXM4_v1/x.txt", "", "pcie-virtual"),
    ],
)
def test_several_cards_are_joined_as_their_kind_and_their_box_say(gpu, path, interconnect, name):
    where = {"gpu": gpu, "repo": LAMBDA, "path": f"pytorch/results/{path}", "interconnect": interconnect}

    machine, _ = place_of(point(n_gpus=4, **where))

    assert wiring(machine).cards.name == name


def test_cards_whose_nvlink_a_point_denies_talk_through_the_host():
    machine, _ = place_of(point(gpu="A100-SXM4-40GB", n_gpus=4, interconnect="PCIe"))

    assert not wiring(machine).cards.peer_access


def test_a_pair_with_a_bridge_has_it():
    machine, _ = place_of(point(gpu="A40", n_gpus=2, interconnect="NVLink bridge"))

    assert wiring(machine).cards.name == "nvlink-bridge"


@pytest.mark.parametrize(
    ("framework", "version"),
    [
        ("PyTorch 21.03 NGC (1.9a)", "1.9"),
        ("NGC PyTorch 20.06", "1.6"),
        ("PyTorch 1.13.0a0+d0d6b1f CUDA V11.8.89", "1.13"),
        ("torch 2.13.0+cu130", "2.13"),
        ("PyTorch ~2.2", "2.2"),
        ("cuDNN 7.6.2.24 CUDA 10.1.243", None),
        ("NGC PyTorch", None),
    ],
)
def test_the_version_of_torch_is_found_in_the_framework(framework, version):
    assert torch_of(framework) == version


def test_lambdas_fp32_is_tf32_where_the_card_has_it():
    assert asked(point(repo=LAMBDA, gpu="RTX 3090")).setting.precision == "tf32"
    assert asked(point(repo=LAMBDA, gpu="T4")).setting.precision == "fp32"


def test_lambdas_tacotron_has_the_batch_of_its_script_and_an_epoch_of_625_clips():
    one = point(
        model="tacotron2_FP16", kind="train", config="", precision="amp", repo=LAMBDA, gpu="V100-SXM2-32GB",
        batch=None, metric="nvsmi_util", measured=50.0, unit="%",
    )  # fmt: skip
    setting = asked(one).setting

    assert setting.batch == 220  # --batch-size of config_pytorch_8xV100.sh
    assert setting.options["per_epoch"] == 2  # 625 // 220, and its log says "Batch: 0/2"


@pytest.mark.parametrize(
    ("model", "gpu", "path", "n_gpus", "batch"),
    [
        ("tacotron2_FP32", "Tesla_V100-SXM2-16GB", "p3.2xlarge/x.txt", 1, 52),  # config_pytorch_p3.16xlarge.sh
        ("tacotron2_FP32", "Tesla_V100-SXM2-16GB", "LambdaCloud_V100_16GB_v1/x.txt", 1, 48),  # config_v1/…16GB.sh
        ("SSD_FP32", "A100-SXM4-40GB", "A100_SXM4/x.txt", 1, 128),  # config_v1/config_pytorch_40GB.sh
        ("ncf_FP32", "RTX_A6000", "2xA6000/x.txt", 2, 2500000),  # config_v1/…48GB.sh: 5,000,000 on both together
    ],
)
def test_lambdas_scripts_have_the_batch_that_a_log_lacks(model, gpu, path, n_gpus, batch):
    one = point(model=model, kind="train", repo=LAMBDA, gpu=gpu, path=path, n_gpus=n_gpus, batch=None, config="")

    assert asked(one).setting.batch == batch


@pytest.mark.parametrize(
    ("precision", "kind", "layout"),
    [("amp", "train", "nhwc"), ("tf32", "train", "nhwc"), ("tf32", "infer", "nchw"), ("fp32", "train", "nchw")],
)
def test_nvidias_ssd_has_the_layout_of_its_scripts(precision, kind, layout):
    one = point(model="SSD300", kind=kind, precision=precision, repo=DLE, path="PyTorch/Detection/SSD/README.md")

    assert asked(replace(one, config="300x300")).setting.layout == layout


def test_an_option_that_the_workload_lacks_is_said():
    (note,) = asked(point(model="nnunet_2d", config="hidden=9")).notes

    assert note.startswith("hidden=9: nnunet_2d has no such option")


def test_a_batch_that_the_text_contradicts_is_said():
    (note,) = asked(point(config="bs 4")).notes

    assert "the text says batch 4, the column 8" in note


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        pytest.param({"model": "alexnet9000"}, 'none of our workloads is called "alexnet9000"', id="model"),
        pytest.param({"gpu": "Voodoo 2"}, "no card is called", id="card"),
        pytest.param({"precision": "int4"}, 'precision "int4"', id="precision"),
        pytest.param({"kind": "guess"}, 'kind "guess"', id="kind"),
        pytest.param({"config": "eager tp4 Megatron"}, "split over the GPUs", id="tensor parallel"),
        pytest.param({"model": "cuDNN LSTM 1 layer bwd", "config": "hidden=8 T=2"}, "backward call", id="backward"),
    ],
)
def test_what_cannot_be_predicted_says_why(changed, says):
    found = resolve(point(**changed))

    assert isinstance(found, Skip)
    assert says in found.reason


def test_every_word_of_our_own_table_is_understood():
    found = [resolve(p) for p in read_points(default_points())]

    assert [words for one in found if isinstance(one, Asked) for words in one.not_understood] == []


def test_every_word_of_the_open_suite_is_understood(shared):
    texts = [p.config for p in read_points(shared / "measured" / "validation_open.csv")]

    assert [words for text in texts for words in wording_of(text).not_understood] == []


def test_a_program_with_a_way_of_its_own_has_its_workload():
    one = asked(point(model="gpt2_large", config="seq 1024, fwd+bwd dp4 Megatron", kind="train", n_gpus=4, gpu="A100"))

    assert one.workload.name == "gpt2-megatron"
    assert (one.setting.kind, one.setting.options["size"]) == ("train", "gpt2-large")


def test_neusights_models_are_those_of_2023():
    assert asked(point(model="gpt2_large", repo="sitar-lab/NeuSight")).workload.name == "gpt2-large-hf2023"
    assert asked(point(model="gpt2_large")).workload.name == "gpt2-large"


def test_links_of_another_kind_are_said():
    (note,) = asked(point(gpu="RTX 3090", n_gpus=4, interconnect="NVLink")).notes

    assert note == "the point's GPUs are joined by NVLink, ours by PCIe"
