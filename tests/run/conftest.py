"""Runs a script that a test writes down under `gpututor run`, as a reader would."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Run:
    """What came of it: exit status, the script's output, its errors, and the report's JSON."""

    status: int
    out: str
    err: str
    report: dict[str, Any]


@pytest.fixture
def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


@pytest.fixture
def script(tmp_path):
    """Write a script; gives its path."""

    def write(source: str, name: str = "train.py") -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(dedent(source), encoding="utf-8")
        return path

    return write


def hears_ctrl_c() -> None:
    """A shell starts what it runs in the background deaf to Ctrl-C, and its children inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture
def command(environment, tmp_path):
    """Start `gpututor run` with these words in the test's folder."""

    def start(*words: str, **how: Any) -> subprocess.Popen[str]:
        if sys.platform != "win32":
            how.setdefault("preexec_fn", hears_ctrl_c)
        return subprocess.Popen(
            [sys.executable, "-m", "gpututor", "run", *words],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **how,
        )

    return start


@pytest.fixture
def run(script, command):
    """Run a script's source with options before it and arguments behind it."""

    def _run(source: str, *options: str, arguments: tuple[str, ...] = ()) -> Run:
        script(source)
        process = command("--gpu", "A100-SXM4-80GB", "--json", *options, "train.py", *arguments)
        out, err = process.communicate(timeout=120)
        report = json.loads(out) if out.startswith("{") else {}
        return Run(process.returncode, out, err, report)

    return _run


LOOP = """
    import torch

    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Dropout(0.5), torch.nn.Linear(16, 1)).to(device)
    optimizer = torch.optim.AdamW(model.parameters())


    def step():
        loss = model(torch.randn(4, 8).to(device)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()
"""
"""The head of most scripts: a small model for CUDA where there is one, and one step of its training."""


@pytest.fixture
def loop():
    """`LOOP` with lines that go on from it."""

    def with_lines(lines: str) -> str:
        return dedent(LOOP) + dedent(lines)

    return with_lines
