"""Rosters and keys: who may come in, and what is refused."""

from __future__ import annotations

import os
import stat

import pytest

from gpututor.readers import Reader
from gpututor.workshop import keys as kept
from gpututor.workshop.keys import Holder, KeysRefused, Watched, issue, read
from gpututor.workshop.roster import Learner, RosterRefused, from_text

CLASS = (Learner("ann", "Ann"), Learner("bob", "Bob"))


@pytest.mark.parametrize(
    "text", ["id,name\nann,Ann\nbob,Bob\n", "Name;ID\nAnn;ann\nBob;bob\n", "\ufeffid\tname\nann\tAnn\nbob\tBob"]
)
def test_a_roster_may_come_from_any_spreadsheet(text):
    assert from_text(text.lstrip("\ufeff"), "roster.csv") == CLASS


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("id,nom\nann,Ann", 'no column "name"', id="a column is missing"),
        pytest.param("id,name\n,Ann", "line 2 of roster.csv has no id", id="no id"),
        pytest.param("id,name\nann,Ann\nANN,Anne", "line 3 .* a second time", id="the same id twice"),
        pytest.param("id,name\ninstructor,Ann", "keeps for itself", id="the instructor's id"),
        pytest.param("id,name\na\x07,Ann", "can't be printed", id="a bell"),
        pytest.param("id,name\n", "has no learners", id="nobody"),
    ],
)
def test_a_roster_that_cannot_be_used_says_where_and_why(text, why):
    with pytest.raises(RosterRefused, match=why):
        from_text(text, "roster.csv")


def test_everybody_gets_a_key_of_their_own(tmp_path):
    issued = issue(CLASS, tmp_path / "state")

    assert len({holder.key for holder in issued}) == 3


@pytest.mark.skipif(os.name != "posix", reason="rights of files are POSIX's")
def test_only_their_owner_may_read_the_keys(tmp_path):
    issue(CLASS, tmp_path / "state")

    modes = [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "state", tmp_path / "state" / kept.FILE)]
    assert modes == [0o700, 0o600]


@pytest.mark.skipif(os.name != "posix", reason="rights of files are POSIX's")
def test_keys_that_others_may_read_are_refused(tmp_path):
    issue(CLASS, tmp_path)
    (tmp_path / kept.FILE).chmod(0o644)

    with pytest.raises(KeysRefused, match="chmod 600"):
        read(tmp_path)


def test_a_key_says_whose_it_is(tmp_path):
    issued = issue(CLASS, tmp_path)

    assert issued.who(issued.learners[1].key) == Reader("bob")
    assert issued.who(issued.instructor.key) == Reader("instructor", teaches=True)


@pytest.mark.parametrize("key", ["", "x", "é\udcff", "A" * 24])
def test_any_other_key_is_nobodys(tmp_path, key):
    assert issue(CLASS, tmp_path).who(key) is None


def test_who_has_a_key_keeps_it_when_others_join(tmp_path):
    before = issue(CLASS, tmp_path)
    after = issue((*CLASS, Learner("eve", "Eve")), tmp_path)

    assert after.learners[:2] == before.learners


def test_who_leaves_the_roster_loses_the_key(tmp_path):
    before = issue(CLASS, tmp_path)

    assert issue(CLASS[:1], tmp_path).who(before.learners[1].key) is None


def test_a_new_key_makes_the_old_one_worthless(tmp_path):
    before = issue(CLASS, tmp_path)
    after = issue(CLASS, tmp_path, anew="ann")

    assert after.who(before.learners[0].key) is None
    assert after.learners[1] == before.learners[1]


def test_a_new_key_for_nobody_is_refused(tmp_path):
    issue(CLASS, tmp_path)

    with pytest.raises(KeysRefused, match='nobody here has the id "eve"'):
        issue(CLASS, tmp_path, anew="eve")


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": "gpututor-workshop-keys", "version": 1, "holders": []}'])
def test_a_damaged_file_of_keys_is_refused(tmp_path, text):
    issue(CLASS, tmp_path)
    (tmp_path / kept.FILE).write_text(text)

    with pytest.raises(KeysRefused, match="damaged"):
        read(tmp_path)


def test_a_running_server_sees_who_joins(tmp_path):
    issue(CLASS, tmp_path)
    watched = Watched(tmp_path)
    watched.now()
    issued = issue((*CLASS, Learner("eve", "Eve")), tmp_path)

    assert watched.now().who(issued.learners[2].key) == Reader("eve")


def test_a_running_server_keeps_its_keys_while_their_file_is_damaged(tmp_path):
    issued = issue(CLASS, tmp_path)
    watched = Watched(tmp_path)
    (tmp_path / kept.FILE).write_text("")

    assert watched.now() == issued


def test_a_key_does_not_show_when_its_holder_is_printed():
    assert "secret" not in repr(Holder("ann", "Ann", "secret"))
