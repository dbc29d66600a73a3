"""A study's own database: a copy with its rows alone, and the weights of its runs beside it."""

import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from sqlalchemy import URL, delete, select, update
from sqlalchemy.orm import Session

from store.claims import RESULTS
from store.connection import make_engine, transact
from store.copying import backup
from store.errors import StoreError
from store.model_files import ModelFiles
from store.pruning import remove_unused
from store.records import Model
from store.results import Results
from store.rows import ConfigRow, ModelRow, ProtocolRow, RunRow, StudyRow


def extract(url: str, study: str, target: Path) -> None:
    """Copy what belongs to a study to a new SQLite file; Optuna's tables are copied whole.

    Ids stay, so that what names a run still names it. The files of weights are verified and lie
    beside the copy, where its rows say.

    Raises:
        StoreError: If a run of the study is running, a file of weights is missing or changed, or
            the target exists or cannot be written.
    """
    results = Results(url)
    try:
        running = results.counts().get(study, {}).get("running", 0)
        models = results.models(study=study, phase=None)
    finally:
        results.close()
    if running:
        raise StoreError(f"{study} is being done ({running} running); wait for it or stop it first")
    backup(url, str(target))
    paths = _copy_files(models, ModelFiles(url), ModelFiles(url_of(target)))
    engine = make_engine(url_of(target))
    try:
        transact(engine, lambda session: _keep_only(session, study, paths))
    finally:
        engine.dispose()


def seal(target: Path) -> None:
    """Make one file of a database that nobody has open: no log beside it, no room left in it."""
    with closing(sqlite3.connect(target, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("VACUUM")


def url_of(file: Path) -> str:
    """The URL of a SQLite file."""
    return URL.create("sqlite", database=str(file)).render_as_string()


def _copy_files(
    models: tuple[Model, ...], source: ModelFiles, target: ModelFiles
) -> Mapping[tuple[int, str], str]:
    """Copy files of weights; return where each is now, by run and old path."""
    paths: dict[tuple[int, str], str] = {}
    for model in models:
        source.read(model)
        target.folder.mkdir(exist_ok=True)
        new = target.folder / Path(model.path).name
        if new.exists():
            raise StoreError(f"two files of weights are named {new.name}, one is {model.path}")
        shutil.copyfile(source.home / model.path, new)
        paths[model.run_id, model.path] = new.relative_to(target.home).as_posix()
    return paths


def _keep_only(session: Session, study: str, paths: Mapping[tuple[int, str], str]) -> None:
    others = select(RunRow.id).where(RunRow.study != study)
    for table in RESULTS:
        session.execute(delete(table).where(table.run_id.in_(others)))
    for table in (RunRow, ConfigRow, ProtocolRow):
        session.execute(delete(table).where(table.study != study))
    session.execute(delete(StudyRow).where(StudyRow.name != study))
    remove_unused(session)
    for (number, old), new in paths.items():
        own = (ModelRow.run_id == number, ModelRow.path == old)
        session.execute(update(ModelRow).where(*own).values(path=new))
