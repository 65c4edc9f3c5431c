"""A tape that was saved is the same tape: graphs, clock and all."""

from __future__ import annotations

import json

import pytest

from gpututor.cards import machine
from gpututor.errors import TimelineError
from gpututor.model import tape_file
from gpututor.model.kernels import Stream
from gpututor.model.spec import HostKind
from gpututor.model.tape import CopyCall, GraphReplay, HostWork, Tape, TapeOp
from gpututor.timeline import Activity

ADD = TapeOp("add", HostKind.LIGHT, "forward", (Stream("add", 1200, 100),))
COPY = CopyCall("copy to the GPU", True, 4096, True, False)
GRAPH = GraphReplay(3, (ADD, COPY, ADD))


def again(tape):
    return tape_file.from_bytes(tape_file.to_bytes(tape))


def test_a_graph_is_written_once_however_often_it_is_replayed():
    tape = Tape("graph", [GRAPH] * 100)
    document = json.loads(tape_file.to_bytes(tape))

    assert len(document["graphs"]) == 1
    assert document["entries"] == [["replay", 0]] * 100


def test_replays_come_back_as_one_graph_with_its_ops_and_copies():
    tape = again(Tape("graph", [ADD, GRAPH, GRAPH]))

    assert tape.entries == [ADD, GRAPH, GRAPH]
    assert tape.entries[1] is tape.entries[2]


def test_a_paced_tape_stays_paced_and_says_so_in_its_label():
    tape = again(Tape("paced", [HostWork(Activity.PYTHON, "Python", 500), ADD], clock="paced"))

    assert tape.clock == "paced"
    assert "real time" in tape.price(machine("p3.2xlarge")).label.host


def test_a_part_of_a_paced_tape_is_paced():
    from gpututor.model.tape import BeginStep

    assert Tape("paced", [BeginStep(), ADD, BeginStep(), ADD], clock="paced").steps(0, 1).clock == "paced"


def test_an_older_file_has_no_graphs_and_a_virtual_clock():
    document = json.loads(tape_file.to_bytes(Tape("old", [ADD])))
    del document["graphs"], document["clock"]
    tape = tape_file.from_bytes(json.dumps(document).encode())

    assert (tape.entries, tape.clock) == ([ADD], "virtual")


def test_a_clock_of_another_kind_is_damage():
    document = json.loads(tape_file.to_bytes(Tape("odd", [ADD])))
    document["clock"] = "sundial"

    with pytest.raises(TimelineError, match=r"damaged.*sundial"):
        tape_file.from_bytes(json.dumps(document).encode())


def test_a_replay_is_priced_as_one_launch():
    timeline = Tape("graph", [GRAPH]).price(machine("p3.2xlarge"))

    assert sum(1 for _ in timeline.on(Activity.LAUNCH)) == 1
    assert sum(1 for _ in timeline.on(Activity.KERNEL)) == 2
    assert sum(1 for _ in timeline.on(Activity.COPY_TO_GPU)) == 1
