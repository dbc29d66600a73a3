"""Engines: how a database is opened, and what is said when it cannot be."""

import os
import random
import re
import sqlite3
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote, unquote

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from store.damage import NOT_UTF8, from_json, name_damage
from store.errors import DamagedError, StoreError

__all__ = ["StoreError", "install_sqlite_hooks", "make_engine", "transact"]

BUSY_SECONDS = 60
RETRIES = 5

T = TypeVar("T")


def make_engine(url: str, *, readonly: bool = False) -> Engine:
    """Open a database by its URL, such as `sqlite:///sandbox.db` (relative to the current folder).

    A writing SQLite engine keeps a write-ahead log, waits up to 60 s for a lock, checks foreign
    keys and begins every transaction as a writer, so that what it reads stays true until it
    commits. A read-only engine cannot change or create anything. PostgreSQL works as well.

    Raises:
        StoreError: If the URL is malformed, or the file cannot be opened or is not SQLite.
    """
    parsed = _parse(url)
    if parsed.get_backend_name() != "sqlite":
        return _server_engine(parsed, readonly)
    path = _sqlite_path(parsed)
    _check_file(path, must_exist=readonly)
    if not readonly:
        engine = create_engine(parsed, json_deserializer=from_json)
        install_sqlite_hooks(engine)
        return _probe(engine)
    database = f"file:{quote(str(path.absolute()))}"
    engine = create_engine(
        URL.create("sqlite", database=database, query={"mode": "ro", "uri": "true"}),
        json_deserializer=from_json,
    )
    event.listen(engine, "connect", _prepare_reader)
    event.listen(engine, "begin", _begin_reader)
    return _probe(engine)


def exists(url: str) -> bool:
    """Tell whether a SQLite URL names a file that is there; a server is taken to be.

    Raises:
        StoreError: If the URL is malformed.
    """
    parsed = _parse(url)
    return parsed.get_backend_name() != "sqlite" or _sqlite_path(parsed).exists()


def install_sqlite_hooks(engine: Engine) -> None:
    """Make an engine a well-behaved writer of a shared SQLite file; others are left alone.

    Connections that are open already keep their old manners: call `engine.dispose()` after it.
    """
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _prepare_writer)
        event.listen(engine, "begin", _begin_writer)


def transact(engine: Engine, work: Callable[[Session], T]) -> T:
    """Run `work` in one short transaction, again if the database stayed locked.

    `work` may run more than once, so it must keep no state outside the session.

    Raises:
        StoreError: If the database refuses; nothing is written then.
    """
    for attempt in range(RETRIES):
        try:
            with Session(engine) as session, session.begin():
                return work(session)
        except DBAPIError as error:
            if not _is_locked(error) or attempt == RETRIES - 1:
                raise StoreError(explain(engine.url, error)) from error
            time.sleep(random.uniform(0, 0.1 * 2**attempt))
        except SQLAlchemyError as error:
            raise StoreError(explain(engine.url, error)) from error
    raise AssertionError("the last attempt returns or raises")


@contextmanager
def reading(engine: Engine) -> Generator[Session]:
    """Open one transaction that reads for as long as it is needed.

    Raises:
        StoreError: If the database refuses.
    """
    try:
        with Session(engine) as session, session.begin():
            yield session
    except SQLAlchemyError as error:
        raise StoreError(explain(engine.url, error)) from error


