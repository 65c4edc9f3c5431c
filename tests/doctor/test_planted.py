"""Made-up machines: the doctor's own checks find what was planted, nothing else, and print it as the command does."""

from __future__ import annotations

import io
import random
from dataclasses import replace

import pytest
from rich.console import Console

from gpututor.doctor import State
from gpututor.doctor.display import printed, show
from gpututor.doctor.examination import Examination
from gpututor.doctor.facts import Facts
from gpututor.doctor.faults import Fault, clock_under, planted
from gpututor.doctor.finding import check, fails, passes
from gpututor.doctor.planted import CHECKED, NEWER, MadeUpFiles, examination, healthy
from gpututor.doctor.readers import Files

BAD = (State.FAIL, State.WARN)
OF_ANY_TRAINING = {"card.others"}  # somebody works on the card: the doctor can't know that it is you
ALSO = {  # what follows from a fault besides its own finding
    Fault.FEW_CPUS: {"cpu.count", "cpu.threads"},
    Fault.NEW_CARD: {"torch.kernel"},
}


def bad(patient) -> set[str]:
    return {one.id for one in examination(patient.facts).findings() if one.state in BAD}


@pytest.mark.parametrize("seed", range(12))
def test_a_healthy_machine_that_trains_has_nothing_to_repair(seed):
    assert bad(healthy(random.Random(seed))) == OF_ANY_TRAINING


@pytest.mark.parametrize("fault", Fault, ids=lambda fault: fault.name)
def test_the_doctor_finds_what_was_planted_and_what_follows_from_it(fault):
    for seed in range(20):
        found = bad(planted(fault, seed))

        assert found - OF_ANY_TRAINING == {fault.check} - {None} - OF_ANY_TRAINING | ALSO.get(fault, set())
        assert fault.check is None or fault.check in found


@pytest.mark.parametrize("fault", [Fault.CPU_WHEEL, Fault.WRONG_DEVICE])
def test_a_card_that_nobody_uses_rests(fault):
    gpu = planted(fault, 0).gpu

    assert gpu.kernel_time_share == 0
    assert gpu.sm_clock_hz < 0.5 * gpu.sm_clock_max_hz


def test_a_seed_plants_the_same_machine_again_and_another_seed_another():
    assert planted(Fault.HEAT, 1) == planted(Fault.HEAT, 1)
    assert planted(Fault.HEAT, 1) != planted(Fault.HEAT, 2)


def test_a_card_of_a_later_generation_can_be_asked_for():
    assert healthy(random.Random(0), NEWER).gpu.name == NEWER.name


def test_half_the_power_keeps_most_of_the_clock():
    assert clock_under(0.5) == pytest.approx(0.794, abs=0.001)  # 2 to the power of minus a third
    assert clock_under(1.0) == 1.0


# --- files that exist in memory only --------------------------------------------------------------------------------


@pytest.mark.parametrize("made", [True, False], ids=["made up", "real"])
def test_files_in_memory_answer_as_files_do(made, tmp_path):
    if made:
        files = MadeUpFiles(texts={"/a/b": "7", "/a/c/d": "x"}, links={"/a/l": "../drivers/nvidia"})
    else:
        (tmp_path / "a" / "c").mkdir(parents=True)
        (tmp_path / "a" / "b").write_text("7\n")
        (tmp_path / "a" / "c" / "d").write_text("x")
        (tmp_path / "a" / "l").symlink_to("../drivers/nvidia")
        files = Files(tmp_path)

    assert (files.read("/a/b"), files.number("/a/b"), files.number("/a/c/d"), files.read("/z")) == ("7", 7, None, None)
    assert files.names("/a") == ("b", "c", "l")
    assert files.exists("/a/c")
    assert not files.exists("/z")
    assert (files.link("/a/l"), files.link("/a/b")) == ("nvidia", None)
    assert files.space("/a") is None


# --- what is printed ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [100, 44])
@pytest.mark.parametrize("fault", [Fault.CPU_WHEEL, Fault.FEW_CPUS])
def test_what_a_page_shows_is_what_the_command_prints(fault, width):
    paper = io.StringIO()
    show(examination(planted(fault, 3).facts), Console(file=paper, width=width, highlight=False, color_system=None))
    look = examination(planted(fault, 3).facts)
    passes_, rest = printed(look, list(look.findings()), width)

    assert f"{passes_}\n\n{rest}\n" == paper.getvalue()


def test_the_worst_and_the_last_word_stand_in_the_second_part():
    look = examination(planted(Fault.CPU_WHEEL, 3).facts)
    passes_, rest = printed(look, list(look.findings()), 100)

    assert "fail" not in passes_
    assert "torch's build" in rest
    assert rest.splitlines()[-1] == "A GPU is in this machine, and torch does not use it: 1 to repair."


def test_a_machine_in_memory_has_no_data_folder_to_look_at():
    assert not [one.id for one in CHECKED if one.id.startswith("data.")]


def test_checks_of_other_groups_are_all_there():
    @check("a.b", "one")
    def one(facts):
        return passes("fine", "read")

    @check("c.d", "other")
    def other(facts):
        return fails("bad", "do", "read")

    look = Examination(Facts(MadeUpFiles()), start=examination(Facts(MadeUpFiles())).start, checks=(one, other))

    assert [each.state for each in look.findings()] == [State.PASS, State.FAIL]


def test_a_link_of_a_card_of_which_nobody_says_whether_it_works_may_rest():
    patient = planted(Fault.LINK, 0).with_gpu(kernel_time_share=None)
    found = next(one for one in examination(patient.facts).findings() if one.id == "card.link")

    assert found.state is State.CANNOT_TELL
    assert "may rest" in found.words


def test_a_machine_may_be_changed_further():
    patient = healthy(random.Random(1))
    changed = patient.with_facts(machine=replace(patient.facts.machine, n_open_files=64))

    assert bad(changed) == OF_ANY_TRAINING | {"machine.open_files"}
