"""Lesson 17's page: what a fault costs a job, what a machine does, and sentences that follow the numbers."""

from __future__ import annotations

import random
from dataclasses import replace

import marimo as mo
import pytest

from gpututor.cards import machines
from gpututor.doctor.faults import Fault
from gpututor.doctor.finding import State
from gpututor.exercises import ex17
from gpututor.experiments.machine_itself import PHOTOS, POLICY, SENTENCES
from gpututor.ledger import Account
from gpututor.lookup import machine_named
from gpututor.model import tape_file
from gpututor.model.kernels import Gemm, Stream
from gpututor.model.spec import HostKind
from gpututor.model.tape import BeginStep, CopyCall, EndRun, Sync, Tape, TapeOp
from gpututor.page.kept import Kept
from gpututor.page.lessons import machines_figures as figures
from gpututor.page.lessons import panes, patients
from gpututor.page.lessons.machines import jobs_of, with_fault
from gpututor.page.lessons.machines_threads import elsewhere
from gpututor.page.lessons.offers import by_the_hour, fastest, offer_said, why_said
from gpututor.page.lessons.recorded_machines import TOLD
from gpututor.results import StoredResult

MB, MS = 10**6, 1e6
V100 = "p3.2xlarge"
WORDS = {PHOTOS: ("photographs", 64), SENTENCES: ("sentences", 1), POLICY: ("states", 64), "texts": ("texts", 4)}


