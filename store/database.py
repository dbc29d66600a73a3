"""Engines and transactions: how a database is opened, and what is said when it cannot be."""

import json
import os
import random
import re
import sqlite3
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, unquote

from sqlalchemy import (
    URL,
    Column,
    Connection,
    Engine,
    ExceptionContext,
    MetaData,
    PrimaryKeyConstraint,
    Row,
    Select,
    String,
    Table,
    create_engine,
    event,
    insert,
    inspect,
    make_url,
    select,
    text,
)
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from store import models
from store.errors import DamagedError, StoreError
from store.models import VERSION_TABLE, VIEWS

BUSY_SECONDS = 60
RETRIES = 5
NOT_UTF8 = "it holds text that is not UTF-8"

T = TypeVar("T")


def make_engine(url: str, *, readonly: bool = False, snapshot: bool = True) -> Engine:
    """Open a database by its URL, such as `sqlite:///sandbox.db` (relative to the current folder).

    A writing SQLite engine keeps a write-ahead log, waits up to 60 s for a lock, checks foreign
    keys and begins every transaction as a writer, so that what it reads stays true until it
    commits. A read-only engine cannot change or create anything; without `snapshot` each of its
    statements sees what is there by then. PostgreSQL works as well.

    Raises:
        StoreError: If the URL is malformed, or the file cannot be opened or is not SQLite.
    """
    parsed = _parse(url)
    if parsed.get_backend_name() != "sqlite":
        return _server_engine(parsed, readonly)
    path = _sqlite_path(parsed)
    _check_file(path, must_exist=readonly)
    if readonly:
        database = f"file:{quote(str(path.absolute()))}"
        parsed = URL.create("sqlite", database=database, query={"mode": "ro", "uri": "true"})
    engine = create_engine(parsed, json_deserializer=_from_json)
    event.listen(engine, "connect", _prepare_reader if readonly else _prepare_writer)
    _probe(engine)
    if snapshot:
        event.listen(engine, "begin", _begin_reader if readonly else _begin_writer)
    return engine


def exists(url: str) -> bool:
    """Tell whether a database holds our tables; a file that is missing is not made."""
    parsed = _parse(url)
    if parsed.get_backend_name() == "sqlite" and not _sqlite_path(parsed).exists():
        return False
    with connected(url, readonly=True) as engine:
        return version_of(engine) is not None


def install_sqlite_hooks(engine: Engine) -> None:
    """Make an engine a well-behaved writer of a shared SQLite file; others are left alone.

    Connections that are open already keep their old manners: call `engine.dispose()` after it.
    """
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _prepare_writer)
        event.listen(engine, "begin", _begin_writer)


@contextmanager
def connected(url: str, *, readonly: bool = False) -> Generator[Engine]:
    """Open a database, and close its connections at the end; see `make_engine`."""
    engine = make_engine(url, readonly=readonly)
    try:
        yield engine
    finally:
        engine.dispose()


@contextmanager
def transaction(engine: Engine) -> Generator[Session]:
    """Open one transaction, which waits for its turn to begin; what it did is undone on an error.

    Raises:
        StoreError: If the database refuses.
    """
    try:
        with Session(engine) as session, session.begin():
            _retry_while_locked(session.connection)
            yield session
    except SQLAlchemyError as error:
        raise StoreError(explain(engine.url, error)) from error


