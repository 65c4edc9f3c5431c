"""`gpututor explain`: somebody's own torch.profiler trace, in words."""

from __future__ import annotations

import json as json_module
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from gpututor.errors import GpututorError, TimelineError

if TYPE_CHECKING:
    from gpututor.explain import Explained
    from gpututor.explain.ranks import Ranks

REFUSED = 2


class OneTrace(GpututorError, ValueError):
    """A wish that needs one trace, where there are several."""


@click.command("explain")
@click.argument("trace", type=click.Path(path_type=Path))
@click.option("--device", type=click.IntRange(0), help="The GPU to explain; the one with most kernels if left out.")
@click.option("--diff", type=click.Path(path_type=Path), help="The same job's trace after a change.")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON; a refusal too, in its entry “refused”.")
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), help="Write the report as one HTML file.")
def explain_command(trace: Path, device: int | None, diff: Path | None, as_json: bool, html: Path | None) -> int:
    """Say why the GPU of a trace waits, what that costs, and what to change.

    TRACE is a file of torch.profiler (`prof.export_chrome_trace(path)`, .json or .json.gz, CUDA or ROCm), or a folder
    with one for each rank. The exit status is 2 where it can't be explained.
    """
    from gpututor.explain.ranks import across, traces_in

    if html is not None and not html.absolute().parent.is_dir():
        raise TimelineError(f"{html} can't be written: there is no folder {html.absolute().parent}; make it first")
    if diff is not None and (trace.is_dir() or diff.is_dir()):
        raise OneTrace("--diff compares one trace with one other; name two files")
    files = traces_in(trace) if trace.is_dir() else [trace, *([diff] if diff else [])]
    explained, refused = _all(files, device, several=len(files) > 1 and diff is None, quiet=as_json)
    if refused and (not explained or diff is not None):
        name, sentence = refused[0]
        if not as_json:
            raise TimelineError(sentence)
        from gpututor.explain.report_json import refused as document

        click.echo(json_module.dumps(document(name, sentence), indent=2))
        return REFUSED
    if diff is not None:
        _show_change(explained, as_json, html)
    elif trace.is_dir():
        _show_ranks(across(explained), refused, as_json, html)
    else:
        _show_one(explained[0], as_json, html)
    return 0


def _all(
    files: Sequence[Path], device: int | None, *, several: bool, quiet: bool
) -> tuple[list[Explained], list[tuple[str, str]]]:
    """Every trace explained; names of those that can't be, each with a sentence."""
    from rich.progress import Progress

    from gpututor.explain import explain

    explained, refused = [], []
    with Progress(console=Console(stderr=True), transient=True, disable=quiet or not several) as bar:
        for file in bar.track(files, description="traces"):
            try:
                explained.append(explain(file, device=device))
            except TimelineError as error:
                refused.append((file.name, str(error)))
    return explained, refused


def _show_one(one: Explained, as_json: bool, html: Path | None) -> None:
    from gpututor.explain.report_json import document

    if as_json:
        click.echo(json_module.dumps(document(one), indent=2))
    else:
        from gpututor.explain.report import show
        from gpututor.run.report import console

        show(one, console())
    _write(html, [one], (), as_json)


def _show_change(both: Sequence[Explained], as_json: bool, html: Path | None) -> None:
    from gpututor.explain import compare
    from gpututor.run.report import console

    comparison = compare.Comparison(*both)
    if as_json:
        click.echo(json_module.dumps(compare.as_data(comparison), indent=2))
    else:
        compare.show(comparison, console())
    _write(html, both, tuple(comparison.sentences()), as_json)


def _show_ranks(ranks: Ranks, refused: Sequence[tuple[str, str]], as_json: bool, html: Path | None) -> None:
    from gpututor.explain import report_json
    from gpututor.explain.ranks import as_data, sentences
    from gpututor.explain.report import show
    from gpututor.run.report import console

    if as_json:
        documents: list[dict[str, Any]] = [report_json.document(one) for one in ranks.explained]
        documents += [report_json.refused(*each) for each in refused]
        told = {"format": report_json.FORMAT, "version": report_json.VERSION, "across": as_data(ranks)}
        click.echo(json_module.dumps(told | {"ranks": documents}, indent=2))
    else:
        where = console()
        for one in ranks.explained:
            show(one, where)
        for _, sentence in refused:
            where.print(f"\n{sentence}", markup=False)
        where.print("\nAll together", style="bold")
        for sentence in sentences(ranks):
            where.print(sentence, markup=False)
    _write(html, ranks.explained, tuple(sentences(ranks)), as_json)


def _write(html: Path | None, several: Sequence[Explained], preface: Sequence[str], as_json: bool) -> None:
    if html is None:
        return
    from gpututor.explain.report_html import page

    html.write_text(page(several, preface), encoding="utf-8")
    click.echo(f"The report is in {html}.", err=as_json)
