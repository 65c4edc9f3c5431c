"""Torch's own databases of operators, modules and optimizers against the CPU: a part of what tools/opdb.py tries.

In a process of its own: the databases ask torch at import what devices it has.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("expecttest", reason="torch's operator database imports it")
ROOT = Path(__file__).parents[2]


def told(*arguments: str) -> str:
    """What a tool prints; it may exit with 1 where something is wrong, which the test then shows."""
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-m", *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=ROOT, env=env, check=False)
    assert ran.returncode in (0, 1), ran.stderr[-2000:]
    return ran.stdout


@pytest.mark.parametrize(
    ("dtype", "arguments"),
    [("float32", ["--most", "1"]), ("bfloat16", ["--most", "2", "--every", "4"])],
)
def test_no_operator_is_wrong_and_nearly_all_are_equal(dtype, arguments):
    found = json.loads(told("tools.opdb", "--json", "--dtype", dtype, *arguments))
    wrong = [o["name"] for o in found["outcomes"] if o["verdict"] == "wrong"]
    tried = [o for o in found["outcomes"] if o["n_samples"]]

    assert wrong == []
    assert len(tried) > 100
    assert sum(o["verdict"] == "equal" for o in tried) >= 0.99 * len(tried)


def test_modules_and_optimizers_are_equal():
    lines = told("tools.moddb").splitlines()

    assert lines[:-1] == []
    assert int(lines[-1].split("'equal': ")[1].split(",")[0].rstrip("}")) > 120


def test_no_operator_that_works_is_priced_at_nothing():
    by = json.loads(told("tools.prices", "--json", "--most", "200"))

    assert "nothing" not in by
    assert sum(len(names) for how, names in by.items() if how.startswith("rule")) > 150
