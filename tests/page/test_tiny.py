"""What the page of lesson 10 says: its sentences follow the numbers, whichever way a machine turns them."""

from __future__ import annotations

import re

import pytest

from gpututor.cards import DEFAULT_MACHINE, machine
from gpututor.experiments.per_op import HostSplit
from gpututor.experiments.tiny_kernels import CROWDS, SIZES
from gpututor.experiments.ways import Way
from gpututor.page.kept import Kept
from gpututor.page.lessons.tiny import SMOOTH, Tiny, tiny_of
from gpututor.page.lessons.tiny_tables import (
    crowds_table,
    learned_table,
    once_table,
    question_picture,
    sizes_table,
    split_table,
    table,
)

MS = 1e6


def split(
    step: float, *, host: float = 10.0, card: float = 5.0, python: float = 0.0, once: float = 0.0, n: int = 2
) -> HostSplit:
    """A mean step, in milliseconds, of ten kernels; autograd and the driver each have a quarter of the host's work."""
    quarter = host / 4 * MS
    framework = host * MS - 2 * quarter - python * MS
    return HostSplit(step * MS, python * MS, framework, quarter, quarter, once * MS, card * MS, 10.0, n)


def found(**steps: HostSplit) -> Tiny:
    keyed = {key.replace("_", "-"): each for key, each in steps.items()}
    labels = {key: f"the way of {key}" for key in keyed}
    losses = {key: tuple(1.0 / (k + 1) for k in range(2 * SMOOTH)) for key in keyed}
    return Tiny(machine(DEFAULT_MACHINE), keyed, labels, losses, dict.fromkeys(keyed, 0.5))


def steps_at(batch: int, eager: float, script: float, compiled: float, graph: float, both: float, **how: float):
    times = dict(zip(Way, (eager, script, compiled, graph, both), strict=True))
    return {f"{way.key}_{batch}": split(ms, **how) for way, ms in times.items()}


TWO = {**steps_at(1, 40, 38, 30, 10, 10), **steps_at(16, 80, 80, 70, 80, 70, card=78.0)}


def texts(html: str) -> list[str]:
    return [re.sub(r"<[^>]+>", "|", row) for row in html.split("<tr")[1:]]


def test_a_batch_counts_once_every_way_was_run():
    some = {key: each for key, each in TWO.items() if key != "both_16"}

    assert found(**TWO).batches == [1, 16]
    assert found(**some).batches == [1]


def test_each_way_helps_until_it_is_less_than_a_twentieth_faster():
    said = found(**TWO).until_said

    assert "TorchScript up to 1;" in said
    assert "one graph up to 1;" in said
    assert said.endswith("compiled, in graphs up to 16 and beyond")


def test_a_way_that_helps_nowhere_is_said_to():
    busy = {**steps_at(1, 40, 40, 40, 40, 40), **steps_at(16, 80, 80, 80, 80, 80)}

    assert found(**busy).until_said.count("nowhere") == 4


def test_on_a_busy_card_compiled_code_gains_by_memory():
    assert "fewer trips to memory" in found(**TWO).fused_said


def test_where_compiled_code_gains_nothing_either_that_is_said():
    none = {**steps_at(1, 40, 38, 30, 10, 10), **steps_at(16, 80, 80, 80, 80, 80)}

    assert "none of them helps" in found(**none).fused_said


def test_where_even_the_largest_batch_leaves_a_graph_something_the_card_still_waits():
    waits = {**steps_at(1, 40, 38, 30, 10, 10), **steps_at(16, 80, 80, 60, 60, 50)}

    assert "still waits" in found(**waits).fused_said


def test_torchscript_that_saves_nothing_is_said_to():
    assert "changes nothing" in found(**steps_at(1, 40, 40, 40, 40, 40)).script_said
    assert "5.0\u00a0% shorter" in found(**TWO).script_said


def test_it_has_paid_after_what_was_spent_by_what_is_saved():
    # five steps of 130 ms instead of 30: 500 ms once; 10 ms saved a step
    tiny = found(**TWO, first_compiled=split(130, n=5))

    assert tiny.once_ns(Way.COMPILED) == pytest.approx(500 * MS)
    assert tiny.paid_after(Way.COMPILED, 1) == pytest.approx(50)


def test_what_saves_nothing_never_pays():
    tiny = found(**steps_at(1, 40, 40, 40, 40, 40), first_compiled=split(130, n=5))

    assert tiny.paid_after(Way.COMPILED, 1) is None
    assert "never" in once_table(tiny, 1, 1000)