def explain(url: URL, error: SQLAlchemyError) -> str:
    """Say in one line what a database refused."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    code = _code(error)
    beside = "; SQLite keeps a log beside the file, so its folder must be writable"
    tail = beside if code & 0xFF in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY) else ""
    return f"{shown(url)}: {' '.join(str(cause).split())}{tail}"


def shown(url: URL) -> str:
    """Return a URL as it may be printed: the path of a file, or the URL without its password."""
    if url.get_backend_name() == "sqlite" and url.database:
        path = url.database.removeprefix("file:")
        return path if path == url.database else unquote(path)
    return url.render_as_string(hide_password=True)


def _parse(url: str) -> URL:
    hidden = re.sub(r":[^:/@]*@", ":***@", url)
    try:
        parsed = make_url(url)
        parsed.get_dialect()
    except (ArgumentError, NoSuchModuleError, ValueError) as error:
        raise StoreError(
            f"{hidden!r} is not a database URL; write one like sqlite:///sandbox.db "
            f"or postgresql+psycopg://user@host/name"
        ) from error
    if parsed.get_backend_name() not in ("sqlite", "postgresql"):
        raise StoreError(f"{hidden!r}: only sqlite and postgresql databases can hold results")
    return parsed


def _server_engine(url: URL, readonly: bool) -> Engine:
    try:
        # A reader is often not closed; it keeps no connection, so that none is left open.
        kept = {"poolclass": NullPool} if readonly else {"pool_pre_ping": True}
        engine = create_engine(url, **kept)
    except ModuleNotFoundError as error:
        raise StoreError(
            f"{shown(url)} needs the Python package {error.name!r}, which is not installed"
        ) from error
    return engine.execution_options(postgresql_readonly=True) if readonly else engine


def _sqlite_path(url: URL) -> Path:
    name = url.database
    if not name or name == ":memory:" or url.query.get("mode") == "memory":
        raise StoreError(
            "a database in memory cannot be shared between workers; "
            "name a file, such as sqlite:///sandbox.db"
        )
    if name.startswith("file:"):
        raise StoreError(f"{name!r} is a SQLite file URI; write sqlite:///PATH instead")
    return Path(name)


def _check_file(path: Path, *, must_exist: bool) -> None:
    try:
        path.stat()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise StoreError(f"{path} cannot be opened: {error.strerror or error}") from error
    if path.is_dir():
        raise StoreError(f"{path} is a directory; name a database file in it")
    if not path.exists():
        if must_exist:
            raise StoreError(
                f"{path} does not exist; run a study first or name another with --storage"
            )
        if not path.parent.is_dir():
            raise StoreError(f"{path} cannot be created: {path.parent} is not a directory")
        return
    # Never open the file here: closing it would drop the locks that SQLite holds on it for other
    # connections of this process, and these would then read a file that changes under them.
    if not os.access(path, os.R_OK):
        raise StoreError(f"{path} cannot be read: permission denied")


def _probe(engine: Engine) -> Engine:
    """Return the engine once SQLite has opened its file and found a database in it."""
    event.listen(engine, "handle_error", partial(name_damage, shown(engine.url)))
    for attempt in range(RETRIES):
        try:
            with engine.connect() as connection:
                connection.exec_driver_sql("PRAGMA schema_version")
            break
        except DBAPIError as error:
            # Two that make one file at once: the change to a log beside it does not wait.
            if _is_locked(error) and attempt < RETRIES - 1:
                time.sleep(random.uniform(0, 0.1 * 2**attempt))
                continue
            if _code(error) == sqlite3.SQLITE_NOTADB:
                raise StoreError(f"{shown(engine.url)} is not a SQLite database") from error
            damaged = _code(error) == sqlite3.SQLITE_CORRUPT
            raise (DamagedError if damaged else StoreError)(explain(engine.url, error)) from error
        except UnicodeDecodeError as error:  # as a new connection is prepared
            raise DamagedError(f"{shown(engine.url)} is damaged: {NOT_UTF8}") from error
    return engine


def _code(error: SQLAlchemyError) -> int:
    """Return SQLite's code; the driver's own errors, as of text that is not UTF-8, have none."""
    cause = error.orig if isinstance(error, DBAPIError) else None
    return getattr(cause, "sqlite_errorcode", 0)


def _is_locked(error: DBAPIError) -> bool:
    # The low byte is the primary code; extended ones such as BUSY_SNAPSHOT sit above it.
    return _code(error) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _prepare_writer(connection: sqlite3.Connection, record: object) -> None:
    # The driver would begin only before the first write, after the reads that the write rests on.
    connection.isolation_level = None
    # The timeout comes first: the change to a write-ahead log needs a lock itself.
    connection.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA foreign_keys = ON")


def _begin_writer(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _prepare_reader(connection: sqlite3.Connection, record: object) -> None:
    connection.isolation_level = None
    connection.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}")
    connection.execute("PRAGMA query_only = ON")


def _begin_reader(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN")
