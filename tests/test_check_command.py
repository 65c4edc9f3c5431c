"""`gpututor check` and `gpututor submit`: the page's judge in a terminal, its exit status, and what it never tells."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from gpututor.cli import check as check_module
from gpututor.cli import main
from gpututor.exercises import coded
from gpututor.exercises.form import Case, Check, Exercise, Judged
from gpututor.exercises.keeping import keep_case, keep_given, kept_judged
from gpututor.exercises.registry import exercise
from gpututor.exercises.submission import read
from gpututor.exercises.typed import judge_choice, judge_number
from gpututor.lab.learner_code import LearnerRun
from gpututor.lab.on_card import packed
from gpututor.model.host import HostKind
from gpututor.model.spec import Stream
from gpututor.model.tape import BeginStep, CopyCall, EndRun, Sync, Tape, TapeOp
from gpututor.store import Store

KERNEL = TapeOp("k", HostKind.LIGHT, "forward", (Stream("k", 8, 1),))
COPY = CopyCall("copy", to_gpu=False, n_bytes=4, pinned=False, blocking=True)
CODE = "def work():\n    return 2\n"


def judge_code(code: str, case: Case) -> Judged:
    """Looks at nothing but how often the code waits."""
    launched, why = coded.on_card(code, "work", "no.such:harness")
    if not launched:
        return Judged("wrong", why)
    calm = launched[0].n_waits == 0
    checks = (Check("it runs", True, 0.25), Check("it never waits", calm, 0.75))
    points = ((1.0, 3.0), (2.0, 5.0)), ((1.0, 3.0), (2.0, 4.0))
    return Judged("right" if calm else "partial", "Looked at.", checks, *points, None if calm else 2)


def judge_typed(typed: str, case: Case) -> Judged:
    return judge_number(typed, case["right"], tolerance_share=0.01, said="So it is.", otherwise="Not that many.")


EXERCISES = (
    Exercise("3.1", "How many", "number", "How many {what}?", ("Count.", "Count on."), judge_typed, unit="kernels"),
    Exercise(
        "3.2",
        "Calm code",
        "code",
        "Write it.",
        ("One.", "Two."),
        judge_code,
        starter="def work(): ...\n",
        x_title="size",
        needs_run=False,
    ),
    Exercise(
        "3.3",
        "Which",
        "choice",
        "Which?",
        ("Look.",),
        lambda chosen, case: judge_choice(chosen, "the card", {"the card": "It is.", "the host": "It isn't."}),
        options=("the host", "the card"),
        needs_run=False,
    ),
)
CASE = {"right": 1234.0, "words": {"what": "kernels"}}


@pytest.fixture(autouse=True)
def shelf(monkeypatch, tmp_path):
    """Three small exercises in the place of the course's, and a learner who has none of them done."""
    monkeypatch.setenv("GPUTUTOR_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(check_module, "EXERCISES", EXERCISES)
    known = {one.number: one for one in EXERCISES}
    monkeypatch.setattr(
        check_module, "exercise", lambda number: known[exercise(number).number if number != "3.3" else number]
    )


@pytest.fixture
def called(capsys) -> Callable[..., tuple[int, str, str]]:
    def _called(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out.replace("\N{NO-BREAK SPACE}", " "), err

    return _called


@pytest.fixture
def ran(monkeypatch):
    """What the learner's process hands back: a tape with two kernels, and a copy that is waited for if asked for."""

    def _ran(n_kernels: int = 2, n_waits: int = 0) -> None:
        entries = [BeginStep(), *[KERNEL] * n_kernels, *[COPY] * n_waits, Sync("synchronize"), EndRun()]
        told = {"tape": packed(Tape("it", entries, [None])), "gave": None}
        monkeypatch.setattr(coded, "run_learner", lambda *_, **__: LearnerRun((told,)))

    _ran()
    return _ran


@pytest.fixture
def code(tmp_path):
    path = tmp_path / "my.py"
    path.write_text(CODE)
    return str(path)


@pytest.fixture
def seen():
    """The learner has opened the lesson, and its run has ended."""
    keep_case(Store(), EXERCISES[0], CASE)


def test_full_marks_are_status_0(called, ran, code):
    status, out, _ = called("check", "3.2", code)

    assert status == 0
    assert "Right. Looked at. 10 of 10 marks." in out


def test_less_is_status_1_and_its_part_of_the_marks(called, ran, code):
    ran(n_waits=3)
    status, out, _ = called("check", "3.2", code)

    assert status == 1
    assert "In part. Looked at. 2.5 of 10 marks." in out


def test_what_the_code_launched_is_counted_before_the_verdict(called, ran, code):
    ran(n_kernels=7, n_waits=3)
    _, out, _ = called("check", "3.2", code)
    line = next(line for line in out.splitlines() if "your code" in line)

    assert line.split()[2:5] == ["7", "3", "3"]
    assert out.index(line) < out.index("In part.")


def test_launches_that_cannot_be_priced_are_told_as_not_known(called, ran, code, monkeypatch):
    def refuse(*_):
        raise ValueError

    monkeypatch.setattr(coded.Launched, "on", refuse)
    _, out, _ = called("check", "3.2", code)

    assert re.search(r"your code +not known +0 +0", out)


def test_each_check_is_listed_with_its_share(called, ran, code):
    ran(n_waits=3)
    _, out, _ = called("check", "3.2", code)

    assert re.search(r"yes +it runs +25 of 100", out)
    assert re.search(r"no +it never waits +75 of 100", out)


def test_numbers_stand_beside_ours(called, ran, code):
    _, out, _ = called("check", "3.2", code)

    assert re.search(r"^ *2 +5 +4", out, re.MULTILINE)


def test_the_code_as_it_began_is_shown_on_request(called, ran, code):
    assert "as it began" in called("check", "3.2", code, "--start")[1]
    assert "as it began" not in called("check", "3.2", code)[1]


def test_the_hint_is_the_judges_and_comes_on_request(called, ran, code):
    ran(n_waits=3)

    assert "Hint" not in called("check", "3.2", code)[1]
    assert re.search(r"Hint 2 of 2\s+Two\.", called("check", "3.2", code, "--hint")[1])


def test_code_that_fails_is_a_sentence_without_what_a_terminal_obeys(called, monkeypatch, code):
    monkeypatch.setattr(coded, "run_learner", lambda *_, **__: LearnerRun(None, "Line 2: \x1b[2Jboo [red]\nx"))
    status, out, _ = called("check", "3.2", code)

    assert status == 1
    assert "Not yet. Line 2: ?[2Jboo [red] x" in out


def test_untouched_code_is_not_answered(called, tmp_path):
    (tmp_path / "my.py").write_text(EXERCISES[1].starter)
    status, out, _ = called("check", "3.2", str(tmp_path / "my.py"))

    assert status == 1
    assert "Not answered." in out


def test_a_right_number_is_told_beside_ours(called, seen):
    status, out, _ = called("check", "3.1", "--answer", "1234")

    assert status == 0
    assert "You answered 1234 kernels; ours is 1234." in out


def test_a_wrong_number_does_not_give_the_right_one_away(called, seen):
    status, out, _ = called("check", "3.1", "--answer", "17", "--hint")

    assert status == 1
    assert "1234" not in out


def test_nor_does_its_json(called, seen):
    out = called("check", "3.1", "--answer", "17", "--json")[1]

    assert json.loads(out)["ours"] is None
    assert "1234" not in out


def test_a_number_may_stand_in_a_file_and_begin_with_a_zero(called, seen, tmp_path):
    (tmp_path / "my.txt").write_bytes(b"\xef\xbb\xbf1,234 kernels\r\n")

    assert called("check", "03.1", str(tmp_path / "my.txt"))[0] == 0


@pytest.mark.parametrize("answer", ["the card", "The Card ", "2"])
def test_a_choice_is_named_or_counted(called, answer):
    assert called("check", "3.3", "--answer", answer)[0] == 0


def test_another_choice_is_misuse_and_lists_them(called):
    status, _, err = called("check", "3.3", "--answer", "the bus")

    assert status == 2
    assert "1: the host; 2: the card" in err


def test_an_exercise_on_ones_own_run_says_which_lesson_to_open(called):
    status, _, err = called("check", "3.1", "--answer", "5")

    assert status == 2
    assert "none is kept here; open lesson 3 with gpututor lessons" in err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("3.2",), "give one answer to exercise 3.2: a file"),
        (("3.2", "--answer", "x"), "asks for code; put it into a file"),
        (("3.2", "no such file.py"), "does not exist"),
        ((), "name an exercise"),
    ],
    ids=["nothing", "code on the command line", "no file", "no number"],
)
def test_misuse_is_status_2_and_a_sentence(called, arguments, says):
    status, out, err = called("check", *arguments)

    assert (status, out) == (2, "")
    assert says in err