def kernels(n, each_mb):
    n_bytes = round(each_mb * MB)
    kernel = Stream("elementwise", n_bytes, n_bytes // 8, n_bytes // 8)
    return [TapeOp("aten.add.Tensor", HostKind.LIGHT, "forward", (kernel,))] * n


def tape(what, *step):
    steps = [entry for _ in range(3) for entry in (BeginStep(64), *step, Sync("synchronize"))]
    return Tape(what, [*steps, EndRun()], [2.0, 1.0, 0.5])


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Jobs as small as they can be: a busy card that is fed over the link, and launches that the card waits for."""
    folder = tmp_path_factory.mktemp("run")
    steps = {
        PHOTOS: [CopyCall("batch", True, 40 * MB, True, blocking=False), *kernels(60, 400)],
        "texts": kernels(60, 800),
        SENTENCES: kernels(200, 0.1),
        POLICY: kernels(40, 0.01),
    }
    tapes, points = {}, []
    for key, step in steps.items():
        tapes[key] = folder / f"{key}.tape.gz"
        tape_file.save(tape(WORDS[key][0], *step), tapes[key])
        gib = 20 if key == "texts" else 1
        told = {"key": key, "n_samples": WORDS[key][1], "memory_bytes": gib * 2**30, "losses": [2.0, 1.0, 0.5]}
        points.append(told)
    here = {"cpu": "a drawn processor", "n_cores": 4, "ns": {PHOTOS: 400 * MS, SENTENCES: 50 * MS, POLICY: 1_000.0}}
    data = {"points": points, "here": here, "decode_ns": 4 * MS, "said": "Expected one device"}
    return Kept(tapes, result=StoredResult(folder, "done", "a:b", {}, data, "", "", 1, 1))


@pytest.fixture(scope="module")
def found(kept):
    return jobs_of(kept, machine_named(V100))


def test_without_a_run_there_are_no_jobs():
    jobs = jobs_of(Kept(), machine_named(V100))

    assert not jobs.whole
    assert jobs.times is None


def test_a_run_that_never_reached_the_processor_is_not_whole(kept):
    data = {key: value for key, value in kept.data.items() if key != "here"}
    jobs = jobs_of(replace(kept, result=replace(kept.result, data=data)), machine_named(V100))

    assert not jobs.whole
    assert jobs.times is None


# --- the wrong place ------------------------------------------------------------------------------------------------


def test_times_are_the_processors_time_for_a_sample_over_the_cards(found):
    assert found.times == pytest.approx(400 * MS / (found.step_ns(PHOTOS) / 64))


def test_a_job_that_the_processor_does_sooner_is_told_to_stay_there(found):
    assert "the right use of a GPU for it is none" in found.right_place_said


def test_where_the_card_wins_the_text_says_so(kept):
    slow = {**kept.data, "here": {**kept.data["here"], "ns": {**kept.data["here"]["ns"], POLICY: 1e9}}}
    jobs = jobs_of(replace(kept, result=replace(kept.result, data=slow)), machine_named(V100))

    assert "Even the tiny policy takes" in jobs.right_place_said


# --- faults ---------------------------------------------------------------------------------------------------------


def test_a_model_on_the_processor_takes_what_the_processor_takes(found):
    assert found.fault_times(Fault.WRONG_DEVICE, SENTENCES) == pytest.approx(50 * MS / found.step_ns(SENTENCES))


def test_a_neighbour_halves_a_busy_card_and_leaves_launches_alone(found):
    assert found.fault_times(Fault.NEIGHBOUR, PHOTOS) == pytest.approx(2, abs=0.15)
    assert found.fault_times(Fault.NEIGHBOUR, SENTENCES) == pytest.approx(1, abs=0.05)


def test_heat_leaves_memory_its_pace(found):
    # kernels of one FLOP in eight bytes wait for memory, however fast the clock
    assert found.fault_times(Fault.HEAT, PHOTOS) == pytest.approx(1, abs=0.02)


def test_a_card_that_reckons_feels_the_heat(tmp_path):
    """Large matrix products: a clock at this share makes them so much longer."""
    path, n = tmp_path / "hot.tape.gz", 4096
    product = Gemm("product", n, n, n, 3 * 4 * n * n)
    tape_file.save(tape("hot", *[TapeOp("aten.mm.default", HostKind.GEMM, "forward", (product,))] * 10), path)
    told = {"key": PHOTOS, "n_samples": 64, "memory_bytes": 0, "losses": []}
    result = StoredResult(tmp_path, "done", "a:b", {}, {"points": [told], "decode_ns": 1.0}, "", "", 1, 1)
    jobs = jobs_of(Kept({PHOTOS: path}, result=result), machine_named(V100))

    assert jobs.fault_times(Fault.HEAT, PHOTOS) == pytest.approx(1 / figures._clock(Fault.HEAT), rel=0.05)


def test_a_narrow_link_makes_what_is_copied_longer_and_nothing_else(found):
    copy_ns = 40 * MB / machine_named(V100).host.pinned_bytes_per_s * 1e9
    slower = machine_named(V100).host.pinned_bytes_per_s / with_fault(found.on, Fault.LINK).host.pinned_bytes_per_s
    added = (found.fault_times(Fault.LINK, PHOTOS) - 1) * found.fed_ns(PHOTOS, found.on)

    assert added == pytest.approx((slower - 1) * copy_ns, rel=0.1)
    assert found.fault_times(Fault.LINK, SENTENCES) == 1


def test_without_workers_loading_is_added_and_with_few_it_is_the_step(found):
    step, load = found.step_ns(PHOTOS), 64 * 4 * MS  # all photographs of a batch, one after the other
    usual = max(step, load / 8)  # a p3.2xlarge has eight CPUs

    assert found.fault_times(Fault.SHARED_MEMORY, PHOTOS) == pytest.approx((step + load) / usual)
    assert found.fault_times(Fault.SHARED_MEMORY, SENTENCES) == 1
    granted = patients.planted(Fault.FEW_CPUS, "lesson 17").busy_cpus
    assert found.fault_times(Fault.FEW_CPUS, PHOTOS) == pytest.approx(max(step, load / granted) / usual)


# --- machines -------------------------------------------------------------------------------------------------------


def test_the_cheapest_for_the_job_comes_first_and_without_a_price_the_quickest(found):
    prices = [each.usd for each in found.offers(SENTENCES)]
    others = found.offers(SENTENCES, priced=False)

    assert prices == sorted(prices)
    assert {each.usd for each in others} == {None}
    assert [each.whole_ns for each in others] == sorted(each.whole_ns for each in others)


def test_every_machine_that_is_known_is_priced(found):
    names = {each.machine.name for priced in (True, False) for each in found.offers(PHOTOS, priced=priced)}

    assert names == set(machines())


def test_a_job_costs_hours_times_the_price_of_an_hour(found):
    offer = next(each for each in found.rented(SENTENCES) if each.machine.name == V100)

    assert offer.usd == pytest.approx(3.06 * 75_000 * found.step_ns(SENTENCES) / 3600e9)
    assert offer.usd_alone == offer.usd


def test_who_rents_eight_cards_and_uses_one_pays_for_eight(found):
    offer = next(each for each in found.rented(SENTENCES) if each.machine.n_cards == 8)

    assert offer.usd_alone == pytest.approx(8 * offer.usd)


def test_a_card_without_the_memory_is_no_offer(found):
    refused = [each for each in found.offers("texts") if each.trouble]

    assert {each.machine.card.name for each in refused} >= {"T4", "V100-SXM2-16GB"}
    assert all("needs 20.0 GiB" in each.trouble for each in refused)
    assert not {each.machine.name for each in refused} & {each.machine.name for each in found.rented("texts")}


def test_fastest_and_cheapest_hour_are_the_least_of_their_kind(found):
    rented = found.rented(PHOTOS)

    assert fastest(rented).whole_ns == min(each.whole_ns for each in rented)
    assert by_the_hour(rented).machine.usd_per_hour == pytest.approx(0.526)  # of a g4dn.xlarge


def test_the_ledger_says_what_holds_a_job_up(found):
    tiny, busy = (found.offer(key, machine_named(V100)) for key in (SENTENCES, PHOTOS))

    assert tiny.most.account is Account.LAUNCH_OVERHEAD
    assert busy.most.account is Account.MEMORY_BOUND
    assert "launch overhead" in why_said(tiny)
    assert "and $" in offer_said(tiny)


def test_the_exercise_asks_about_the_machines_of_the_page(found):
    case = found.cheapest_case(SENTENCES)
    rows = case["rows"]

    assert ex17.expected(rows, case["n_samples"], case["needs_gib"], 1e9) == found.rented(SENTENCES)[0].machine.name


# --- figures --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [False, True])
def test_every_figure_is_drawn(found, value):
    drawn = [
        figures.places(found, ""),
        figures.faults(found),
        figures.task_manager(),
        figures.offers(found, PHOTOS, mo.ui.switch(value)),
        figures.field(found, PHOTOS, ""),
        figures.cost(found, PHOTOS, found.rented(PHOTOS)[-1]),
        elsewhere(found),
    ]

    assert all("could not be drawn" not in each.text for each in drawn)


def test_a_machine_that_is_two_of_the_chosen_ones_is_named_twice(found):
    chosen = figures.chosen_offers(found, SENTENCES)

    assert len(chosen) == 4
    assert chosen["lesson 2's: p3.2xlarge"].machine.name == V100


def test_the_loss_is_told_of_what_learns(found):
    assert figures.learned_said(found).count("from 2 to 0.5 in 3 steps") == 2


@pytest.mark.parametrize("fault", Fault, ids=lambda fault: fault.name)
def test_each_patient_is_shown_with_its_owners_words_and_a_way_to_see_it(fault):
    shown = patients.patient(fault, "").text

    assert fault.title in shown
    assert "What passes" in shown
    assert patients.told_by(fault)


def test_letters_name_every_fault_once_and_give_none_away():
    letters = patients.letters()

    assert sorted(letters.values()) == sorted(fault.name for fault in Fault)
    assert not any(fault.title in letter for letter in letters for fault in Fault)


def test_before_the_doctor_has_looked_there_is_no_printout():
    assert patients.own_paper(None) is None


STATES = {
    "zyddnys/manga-image-translator#210": State.FAIL,
    "NVIDIA/DIGITS#1358": State.WARN,
    "janhq/jan#183": State.CANNOT_TELL,  # the thread itself ends with: it may have been at rest
    "aws/sagemaker-pytorch-training-toolkit#117": State.FAIL,
    "pytorch/pytorch#1355": State.WARN,  # workers that were killed left it full, as the thread found
    "iperov/DeepFaceLab#5445": State.WARN,  # somebody works on it: the owner's own training
}


def test_other_peoples_readings_get_the_threads_verdict():
    assert {each.thread: each.finding.state for each in TOLD} == STATES


def test_a_seed_draws_another_machine_than_the_page_shows():
    other = patients.planted(Fault.HEAT, random.Random(4).random())

    assert other != patients.planted(Fault.HEAT, "lesson 17")


def test_task_managers_first_graph_is_the_one_that_shows_nothing():
    shares = panes.shares()

    assert next(iter(shares)) == "3D"
    assert shares["3D"] < 0.1
    assert shares["Cuda"] > 0.9
    assert all(name in panes.panes().text for name in shares)


def test_the_way_to_half_of_the_first_loss_is_told_where_there_is_one(kept):
    halves = [1.0] * 20 + [0.4] * 20  # the mean of eight losses is half for the first time after 27 steps
    points = [{**each, "losses": halves} if each["key"] == POLICY else each for each in kept.data["points"]]
    jobs = jobs_of(
        replace(kept, result=replace(kept.result, data={**kept.data, "points": points})), machine_named(V100)
    )
    offer = jobs.offer(POLICY, machine_named(V100))

    assert "it takes 27 steps" in figures.target_said(jobs, POLICY, offer)
    assert figures.target_said(jobs, PHOTOS, offer) == ""
