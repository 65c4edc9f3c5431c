"""The commit of a script, read from files as git lays them out."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpututor.history.commit import commit_of

ONE, OTHER = "1" * 40, "2" * 40


@pytest.fixture
def repository(tmp_path) -> Path:
    """A repository on branch main, with a script in a folder of it."""
    git = tmp_path / "work" / ".git"
    (git / "refs" / "heads").mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "refs" / "heads" / "main").write_text(ONE + "\n")
    (git.parent / "src").mkdir()
    (git.parent / "src" / "train.py").write_text("")
    return git.parent


def test_the_branch_that_is_checked_out_gives_its_commit(repository):
    assert commit_of(repository / "src" / "train.py") == ONE


def test_a_detached_head_is_the_commit_itself(repository):
    (repository / ".git" / "HEAD").write_text(OTHER)

    assert commit_of(repository) == OTHER


def test_a_packed_branch_is_found(repository):
    (repository / ".git" / "refs" / "heads" / "main").unlink()
    (repository / ".git" / "packed-refs").write_text(
        f"# pack-refs with: peeled\n{ONE} refs/heads/a\n{OTHER} refs/heads/main\n"
    )

    assert commit_of(repository) == OTHER


def test_a_worktree_leads_to_the_repository_it_belongs_to(repository, tmp_path):
    inner = repository / ".git" / "worktrees" / "two"
    inner.mkdir(parents=True)
    (inner / "HEAD").write_text("ref: refs/heads/main\n")
    (inner / "commondir").write_text("../..\n")
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / ".git").write_text(f"gitdir: {inner}\n")

    assert commit_of(tmp_path / "two" / "train.py") == ONE


def test_outside_of_a_repository_there_is_no_commit(tmp_path):
    assert commit_of(tmp_path / "train.py") is None


@pytest.mark.parametrize("head", ["", "ref: refs/heads/gone", "not a commit"])
def test_a_repository_that_says_nothing_useful_gives_none(repository, head):
    (repository / ".git" / "HEAD").write_text(head)

    assert commit_of(repository) is None
