"""The version of the tables in a database: read, checked, created, upgraded."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from sqlalchemy import Engine, event, inspect, text
from sqlalchemy.orm import Session

from store.connection import exists, make_engine, shown, transact
from store.errors import StoreError
from store.schema import VERSION_TABLE

SCHEMA_VERSION = "0003"
MIGRATIONS = Path(__file__).parent / "migrations"


def opened(engine: Engine, *checks: Callable[[Engine], None]) -> Engine:
    """Return the engine after the checks; an engine that fails one is closed."""
    try:
        for check in checks:
            check(engine)
    except StoreError:
        engine.dispose()
        raise
    return engine


def create_tables(engine: Engine) -> None:
    """Make our tables where they are missing; what others keep in the database is not touched.

    Raises:
        StoreError: If the database is damaged or its tables are of another version.
    """
    check_pages(engine)
    # In one transaction, begun as a writer: of several that create at once, the first does.
    transact(engine, _create_if_missing)
    require_tables(engine)


def require_tables(engine: Engine) -> None:
    """Refuse a database that does not hold our tables in the version that this code knows.

    Raises:
        StoreError: If there are none, or they are older or newer; both versions are named.
    """
    place = shown(engine.url)
    found = transact(engine, _read_version)
    if found is None:
        raise StoreError(f"{place} holds no encoder-sandbox tables")
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


def refuse_other_version(url: str) -> None:
    """Refuse a database of another version without a change to it; one that is not there passes.

    Raises:
        StoreError: If its tables are older or newer, or it cannot be opened.
    """
    if not exists(url):
        return
    engine = make_engine(url, readonly=True)
    try:
        if transact(engine, _read_version) is not None:
            require_tables(engine)
    finally:
        engine.dispose()


def check_size(engine: Engine) -> None:
    """Refuse a SQLite file that was cut short, at a glance.

    Raises:
        StoreError: If it is smaller than it says.
    """
    if engine.dialect.name == "sqlite":
        transact(engine, _check_size)


def check_pages(engine: Engine) -> None:
    """Refuse a SQLite file that is damaged, for example cut short; it reads the whole file.

    Raises:
        StoreError: If it is damaged.
    """
    if engine.dialect.name == "sqlite":
        transact(engine, _check_pages)


def upgrade(url: str) -> str:
    """Bring the tables of a database to this code's version; return what was done, in a sentence.

    A SQLite file is first copied beside itself, since an upgrade cannot be undone.

    Raises:
        StoreError: If there is nothing to upgrade, or no way from the version found.
    """
    # The reader refuses a missing file, where a writer would make an empty one.
    make_engine(url, readonly=True).dispose()
    engine = make_engine(url)
    try:
        found = transact(engine, _read_version)
        if found is None or found > SCHEMA_VERSION:
            require_tables(engine)
        if found == SCHEMA_VERSION:
            return f"{shown(engine.url)} is at version {found} already"
        copy = _copy(engine)
        _leave_foreign_keys(engine)
        transact(engine, _migrate_and_check)
    finally:
        engine.dispose()
    return f"{shown(engine.url)}: version {found} became {SCHEMA_VERSION}{copy}"


def _read_version(session: Session) -> str | None:
    connection = session.connection()
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    return cast("str | None", session.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}")))


def _create_if_missing(session: Session) -> None:
    if session.get_bind().dialect.name == "postgresql":
        session.execute(text("SELECT pg_advisory_xact_lock(hashtext('es_alembic_version'))"))
    if _read_version(session) is None:
        _migrate(session)


def _migrate(session: Session) -> None:
    # Alembic costs half a second to import, so only who changes the tables pays for it.
    from alembic.command import upgrade as run_scripts
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config(attributes={"connection": session.connection()})
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    try:
        run_scripts(config, "head")
    except CommandError as error:
        raise StoreError(f"the tables cannot be upgraded: {error}") from error


def _leave_foreign_keys(engine: Engine) -> None:
    """Let tables be replaced by others: SQLite would delete the rows that refer to the old one."""
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _without_foreign_keys)
        engine.dispose()


def _without_foreign_keys(connection: sqlite3.Connection, record: object) -> None:
    connection.execute("PRAGMA foreign_keys = OFF")


def _migrate_and_check(session: Session) -> None:
    _migrate(session)
    if session.get_bind().dialect.name == "sqlite":
        broken = session.execute(text("PRAGMA foreign_key_check")).fetchone()
        if broken is not None:
            raise StoreError(f"the upgrade was given up: rows of {broken[0]} refer to nothing")


def _check_pages(session: Session) -> None:
    problem = session.scalar(text("PRAGMA quick_check(1)"))
    if problem != "ok":
        place = shown(session.get_bind().engine.url)
        raise StoreError(f"{place} is damaged: {' '.join(str(problem).split())}")


def _check_size(session: Session) -> None:
    said = session.scalar(text("PRAGMA page_count")) * session.scalar(text("PRAGMA page_size"))
    place = shown(session.get_bind().engine.url)
    # The log first: what leaves it is in the file by then.
    there = sum(_bytes(Path(name)) for name in (f"{place}-wal", place))
    if there < said:
        raise StoreError(f"{place} is damaged: it has {there} bytes of {said}")


def _bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _copy(engine: Engine) -> str:
    if engine.dialect.name != "sqlite":
        return ""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    target = f"{engine.url.database}.{stamp}.backup"
    # By the driver itself: our engines begin a transaction, in which nothing can be copied.
    with closing(sqlite3.connect(str(engine.url.database), isolation_level=None)) as connection:
        try:
            connection.execute("VACUUM INTO ?", (target,))
        except sqlite3.Error as error:
            raise StoreError(f"{target} cannot be written: {error}") from error
    return f"; the old file is {target}"
