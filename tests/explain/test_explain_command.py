"""The command: every form of the answer, refusals in one sentence, folders of ranks, before and after."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest
from click.testing import CliRunner

from gpututor import timeline_file
from gpututor.cli import group
from gpututor.explain import report_json
from gpututor.trace import read, writing
from tests.explain.written import JobTrace


@pytest.fixture
def run():
    def called(*arguments):
        return CliRunner().invoke(group, ["explain", *map(str, arguments)], standalone_mode=False)

    return called


@pytest.fixture
def trace(tmp_path):
    def written(name="trace.json", events=None, **job):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(events if events is not None else JobTrace(**({"n_steps": 6} | job)).events))
        return path

    return written


def keys(value):
    """Every name in a document."""
    if isinstance(value, dict):
        yield from value
        for inner in value.values():
            yield from keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys(inner)


def test_the_report_names_cause_share_change_and_gain(run, trace):
    told = run(trace(optimizer_marks=True, host_works=True)).output

    assert "The GPU waits for the host to launch its next kernel" in told
    assert re.search(r"Try: .*\n", told)
    assert re.search(r"Expect: from 1\.00\sms to at best", told)


def test_the_json_is_of_the_form_that_is_documented(run, trace):
    data = json.loads(run(trace(optimizer_marks=True), "--json").stdout)

    assert (data["format"], data["version"], data["refused"]) == ("gpututor-explain", 1, None)
    for name in ("losses", "windows", "findings"):
        assert name in data
    for window in data["windows"].values():
        assert {"duration_ns", "busy_share", "idle_share", "communication_share", "loader_idle_share"} <= set(window)
        assert sum(window["accounts"].values()) == pytest.approx(1)
    wanted = {"cause", "share", "evidence", "change", "gain", "confidence", "lesson"}
    assert all(wanted <= set(finding) for finding in data["findings"])


def test_every_name_in_the_json_stands_in_its_description(run, trace):
    data = json.loads(run(trace(optimizer_marks=True, talk_us=90), "--json").stdout)
    told = set(keys({k: v for k, v in data.items() if k not in ("windows", "kernel_classes", "reasons")}))

    assert told - set(re.findall(r"\w+", str(report_json.__doc__))) - {"name", "value", "unit", "text"} == {
        "from_ns",
        "to_ns",
        "per",
    }


def test_a_step_of_a_window_is_what_was_written(run, trace):
    data = json.loads(run(trace(optimizer_marks=True), "--json").stdout)

    # of 1,000 µs a step: kernels of 100, 60, 40 and 20
    assert data["windows"]["steps"]["busy_share"] == pytest.approx(0.22)
    assert data["steps"]["typical_ns"] == 1_000_000


def test_what_cannot_be_explained_is_refused_in_one_sentence(run, trace):
    path = trace(events=[{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1, "dur": 1, "pid": 1, "tid": 1}])
    refusal = run(path)

    assert "but no kernel" in str(refusal.exception)


def test_as_json_a_refusal_is_a_document_too(run, trace):
    told = run(trace(events=[]), "--json")

    assert json.loads(told.stdout)["refused"].startswith("trace.json holds no event")
    assert told.return_value == 2


def test_a_saved_timeline_is_explained_as_well(run, trace, tmp_path):
    timeline = read(trace())
    timeline_file.save(timeline, tmp_path / "run.gz")
    data = json.loads(run(tmp_path / "run.gz", "--json").stdout)

    assert data["file"] == "run.gz"
    assert data["windows"]["span"]["busy_share"] > 0


@pytest.mark.parametrize(
    ("name", "is_trace"),
    [("trace.json.gz", True), ("worker0.pt.trace.json", True), ("run.json.gz", False), ("traces.json", False)],
)
def test_a_file_named_as_a_trace_is_saved_as_one(trace, tmp_path, name, is_trace):
    writing.save(read(trace("from.json")), tmp_path / name)

    assert timeline_file.is_one(tmp_path / name) is not is_trace


# --- several --------------------------------------------------------------------------------------------------------


def test_before_and_after_are_compared_step_by_step(run, trace):
    slow = [e | {"ts": 2 * e["ts"]} for e in JobTrace(n_steps=6, optimizer_marks=True).events]
    told = run(trace("before.json", events=slow), "--diff", trace("after.json", optimizer_marks=True)).output

    assert "A step takes 1.00\u00a0ms instead of 2.00\u00a0ms: 2.00 times as fast." in told.replace("\n", " ")
    assert "launch overhead" in told


def test_a_slower_one_is_called_slower(run, trace):
    slow = [e | {"ts": 2 * e["ts"]} for e in JobTrace(n_steps=6, optimizer_marks=True).events]
    told = run(trace("before.json", optimizer_marks=True), "--diff", trace("after.json", events=slow), "--json")

    assert "2.00 times as slow" in json.loads(told.stdout)["sentences"][0]


def test_a_folder_is_read_rank_by_rank_and_the_last_one_named(run, trace, tmp_path):
    trace("ranks/rank0.json", optimizer_marks=True, talk_us=20)
    trace("ranks/rank1.json", optimizer_marks=True, talk_us=190)
    data = json.loads(run(tmp_path / "ranks", "--json").stdout)

    assert [one["file"] for one in data["ranks"]] == ["rank0.json", "rank1.json"]
    assert data["across"]["collectives_ns_per_step"] == {"rank0.json": 20_000, "rank1.json": 190_000}
    assert (data["across"]["last"], data["across"]["waited_ns_per_step"]) == ("rank0.json", 170_000)


def test_ranks_that_talk_about_as_long_have_no_last_one(run, trace, tmp_path):
    for k, talk_us in enumerate((100, 110, 120)):
        trace(f"ranks/rank{k}.json", optimizer_marks=True, talk_us=talk_us)

    assert json.loads(run(tmp_path / "ranks", "--json").stdout)["across"]["last"] is None


def test_a_rank_that_cannot_be_read_is_told_and_the_others_are_explained(run, trace, tmp_path):
    trace("ranks/rank0.json", optimizer_marks=True)
    (tmp_path / "ranks" / "rank1.json").write_text("")
    told = run(tmp_path / "ranks")

    assert "rank1.json is empty" in told.output
    assert told.return_value == 0


def test_a_folder_without_traces_is_refused(run, tmp_path):
    assert "holds no trace" in str(run(tmp_path).exception)


def test_a_folder_cannot_be_compared(run, trace, tmp_path):
    trace("ranks/rank0.json")

    assert "names" not in str(run(tmp_path / "ranks", "--diff", tmp_path / "ranks").exception)
    assert "name two files" in str(run(tmp_path / "ranks", "--diff", tmp_path / "ranks").exception)


# --- the page -------------------------------------------------------------------------------------------------------


class Outside(HTMLParser):
    """Everything that a page would load or run."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found += [tag] if tag in ("script", "link", "iframe", "img") else []
        self.found += [value for name, value in attrs if name in ("src", "href") and not str(value).startswith("#")]


def test_the_page_loads_and_runs_nothing_and_a_name_in_the_trace_is_text(run, trace, tmp_path):
    events = JobTrace(n_steps=6, optimizer_marks=True).events
    for event in events:
        event["name"] = event["name"].replace("void gemm_of_somebody", "<script>alert(1)</script>")
    run(trace("<b>.json", events=events), "--html", tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")

    assert Outside(text).found == []
    assert "<b>.json" not in text
    assert "Where the time goes" in text


def test_a_folder_for_the_page_that_is_not_there_is_told_first(run, trace, tmp_path):
    assert "there is no folder" in str(run(trace(), "--html", tmp_path / "no" / "x.html").exception)
