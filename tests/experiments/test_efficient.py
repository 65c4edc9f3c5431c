"""Lesson 13's experiment: what less arithmetic brings on a card, who leaves it out, and what smaller readers lose."""

from __future__ import annotations

import pytest

from gpututor.experiments import efficient as lesson
from gpututor.experiments.efficient_ways import Bytes, Net, Order, Slim, bytes_key, slim_key
from gpututor.experiments.slimmed import Way
from gpututor.lookup import machine_named
from gpututor.page.kept import Kept
from gpututor.page.lessons.efficient import paper_of
from gpututor.page.lessons.efficient_elsewhere import everywhere, threads
from gpututor.page.lessons.kernel_kinds import Kind
from gpututor.page.threads import verdict
from gpututor.progress import Progress
from gpututor.results import StoredResult

torch = pytest.importorskip("torch")

MACHINES = ("p3.2xlarge", "A100-SXM4-80GB", "g4dn.xlarge")
each_machine = pytest.mark.parametrize("name", MACHINES)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("efficient")
    data = lesson.run(Progress(results_dir=folder), batches=(1, 64), n_learned=50, n_again=10)
    tapes = {key: folder / file for key, file in data["tapes"].items()}
    return Kept(tapes, result=StoredResult(folder, "done", "", {}, data, "", "", 1, 1))


def on(kept, name: str):
    return paper_of(kept, machine_named(name))


# FLOP of one photo, forward, a multiply-add as two, from the papers' tables: He et al. 2015 (1.8 and 3.8 to 4.1
# billion multiply-adds), Sandler et al. 2018 (0.30), Tan and Le 2019 (0.39).
@pytest.mark.parametrize(
    ("net", "billions"),
    [(Net.RESNET18, 3.6), (Net.RESNET50, 8.2), (Net.MOBILENET, 0.60), (Net.EFFICIENTNET, 0.78)],
)
def test_the_networks_have_the_flop_of_their_papers(kept, net, billions):
    assert on(kept, "p3.2xlarge").photo_flop(net) / 1e9 == pytest.approx(billions, rel=0.05)


@each_machine
def test_a_tenth_of_the_flop_is_nowhere_near_ten_times_as_fast(kept, name):
    found = on(kept, name)

    assert found.on_paper(Net.EFFICIENTNET) > 9
    assert found.times(Net.EFFICIENTNET) < 2.5


@each_machine
def test_depthwise_convolutions_are_a_small_part_of_the_flop_and_a_large_one_of_the_time(kept, name):
    kinds, whole = on(kept, name).kinds(Net.EFFICIENTNET), on(kept, name).whole(Net.EFFICIENTNET)

    assert kinds[Kind.DEPTHWISE].flop < 0.15 * whole.flop
    assert kinds[Kind.DEPTHWISE].ns > 2 * kinds[Kind.DEPTHWISE].flop / whole.flop * whole.ns


def test_a_depthwise_convolution_has_a_few_flop_a_byte_and_a_whole_one_hundreds(kept):
    found = on(kept, "p3.2xlarge")

    assert found.kinds(Net.MOBILENET)[Kind.DEPTHWISE].intensity < 4.5  # 2 * 9 over 2 + 2 where the stride is one
    assert found.kinds(Net.RESNET50)[Kind.SPATIAL].intensity > 100


def test_the_kinds_make_up_all_of_the_cards_work(kept):
    found = on(kept, "p3.2xlarge")

    assert found.whole(Net.MOBILENET).ns == pytest.approx(found.step(Net.MOBILENET).card_ns, rel=1e-3)


@each_machine
def test_with_one_photo_the_deeper_network_is_not_faster(kept, name):
    assert on(kept, name).times(Net.EFFICIENTNET, 1) < 1


@each_machine
def test_channels_last_helps_halves_more_than_full_numbers(kept, name):
    found = on(kept, name)

    assert found.gain(Net.RESNET50, Order.FP16_LAST, Order.FP16) > found.gain(Net.RESNET50, Order.FP32_LAST, Order.FP32)
    assert found.gain(Net.RESNET50, Order.FP16_LAST, Order.FP16) > 1.1  # apex pull request 668: 1.22 on Volta


@each_machine
def test_zeros_change_no_time_and_masks_left_on_cost_some(kept, name):
    found = on(kept, name)

    assert found.slim_times(Slim.ZEROS) == pytest.approx(1, abs=0.01)
    assert found.slim_times(Slim.MASKED, 1) < 0.95


@each_machine
def test_half_the_channels_help_many_photos_and_not_one(kept, name):
    found = on(kept, name)

    assert found.slim_times(Slim.HALVED) > 1.2
    assert found.slim_times(Slim.HALVED, 1) < 1.1
    assert found.slim_flop(Slim.HALVED) < 0.6


@each_machine
def test_written_out_bytes_are_slower_than_halves_and_compiling_mends_much_of_it(kept, name):
    found = on(kept, name)

    assert found.bytes_times(Bytes.INT8) < 0.7  # torch_quantizer issue 5: 0.73 on an A10
    assert found.bytes_times(Bytes.INT8_COMPILED) > 1.4 * found.bytes_times(Bytes.INT8)


def test_bytes_pay_where_tensor_cores_multiply_them_and_halves_are_slow(kept):
    assert on(kept, "g4dn.xlarge").bytes_times(Bytes.INT8_COMPILED) > 1.1
    assert on(kept, "p3.2xlarge").bytes_times(Bytes.INT8_COMPILED) < 1
    assert not on(kept, "p2.xlarge").multiplies_bytes


@pytest.mark.parametrize(("name", "has"), [("p3.2xlarge", False), ("g4dn.xlarge", False), ("A100-SXM4-80GB", True)])
def test_cards_from_ampere_on_skip_two_of_four_weights(kept, name, has):
    found = on(kept, name)

    assert (found.pattern_at_best(bytes_key(Bytes.COMPILED)) > 1.2) is has
    assert found.pattern_at_best(slim_key(Slim.AS_IT_IS)) < 1.05  # one linear layer at the end


def test_the_readers_learn_and_what_is_lost_at_once_comes_back(kept):
    told = {way: on(kept, "p3.2xlarge").told(way) for way in Way}

    assert told[Way.PLAIN]["accuracy"] > 0.7
    assert told[Way.BITS]["at_once"] > told[Way.PLAIN]["accuracy"] - 0.05
    assert told[Way.CHANNELS]["accuracy"] > told[Way.CHANNELS]["at_once"]
    assert told[Way.ZEROS]["zero_share"] > 0.8


def test_all_threads_but_those_of_a_batch_that_was_not_run_have_a_ratio_and_most_are_so_here_too(kept):
    told = {
        theirs.name: verdict(theirs.value, ours) for theirs, ours in threads(on(kept, "p3.2xlarge"), everywhere(kept))
    }

    assert [name for name, said in told.items() if said == "not run"] == ["B0 to ResNet-50, A100"]
    assert sum(said == "so here too" for said in told.values()) >= 8, told


def test_on_a_processor_answers_in_int8_stand_beside_those_in_fp32():
    from gpututor.jobs import torch_ao

    kinds = [each.key.rpartition("-")[2] for each in lesson.answers()]

    assert set(kinds) == ({"fp32", "int8"} if torch_ao.engine() else {"fp32"})
