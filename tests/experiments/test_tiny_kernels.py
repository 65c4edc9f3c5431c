"""Lesson 10's experiment: whose time an op takes, what spares it, up to which batch, and what it costs first."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpututor.errors import ExperimentError, TimelineError
from gpututor.experiments import tiny_kernels as lesson
from gpututor.experiments.per_op import HostSplit, host_split
from gpututor.experiments.sweeps import Variant, simulate
from gpututor.experiments.ways import Training, Way
from gpututor.lookup import machine_named
from gpututor.model.spec import HostKind
from gpututor.model.tape import GraphReplay, HostWork, Tape, TapeOp
from gpututor.progress import Progress
from gpututor.references import reference
from gpututor.replay import play, read_tape
from gpututor.simgpu.compiling.guards import COMPILE_BASE_NS
from gpututor.timeline import Activity

torch = pytest.importorskip("torch")

MACHINES = ("p3.2xlarge", "A100-SXM4-80GB", "g4dn.xlarge")
each_machine = pytest.mark.parametrize("name", MACHINES)
each_way = pytest.mark.parametrize("way", list(Way), ids=lambda way: way.key)
BATCHES = (1, 64)


class Run:
    """Variants that were run, and a mean step of each on a machine."""

    def __init__(self, folder: Path, variants: list[Variant]) -> None:
        self.folder = folder
        self.data = simulate(Progress(results_dir=folder), variants, what=lesson.WHAT, machine="H100-SXM")

    def tape(self, key: str) -> Tape:
        return read_tape(self.folder / self.data["tapes"][key])

    def on(self, key: str, name: str = MACHINES[0]) -> HostSplit:
        return host_split(self.tape(key), machine_named(name))

    def losses(self, key: str) -> list[float]:
        return next(each["losses"] for each in self.data["points"] if each["key"] == key)


@pytest.fixture(scope="module")
def resnet(tmp_path_factory) -> Run:
    timed = [each for each in lesson.timed(BATCHES) if each.key != f"{Way.BOTH.key}-64"]
    first = [each for each in lesson.first() if each.key in ("first-compiled", "first-graph")]
    return Run(tmp_path_factory.mktemp("resnet"), [*timed, *first])


@pytest.fixture(scope="module")
def thread(tmp_path_factory) -> Run:
    return Run(tmp_path_factory.mktemp("thread"), lesson.thread((1, 8)))


@pytest.fixture(scope="module")
def molecules(tmp_path_factory) -> Run:
    return Run(tmp_path_factory.mktemp("molecules"), [*lesson.learned(12), *lesson.crowds((1, 200)), *lesson.ragged()])


def shorter_share(run: Run, slow: str, fast: str, name: str = MACHINES[0]) -> float:
    return 1 - run.on(fast, name).step_ns / run.on(slow, name).step_ns


# --- whose time it is ------------------------------------------------------------------------------------------------


@each_way
def test_the_parts_are_the_spans_of_the_host(resnet, way):
    split = resnet.on(f"{way.key}-1")
    timeline = play(resnet.tape(f"{way.key}-1"), machine_named(MACHINES[0])).timeline
    seen = {kind: sum(s.duration_ns for s in timeline.on(kind)) / split.n_steps for kind in Activity}

    assert split.python_ns == pytest.approx(seen[Activity.PYTHON])
    assert split.launch_ns == pytest.approx(seen[Activity.LAUNCH])
    assert split.framework_ns + split.autograd_ns == pytest.approx(seen[Activity.DISPATCH])
    assert split.card_ns == pytest.approx(seen[Activity.KERNEL] + seen[Activity.MEMSET] + seen[Activity.COPY_ON_GPU])


@each_machine
def test_the_launch_call_is_the_smaller_part_of_an_op(resnet, name):
    assert resnet.on("eager-1", name).launch_share < 1 / 4


def test_an_op_costs_the_host_of_a_p3_2xlarge_about_60_microseconds(resnet):
    assert resnet.on("eager-1").host_ns_per_kernel / 1e3 == pytest.approx(60, rel=0.1)


def test_an_op_under_no_grad_has_no_part_of_autograds():
    op = TapeOp("relu", HostKind.LIGHT, "no_grad")
    tape = Tape(entries=[lesson_step(), op])

    assert host_split(tape, machine_named(MACHINES[0])).autograd_ns == 0


def lesson_step():
    from gpututor.model.tape import BeginStep

    return BeginStep()


def test_a_tape_without_steps_is_refused():
    with pytest.raises(TimelineError, match="has no steps"):
        host_split(Tape(), machine_named(MACHINES[0]))


# --- what spares it, and until where ---------------------------------------------------------------------------------


@each_machine
def test_all_ways_help_where_the_host_is_the_slower_one(resnet, name):
    host_bound = resnet.on("eager-1", name)

    assert host_bound.busy_share < 0.9
    assert all(shorter_share(resnet, "eager-1", f"{way.key}-1", name) > 0.03 for way in Way if way is not Way.EAGER)


@each_machine
@pytest.mark.parametrize("way", [Way.SCRIPT, Way.GRAPH], ids=lambda way: way.key)
def test_where_the_card_is_busy_anyway_calling_the_same_kernels_otherwise_saves_nothing(resnet, way, name):
    assert resnet.on("eager-64", name).busy_share > 0.98
    assert shorter_share(resnet, "eager-64", f"{way.key}-64", name) == pytest.approx(0, abs=0.01)


@each_machine
def test_compiled_code_spares_a_busy_card_trips_to_memory(resnet, name):
    eager, compiled = resnet.on("eager-64", name), resnet.on("compiled-64", name)

    assert compiled.card_ns < 0.95 * eager.card_ns


def test_a_graph_is_one_call_whatever_is_in_it(resnet):
    replays = [entry for entry in resnet.tape("graph-1").entries if type(entry) is GraphReplay]

    assert len(replays) == resnet.tape("graph-1").n_steps
    assert resnet.on("graph-1").host_ns < resnet.on("eager-1").host_ns / 100


def test_torchscript_saves_pythons_time_and_no_other(resnet):
    # public measurements of whole training steps: 0.93 to 1.2 times as fast
    eager, script = resnet.on("eager-1"), resnet.on("script-1")
    low, high = min(reference("eager to TorchScript").values), max(reference("eager to TorchScript").values)

    assert script.python_ns < eager.python_ns / 2
    assert script.framework_ns == pytest.approx(eager.framework_ns, rel=0.02)
    assert low < eager.step_ns / script.step_ns < high


# --- threads ---------------------------------------------------------------------------------------------------------


# Three steps each, in ms: pytorch/benchmark#706, whose train() does niter=3.
@pytest.mark.parametrize(
    ("key", "published_ms"),
    [("adam-eager-1", 89.033), ("adam-graph-1", 50.233), ("adam-eager-8", 105.099), ("adam-graph-8", 105.381)],
)
def test_a_step_is_within_15_percent_of_pytorch_benchmark_706(thread, key, published_ms):
    assert thread.on(key).step_ns / 1e6 == pytest.approx(published_ms / 3, rel=0.15)


def test_there_a_graph_saves_more_than_two_fifths_of_a_step_of_one_picture(thread):
    assert shorter_share(thread, "adam-eager-1", "adam-graph-1") > 0.4


def test_and_nothing_of_a_step_of_eight(thread):
    assert shorter_share(thread, "adam-eager-8", "adam-graph-8") < 0.03


def test_molecules_keep_a_card_less_busy_than_pictures_as_in_pyg_1169(resnet, molecules):
    assert molecules.on("crowd-200").busy_share < resnet.on("eager-64").busy_share / 2


def test_more_molecules_are_nearly_free_as_in_lexicon_augmented_ner_26(molecules):
    one, many = molecules.on("crowd-1"), molecules.on("crowd-200")

    assert many.step_ns < 1.1 * one.step_ns


def test_each_size_is_compiled_anew_unless_it_is_left_open_or_padded_as_in_pytorch_174704(molecules):
    compiled = {
        mode: sum(isinstance(e, HostWork) and e.name == "torch.compile" for e in tape.entries)
        for mode in lesson.MODES
        if (tape := molecules.tape(f"ragged-{mode}"))
    }

    forward_and_backward = 2
    assert compiled == {
        "fixed": forward_and_backward * len(lesson.SIZES),
        "auto": forward_and_backward * 2,
        "open": forward_and_backward,
        "padded": forward_and_backward,
    }


# --- first calls, and learning ---------------------------------------------------------------------------------------


def test_compiling_is_paid_once_and_not_at_later_steps(resnet):
    first, later = resnet.on("first-compiled"), resnet.on("compiled-1")

    assert first.start_up_ns * first.n_steps > COMPILE_BASE_NS
    assert later.start_up_ns == 0


@each_machine
def test_the_first_steps_of_a_graph_cost_far_less_than_compiling(resnet, name):
    first, later = resnet.on("first-graph", name), resnet.on("graph-1", name)
    extra_ns = first.n_steps * (first.step_ns - later.step_ns)

    assert 0 < extra_ns < COMPILE_BASE_NS / 10


@pytest.mark.parametrize("way", [way for way in Way if way is not Way.EAGER], ids=lambda way: way.key)
def test_every_way_learns_the_same(molecules, way):
    assert molecules.losses(f"learned-{way.key}") == pytest.approx(molecules.losses("learned-eager"), rel=1e-4)


def test_a_processor_has_no_graphs():
    net = torch.nn.Linear(1, 1)

    with pytest.raises(ExperimentError, match="on a processor"):
        Training(Way.GRAPH, net, torch.optim.SGD(net.parameters()), lambda net, batch: net(*batch), torch.device("cpu"))


def test_on_a_processor_molecules_are_measured_as_they_are_and_as_torchscript(tmp_path, monkeypatch):
    seen: list[Variant] = []
    monkeypatch.setattr(lesson.sweeps, "measure", lambda progress, variants, **_: seen.extend(variants) or {})
    lesson.measure(Progress(results_dir=tmp_path), device="cpu")
    first = [float(replace(each, n_steps=1).make(torch.device("cpu"))(0)) for each in seen[:2]]

    assert {each.key.partition("-")[0] for each in seen} == {Way.EAGER.key, Way.SCRIPT.key}
    assert first[1] == pytest.approx(first[0], rel=1e-4)
