"""How learners' code is shut in: what is asked for by name, what a sandbox shows, what one learner's calls share."""

from __future__ import annotations

import ast
import importlib
import os
import socket
import threading
from pathlib import Path

import pytest

import gpututor
from gpututor.errors import IsolationMissing, SandboxFailed
from gpututor.exercises.registry import EXERCISES
from gpututor.lab import isolation
from gpututor.lab.isolation import Isolation, best, current, isolated, limits_only
from gpututor.lab.learner_code import one_learner, run_learner
from gpututor.lab.sandbox import Sandbox
from gpututor.lab.sandbox_view import SHOWN, Way
from tests.exercises.test_every_exercise import answers

PACKAGE = Path(gpututor.__file__).parent
PRODUCT = "gpututor.exercises.on_card.product:run"
CODED = [one for one in EXERCISES if one.kind == "code"]


@pytest.fixture
def without_bubblewrap(monkeypatch):
    monkeypatch.setattr(isolation.shutil, "which", lambda _: None)
    isolation._tried.cache_clear()
    yield
    isolation._tried.cache_clear()


@pytest.fixture
def sandboxed(bubblewrap):
    with isolated(bubblewrap) as how:
        yield how


def run(body, calls=((),), **options):
    return run_learner("def f(*x):\n" + "\n".join("    " + line for line in body.splitlines()), "f", calls, **options)


def test_without_bubblewrap_the_best_is_an_error_that_says_what_to_install(without_bubblewrap):
    with pytest.raises(IsolationMissing, match=r"apt-get install bubblewrap\), or ask for limits only$"):
        best()


def test_a_bubblewrap_that_fails_is_an_error_with_its_own_words(monkeypatch, tmp_path):
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    isolation._tried.cache_clear()
    with pytest.raises(IsolationMissing, match=r"work here \(bwrap: No permissions to create new namespace\)"):
        best()
    isolation._tried.cache_clear()


def test_limits_only_carries_a_warning():
    assert "in no sandbox" in (limits_only().warning or "")


def test_the_sandbox_carries_none(bubblewrap):
    assert bubblewrap.warning is None


def test_limits_only_runs_a_plain_process(without_bubblewrap):
    with isolated(limits_only()):
        assert run("return x[0] + 1", [[1]]).values == (2,)


def test_outside_of_a_block_the_way_is_as_before():
    before = current()
    with isolated(limits_only()):
        pass

    assert current() is before


def test_a_plain_process_has_the_time_on_the_clock_that_it_is_given():
    limits = limits_only().limits(3.0, 100)

    assert (limits.wall_s, limits.cpu_s) == (3.0, None)


def test_a_sandboxed_one_is_held_to_processor_time_first():
    limits = Isolation("bubblewrap", Way("bwrap"), wall_times=4, wall_more_s=10).limits(3.0, 100)

    assert (limits.cpu_s, limits.wall_s) == (3.0, 22.0)


def test_waiting_is_no_processor_time(sandboxed):
    assert run("import time\ntime.sleep(0.5)\nreturn 1", timeout_s=0.3).values == (1,)


def test_a_fault_is_told_as_from_a_plain_process(sandboxed):
    body = "y = 1\nreturn z"
    with isolated(limits_only()):
        plain = run(body)

    assert run(body) == plain


def test_prints_are_kept(sandboxed):
    assert run("print('hello')\nreturn 1").printed == "hello\n"


def test_sets_have_the_same_order_in_each_sandbox(sandboxed):
    body = "return list({str(k) for k in range(50)})"

    assert run(body) == run(body)


def test_calls_of_one_learner_share_a_sandbox(sandboxed):
    with one_learner() as shared:
        for _ in range(3):
            run("return 1")

    assert shared.n_started == 1


def test_torch_is_there_before_the_first_line_of_a_call_with_a_harness(sandboxed):
    code = "import sys\nhad = 'torch' in sys.modules\ndef work(a, b):\n    assert had\n    return a @ b\n"
    with one_learner():
        assert run_learner(code, "work", [[2]], harness=PRODUCT, timeout_s=25, memory_mb=4096).sentence is None


