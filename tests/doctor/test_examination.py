"""The order of the checks, children that hang or crash, and the report in all its forms."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from gpututor.cli.doctor import doctor_command, document
from gpututor.doctor import Examination, Probe, State
from gpututor.doctor.child import Child
from gpututor.doctor.display import TITLE_WIDTH, Report
from gpututor.doctor.examination import counts, headline, in_order
from gpututor.doctor.finding import Check, Finding, cannot_tell, check, fails, passes, warns, worst
from gpututor.doctor.registry import CHECKS
from gpututor.doctor.words import listed
from tests.doctor.places import CPU_TORCH, DRIVER, GIB, HERE, NO_DRIVER, TORCH, healthy

NOTHING_SEEN = {"code": 12, "error": "NVMLError_LibraryNotFound"}


class Stand:
    """A probe that answers at once, and remembers what it was told."""

    log: list[str]

    def __init__(self, probe: Probe, fields: dict[str, object], why: str | None, log: list[str]) -> None:
        self.probe, self.fields, self.why, self.log = probe, fields, why, log

    def go(self, how: str) -> None:
        self.log.append(f"{how} {self.probe.value}")

    def answer(self, limit_s: float) -> tuple[dict[str, object], str | None]:
        self.log.append(f"answer {self.probe.value}")
        return self.fields, self.why

    def stop(self) -> None:
        self.log.append(f"stop {self.probe.value}")


def examined(root, driver=None, torch=None, why=None, log=None, checks=CHECKS):
    told = {Probe.DRIVER: driver or NOTHING_SEEN, Probe.TORCH: torch or asdict(CPU_TORCH)}
    log = [] if log is None else log
    start = lambda probe: Stand(probe, told[probe], (why or {}).get(probe), log)  # noqa: E731
    return Examination(healthy(root, driver=NO_DRIVER, torch=CPU_TORCH), start=start, checks=checks)


# --- the registry ---------------------------------------------------------------------------------------------------


def test_ids_are_unique_and_say_their_group():
    ids = [one.id for one in CHECKS]

    assert len(set(ids)) == len(ids)
    assert all(one.count(".") == 1 and one == one.lower() for one in ids)


def test_titles_are_unique_and_fit_their_column():
    titles = [one.title for one in CHECKS]

    assert len(set(titles)) == len(titles)
    assert max(map(len, titles)) <= TITLE_WIDTH


def test_every_check_says_in_its_function_what_it_answers():
    assert all(one.answer.__doc__ for one in CHECKS)


def test_every_check_bears_a_machine_that_tells_nothing(tmp_path):
    """The smallest facts: no files, no readings."""
    from gpututor.doctor.facts import Facts, Machine
    from gpututor.doctor.readers import Files

    nothing = Facts(Files(tmp_path / "no"), machine=Machine(platform="sunos5"), data=tmp_path / "no")
    stopped = [f.words for one in CHECKS if (f := one(nothing)) is not None and "this check stopped" in f.words]

    assert stopped == []


def test_what_is_to_be_done_is_said_wherever_something_is(tmp_path):
    found = [*examined(tmp_path).findings(), *(f for one in CHECKS if (f := one(healthy(tmp_path))))]

    assert all(finding.remedy for finding in found if finding.state in {State.WARN, State.FAIL})
    assert all(finding.evidence for finding in found)


# --- the order ------------------------------------------------------------------------------------------------------


def made(identity, *needs, state=passes):
    @check(identity, identity, *needs)
    def one(facts):
        return state("words", "evidence") if state is passes else state("words", "remedy", "evidence")

    return one


def test_checks_that_wait_for_nothing_come_first(tmp_path):
    log: list[str] = []
    checks = (made("a.torch", Probe.TORCH), made("b.driver", Probe.DRIVER), made("c.files"))
    seen = [(finding.id, len(log)) for finding in examined(tmp_path, log=log, checks=checks).findings()]

    assert [name for name, _ in seen] == ["c.files", "b.driver", "a.torch"]
    assert seen[0][1] == 0  # nobody had been waited for


def test_torch_may_touch_the_gpu_when_the_driver_has_answered(tmp_path):
    log: list[str] = []
    list(examined(tmp_path, log=log).findings())

    assert log[:3] == ["answer driver", "run torch", "answer torch"]
    assert sorted(log[3:]) == ["stop driver", "stop torch"]


@pytest.mark.parametrize(("used", "how"), [(40 * GIB - 2**30, "look"), (0, "run"), (None, "run")])
def test_no_kernel_is_tried_on_a_card_that_is_nearly_full(tmp_path, used, how):
    log: list[str] = []
    driver = {"version": "580", "gpus": [{"index": 0, "memory_bytes": 40 * GIB, "memory_used_bytes": used}]}
    examination = examined(
        tmp_path, driver=driver, torch=asdict(replace(TORCH, gpus=(replace(HERE, kernel_s=None),))), log=log
    )
    found = {finding.id: finding for finding in examination.findings()}

    assert f"{how} torch" in log
    assert ("no kernel was tried" in found["torch.kernel"].words) is (how == "look")


def test_a_reader_who_leaves_early_stops_both(tmp_path):
    log: list[str] = []
    findings = examined(tmp_path, log=log).findings()
    next(findings)
    findings.close()

    assert sorted(log) == ["stop driver", "stop torch"]


def test_every_check_is_either_found_or_left_out(tmp_path):
    examination = examined(tmp_path)
    found = [finding.id for finding in examination.findings()]

    assert sorted([*found, *examination.left_out]) == sorted(one.id for one in CHECKS)


def test_a_check_that_raises_can_not_tell_and_the_others_go_on(tmp_path):
    def broken(facts):
        raise ZeroDivisionError("no such luck")

    checks = (Check("a.broken", "broken", frozenset(), broken), made("b.sound"))
    found = {finding.id: finding for finding in examined(tmp_path, checks=checks).findings()}

    assert found["a.broken"].state is State.CANNOT_TELL
    assert "no such luck" in found["a.broken"].words
    assert found["b.sound"].state is State.PASS


def test_a_driver_that_hangs_keeps_what_it_told_before(tmp_path):
    driver = {"version": "580.65.06", "gpus": [{"index": 0, "name": "Tesla T4"}]}
    examination = examined(tmp_path, driver=driver, why={Probe.DRIVER: "no answer within 20 s"})
    found = {finding.id: finding for finding in examination.findings()}

    assert found["driver.answers"].state is State.FAIL
    assert examination.facts.driver.gpus[0].name == "Tesla T4"


def test_the_worst_of_several_answers_decides():
    answers = [passes("fine", "a"), warns("hm", "do", "b"), cannot_tell("who knows", "c")]

    assert worst(answers) == warns("hm", "do", "b")
    assert worst([*answers, fails("bad", "do", "d")]).state is State.FAIL
    assert worst([]) is None


# --- the child ------------------------------------------------------------------------------------------------------


def child(code):
    return Child(Probe.DRIVER, [sys.executable, "-c", code])


def test_a_child_that_ends_well_tells_everything():
    with child("print('{\"a\": 1}'); print('{\"b\": 2}')") as one:
        assert one.answer(10) == ({"a": 1, "b": 2}, None)


def test_a_child_that_crashes_has_told_what_it_told():
    code = "import os, signal; print('{\"a\": 1}', flush=True); os.kill(os.getpid(), signal.SIGSEGV)"
    with child(code) as one:
        assert one.answer(10) == ({"a": 1}, "the process that asked ended by SIGSEGV")


def test_a_child_that_hangs_is_ended_after_its_time():
    with child("print('{\"a\": 1}', flush=True); import time; time.sleep(60)") as one:
        began_s = time.monotonic()
        fields, why = one.answer(1.0)

    assert fields in ({"a": 1}, {})  # a machine may be too busy to start Python within a second
    assert why == "no answer within 1 s"
    assert time.monotonic() - began_s < 10


def test_lines_that_are_no_answer_are_left_out():
    with child("print('Hello'); print('{\"a\": 1}'); print('[1]'); print('{\"b\": ')") as one:
        assert one.answer(10)[0] == {"a": 1}


def test_a_child_waits_for_its_go():
    with child("import json, sys; print(json.dumps({'heard': sys.stdin.readline().strip()}))") as one:
        one.go("look")

        assert one.answer(10) == ({"heard": "look"}, None)


def test_a_go_to_a_child_that_has_ended_is_no_error():
    with child("") as one:
        one.answer(10)
        one.go("run")


def test_what_a_library_prints_while_it_loads_is_no_answer(tmp_path):
    """The real child, with a torch that prints and then can't be loaded."""
    (tmp_path / "torch.py").write_text("print('{\"version\": \"nonsense\"}')\nraise OSError('no libcudart')\n")
    code = "import sys; sys.path.insert(0, sys.argv[1]); from gpututor.doctor.child import main; main('torch')"
    with Child(Probe.TORCH, [sys.executable, "-c", code, str(tmp_path)]) as one:
        fields, why = one.answer(20)

    assert fields == {"error": "OSError: no libcudart"}
    assert why is None