def explain(url: URL, error: SQLAlchemyError) -> str:
    """Say in one line what a database refused."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    beside = "; SQLite keeps a log beside the file, so its folder must be writable"
    closed = _code(error) & 0xFF in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
    return f"{shown(url)}: {' '.join(str(cause).split())}{beside if closed else ''}"


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
        if must_exist:
            raise StoreError(
                f"{path} does not exist; run a study first or name another with --storage"
            ) from None
        if not path.parent.is_dir():
            raise StoreError(
                f"{path} cannot be created: {path.parent} is not a directory"
            ) from None
        return
    except OSError as error:
        raise StoreError(f"{path} cannot be opened: {error.strerror or error}") from error
    if path.is_dir():
        raise StoreError(f"{path} is a directory; name a database file in it")
    # Never open the file here: closing it would drop the locks that SQLite holds on it for other
    # connections of this process, and these would then read a file that changes under them.
    if not os.access(path, os.R_OK):
        raise StoreError(f"{path} cannot be read: permission denied")


def _probe(engine: Engine) -> None:
    """Let SQLite open its file and find a database in it."""
    event.listen(engine, "handle_error", partial(_name_damage, shown(engine.url)))

    def look() -> None:
        with engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA schema_version")

    try:
        # Two that make one file at once: the change to a log beside it does not wait.
        _retry_while_locked(look)
    except DBAPIError as error:
        if _code(error) == sqlite3.SQLITE_NOTADB:
            raise StoreError(f"{shown(engine.url)} is not a SQLite database") from error
        damaged = _code(error) == sqlite3.SQLITE_CORRUPT
        raise (DamagedError if damaged else StoreError)(explain(engine.url, error)) from error
    except UnicodeDecodeError as error:  # as a new connection is prepared
        raise DamagedError(f"{shown(engine.url)} is damaged: {NOT_UTF8}") from error


def _retry_while_locked(work: Callable[[], T]) -> T:
    for attempt in range(RETRIES - 1):
        try:
            return work()
        except DBAPIError as error:
            # The low byte is the primary code; extended ones such as BUSY_SNAPSHOT sit above it.
            if _code(error) & 0xFF not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise
        time.sleep(random.uniform(0, 0.1 * 2**attempt))
    return work()


def _code(error: SQLAlchemyError) -> int:
    """Return SQLite's code; the driver's own errors, as of text that is not UTF-8, have none."""
    cause = error.orig if isinstance(error, DBAPIError) else None
    return getattr(cause, "sqlite_errorcode", 0)


def _prepare_writer(connection: sqlite3.Connection, record: object) -> None:
    _set(connection, "journal_mode = WAL", "synchronous = NORMAL", "foreign_keys = ON")


def _prepare_reader(connection: sqlite3.Connection, record: object) -> None:
    _set(connection, "query_only = ON")


def _set(connection: sqlite3.Connection, *pragmas: str) -> None:
    # The driver would begin only before the first write, after the reads that the write rests on.
    connection.isolation_level = None
    # The timeout comes first: the change to a write-ahead log needs a lock itself.
    for pragma in (f"busy_timeout = {BUSY_SECONDS * 1000}", *pragmas):
        connection.execute(f"PRAGMA {pragma}")


def _begin_writer(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _begin_reader(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN")


def _from_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise DamagedError(
            f"the database is damaged: a value that should be JSON is not ({error}); "
            "`python -m store check` says more"
        ) from error


def _name_damage(place: str, context: ExceptionContext) -> None:
    """Say which file is damaged, where the driver could not even read SQLite's message.

    SQLite quotes what is wrong with a schema, in bytes that need not be text.
    """
    if isinstance(context.original_exception, UnicodeDecodeError):
        raise DamagedError(f"{place} is damaged: {NOT_UTF8}")


SCHEMA_VERSION = "0004"
FIRST_VERSION = "0004"
"""Tables of earlier versions, which no release made, are not upgraded."""

VERSION = Table(
    VERSION_TABLE,
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name=f"{VERSION_TABLE}_pkc"),
)
"""The table in which alembic keeps the version of the others."""


def opened(engine: Engine, *checks: Callable[[Engine], None]) -> Engine:
    """Return the engine after the checks; an engine that fails one is closed."""
    try:
        for check in checks:
            check(engine)
    except StoreError:
        engine.dispose()
        raise
    return engine


def create_tables(url: str) -> None:
    """Make our tables where they are missing; what others keep in the database is not touched.

    Raises:
        StoreError: If the database is damaged or its tables are of another version.
    """
    if exists(url):
        with connected(url, readonly=True) as engine:
            check_pages(engine)
            require_tables(engine)
        return
    with connected(url) as engine:
        check_pages(engine)
        # Begun as a writer: of several that create at once, the first does.
        with transaction(engine) as session:
            _create(session)


def _create(session: Session) -> None:
    connection = session.connection()
    if connection.dialect.name == "postgresql":
        session.execute(text("SELECT pg_advisory_xact_lock(hashtext('es_alembic_version'))"))
    if inspect(connection).has_table(VERSION_TABLE):
        return
    models.Table.metadata.create_all(connection, checkfirst=False)
    for name, query in VIEWS.items():
        session.execute(text(f"CREATE VIEW {name} AS {query}"))
    VERSION.create(connection)
    session.execute(insert(VERSION).values(version_num=SCHEMA_VERSION))


def version_of(engine: Engine) -> str | None:
    """Return the version of our tables; None where there are none."""
    with transaction(engine) as session:
        if not inspect(session.connection()).has_table(VERSION_TABLE):
            return None
        return session.scalar(select(VERSION.c.version_num))


def require_tables(engine: Engine) -> None:
    """Refuse a database that does not hold our tables in the version that this code knows."""
    place, found = shown(engine.url), version_of(engine)
    if found is None:
        raise StoreError(f"{place} holds no encoder-sandbox tables")
    if found < FIRST_VERSION:
        raise StoreError(
            f"{place} has tables of version {found}, which this version cannot read; with the "
            "version that wrote them: python -m store export scores --out scores.csv"
        )
    if found < SCHEMA_VERSION:
        raise StoreError(
            f"{place} has tables of version {found}, this code needs {SCHEMA_VERSION}; "
            f"run python -m store upgrade --storage URL, which keeps a copy"
        )
    if found > SCHEMA_VERSION:
        raise StoreError(
            f"{place} has tables of version {found}, this code knows {SCHEMA_VERSION}; "
            f"update encoder-sandbox"
        )


def check_size(engine: Engine) -> None:
    """Refuse a SQLite file that was cut short, at a glance."""
    if engine.dialect.name != "sqlite":
        return
    with transaction(engine) as session:
        said = session.scalar(text("PRAGMA page_count")) * session.scalar(text("PRAGMA page_size"))
        place = shown(engine.url)
        # The log first: what leaves it is in the file by then.
        there = sum(_bytes(Path(name)) for name in (f"{place}-wal", place))
    if there < said:
        raise StoreError(f"{place} is damaged: it has {there} bytes of {said}")


def _bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def check_pages(engine: Engine) -> None:
    """Refuse a SQLite file that is damaged, for example cut short; it reads the whole file."""
    if engine.dialect.name != "sqlite":
        return
    with transaction(engine) as session:
        problem = session.scalar(text("PRAGMA quick_check(1)"))
    if problem != "ok":
        raise StoreError(f"{shown(engine.url)} is damaged: {' '.join(str(problem).split())}")


# Databases limit the values in one statement; 999 is the smallest limit of a SQLite still met.
MOST_VALUES = 900


def chunks(items: Iterable[T], values: int = 1) -> Iterator[list[T]]:
    """Cut items into lists that fit into one statement, at so many values an item."""
    rest = iter(items)
    while part := list(islice(rest, MOST_VALUES // values)):
        yield part


def rows_among(
    session: Session, query: Select[*tuple[Any, ...]], column: Any, values: Iterable[object]
) -> Iterator[Row[*tuple[Any, ...]]]:
    """Run a query for the rows whose column has one of these values, however many there are."""
    for part in chunks(values):
        yield from session.execute(query.where(column.in_(part)))
