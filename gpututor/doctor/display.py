"""The doctor's report in a terminal or a pipe: what passes as it comes, then what doesn't, the worst last."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.text import Text

from gpututor.doctor.examination import Examination, headline, in_order
from gpututor.doctor.finding import Finding, State

TITLE_WIDTH = 26  # of the longest title
# The marks differ in shape, and the word stands beside them, so that no colour is needed to tell them apart.
_MARKS = {State.PASS: "✓", State.CANNOT_TELL: "?", State.WARN: "!", State.FAIL: "✗"}
_ASCII_MARKS = {State.PASS: "+", State.CANNOT_TELL: "?", State.WARN: "!", State.FAIL: "x"}
_STYLES = {State.PASS: "blue", State.CANNOT_TELL: "bold", State.WARN: "bold yellow", State.FAIL: "bold magenta"}
WIDTH_WITHOUT_TERMINAL = 120
_COMMANDS = ("pip ", "export ", "unset ", "ulimit ", "numactl ", "cp ", "du ")
"""How a remedy begins that is a command and nothing else."""


class Report:
    """Writes findings to a console, one state after the other."""

    def __init__(self, console: Console, *, verbose: bool = False) -> None:
        self._console, self._verbose = console, verbose
        unicode = (console.encoding or "").lower().startswith("utf")
        self._marks = _MARKS if unicode else _ASCII_MARKS

    def begin(self) -> None:
        """The first line, before anything is known."""
        self._console.print("Looking at this machine; nothing is changed.", style="dim")
        self._heading(State.PASS)

    def passed(self, finding: Finding) -> None:
        """One line for a check that found nothing to do."""
        self._hanging(Text(f"  {finding.title:<{TITLE_WIDTH}}  "), Text(finding.words, style="dim"))
        if self._verbose:
            self._details(finding)

    def rest(self, findings: Iterable[Finding]) -> None:
        """Everything that did not pass, the worst last, since that is where the eye is when a command ends."""
        findings = list(findings)
        for state in (State.CANNOT_TELL, State.WARN, State.FAIL):
            group = [finding for finding in findings if finding.state is state]
            if group:
                self._console.print()
                self._heading(state)
            for finding in group:
                self._hanging(Text("  "), Text.assemble((finding.title, "bold"), f": {finding.words}"))
                self._details(finding)

    def end(self, headline: str, left_out: Iterable[str]) -> None:
        """What doesn't apply here, if that is asked for, and the last line."""
        left_out = list(left_out)
        if self._verbose and left_out:
            self._console.print()
            self._hanging(Text(), Text("Not asked, since it doesn't apply here: " + ", ".join(left_out), style="dim"))
        self._console.print()
        self._console.print(Text(headline, style="bold"))

    def _heading(self, state: State) -> None:
        self._console.print(Text(f"{self._marks[state]} {state.value}", style=_STYLES[state]))

    def _details(self, finding: Finding) -> None:
        lines = [("read", line, "dim") for line in finding.evidence]
        if finding.remedy is not None:
            lines.append(("do", finding.remedy, ""))
        if self._verbose:
            lines += [("see", source, "dim") for source in finding.sources]
            lines.append(("id", finding.id, "dim"))
        for name, line, style in lines:
            whole = name == "do" and line.startswith(_COMMANDS)
            self._hanging(Text(f"    {name:<5}", style="dim"), Text(line, style=style), whole=whole)

    def _hanging(self, lead: Text, text: Text, *, whole: bool = False) -> None:
        """Print `text` behind `lead`, further lines as far in; `whole` leaves it one line, to be copied."""
        room = self._console.width - lead.cell_len
        if whole or room < 20:
            self._console.print(lead + text, soft_wrap=True)
            return
        first, *others = text.wrap(self._console, room) or [Text()]
        first.rstrip()
        self._console.print(lead + first)
        for line in others:
            line.rstrip()
            self._console.print(Text(" " * lead.cell_len) + line)


def show(examination: Examination, console: Console, *, verbose: bool = False) -> list[Finding]:
    """Print an examination as it goes; its findings. On a terminal a line at the foot says what is waited for."""
    report = Report(console, verbose=verbose)
    report.begin()
    found: list[Finding] = []
    with console.status("looking around …") as status:
        examination.on_wait = lambda what: status.update(f"{what} …")
        for finding in examination.findings():
            found.append(finding)
            if finding.state is State.PASS:
                report.passed(finding)
                console.file.flush()
    report.rest(in_order(found))
    report.end(headline(examination.facts, found), examination.left_out)
    return found


def printed(examination: Examination, found: Sequence[Finding], width: int) -> tuple[str, str]:
    """What `show` printed of an examination that is over, on so many columns: what passes, and all that follows.

    `found` are its findings as they came.
    """
    paper = io.StringIO()
    report = Report(Console(file=paper, width=width, highlight=False, color_system=None))
    report.begin()
    for finding in found:
        if finding.state is State.PASS:
            report.passed(finding)
    report.rest(in_order(found))
    report.end(headline(examination.facts, found), examination.left_out)
    passes, _, rest = paper.getvalue().rstrip("\n").partition("\n\n")
    return passes, rest