# --- the report -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("torch", "driver", "words"),
    [
        (TORCH, DRIVER, "torch uses NVIDIA A100-SXM4-40GB: nothing to do."),
        (replace(CPU_TORCH, other="mps"), NO_DRIVER, "torch uses this computer's mps"),
        (CPU_TORCH, NO_DRIVER, "No GPU here: the simulated one works"),
        (replace(CPU_TORCH, version=None), NO_DRIVER, "torch can't be loaded"),
    ],
)
def test_the_headline_answers_the_first_question(tmp_path, torch, driver, words):
    assert headline(healthy(tmp_path, torch=torch, driver=driver), []).startswith(words)


def test_the_headline_counts_what_is_to_be_done(tmp_path):
    found = [made("a.b", state=fails)(None), made("c.d", state=warns)(None), made("e.f", state=warns)(None)]

    assert headline(healthy(tmp_path), found).endswith("1 to repair, 2 to look at.")
    assert counts(found)[State.WARN] == 2


def test_findings_are_shown_in_the_registrys_order():
    ids = [CHECKS[3].id, CHECKS[1].id, CHECKS[2].id]
    shuffled = [Finding(one, one, State.PASS, "", (), None, ()) for one in ids]

    assert [finding.id for finding in in_order(shuffled)] == [CHECKS[1].id, CHECKS[2].id, CHECKS[3].id]


