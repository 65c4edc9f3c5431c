"""The transformers are the published ones, by their parameters and by what their ops add up to."""

from __future__ import annotations

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from gpututor.cards import card, host
from gpututor.errors import SettingNotPossible
from gpututor.hardware import Machine
from gpututor.predict import predict
from gpututor.simgpu import simulated_gpu
from gpututor.timeline import Activity
from gpututor.workloads.language import bert, gpt2, llama, opt, switch
from gpututor.workloads.language.bert_jobs import BERT_LARGE, BERT_LARGE_PRETRAINING, BERT_LARGE_SQUAD
from gpututor.workloads.language.llama import LLAMAS
from gpututor.workloads.language.megatron import GPT2_MEGATRON, MegatronGpt2
from gpututor.workloads.language.next_word import NEXT_WORD
from gpututor.workloads.language.switch_jobs import SWITCH_XL_4
from gpututor.workloads.setting import Setting
from gpututor.workloads.translation import transformer
from gpututor.workloads.translation.transformer_jobs import TRANSFORMERS, smoothed

A100 = Machine("a100", "", card("A100-SXM4-80GB"), 8, host("epyc-7742"), None, "", {})
HF, DLE = bert.STYLES["hf2023"], bert.STYLES["dle2022"]


@pytest.mark.parametrize(
    ("make", "n_parameters"),
    [
        # google-research/bert and Hugging Face's bert-base-uncased and bert-large-uncased, without heads
        pytest.param(lambda: bert.Bert(bert.BASE, HF), 109_482_240, id="BERT-base"),
        pytest.param(lambda: bert.Bert(bert.LARGE, HF), 335_141_888, id="BERT-large"),
        # lambdal/deeplearning-benchmark, 3090_v1/PyTorch_bert_base_squad_FP16, "model_weights_num"
        pytest.param(lambda: bert.Answering(bert.padded(bert.BASE), DLE), 109_488_386, id="BERT-base for SQuAD"),
        # OpenAI's weights
        pytest.param(gpt2.Gpt2, 124_439_808, id="gpt2"),
        pytest.param(lambda: gpt2.EagerGpt2(gpt2.SIZES["gpt2-medium"]), 354_823_168, id="gpt2-medium, eager"),
        pytest.param(lambda: gpt2.EagerGpt2(gpt2.SIZES["gpt2-large"]), 774_030_080, id="gpt2-large, eager"),
        pytest.param(lambda: gpt2.EagerGpt2(gpt2.SIZES["gpt2-xl"]), 1_557_611_200, id="gpt2-xl, eager"),
        # facebook/opt-1.3b and opt-125m, the output tied to the words
        pytest.param(lambda: opt.Opt(opt.SIZES["opt-125m"]), 125_239_296, id="opt-125m"),
        pytest.param(lambda: opt.Opt(opt.SIZES["opt-1.3b"]), 1_315_758_080, id="opt-1.3b"),
        # Meta's model cards: 1.23, 3.21 and 8.03 billion
        pytest.param(lambda: llama.Llama(llama.SIZES["llama-3.2-1b"]), 1_235_814_400, id="Llama 3.2 1B"),
        pytest.param(lambda: llama.Llama(llama.SIZES["llama-3.2-3b"]), 3_212_749_824, id="Llama 3.2 3B"),
        pytest.param(lambda: llama.Llama(llama.SIZES["llama-3.1-8b"]), 8_030_261_248, id="Llama 3.1 8B"),
    ],
)
def test_parameters_are_the_published_ones(make, n_parameters):
    with torch.device("meta"):
        assert sum(p.numel() for p in make().parameters()) == n_parameters


def test_the_translating_transformer_has_210_million_parameters():
    """Vaswani et al. 2017, table 3, counts 213 million with 37,000 words and with biases in attention."""
    with torch.device("meta"):
        n = sum(p.numel() for p in transformer.Transformer(transformer.BIG).parameters())
    words, biases = (37_000 - 33_712) * 1024, 18 * 4 * 1024  # and its norms come after, which saves the two last ones

    assert n + words + biases == pytest.approx(213e6, rel=0.01)


