"""Hostile code in the sandbox: the outcome of each attack, what it leaves behind, and the calls after it."""

from __future__ import annotations

import os
import socket
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import pytest

from gpututor.lab.isolation import isolated
from gpututor.lab.learner_code import LearnerRun, one_learner, run_learner
from gpututor.lab.process_tree import below
from gpututor.paths import lessons_dir
from tests.lab.attacks import ATTACKS, MEMORY_MB

ROOT = Path(__file__).resolve().parent.parent.parent
WHERE = "import os\ndef f(given):\n    return os.readlink('/proc/self/ns/pid')\n"
AFTERWARDS = (
    "import os\ndef f(given):\n"
    "    open('x', 'wb').write(bytes(2**20))\n    open('/dev/shm/x', 'wb').write(bytes(2**20))\n"
    "    return [os.listdir(), sorted(os.listdir('/dev/shm')), sum(name.isdigit() for name in os.listdir('/proc'))]\n"
)
CLEAN = [["x"], ["x"], 3]  # its own files; the sandbox's first process, the one that starts calls, and its own
LONGEST_S = 60.0  # against hanging for ever: a time limit on the clock, twice, and the start of two sandboxes


@dataclass(frozen=True)
class Came:
    """What came of an attack and of the calls after it."""

    run: LearnerRun
    same_learner: LearnerRun
    other_learner: LearnerRun
    left: list[str]
    took_s: float
    reached: bool


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """What an attacker would like to have: a listener, other learners' files, a secret, a token of the parent's."""
    folder = tmp_path_factory.mktemp("class")
    secrets = [folder / "submissions" / "ben.json", folder / "grades" / "grades.csv", folder / "class.toml"]
    for path in secrets:
        path.parent.mkdir(exist_ok=True)
        path.write_text("secret", encoding="utf-8")
    secrets += [
        Path.home(),
        ROOT / "tests",
        ROOT / "gpututor" / "exercises" / "ex03.py",
        lessons_dir(),
        Path("/etc/passwd"),
    ]
    judges = [f"gpututor.exercises.{path.stem}" for path in (ROOT / "gpututor" / "exercises").glob("*.py")]
    judges += ["gpututor.store", "gpututor.page", "gpututor.cli", "tests.exercises.test_ex03"]
    with socket.create_server(("127.0.0.1", 0)) as listener, pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPUTUTOR_TOKEN", "the parent's own token")
        listener.setblocking(False)
        yield {
            "listener": listener,
            "data": {
                "port": listener.getsockname()[1],
                "secrets": [str(path) for path in secrets if path != Path("/root")],
                "judges": [name for name in judges if not name.endswith("__init__")],
                "token": "the parent's own token",
                "folders": [str(folder), str(ROOT / "gpututor"), str(ROOT / "gpututor" / "lab")],
            },
        }


@pytest.fixture(scope="module")
def came(bubblewrap, given):
    """Runs an attack once, with a call of the same learner and of another one after it."""
    how = replace(bubblewrap, wall_times=2.0, wall_more_s=2.0)
    known = {}

    def attack(name):
        if name not in known:
            known[name] = carried_out(name, how, given)
        return known[name]

    return attack


def carried_out(name, how, given):
    body = "".join(f"    {line}\n" for line in ATTACKS[name].body.splitlines())
    calls = [[given["data"]]]
    began_s = time.monotonic()
    with ExitStack() as held:
        with isolated(how), one_learner() as shared:
            spaces = [space_of(shared, run_learner(WHERE, "f", calls), held)]
            run = run_learner(
                f"def f(given):\n{body}", "f", calls, timeout_s=ATTACKS[name].timeout_s, memory_mb=MEMORY_MB
            )
            same = run_learner(AFTERWARDS, "f", calls)
            spaces.append(space_of(shared, run_learner(WHERE, "f", calls), held))
        with isolated(how):
            other = run_learner(AFTERWARDS, "f", calls)
        return Came(run, same, other, inside(spaces), time.monotonic() - began_s, reached(given["listener"]))


def space_of(shared, where, held):
    """The namespace that a call named, held open so that no other one gets its number."""
    space = os.open(f"/proc/{shared._sandbox._pid}/ns/pid", os.O_RDONLY)
    held.callback(os.close, space)
    (name,) = where.values
    assert name == str(Path(f"/proc/self/fd/{space}").readlink())
    return name


def inside(spaces):
    """Processes of the machine that live in one of these namespaces; one that only waits to be reaped is dead."""
    found = []
    for process in psutil.process_iter():
        try:
            if (
                str(Path(f"/proc/{process.pid}/ns/pid").readlink()) in spaces
                and process.status() != psutil.STATUS_ZOMBIE
            ):
                found.append(process.name())
        except (OSError, psutil.NoSuchProcess):
            continue
    return found


def reached(listener):
    try:
        listener.accept()
    except BlockingIOError:
        return False
    return True


each_attack = pytest.mark.parametrize("name", ATTACKS)


@each_attack
def test_an_attack_has_exactly_this_outcome(name, came):
    run, expected = came(name).run, ATTACKS[name]
    value = None if expected.sentence else (expected.value,)

    assert (run.values, run.sentence, run.cut) == (value, expected.sentence, expected.cut)
    assert run.incident == incident_of(expected)


def incident_of(attack):
    """What a report must say of it."""
    said = attack.sentence or ""
    by_sentence = {"ended its own process": "ended", "called sys.exit": "exit", "more memory": "memory"}
    return attack.cut or next((incident for part, incident in by_sentence.items() if part in said), None)


@each_attack
def test_nothing_is_left_running(name, came):
    assert came(name).left == []


@each_attack
def test_the_next_call_of_the_same_learner_finds_everything_clean(name, came):
    assert came(name).same_learner.values == (CLEAN,)


@each_attack
def test_the_next_call_of_another_learner_finds_everything_clean(name, came):
    assert came(name).other_learner.values == (CLEAN,)


@each_attack
def test_an_attack_does_not_take_for_ever(name, came):
    assert came(name).took_s < LONGEST_S


@each_attack
def test_nothing_has_come_to_a_listener_outside(name, came):
    assert not came(name).reached


def test_the_tests_own_process_has_no_descendants_left(bubblewrap, given):
    before = {each.pid for each in below(os.getpid())}
    carried_out("os._exit", bubblewrap, given)

    assert {each.pid for each in below(os.getpid())} == before