LONG = fails(
    "sixteen GPUs were promised and there is not a single one of them to be seen anywhere in this machine",
    'pip install --force-reinstall "torch<2.15" --index-url https://download.pytorch.org/whl/cu130',
    "a very long line of evidence that goes on and on until it has passed the right edge of the terminal",
)


def written(width, encoding="utf-8", verbose=False):
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="replace")
    report = Report(Console(file=out, width=width, highlight=False, color_system=None), verbose=verbose)
    report.begin()
    report.passed(made("a.fine")(None))
    report.rest([Check("b.bad", "Promised GPUs", frozenset(), lambda _: LONG)(None)])
    report.end("The end.", ["c.none"])
    out.flush()
    return out.buffer.getvalue().decode(encoding)


@pytest.mark.parametrize("width", [80, 120, 200])
def test_lines_fit_the_terminal_but_for_commands_to_be_copied(width):
    lines = written(width).splitlines()

    assert all(len(line) <= width for line in lines if "pip install" not in line)
    assert sum('"torch<2.15" --index-url https://download.pytorch.org/whl/cu130' in line for line in lines) == 1
    assert all(line == line.rstrip() for line in lines)


def test_states_are_told_apart_without_colour():
    text = written(80)

    assert text.index("✓ pass") < text.index("✗ fail") < text.index("The end.")


def test_a_terminal_without_unicode_gets_other_marks():
    text = written(80, encoding="ascii")

    assert "+ pass" in text
    assert "x fail" in text


def test_ids_and_what_does_not_apply_are_shown_when_asked_for():
    assert "b.bad" not in written(80)
    assert "b.bad" in written(80, verbose=True)
    assert "c.none" in written(80, verbose=True)


def test_the_document_is_json_with_every_finding(tmp_path):
    examination = examined(tmp_path)
    found = in_order(examination.findings())
    read = json.loads(json.dumps(document(examination, found)))

    assert read["format"] == "gpututor-doctor"
    assert [one["id"] for one in read["findings"]] == [finding.id for finding in found]
    assert sum(read["counts"].values()) == len(found)
    assert set(read["findings"][0]) == {"id", "title", "state", "words", "evidence", "remedy", "sources"}


def commanded(monkeypatch, tmp_path, *arguments, checks=CHECKS):
    """The command with stand-ins for its probes."""
    told = {Probe.DRIVER: NOTHING_SEEN, Probe.TORCH: asdict(CPU_TORCH)}
    monkeypatch.setattr("gpututor.doctor.examination.Child", lambda probe: Stand(probe, told[probe], None, []))
    monkeypatch.setattr("gpututor.doctor.examination.CHECKS", checks)
    return CliRunner().invoke(doctor_command, ["--data", str(tmp_path), *arguments], standalone_mode=False)


@pytest.mark.parametrize(("state", "status"), [(passes, 0), (warns, 0), (fails, 1)])
def test_the_status_is_1_where_something_fails(monkeypatch, tmp_path, state, status):
    assert commanded(monkeypatch, tmp_path, checks=(made("a.b", state=state),)).return_value == status


def test_json_is_one_document_and_nothing_else(monkeypatch, tmp_path):
    assert json.loads(commanded(monkeypatch, tmp_path, "--json").output)["format"] == "gpututor-doctor"


def run(*arguments, **options):
    command = [sys.executable, "-m", "gpututor", "doctor", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, **options)


def test_a_folder_that_is_not_there_is_a_usage_error(tmp_path):
    done = run("--data", str(tmp_path / "no"))

    assert done.returncode == 2
    assert done.stdout == ""


def test_the_first_line_is_there_within_a_second(tmp_path):
    """The whole command as installed; the best of three, since this machine may have others to serve."""
    command = [sys.executable, "-m", "gpututor", "doctor", "--data", str(tmp_path)]
    seconds = []
    for _ in range(3):
        began_s = time.monotonic()
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            seconds.append(time.monotonic() - began_s)
            process.kill()
            process.stdout.close()
        if seconds[-1] < 1.0:
            break

    assert min(seconds) < 1.0


def test_the_whole_command_here_names_torch_and_ends(tmp_path):
    import torch

    done = run("--json", "--data", str(tmp_path), cwd=Path(__file__).parent.parent.parent)

    assert done.returncode in {0, 1}
    assert json.loads(done.stdout)["torch"] == torch.__version__


def test_a_list_of_one_has_no_and():
    assert (listed(["a"]), listed(["a", "b"])) == ("a", "a and b")