def test_megatron_fills_the_words_up_to_a_multiple_of_128():
    with simulated_gpu(A100, numerics=False), torch.device("meta"):
        n = sum(p.numel() for p in MegatronGpt2(gpt2.SIZES["gpt2-large"]).parameters())

    assert n == 774_030_080 + (50_304 - 50_257) * 1280


def test_a_switch_transformer_holds_four_experts_in_every_second_layer():
    with torch.device("meta"):
        net = switch.Switch(switch.XL_4)
    dense = sum(p.numel() for p in net.encoder[0].feed.parameters())

    assert sum(p.numel() for p in net.encoder[1].feed.parameters()) == 4 * dense + 4 * 1024
    assert [isinstance(layer.feed, switch.Experts) for layer in net.decoder] == [False, True] * 12


# --- the same network in its several styles ---------------------------------------------------------------------

SMALL = bert.Size(2, 16, 2, words=50, length=12)


def scores_of(style):
    """What a small BERT in this style gives for two sequences, the second one half padding."""
    torch.manual_seed(0)
    net = bert.Answering(SMALL, bert.STYLES[style]).eval()
    ids = torch.arange(20).view(2, 10)
    seen = torch.ones_like(ids)
    seen[1, 5:] = 0
    with torch.no_grad():
        return torch.stack(net(ids, torch.zeros_like(ids), seen))


@pytest.mark.parametrize("style", ["dle2020", "dle2022", "sdpa"])
def test_the_styles_of_bert_compute_the_same(style):
    assert torch.allclose(scores_of(style), scores_of("hf2023"), atol=1e-3)  # "dle2022" approximates gelu


def test_eager_gpt2_computes_what_gpt2_does():
    torch.manual_seed(0)
    size = gpt2.Size(2, 16, 2, words=50, length=12)
    eager, today = gpt2.EagerGpt2(size).eval(), gpt2.Gpt2(2, 16, 2, 50, 12)
    for ours, theirs in zip(today.parameters(), eager.parameters(), strict=True):
        ours.data.copy_(theirs.t() if theirs.dim() == 2 and theirs.shape != ours.shape else theirs)
    for ours, theirs in zip(today.layers, eager.layers, strict=True):  # square tables are turned as well
        ours.project.weight.data.copy_(theirs.project.weight.t())
    ids = torch.arange(20).view(2, 10)

    assert torch.allclose(today(ids), eager(ids), atol=1e-3)  # gelu by its tanh form


def test_nothing_in_opt_sees_what_comes_later():
    torch.manual_seed(0)
    net = opt.Opt(opt.Size(2, 16, 2, words=50, length=12)).eval()
    ids = torch.arange(2, 12)[None]
    changed = ids.clone()
    changed[0, 6:] = 40

    assert torch.equal(net(ids)[:, :6], net(changed)[:, :6])
    assert not torch.equal(net(ids)[:, 6:], net(changed)[:, 6:])


