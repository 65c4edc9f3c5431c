"""What the README shows works as shown, and every public name explains itself."""

from __future__ import annotations

import contextlib
import inspect
import io
import re
from pathlib import Path

import pytest
import torch

import gpututor

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def printed() -> list[str]:
    """The lines that the README's example prints where there is no GPU."""
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out):
        patch.setattr(torch.cuda, "is_available", lambda: False)
        exec(compile(BLOCKS[0], "README.md", "exec"), {"__name__": "readme"})
    return out.getvalue().replace("\N{NO-BREAK SPACE}", " ").splitlines()


def share(line: str) -> float:
    """The percentage at the end of a line, as a share."""
    return float(re.search(r"([\d.]+) %$", line)[1]) / 100


def test_there_is_one_example():
    assert len(BLOCKS) == 1


def test_the_example_says_first_what_is_simulated(printed):
    assert printed[0].startswith("Simulated V100-SXM2-16GB · p3.2xlarge")


def test_the_example_prints_a_ledger_from_wall_time_to_mfu(printed):
    gauges = [line.split("  ")[0] for line in printed[1:] if re.match(r"(wall time|busy|SM fill|MFU) ", line)]

    assert gauges == ["wall time", "busy", "SM fill", "MFU"]


def test_what_the_example_loses_before_busy_adds_up(printed):
    busy = next(k for k, line in enumerate(printed) if line.startswith("busy"))

    assert 1 - sum(share(line) for line in printed[2:busy]) == pytest.approx(share(printed[busy]), abs=0.01)


def test_the_example_names_the_cause_that_the_readme_tells(printed):
    assert any(line.startswith("The GPU waits for the host to launch its next kernel") for line in printed)


def test_the_example_is_about_as_busy_as_the_readme_says(printed):
    assert "the card is about a tenth busy" in " ".join(README.split())
    assert share(next(line for line in printed if line.startswith("busy"))) == pytest.approx(0.1, abs=0.03)


@pytest.mark.parametrize("name", [name for name in gpututor.__all__ if name != "__version__"])
def test_every_public_name_has_a_docstring_of_its_own(name):
    said = inspect.getdoc(getattr(gpututor, name))

    assert said
    assert not said.startswith(f"{name}(")  # what a dataclass without one gets


def test_every_command_of_the_readme_exists():
    from gpututor.cli import COMMANDS

    assert set(re.findall(r"`gpututor ([a-z]+)", README)) <= set(COMMANDS)