@pytest.mark.parametrize(
    ("raw", "says"), [(b"\xff\xfe", "is not UTF-8 text"), (b"#" * (2**18 + 1), "is larger than 256 KiB")]
)
def test_a_file_that_is_no_answer_is_misuse(called, tmp_path, raw, says):
    (tmp_path / "my.py").write_bytes(raw)
    status, _, err = called("check", "3.2", str(tmp_path / "my.py"))

    assert status == 2
    assert says in err


def test_a_case_that_does_not_fit_is_a_sentence(called):
    keep_case(Store(), EXERCISES[0], {"words": {"what": "kernels"}})
    status, _, err = called("check", "3.1", "--answer", "5")

    assert status == 2
    assert "exercise 3.1 could not be judged (KeyError: 'right'); open lesson 3" in err


def test_the_verdict_is_kept_for_the_page(called, seen):
    called("check", "3.1", "--answer", "1234")
    kept = kept_judged(Store(), EXERCISES[0])

    assert (kept.given.answer, kept.given.case, kept.judged.text) == ("1234", CASE, "So it is.")


def test_each_learner_has_a_progress_of_their_own(called, seen):
    assert called("check", "3.1", "--answer", "1234", "--learner", "ann")[0] == 2


def test_the_list_says_what_was_earned_and_what_to_open(called, ran, code):
    ran(n_waits=1)
    called("check", "3.2", code)
    rows = json.loads(called("check", "--list", "--json")[1])

    assert [(row["exercise"], row["state"], row["earned"], row["needs_lesson"]) for row in rows] == [
        ("3.1", "not answered", None, 3),
        ("3.2", "partial", 2.5, None),
        ("3.3", "not answered", None, None),
    ]