def test_first_steps_that_were_not_run_are_not_made_up():
    assert found(**TWO).once_ns(Way.COMPILED) is None
    assert "not run" in once_table(found(**TWO), 1, 1000)


def test_the_table_of_costs_prices_the_samples():
    # 90,000 pictures, one a step of 40 ms: an hour at $3.06
    rows = texts(once_table(found(**TWO), 1, 90_000))

    assert "$3.06" in next(row for row in rows if "as it is" in row)


def test_the_parts_of_the_longest_bar_fill_it():
    html = split_table(found(**steps_at(1, 40, 38, 30, 10, 10, python=1.0)), 1)
    widths = [float(each) for each in re.findall(r"width:([\d.]+)%;min-width:0", html.split("</tr>")[1])]

    assert sum(widths) == pytest.approx(100, abs=0.1)
    assert len(widths) == 4


def test_losses_that_agree_are_said_to():
    tiny = found(learned_eager=split(5), learned_graph=split(1))

    assert "to the last digit" in tiny.same_loss_said


def test_losses_that_differ_are_said_to_with_how_much():
    tiny = found(learned_eager=split(5), learned_graph=split(1))
    other = {**tiny.losses, "learned-graph": tuple(loss * 1.001 for loss in tiny.losses["learned-eager"])}

    assert "differ by 0.001" in Tiny(tiny.machine, tiny.steps, tiny.labels, other, tiny.held_out).same_loss_said


def test_a_faster_way_has_the_same_losses_sooner():
    lines = found(learned_eager=split(5), learned_graph=split(1)).learned_lines()
    (late, _), (soon, _) = lines["as it is"][-1], lines["one graph"][-1]

    assert soon == pytest.approx(late / 5)
    assert [loss for _, loss in lines["as it is"]] == [loss for _, loss in lines["one graph"]]


def test_torchscript_on_the_small_network_is_told_either_way():
    assert "no faster" in found(learned_eager=split(5), learned_script=split(5.1)).small_said
    assert "spares" in found(learned_eager=split(5), learned_script=split(4)).small_said


@pytest.mark.parametrize(("many", "said"), [(5.5, "the others are free"), (50.0, "10.0 times as long")])
def test_more_molecules_are_free_until_they_are_not(many, said):
    few, middle, most = (f"crowd_{n}" for n in CROWDS)
    tiny = found(**{few: split(5), middle: split(5), most: split(many)})

    assert said in tiny.crowd_said
    assert len(texts(crowds_table(tiny))) == 1 + len(CROWDS)


def test_what_sizes_cost_a_compiler_is_told_against_the_least():
    modes = {"fixed": 8000.0, "auto": 2000.0, "open": 1000.0, "padded": 1000.0}
    tiny = found(**{f"ragged_{mode}": split(1, once=ms / len(SIZES), n=len(SIZES)) for mode, ms in modes.items()})

    assert "8 times as long" in tiny.compiled_anew_said
    assert re.findall(r"</span>(\d)</td>", sizes_table(tiny)) == ["8", "2", "1", "1"]


def test_threads_stand_beside_the_same_ratio_from_the_run():
    tiny = found(
        **TWO,
        adam_eager_1=split(30),
        adam_graph_1=split(15),
        **{f"crowd_{n}": split(10, card=2.6) for n in CROWDS},
    )
    ours = {theirs.name: ratio for theirs, ratio in tiny.threads()}

    assert ours["eager to graph, batch 1"] == pytest.approx(2)
    assert ours["eager to graph, batch 8"] is None
    assert ours["eager to TorchScript"] == pytest.approx(40 / 38)
    assert ours["busy, pictures to molecules"] == pytest.approx(78 / 80 / 0.26)


def test_the_table_of_losses_has_a_line_for_each_way_that_was_run():
    assert len(texts(learned_table(found(learned_eager=split(5), learned_graph=split(1))))) == 3


def test_the_question_is_told_to_who_cannot_see_it():
    assert 'aria-label="Ops one after the other' in question_picture()


def test_a_cell_tells_its_title_where_the_page_is_narrow():
    assert '<span class="gt-only-narrow">One step</span>5</td>' in table("", ("One step",), [("a", ("5",))])


def test_before_a_run_there_is_nothing():
    assert tiny_of(Kept({}), machine(DEFAULT_MACHINE)).batches == []
