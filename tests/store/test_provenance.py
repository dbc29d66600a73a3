"""Facts about machine and source never stop a run."""

import subprocess
from pathlib import Path

import pytest

from store.encoding import plain
from store.provenance import environment_facts, git_facts


def git(folder: Path, *words: str) -> str:
    names = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
    command = ["git", *names, "-C", str(folder), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_facts_can_be_stored() -> None:
    facts = environment_facts({"device": "cpu"})
    assert plain(facts) == facts
    assert facts["device"] == "cpu"
    assert facts["packages"]["sqlalchemy"].startswith("2.1")
    assert facts["python"].startswith("3.")


def test_outside_git_there_is_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert git_facts(tmp_path) == {"commit": None}
    assert git_facts(tmp_path / "missing") == {"commit": None}


def test_without_git_there_is_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_facts(tmp_path) == {"commit": None}


def test_a_change_makes_the_tree_dirty(tmp_path: Path) -> None:
    git(tmp_path, "init", "-b", "main")
    assert git_facts(tmp_path) == {"commit": None}
    (tmp_path / "a").write_text("1\n")
    git(tmp_path, "add", "a")
    git(tmp_path, "commit", "-m", "one")
    clean = git_facts(tmp_path)
    commit = git(tmp_path, "rev-parse", "HEAD")
    assert clean == {"commit": commit, "branch": "main", "dirty": False, "diff_sha256": None}
    (tmp_path / "a").write_text("2\n")
    dirty = git_facts(tmp_path)
    assert dirty["dirty"] is True
    assert len(dirty["diff_sha256"]) == 64
