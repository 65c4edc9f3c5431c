"""Arrows link a call to what it started where there is no correlation number; graphs are told by call or number."""

from __future__ import annotations

import pytest

from gpututor.timeline import Activity
from gpututor.trace import read
from tests.trace.test_shapes import FLOATS, GEMM, event, launched, operator


def arrow(ph, ts, pid, tid, name="ac2g", number=3):
    return {"ph": ph, "id": number, "pid": pid, "tid": tid, "ts": ts, "cat": name, "name": name}


def linked_by(*arrows, call="cudaLaunchKernel", cat="cuda_runtime"):
    """The launch numbers of a call and of a kernel without correlation, with these arrows between them."""
    events = [event(cat, call, 10, 5), event("kernel", GEMM, 100, 20, 0, 7, device=0, stream=7), *arrows]
    timeline = read(events)
    (kernel,) = timeline.on(Activity.KERNEL)
    (host,) = timeline.on(Activity.LAUNCH, Activity.DISPATCH)
    return host.launch, kernel.launch


@pytest.mark.parametrize("name", ["ac2g", "async_cpu_to_gpu"])
def test_an_arrow_of_either_name_links_a_kernel_to_its_call(name):
    host, kernel = linked_by(arrow("s", 10, 1, 1, name), arrow("f", 100, 0, 7, name))

    assert host == kernel is not None


def test_an_arrow_may_come_from_an_operator_where_no_calls_were_recorded():
    host, kernel = linked_by(arrow("s", 12, 1, 1), arrow("f", 100, 0, 7), call="aten::mm", cat="cpu_op")

    assert host == kernel is not None


@pytest.mark.parametrize(
    "arrows",
    [
        pytest.param((), id="none"),
        pytest.param((arrow("s", 10, 1, 1), arrow("f", 100, 0, 7, number=4)), id="of another id"),
        pytest.param((arrow("s", 10, 1, 1), arrow("f", 90, 0, 7)), id="to another time"),
        pytest.param((arrow("s", 10, 1, 1), arrow("f", 100, 0, 8)), id="to another stream"),
        pytest.param((arrow("s", 50, 1, 1), arrow("f", 100, 0, 7)), id="from outside any call"),
        pytest.param((arrow("s", 10, 1, 1, "fwdbwd"), arrow("f", 100, 0, 7, "fwdbwd")), id="from forward to backward"),
        pytest.param((arrow("s", "N/A", 1, 1), arrow("f", None, 0, 7)), id="without a time"),
    ],
)
def test_no_other_arrow_links(arrows):
    assert linked_by(*arrows) == (None, None)


def test_a_correlation_counts_more_than_an_arrow():
    other = event("cuda_runtime", "cudaLaunchKernel", 60, 5, tid=2, correlation=8)
    timeline = read([*launched(GEMM), other, arrow("s", 60, 1, 2), arrow("f", 100, 0, 7)])

    assert next(timeline.on(Activity.KERNEL)).launch == 1


def test_a_new_number_is_nobody_elses():
    loose = event("kernel", GEMM, 300, 20, 0, 7, device=0, stream=7)
    call = event("cuda_runtime", "cudaLaunchKernel", 60, 5)
    timeline = read([*launched(GEMM), call, loose, arrow("s", 60, 1, 1), arrow("f", 300, 0, 7)])

    assert [s.launch for s in timeline.on(Activity.KERNEL)] == [1, 2]


def test_a_kernel_linked_by_an_arrow_has_its_operators_flop():
    asked = operator("aten::mm", [[3, 5], [5, 7]], FLOATS[:2])
    call, loose = event("cuda_runtime", "cudaLaunchKernel", 10, 5), event("kernel", GEMM, 100, 20, 0, 7, stream=7)
    timeline = read([asked, call, loose, arrow("s", 10, 1, 1), arrow("f", 100, 0, 7)])

    assert next(timeline.on(Activity.KERNEL)).work.flop == 210


# --- graphs ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["cudaGraphLaunch", "hipGraphLaunch", "cuGraphLaunch"])
def test_all_that_a_graphs_launch_started_is_from_a_graph(call):
    first, second = launched("k", "l")[1::2]
    second["args"]["correlation"] = 1
    timeline = read([event("cuda_runtime", call, 10, 5, correlation=1), first, second])

    assert [s.work.from_graph for s in timeline.on(Activity.KERNEL)] == [True, True]


@pytest.mark.parametrize(
    ("told", "from_graph"),
    [
        ({"graph node id": 4294967298}, True),
        ({"graph id": 2}, True),
        ({"graph id": 0, "graph node id": 0}, None),
        ({"graph id": "N/A"}, None),
    ],
)
def test_a_kernels_own_number_of_a_graph_says_it_and_0_is_none(told, from_graph):
    (span,) = read(launched("k", **told)).on(Activity.KERNEL)

    assert span.work.from_graph is from_graph


def test_making_a_graph_is_not_running_one():
    call, kernel = launched("k")
    timeline = read([call | {"name": "cudaGraphInstantiate"}, kernel])

    assert next(timeline.on(Activity.KERNEL)).work.from_graph is None


def test_a_copy_in_a_graph_is_from_it_even_without_its_bytes():
    call = event("cuda_runtime", "cudaGraphLaunch", 10, 5, correlation=1)
    copy = event("gpu_memcpy", "Memcpy DtoD (Device -> Device)", 100, 5, 0, 7, device=0, stream=7, correlation=1)
    timeline = read([call, copy, *launched("k", first=2)])

    (work,) = [s.work for s in timeline.on(Activity.COPY_ON_GPU)]
    assert (work.from_graph, work.moved_bytes) == (True, None)


def test_a_kernel_of_a_graph_has_no_operators_flop():
    call, kernel = launched(GEMM)
    asked = operator("aten::mm", [[3, 5], [5, 7]], FLOATS[:2])
    timeline = read([asked, call | {"name": "cudaGraphLaunch"}, kernel])

    (span,) = timeline.on(Activity.KERNEL)
    assert (span.work.flop, "graph" in span.work.flop_unknown) == (None, True)
