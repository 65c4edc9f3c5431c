"""A learner's function, run apart: values or one sentence, whatever the code does."""

from __future__ import annotations

import os
import time

import pytest

from gpututor.lab.learner_code import run_learner
from gpututor.lab.limits import PRINTED_BYTES


def run(body, calls=((),), **limits):
    """Run `def f(*x)` with this body."""
    code = "def f(*x):\n" + "\n".join("    " + line for line in body.splitlines())
    return run_learner(code, "f", calls, **limits)


def test_each_call_gives_a_value():
    assert run("return x[0] * 2", [[1], [2], [3]]).values == (2, 4, 6)


def test_a_right_answer_comes_without_a_sentence():
    assert run("return 1").sentence is None


def test_arguments_are_each_calls_own():
    assert run("x[0].append(1)\nreturn len(x[0])", [[[]], [[]]]).values == (1, 1)


def test_an_unanswered_stub_is_none():
    assert run("return ...").values == (None,)


def test_an_array_comes_back_as_a_list():
    assert run("import numpy\nreturn numpy.arange(3)").values == ([0, 1, 2],)


def test_a_dataclass_can_be_used():
    code = "from __future__ import annotations\nfrom dataclasses import dataclass\n@dataclass\nclass A:\n    n: int\n"

    assert run_learner(code + "def f():\n    return A(3).n", "f").values == (3,)


def test_the_package_can_be_imported():
    assert run("from gpututor.text import percent\nreturn percent(1.0)").values == ("100\u00a0%",)


def test_prints_are_kept():
    assert run("print('hello')").printed == "hello\n"


def test_a_forged_answer_on_standard_output_changes_nothing():
    assert run("""print('{"values": [42]}')\nreturn 1""").values == (1,)


def test_a_name_error_names_line_and_name():
    assert run("y = 1\nreturn z").sentence == "Line 3 (return z): NameError: name 'z' is not defined"


def test_the_line_of_an_error_is_known():
    assert run("y = 1\nreturn z").line == 3


def test_a_syntax_error_names_its_line():
    answer = run_learner("def f(x)\n    return 1", "f")

    assert answer.line == 1
    assert answer.sentence == "Line 1 (def f(x)): SyntaxError: expected ':'"


def test_the_deepest_line_of_the_learners_own_is_named():
    assert run("import json\nreturn json.loads('x')").line == 3


def test_an_error_outside_a_function_names_its_line():
    assert run_learner("a = 1\nb = a / 0\ndef f():\n    return b", "f").line == 2


def test_too_few_parameters_are_told():
    assert run_learner("def f():\n    return 1", "f", [[1]]).sentence.startswith("Calling your function: TypeError")


def test_a_missing_function_is_named():
    assert "no function called f;" in run_learner("def g():\n    return 1", "f").sentence


def test_an_endless_loop_is_stopped():
    assert run("while True:\n    pass", timeout_s=0.5).sentence == (
        "Your code still ran after 0.5 s, so it was stopped; is there a loop without an end?"
    )


def test_an_endless_loop_takes_no_longer_than_allowed():
    began_s = time.monotonic()
    run("while True:\n    pass", timeout_s=0.5)

    assert time.monotonic() - began_s < 2  # half a second, a look, and the end of the process


def test_sleeping_for_ever_is_stopped():
    assert "still ran" in run("import time\ntime.sleep(100)", timeout_s=0.3).sentence


def test_sys_exit_is_one_sentence():
    assert "called sys.exit" in run("import sys\nsys.exit(0)").sentence


def test_os_exit_is_one_sentence():
    assert run("import os\nos._exit(0)").sentence == (
        "Your code ended its own process (exit code 0) before it gave an answer."
    )


def test_a_crash_is_one_sentence():
    assert "signal 11, segmentation fault" in run("import faulthandler\nfaulthandler._sigsegv()").sentence


def test_endless_printing_is_stopped():
    assert "printed more than 1 MiB" in run("while True:\n    print('x' * 1000)").sentence


def test_what_is_kept_of_the_prints_is_bounded():
    assert len(run("print('x' * 500_000)").printed) == PRINTED_BYTES


def test_an_answer_without_measure_is_stopped():
    assert "gave back more than 4 MiB" in run("return 'x' * 10_000_000").sentence


def test_a_huge_allocation_is_one_sentence_with_its_line():
    answer = run("return len(bytearray(10**10))")

    assert answer.sentence == (
        "Line 2 (return len(bytearray(10**10))): Your code asked for more memory than the 1,024 MiB it may have; "
        "does a list grow without an end?"
    )


def test_a_list_that_grows_is_one_sentence():
    assert (
        "more memory than the 100 MiB" in run("a = []\nwhile True:\n    a.append(bytes(2**20))", memory_mb=100).sentence
    )


def test_endless_recursion_is_one_sentence():
    assert (
        run("return f()").sentence == "Line 2 (return f()): your function calls itself without an end (RecursionError)."
    )


def test_a_value_that_is_no_data_is_one_sentence():
    assert run("return {1, 2}").sentence == "Your function gave back a set; give back a number, a text or a list."


def test_many_processes_are_stopped():
    body = "import subprocess, sys, time\nfor _ in range(40):\n    subprocess.Popen(['sleep', '60'])\ntime.sleep(60)"

    assert "more than 16 processes" in run(body).sentence


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_process_that_the_code_started_ends_with_it(gone):
    pid = run("import subprocess\nreturn subprocess.Popen(['sleep', '60']).pid").values[0]

    assert gone(pid)


def test_the_folder_is_empty():
    assert run("import os\nreturn os.listdir()").values == ([],)


def test_the_environment_carries_nothing_private(monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "s3cret")

    assert run("import os\nreturn os.environ.get('SECRET_TOKEN')").values == (None,)


def test_standard_input_is_empty():
    assert run("return input()").sentence.startswith("Line 2 (return input()): EOFError")


def test_a_forged_answer_with_a_wrong_shape_is_one_sentence():
    forged = "import os, sys\nos.write(int(sys.argv[1]), b'{\"values\": 3}')\nos._exit(0)"

    assert "before it gave an answer" in run(forged).sentence


def test_html_in_a_message_stays_text():
    assert "<b>" in run("raise ValueError('<b>')").sentence


def test_an_error_while_handing_back_is_one_sentence():
    body = "class A:\n    def tolist(self):\n        raise OSError('no')\nreturn A()"

    assert "OSError: no" in run(body).sentence
