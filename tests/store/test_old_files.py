"""Files of every older version of the tables still open after an upgrade, Optuna's rows intact."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import optuna
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from store import Ledger, Results, StoreError, make_engine
from store.configs import varying
from store.database import SCHEMA_VERSION, upgrade
from store.models import VERSION_TABLE, RunRow, is_ours

OLD = Path(__file__).parent / "old"
VERSIONS = [path.stem.removeprefix("revision_") for path in sorted(OLD.glob("*.sqlite"))]


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def old(version: str, path: Path) -> Path:
    shutil.copy(OLD / f"revision_{version}.sqlite", path)
    return path


def rows_of(path: Path, table: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(f'SELECT * FROM "{table}" ORDER BY 1').fetchall()


def foreign_tables(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    query = "SELECT name FROM sqlite_master WHERE type = 'table'"
    with closing(sqlite3.connect(path)) as connection:
        names = [name for (name,) in connection.execute(query)]
        names = [name for name in names if not name.startswith(("es_", "sqlite_"))]
    return {name: rows_of(path, name) for name in names}


def test_every_older_version_has_a_file() -> None:
    scripts = Path(__file__).parents[2] / "store" / "migrations" / "versions"
    known = sorted(path.stem.removeprefix("revision_") for path in scripts.glob("revision_*.py"))
    assert known[-1] == SCHEMA_VERSION
    assert known[:-1] == VERSIONS


def test_an_older_file_is_refused_with_both_versions(old: Path, url: str, version: str) -> None:
    before = old.read_bytes()
    expected = f"version {version}, this code needs {SCHEMA_VERSION}; run python -m store upgrade"
    for make in (Results, Ledger.open, Ledger.create):
        with pytest.raises(StoreError, match=expected):
            make(url)
    assert old.read_bytes() == before


def named_rows(path: Path, table: str) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute(f"SELECT * FROM {table} ORDER BY 1")]


def test_an_upgrade_keeps_every_row_and_leaves_optuna_alone(
    old: Path, url: str, version: str
) -> None:
    foreign = foreign_tables(old)
    tables = ("es_runs", "es_scores", "es_curves", "es_studies", "es_environments")
    before = {table: named_rows(old, table) for table in tables}
    configs = [row.pop("config") for row in before["es_runs"]]
    for row in before["es_scores"]:
        if row.get("source") is None:  # then the run itself says when it was measured
            row["created_at"] = None
    assert len(foreign["trials"]) >= 4

    assert f"version {version} became {SCHEMA_VERSION}; the old file is" in upgrade(url)

    assert foreign_tables(old) == foreign
    for table, rows in before.items():
        after = named_rows(old, table)
        assert [{name: row[name] for name in rows[0]} for row in after] == rows
    with closing(sqlite3.connect(old)) as connection:
        query = (
            "SELECT c.config FROM es_runs r JOIN es_configs c ON c.id = r.config_id ORDER BY r.id"
        )
        moved = [json.loads(config) for (config,) in connection.execute(query)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    assert moved == [json.loads(config) for config in configs]
    assert upgrade(url).endswith(f"is at version {SCHEMA_VERSION} already")


def test_an_upgraded_study_knows_what_varies_in_it(old: Path, url: str) -> None:
    upgrade(url)
    results = Results(url)
    runs = results.runs(phase="all")
    expected = varying({run.id: run.config for run in runs})
    with closing(sqlite3.connect(old)) as connection:
        query = "SELECT r.id, c.options FROM es_runs r JOIN es_configs c ON c.id = r.config_id"
        stored = {number: json.loads(options) for number, options in connection.execute(query)}
    results.close()
    assert stored == expected


def test_the_copy_that_an_upgrade_keeps_is_the_old_file(old: Path, url: str, version: str) -> None:
    before = {name: rows_of(old, name) for name in ("es_runs", "es_scores", "trials")}
    upgrade(url)
    (copy,) = old.parent.glob("sandbox.db.*.backup")
    assert rows_of(copy, VERSION_TABLE) == [(version,)]
    assert {name: rows_of(copy, name) for name in before} == before


def test_an_upgraded_file_reads_as_it_was_written(old: Path, url: str) -> None:
    upgrade(url)
    results = Results(url)
    runs = results.runs(phase="all")
    assert {run.status for run in runs[:-3]} == {"done"}
    assert [run.status for run in runs[-3:]] == ["diverged", "failed", "planned"]
    assert runs[-2].reason == "RuntimeError: größer – 🙂"
    (lost,) = results.scores(status="diverged")
    assert (lost.value, lost.status, lost.created_at) == (None, "nan", runs[-3].finished_at)
    assert (lost.created_at is not None, lost.source) == (True, None)
    results.close()


def test_an_upgraded_file_has_the_tables_of_a_new_one(old: Path, url: str) -> None:
    upgrade(url)
    engine = make_engine(url)
    with engine.connect() as connection:
        context = MigrationContext.configure(
            connection,
            opts={
                "version_table": VERSION_TABLE,
                "include_name": lambda name, kind, parents: kind != "table" or is_ours(name, kind),
                "compare_type": False,
            },
        )
        assert compare_metadata(context, RunRow.metadata) == []
    engine.dispose()


def test_optuna_goes_on_in_an_upgraded_file(old: Path, url: str) -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    upgrade(url)
    names = optuna.get_all_study_names(url)
    assert {name.rpartition("/")[0] for name in names} == {
        "extrapolation/shift/mine",
        "extrapolation/shift/none",
    }
    study = optuna.load_study(study_name=names[0], storage=url)
    tuned = {run.id: run for run in Results(url).runs(phase="tune")}
    for trial in study.trials:
        run = tuned[trial.user_attrs["run"]]
        assert (run.optuna_study, run.optuna_trial) == (names[0], trial.number)
    assert study.best_value == pytest.approx(min(trial.value or 9 for trial in study.trials))