def test_projections_and_heads_products_have_the_gradients_of_plain_products():
    x, a, b = (torch.randn(s, dtype=torch.float64, requires_grad=True) for s in ((5, 2, 4), (4, 4), (4, 4)))

    def shared(x, a, b):
        return transformer.Projections.apply(x, 0.5, a, b)

    def heads(p, q):
        return transformer.HeadsProduct.apply(p, q, True), transformer.HeadsProduct.apply(p, q, False)

    p, q = (torch.randn(3, 4, 4, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(shared, (x, a, b))
    assert torch.autograd.gradcheck(heads, (p, q))


def test_label_smoothing_is_that_of_torch():
    scores, targets = torch.randn(2, 5, 7), torch.randint(2, 7, (2, 5))
    expected = torch.nn.functional.cross_entropy(
        scores.flatten(0, 1), targets.flatten(), label_smoothing=0.1, reduction="sum"
    )

    assert smoothed(scores, targets) == pytest.approx(float(expected), rel=1e-5)


def test_places_fall_into_buckets_as_t5_says():
    """Raffel et al. 2020, section 2.1: 32 buckets, logarithmic to a distance of 128, beyond which all share one."""
    relative = torch.tensor([0, -1, -7, -8, -127, -500, 1, 500])

    assert switch.buckets(relative, True).tolist() == [0, 1, 7, 8, 15, 15, 17, 31]
    assert switch.buckets(relative, False).tolist() == [0, 1, 7, 8, 31, 31, 0, 0]


# --- what they cost ---------------------------------------------------------------------------------------------


def test_a_forward_pass_of_llama_does_two_operations_for_each_parameter_and_word():
    size = llama.SIZES["llama-3.2-1b"]
    with torch.device("meta"):
        net, ids = llama.Llama(size), torch.zeros(1, 128, dtype=torch.int64)
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            net(ids)
    attention = 2 * 2 * 128 * 128 * size.heads * size.head * size.layers

    assert counter.get_total_flops() == pytest.approx(2 * 128 * 1_235_814_400 + attention, rel=0.001)


def kernel_names(workload, setting, machine=A100):
    return [s.name for s in predict(workload, setting, machine).timeline.spans]


SHORT = {"length": 16}


def test_checkpointing_computes_each_layer_again():
    setting = Setting("gradients", 1, "bf16", options=SHORT)
    once = kernel_names(LLAMAS[0], Setting("gradients", 1, "bf16", options={**SHORT, "checkpointing": False}))
    again = kernel_names(LLAMAS[0], setting)

    assert again.count("attention") == 2 * once.count("attention")
    assert again.count("attention backward") == once.count("attention backward")


def test_a_step_without_clearing_adds_to_every_gradient():
    names = {w.name: w for w in NEXT_WORD}
    with torch.device("meta"):
        n_parameters = len(list(gpt2.EagerGpt2(gpt2.SIZES["gpt2-medium"]).parameters()))
    found = kernel_names(names["gpt2-medium-hf2023"], Setting("gradients", 1, options=SHORT))

    assert found.count("add_") >= 2 * n_parameters


def test_half_bert_keeps_masters_and_the_host_waits():
    found = kernel_names(BERT_LARGE_SQUAD, Setting("train", 2, "amp", options=SHORT))

    assert "_fused_adam_" in found
    assert any("item" in name for name in found)


def test_full_bert_is_updated_parameter_by_parameter():
    found = kernel_names(BERT_LARGE_SQUAD, Setting("train", 2, "tf32", options=SHORT))

    assert found.count("addcmul_") >= 2 * 390


@pytest.mark.parametrize(
    "workload", [*LLAMAS, *TRANSFORMERS, *NEXT_WORD, BERT_LARGE, SWITCH_XL_4], ids=lambda w: w.name
)
def test_all_can_be_run_for_inference(workload):
    options = {} if workload in TRANSFORMERS else {"length": 64}
    precision = "bf16" if workload in LLAMAS else "fp32"

    assert predict(workload, Setting("infer", 1, precision, options=options), A100).step_s > 0


def test_pretraining_is_not_run_for_inference():
    with pytest.raises(SettingNotPossible, match="not run as 'infer'"):
        predict(BERT_LARGE_PRETRAINING, Setting("infer", 2), A100)


def test_data_parallel_megatron_sums_all_gradients_at_once():
    options = {"size": "gpt2", "length": 16}
    found = predict(GPT2_MEGATRON, Setting("train", 1, n_cards=2, options=options), A100)
    sums = {s.launch for s in found.timeline.spans if s.activity is Activity.COLLECTIVE}

    assert len(sums) == len(found.timeline.steps)


def test_cards_that_share_each_layer_sum_activations_instead_of_gradients():
    """Shoeybi et al. 2019, arXiv 1909.08053, section 3: two sums a layer forward and two backward."""
    options = {"size": "gpt2", "length": 16, "share_tensors": True}
    found = predict(GPT2_MEGATRON, Setting("train", 2, n_cards=2, options=options), A100)
    sums = {s.launch for s in found.timeline.spans if s.activity is Activity.COLLECTIVE}
    of_words, of_loss, of_scores = 1, 3, 1

    assert len(sums) == (4 * 12 + of_words + of_loss + of_scores) * len(found.timeline.steps)
    assert found.n_per_step * 2 == 2  # both cards work on the same two sequences
