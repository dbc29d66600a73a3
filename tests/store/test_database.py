"""How a database is opened, and what is said when it cannot be."""

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import text

from store import Ledger, Results, StoreError, make_engine
from store.database import exists
from store.records import PlannedRun
from tests.messages import Messages
from tests.store.ordinary_user import ordinary_user, shared_folder

MakeRun = Callable[..., PlannedRun]


def test_a_writer_begins_as_a_writer(url: str, path: Path) -> None:
    engine = make_engine(url)
    with engine.begin() as connection:
        pragmas = {
            name: connection.scalar(text(f"PRAGMA {name}"))
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
        other = sqlite3.connect(path, timeout=0)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")
        other.close()
    assert pragmas == {
        "journal_mode": "wal",
        "synchronous": 1,
        "foreign_keys": 1,
        "busy_timeout": 60_000,
    }
    engine.dispose()


def test_a_reader_neither_waits_nor_writes(ledger: Ledger, url: str, path: Path) -> None:
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    engine = make_engine(url, readonly=True)
    with engine.begin() as connection:
        assert connection.scalar(text("SELECT count(*) FROM es_runs")) == 0
        with pytest.raises(Exception, match="readonly"):
            connection.execute(text("DELETE FROM es_runs"))
    engine.dispose()
    writer.close()


def test_a_relative_url_starts_at_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Ledger.create("sqlite:///here.db").close()
    assert (tmp_path / "here.db").exists()
    assert len(Results("sqlite:///here.db").runs()) == 0


@pytest.mark.parametrize("name", ["a b.db", "a?b#c%20.db", "ä'\".db"])
def test_any_file_name_can_be_read(tmp_path: Path, name: str, make_run: MakeRun) -> None:
    folder = tmp_path / "100% mine"
    folder.mkdir()
    ledger = Ledger.create(f"sqlite:///{folder / name.replace('?', '')}")
    ledger.plan([make_run()])
    ledger.close()
    assert len(Results(f"sqlite:///{folder / name.replace('?', '')}").runs()) == 1


def test_a_missing_file_is_never_made(url: str, path: Path) -> None:
    message = r"sandbox\.db does not exist; run a study first or name another with --storage"
    with pytest.raises(StoreError, match=message):
        Results(url)
    with pytest.raises(StoreError, match=message):
        Ledger.open(url)
    assert not path.exists()


def test_a_directory_is_refused(tmp_path: Path) -> None:
    for make in (Results, Ledger.create, Ledger.open):
        with pytest.raises(StoreError, match="is a directory"):
            make(f"sqlite:///{tmp_path}")


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="none is not a directory"):
        Ledger.create(f"sqlite:///{tmp_path}/none/sandbox.db")


def test_a_foreign_file_is_refused_and_kept(url: str, path: Path) -> None:
    path.write_text("step,loss\n1,0.5\n")
    for make in (Results, Ledger.create, Ledger.open):
        with pytest.raises(StoreError, match="is not a SQLite database"):
            make(url)
    assert path.read_text() == "step,loss\n1,0.5\n"


@pytest.mark.parametrize("cut", [1024, 4096, 9000])
def test_a_file_cut_short_is_refused(
    ledger: Ledger, tmp_path: Path, path: Path, make_run: MakeRun, cut: int
) -> None:
    ledger.plan([make_run(seed) for seed in range(100)])
    ledger.close()
    broken = tmp_path / "broken.db"
    shutil.copy(path, broken)
    os.truncate(broken, broken.stat().st_size - cut)
    for make in (Results, Ledger.create):
        with pytest.raises(StoreError, match=r"broken\.db( is damaged)?: .*malformed|is damaged"):
            make(f"sqlite:///{broken}")


def test_a_database_of_others_is_told_apart(url: str, path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    for make in (Results, Ledger.open):
        with pytest.raises(StoreError, match="holds no encoder-sandbox tables"):
            make(url)


def test_an_empty_file_holds_no_tables_but_can(url: str, path: Path) -> None:
    path.touch()
    with pytest.raises(StoreError, match="holds no encoder-sandbox tables"):
        Results(url)
    assert not exists(url)
    Ledger.create(url).close()
    assert exists(url)
    assert len(Results(url).runs()) == 0


@pytest.mark.parametrize(
    "bad",
    [
        "sandbox.db",
        "",
        "nosuch://host/name",
        "mysql://host/name",
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:///file:a.db?uri=true",
    ],
)
def test_bad_urls_are_refused(messages: Messages, bad: str) -> None:
    for make in (Results, Ledger.create, Ledger.open):
        with messages.raises(StoreError):
            make(bad)


def test_a_password_is_not_shown() -> None:
    with pytest.raises(StoreError) as caught:
        Results("nosuch://me:secret@host/name")
    assert "secret" not in str(caught.value)


def test_a_file_without_permission_is_refused(ledger: Ledger, path: Path) -> None:
    ledger.close()
    with shared_folder() as folder:
        hidden = Path(shutil.copy(path, folder / "hidden.db"))
        hidden.chmod(0)
        with (
            ordinary_user(),
            pytest.raises(StoreError, match=r"hidden\.db.*(permission denied|unable to open)"),
        ):
            Results(f"sqlite:///{hidden}")


def test_an_unreadable_file_is_refused(
    ledger: Ledger, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The superuser may read anything, so the answer of the system is given here.
    monkeypatch.setattr(os, "access", lambda path, mode: False)

    with pytest.raises(StoreError, match=r"sandbox\.db cannot be read: permission denied"):
        make_engine(url)


def test_opening_an_engine_keeps_the_locks_of_other_connections(
    ledger: Ledger, url: str, path: Path
) -> None:
    """Closing a file drops the locks of a whole process, and its readers then read chaos."""
    reader = sqlite3.connect(path)
    reader.execute("select count(*) from es_runs").fetchone()

    make_engine(url, readonly=True).dispose()
    make_engine(url).dispose()
    write = (
        "import sqlite3, sys; other = sqlite3.connect(sys.argv[1]); "
        "other.execute('pragma user_version = 1'); other.close()"
    )
    subprocess.run([sys.executable, "-c", write, str(path)], check=True)

    # Whoever closes the last connection removes the log; the other process was not the last.
    assert path.with_name(path.name + "-wal").exists()
    assert reader.execute("pragma user_version").fetchone() == (1,)
    reader.close()
