"""What the report says of graphs, and of FLOP where a trace has shapes."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from gpututor.explain import explain
from gpututor.explain.report import show
from gpututor.explain.report_html import page
from gpututor.explain.report_json import document
from gpututor.ledger import Account
from tests.explain.written import JobTrace


def graphed(first_of_step):
    """A job of 220 µs of kernels a step, whose first kernel of 100 µs a graph runs where asked for."""
    events = JobTrace(n_steps=6, optimizer_marks=True).events
    for e in events:
        if first_of_step and e["cat"] == "cuda_runtime" and e["args"]["correlation"] % 10 == 1:
            e["name"] = "cudaGraphLaunch"
    return explain(events)


def printed(one):
    out = io.StringIO()
    show(one, Console(file=out, width=120))
    return out.getvalue().replace("\u00a0", " ")


def test_the_share_of_busy_time_from_graphs_is_counted():
    assert document(graphed(True))["graph_share"] == pytest.approx(100 / 220)


def test_without_graphs_there_is_no_share_and_no_line():
    one = graphed(False)

    assert document(one)["graph_share"] is None
    assert "graphs" not in printed(one)


def test_the_report_has_one_line_on_graphs():
    one = graphed(True)

    assert "Run from CUDA or HIP graphs: 45 % of the busy time." in printed(one)
    assert "CUDA or HIP graphs" in page([one])


def test_a_decoders_recorded_trace_ran_from_a_graph(shared):
    one = explain(shared / "traces" / "mi300-graph-decode.json.gz")

    assert one.graph_share() > 0.9


def test_a_recorded_trace_with_shapes_has_an_mfu_and_memory_bound_time(shared):
    one = explain(shared / "traces" / "h100-timesformer.json.gz")

    assert one.window.ledger.mfu is not None
    assert one.window.ledger.share(Account.MEMORY_BOUND) > 0.05