def test_the_list_knows_an_answer_that_was_changed_since(called, seen):
    called("check", "3.1", "--answer", "1234")
    keep_given(Store(), EXERCISES[0], "1235", CASE)

    assert json.loads(called("check", "--list", "--json")[1])[0]["state"] == "not checked"


def test_the_printed_list_has_the_sum(called, seen):
    called("check", "3.1", "--answer", "1234")
    status, out, _ = called("check", "--list")

    assert status == 0
    assert "10 of 30 marks." in out


def test_the_task_is_printed_with_its_gaps_filled(called, seen):
    status, out, _ = called("check", "3.1", "--task")

    assert status == 0
    assert "How many kernels?" in out


def test_the_json_has_the_fields_that_the_help_names(called, ran, code):
    ran(n_waits=1)
    data = json.loads(called("check", "3.2", code, "--hint", "--start", "--json")[1])
    words = set(re.findall(r"\w+", called("check", "--help")[1]))
    row = json.loads(called("check", "--list", "--json")[1])[0]

    assert {*data, *data["calls"][0], *data["checks"][0], *data["hint"], *row} <= words


# --- submit ------------------------------------------------------------------------------------------------------


@pytest.fixture
def answered():
    keep_given(Store(), exercise("3.1"), "224", {"small": 16})


def test_answers_are_saved_under_id_and_name(called, answered, tmp_path):
    status, out, _ = called("submit", "--out", str(tmp_path / "a.json"), "--learner", "s123", "--name", "Ann")
    saved = read(tmp_path / "a.json")

    assert status == 0
    assert "1 answer given without a name saved in" in out
    assert (saved.learner_id, saved.learner_name, saved.answers["3.1"].answer) == ("s123", "Ann", "224")


def test_answers_kept_under_the_id_come_first(called, answered, tmp_path):
    keep_given(Store("s123"), exercise("3.1"), "7", {})
    called("submit", "--out", str(tmp_path / "a.json"), "--learner", "s123")

    assert read(tmp_path / "a.json").answers["3.1"].answer == "7"


def test_an_older_submission_is_replaced(called, answered, tmp_path):
    called("submit", "--out", str(tmp_path / "a.json"))
    keep_given(Store(), exercise("3.1"), "225", {})
    called("submit", "--out", str(tmp_path / "a.json"))

    assert read(tmp_path / "a.json").answers["3.1"].answer == "225"


def test_another_file_is_not(called, answered, code):
    status, _, err = called("submit", "--out", code)

    assert status == 2
    assert "is there already and is no submission" in err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--out", "no such folder/a.json"), "there is no folder"),
        (("--out", "a.json", "--name", "n" * 201), "200 characters at most"),
    ],
)
def test_what_cannot_be_saved_is_status_2(called, answered, arguments, says):
    status, _, err = called("submit", *arguments)

    assert status == 2
    assert says in err


def test_without_answers_there_is_nothing_to_submit(called, tmp_path):
    status, _, err = called("submit", "--out", str(tmp_path / "a.json"))

    assert status == 2
    assert "so there is nothing to save" in err
