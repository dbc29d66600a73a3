"""The tables keep their rules, and live beside Optuna's."""

import sqlite3
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import optuna
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import delete, insert, select
from sqlalchemy.exc import IntegrityError, StatementError

from store import Ledger, Results, install_sqlite_hooks, make_engine
from store.database import transaction
from store.models import PREFIX, CurveRow, EnvironmentRow, RunRow, ScoreRow, Table
from store.records import PlannedRun

MakeRun = Callable[..., PlannedRun]


def finish_one(ledger: Ledger, run: PlannedRun) -> list[int]:
    ids = ledger.plan([run])
    claim = ledger.claim("w", ids)
    assert claim is not None
    score = {"split": "test", "length": 8, "metric": "accuracy", "n": 4, "correct": 1}
    ledger.finish(
        claim,
        "done",
        scores=[{**score, "value": 0.25}],
        curves=[{"step": 1, "metric": "loss", "value": 1.0}],
    )
    return ids


def optuna_study(url: str, **options: Any) -> optuna.Study:
    return optuna.create_study(study_name="mine", storage=url, load_if_exists=True, **options)


def objective(trial: optuna.Trial) -> float:
    return trial.suggest_float("x", 0, 1)


@pytest.fixture(autouse=True)
def _quiet_optuna() -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)


@pytest.mark.parametrize("first", ["optuna", "store"])
def test_optuna_may_come_first_or_second(url: str, first: str, make_run: MakeRun) -> None:
    if first == "optuna":
        optuna_study(url).optimize(objective, n_trials=2)
        ledger = Ledger.create(url)
    else:
        ledger = Ledger.create(url)
        optuna_study(url).optimize(objective, n_trials=2)
    ids = finish_one(ledger, make_run())
    ledger.close()
    again = Ledger.create(url)
    assert again.counts(ids)["done"] == 1
    again.close()
    study = optuna.load_study(study_name="mine", storage=url)
    study.optimize(objective, n_trials=1)
    assert len(study.trials) == 3
    assert len(Results(url).scores()) == 1


def test_optuna_writes_with_our_hooks(ledger: Ledger, url: str) -> None:
    storage = optuna.storages.RDBStorage(url)
    install_sqlite_hooks(storage.engine)
    storage.engine.dispose()
    study = optuna.create_study(study_name="hooked", storage=storage)
    study.enqueue_trial({"x": 0.5})
    study.optimize(objective, n_trials=2)
    assert study.trials[0].params == {"x": 0.5}
    with storage.engine.begin() as connection:
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1
    optuna.delete_study(study_name="hooked", storage=storage)
    storage.remove_session()
    storage.engine.dispose()


def test_a_new_database_has_what_the_rows_declare(ledger: Ledger, url: str) -> None:
    optuna_study(url)
    engine = make_engine(url)
    with engine.connect() as connection:
        context = MigrationContext.configure(
            connection,
            opts={
                "version_table": "es_alembic_version",
                "include_name": lambda name, kind, parents: (
                    kind != "table" or name.startswith(PREFIX)
                ),
                "compare_type": False,
            },
        )
        assert compare_metadata(context, Table.metadata) == []
    engine.dispose()


def test_foreign_keys_hold_on_every_connection(ledger: Ledger, url: str, make_run: MakeRun) -> None:
    (run_id,) = finish_one(ledger, make_run())
    engine = make_engine(url)
    orphan = {"run_id": 999, "split": "test", "length": 1, "metric": "nll", "n": 1}
    for _ in range(2):
        with pytest.raises(IntegrityError), engine.begin() as connection:
            connection.execute(insert(ScoreRow), [orphan])
        engine.dispose()
    with transaction(engine) as session:
        session.execute(delete(RunRow).where(RunRow.id == run_id))
        for table in (ScoreRow, CurveRow):
            assert session.scalars(select(table)).all() == []
    engine.dispose()


def test_unknown_statuses_are_refused_by_the_database(
    ledger: Ledger, path: Path, make_run: MakeRun
) -> None:
    ledger.plan([make_run()])
    connection = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError, match="ck_es_runs_status"):
        connection.execute("UPDATE es_runs SET status = 'finished'")
    connection.close()


def test_an_instant_needs_a_time_zone(ledger: Ledger, url: str) -> None:
    engine = make_engine(url)
    row = {"hash": "h", "facts": {}, "created_at": datetime(2026, 1, 1)}
    with pytest.raises(StatementError, match="needs a time zone"), engine.begin() as connection:
        connection.execute(insert(EnvironmentRow), [row])
    engine.dispose()


def test_the_view_reads_without_us(ledger: Ledger, path: Path, make_run: MakeRun) -> None:
    finish_one(ledger, make_run())
    connection = sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    (row,) = connection.execute(
        "SELECT *, json_extract(config, '$.encoder.position.name') AS position FROM results"
    )
    seen = {name: row[name] for name in ("run_id", "arm", "status", "length", "metric", "value")}
    assert seen == {
        **{"run_id": 1, "arm": "rope", "status": "done"},
        **{"length": 8, "metric": "accuracy", "value": 0.25},
    }
    assert row["position"] == "rope"
    connection.close()
