"""Garbage collection, compiling and the profiler's own work, by the names that traces give them."""

from __future__ import annotations

import pytest

from gpututor.causes import Cause, find_causes
from gpututor.explain import explain
from gpututor.explain.compare import Comparison
from gpututor.ledger import Account
from gpututor.ledger.interruptions import Interruption, interruption
from tests.draw import draw
from tests.explain.written import STEP_US, JobTrace
from tests.test_causes import SIMULATED


def told(events):
    one = explain(events)
    return {f.cause: f for f in one.findings}, one


def with_host(cat, name, at=210, long=180, tid=1, pid=100):
    """Six steps of 1,000 µs whose kernels run at 5 to 105, 205 to 265, 405 to 445 and 605 to 625, and one more."""
    events = JobTrace(n_steps=6, optimizer_marks=True).events
    for k in range(6):
        events.append(JobTrace._event(cat, name, STEP_US * k + at, long, pid, tid))
    return events


@pytest.mark.parametrize(
    ("cat", "name", "cause"),
    [
        ("python_function", "<built-in function collect>", Cause.GARBAGE_COLLECTION),
        ("user_annotation", "gc", Cause.GARBAGE_COLLECTION),
        ("python_function", "torch/_dynamo/convert_frame.py(631): __call__", Cause.COMPILING),
        ("cpu_op", "_compile.compile_inner (dynamo_timed)", Cause.COMPILING),
        ("cuda_runtime", "cuModuleLoadData", Cause.COMPILING),
        ("cuda_driver", "cuLibraryLoadData", Cause.COMPILING),
        ("python_function", "torch/profiler/profiler.py(821): step", Cause.PROFILING),
    ],
)
def test_what_stops_the_host_is_named(cat, name, cause):
    found, _ = told(with_host(cat, name))

    # from the end of the second kernel at 265 to the end of the event at 390
    assert found[cause].share == pytest.approx(0.125)
    assert f"{name!r}, lasts 180" in found[cause].sentence.replace("\u00a0", " ")


@pytest.mark.parametrize(
    "name",
    [
        "Torch-Compiled Region: 0/0",
        "## Call CompiledFxGraph abc ##",
        "TorchDynamo Cache Lookup",
        "torch/_dynamo/eval_frame.py(738): _fn",
        "torch.compile",
        "PyTorch Profiler (0)",
        "<built-in method values of collections.OrderedDict object at 0x7f>",
        "aten::cudnn_convolution",
        "torch/compiler/__init__.py(367): is_compiling",
        "torch/autograd/profiler.py(757): __exit__",
    ],
)
def test_running_what_was_compiled_and_other_work_is_no_interruption(name):
    assert interruption(name) is None


def test_an_interruption_is_told_once():
    found, one = told(with_host("python_function", "<built-in function collect>"))

    assert Cause.PAUSES not in found
    assert one.window.ledger.share(Account.PAUSE) == pytest.approx(0.125)
    assert sum(f.share or 0 for f in one.findings) <= 1


def test_a_gain_is_the_step_without_the_interruption():
    found, _ = told(with_host("python_function", "<built-in function collect>"))

    assert found[Cause.GARBAGE_COLLECTION].gain.to_ns == 875_000


def test_a_collection_inside_compiling_is_part_of_compiling():
    events = with_host("cpu_op", "entire_frame_compile")
    events += with_host("cpu_op", "gc", at=300, long=50)[-6:]
    found, _ = told(events)

    assert found[Cause.COMPILING].share == pytest.approx(0.125)
    assert Cause.GARBAGE_COLLECTION not in found


def test_a_collection_under_a_kernel_costs_nothing():
    found, _ = told(with_host("python_function", "<built-in function collect>", at=10, long=90))

    assert Cause.GARBAGE_COLLECTION not in found


@pytest.mark.parametrize("name", ["Activity Buffer Request", "Buffer Flush", "Resource", "Instrumentation"])
def test_overhead_on_a_lane_of_its_own_is_the_profilers(name):
    found, _ = told(with_host("overhead", name, tid=0, pid=-1))

    assert found[Cause.PROFILING].share == pytest.approx(0.125)


@pytest.mark.parametrize("name", ["Driver Compiler", "Lazy Function Loading", "Runtime Triggered Module Loading"])
def test_overhead_of_the_driver_is_compiling(name):
    found, _ = told(with_host("overhead", name, tid=0, pid=-1))

    assert found[Cause.COMPILING].share == pytest.approx(0.125)


def test_a_full_command_buffer_is_no_overhead():
    found, one = told(with_host("overhead", "Command Buffer Full", tid=0, pid=-1))

    assert Cause.PROFILING not in found
    assert one.window.ledger.share(Account.PAUSE) == 0


def test_a_mark_of_a_program_with_the_name_of_an_overhead_says_nothing():
    found, _ = told(with_host("user_annotation", "Resource"))

    assert Cause.PROFILING not in found


def test_overhead_beside_a_wait_for_the_loader_leaves_it_a_wait_for_the_loader():
    events = with_host("overhead", "Buffer Flush", tid=0, pid=-1)
    events += with_host("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__")[-6:]
    found, _ = told(events)

    assert found[Cause.WAITING_FOR_INPUT].share == pytest.approx(0.125)
    assert Cause.PROFILING not in found


def test_what_stops_the_host_for_less_than_a_twentieth_is_not_named():
    found, _ = told(with_host("python_function", "<built-in function collect>", at=270, long=40))

    assert Cause.GARBAGE_COLLECTION not in found


def test_a_pause_without_a_telling_name_stays_a_pause():
    found = find_causes(draw(host="aXXXXXb.", gpu=".a.....b", label=SIMULATED))

    assert any(f.cause is Cause.PAUSES for f in found)
    assert not any(f.cause in (Cause.GARBAGE_COLLECTION, Cause.PROFILING) for f in found)


def test_every_kind_has_a_word():
    assert len({kind.value for kind in Interruption}) == len(Interruption)


def test_what_came_of_a_part_is_measured_by_the_part_alone():
    events = with_host("python_function", "<built-in function collect>")
    events += with_host("user_annotation", "gpututor: pause: checkpoint", at=450, long=100)[-6:]
    gone = Comparison(explain(events), explain(JobTrace(n_steps=6, optimizer_marks=True).events)).gone()

    # 125 µs of a step's 1,000 are collections, 100 a checkpoint
    assert {f.cause: ns for f, ns in gone} == pytest.approx({Cause.GARBAGE_COLLECTION: 875_000, Cause.PAUSES: 900_000})