def test_a_call_sees_nothing_that_the_one_before_it_changed(sandboxed):
    with one_learner():
        run("import math\nmath.pi = 3\nreturn 1")
        assert run("import math\nreturn math.pi").values[0] > 3


def test_a_time_limit_does_not_cost_the_sandbox(sandboxed):
    with one_learner() as shared:
        run("while True:\n    pass", timeout_s=0.2)
        run("return 1")

    assert shared.n_started == 1


def test_a_killed_starter_is_replaced_and_noted(sandboxed):
    with one_learner() as shared:
        run("import os\nos.kill(os.getppid(), 9)\nwhile True:\n    pass")
        assert run("return 1").values == (1,)

    assert shared.n_started == 2
    assert (
        shared.note
        == "The code ended the process that starts its calls, once; the calls after it ran in a new sandbox."
    )


def test_a_sandbox_that_was_killed_between_calls_is_replaced(sandboxed):
    with one_learner() as shared:
        run("return 1")
        shared._sandbox._process.kill()
        shared._sandbox._process.wait()

        assert run("return 2").values == (2,)


def test_no_sandbox_is_shared_where_none_is_asked_for():
    with one_learner() as shared:
        assert shared is None


def test_a_sandbox_that_cannot_start_is_no_fault_of_the_code(tmp_path):
    with (
        isolated(Isolation("bubblewrap", Way(str(tmp_path / "none")))),
        pytest.raises(SandboxFailed, match="can't be run"),
    ):
        run("return 1")


def test_a_closed_sandbox_has_no_processes(bubblewrap):
    with Sandbox(bubblewrap.way) as sandbox:
        pid = sandbox._pid

    assert not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize("shut_in", [False, True])
def test_a_harness_gets_the_socket_that_it_is_handed(shut_in, request):
    how = request.getfixturevalue("bubblewrap") if shut_in else limits_only()
    ours, theirs = socket.socketpair()
    heard = []
    answering = threading.Thread(target=lambda: (heard.append(ours.recv(10)), ours.send(b"four")))
    answering.start()
    with isolated(how), ours, theirs:
        ran = run_learner(
            "def f():\n    return b'two'", "f", harness="gpututor.exercises.on_card.told:run", card=theirs.fileno()
        )
        answering.join(5)

    assert (heard, ran.values) == ([b"two"], ("four",))


@pytest.mark.parametrize("one", CODED, ids=lambda one: one.number)
def test_a_solution_earns_full_marks_in_the_sandbox(one, sandboxed):
    known = answers(one.number)
    with one_learner():
        judged = one.check(known.right_for(known.case), known.case)

    assert (judged.state, judged.earned_share) == ("right", 1.0), judged.text


def imports(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gpututor"):
            yield from (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))


def home_of(name):
    """The file of a module of ours, None where the name is a function's or a class's."""
    place = PACKAGE.joinpath(*name.split(".")[1:])
    return next((path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file()), None)


def needed_by(paths):
    """All of our modules that these import, and those that they import. The package itself loads a name when asked."""
    found, waiting = {PACKAGE / "__init__.py"}, list(paths)
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += filter(None, map(home_of, imports(path)))
    return found - {PACKAGE / "__init__.py"}


def is_shown(path):
    return any(path == PACKAGE / part or PACKAGE / part in path.parents for part in SHOWN)


def test_what_a_harness_imports_is_shown_in_the_sandbox():
    harnesses = [*(PACKAGE / "exercises" / "on_card").glob("*.py"), PACKAGE / "lab" / "on_card.py"]

    assert {path.relative_to(PACKAGE).as_posix() for path in needed_by(harnesses) if not is_shown(path)} == set()


def test_every_part_that_is_shown_exists():
    assert [part for part in SHOWN if not (PACKAGE / part).exists()] == []


def test_no_judge_is_shown():
    judges = {Path(importlib.import_module(one.judge.__module__).__file__) for one in EXERCISES}

    assert not {path for path in judges if is_shown(path)}
