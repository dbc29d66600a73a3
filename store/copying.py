"""Copies of a database that are whole, whoever is writing to it meanwhile."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import Engine

from store.connection import make_engine, shown
from store.damage import NOT_UTF8
from store.errors import StoreError
from store.model_files import ModelFiles
from store.schema import VERSION_TABLE

SOURCE_IS_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def backup(url: str, target: str) -> str:
    """Copy a database to a new file; return what was done, in a sentence.

    SQLite copies it page by page from one moment, while others go on writing. The copy is checked,
    and takes its name once it is whole.

    Raises:
        StoreError: If there are no tables of ours, the target exists or cannot be written, or the
            copy is damaged.
    """
    engine = make_engine(url, readonly=True)
    try:
        if engine.dialect.name != "sqlite":
            raise StoreError("only SQLite files are copied here; use pg_dump for PostgreSQL")
        size = copy_file(engine, Path(target))
    finally:
        engine.dispose()
    weights = ModelFiles(url).folder
    tail = f"; the weights in {weights} are not copied" if weights.is_dir() else ""
    return f"{shown(engine.url)} is copied to {target}: {size} bytes, checked{tail}"


def copy_file(engine: Engine, target: Path) -> int:
    """Copy the SQLite file of an engine; return the size of the copy in bytes.

    Raises:
        StoreError: As for `backup`.
    """
    if target.exists():
        raise StoreError(f"{target} exists; name a new file, so that no copy is lost")
    beside = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        _copy(shown(engine.url), beside)
        os.replace(beside, target)
    except (sqlite3.Error, OSError) as error:
        if getattr(error, "sqlite_errorcode", None) in SOURCE_IS_DAMAGED:
            raise StoreError(f"{shown(engine.url)} is damaged: {error}") from error
        raise StoreError(f"{target} cannot be written: {error}") from error
    except UnicodeDecodeError as error:
        raise StoreError(f"{shown(engine.url)} is damaged: {NOT_UTF8}") from error
    finally:
        for name in (beside, Path(f"{beside}-journal"), Path(f"{beside}-wal")):
            name.unlink(missing_ok=True)
    return target.stat().st_size


def _copy(source: str, target: Path) -> None:
    uri = f"file:{quote(str(Path(source).absolute()))}?mode=ro"
    with (
        closing(sqlite3.connect(uri, uri=True)) as original,
        closing(sqlite3.connect(target)) as copy,
    ):
        # In one step, so that it is of one moment: a copy in several begins anew at every write.
        original.backup(copy, pages=-1)
        # One file that can be mailed or put away, without a log beside it.
        copy.execute("PRAGMA journal_mode = DELETE")
        problem = copy.execute("PRAGMA quick_check(1)").fetchone()[0]
        ours = copy.execute(
            "SELECT 1 FROM sqlite_master WHERE name = ?", (VERSION_TABLE,)
        ).fetchone()
    if problem != "ok":
        raise StoreError(f"{source} is damaged, and so is its copy: {problem}")
    if ours is None:
        raise StoreError(f"{source} holds no encoder-sandbox tables")
