"""Tables of an older version are brought to a newer one; those before the first are refused."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import optuna
import pytest
from sqlalchemy import text

from store import Ledger, Results, StoreError, database, maintenance, make_engine
from store.database import FIRST_VERSION, SCHEMA_VERSION
from store.maintenance import MIGRATIONS, check, upgrade
from store.models import VERSION_TABLE
from tests.messages import Messages
from tests.store.conftest import MakeRun

NEXT = "9000"
ADDED = f"""
import sqlalchemy as sa
from alembic import op

revision = "{NEXT}"
down_revision = "{SCHEMA_VERSION}"


def upgrade():
    with op.batch_alter_table("es_runs", recreate="auto") as runs:
        runs.add_column(sa.Column("mood", sa.Text(), nullable=False, server_default="calm"))
"""
BREAKS = 'def upgrade():\n    op.execute("UPDATE es_scores SET run_id = 99")\n'


@pytest.fixture
def scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The migrations with one more, which a later version of this code may bring."""
    folder = tmp_path / "migrations"
    shutil.copytree(MIGRATIONS, folder)
    script = folder / "versions" / f"revision_{NEXT}.py"
    script.write_text(ADDED)
    monkeypatch.setattr(maintenance, "MIGRATIONS", folder)
    return script


@pytest.fixture
def newer(scripts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "SCHEMA_VERSION", NEXT)


def fill(url: str, make_run: MakeRun) -> None:
    ledger = Ledger.open(url)
    claim = ledger.claim("w", ledger.plan([make_run(0), make_run(1)]))
    assert claim is not None
    score = {"split": "test", "length": 8, "metric": "accuracy", "n": 4, "correct": 1}
    ledger.finish(claim, "done", scores=[{**score, "value": 0.25}])
    ledger.close()


def rows_of(path: Path, table: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(f'SELECT * FROM "{table}" ORDER BY 1').fetchall()


def set_version(path: Path, version: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"UPDATE {VERSION_TABLE} SET version_num = ?", (version,))
        connection.commit()


def test_the_newest_script_makes_the_version_that_the_code_knows() -> None:
    names = sorted(path.stem for path in (MIGRATIONS / "versions").glob("revision_*.py"))
    assert names[0] == f"revision_{FIRST_VERSION}"
    assert names[-1] == f"revision_{SCHEMA_VERSION}"


@pytest.mark.parametrize("version", ["0001", "0003"])
def test_versions_before_the_first_are_refused_with_a_way_out(
    messages: Messages, ledger: Ledger, url: str, path: Path, version: str
) -> None:
    ledger.close()
    set_version(path, version)
    before = path.read_bytes()
    for make in (Results, Ledger.open, Ledger.create, upgrade):
        with messages.raises(StoreError) as found:
            make(url)
        assert "\n" not in str(found.value)
    assert path.read_bytes() == before


def test_a_newer_version_is_refused(
    messages: Messages, ledger: Ledger, url: str, path: Path
) -> None:
    set_version(path, "9999")
    for make in (Results, Ledger.open, Ledger.create, upgrade):
        with messages.raises(StoreError):
            make(url)


def test_an_older_version_is_refused_unchanged(
    messages: Messages, ledger: Ledger, url: str, path: Path, newer: None
) -> None:
    ledger.close()
    before = path.read_bytes()
    for make in (Results, Ledger.open, Ledger.create):
        with messages.raises(StoreError):
            make(url)
    assert path.read_bytes() == before


def test_an_upgrade_keeps_every_row(
    ledger: Ledger, url: str, path: Path, make_run: MakeRun, newer: None, monkeypatch: Any
) -> None:
    ledger.close()
    with monkeypatch.context() as now:
        now.setattr(database, "SCHEMA_VERSION", SCHEMA_VERSION)
        fill(url, make_run)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(study_name="mine", storage=url)
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2)
    tables = ("es_runs", "es_scores", "es_configs", "trials", "studies")
    before = {table: rows_of(path, table) for table in tables}

    assert f"version {SCHEMA_VERSION} became {NEXT}; the old file is" in upgrade(url)

    after = {table: rows_of(path, table) for table in tables}
    assert after.pop("es_runs") == [(*row, "calm") for row in before["es_runs"]]
    assert after == {name: before[name] for name in after}
    (copy,) = path.parent.glob("sandbox.db.*.backup")
    assert rows_of(copy, VERSION_TABLE) == [(SCHEMA_VERSION,)]
    assert rows_of(copy, "es_runs") == before["es_runs"]
    assert upgrade(url).endswith(f"is at version {NEXT} already")
    assert check(url)[0] == []


def test_an_upgrade_that_breaks_references_is_given_up(
    messages: Messages,
    ledger: Ledger,
    url: str,
    path: Path,
    make_run: MakeRun,
    scripts: Path,
    monkeypatch: Any,
) -> None:
    fill(url, make_run)
    scripts.write_text(ADDED.partition("def upgrade")[0] + BREAKS)
    monkeypatch.setattr(database, "SCHEMA_VERSION", NEXT)
    before = rows_of(path, "es_scores")
    with messages.raises(StoreError):
        upgrade(url)
    assert rows_of(path, "es_scores") == before
    assert rows_of(path, VERSION_TABLE) == [(SCHEMA_VERSION,)]


def test_an_upgrade_from_a_version_without_a_script_is_refused(
    messages: Messages, ledger: Ledger, url: str, path: Path, newer: None
) -> None:
    set_version(path, "5000")
    with messages.raises(StoreError):
        upgrade(url)


@pytest.mark.slow
def test_a_server_is_upgraded(
    messages: Messages,
    server_url: str,
    make_run: MakeRun,
    request: pytest.FixtureRequest,
    monkeypatch: Any,
) -> None:
    Ledger.create(server_url).close()
    fill(server_url, make_run)
    request.getfixturevalue("scripts")
    monkeypatch.setattr(database, "SCHEMA_VERSION", NEXT)
    with messages.raises(StoreError):
        Results(server_url)

    assert upgrade(server_url).endswith(f"version {SCHEMA_VERSION} became {NEXT}")

    engine = make_engine(server_url)
    with engine.connect() as connection:
        moods = connection.execute(text("SELECT mood FROM es_runs")).scalars().all()
    engine.dispose()
    assert moods == ["calm", "calm"]
    results = Results(server_url)
    assert [run.seed for run in results.runs()] == [0, 1]
    results.close()
