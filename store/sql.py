"""SQL as it is typed, which can read everything and change nothing."""

import signal
import sqlite3
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import chain, count
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.parse import quote

from sqlalchemy import Engine, text
from sqlalchemy.exc import SQLAlchemyError

from store.database import NOT_UTF8, connected, explain, shown
from store.errors import StoreError

Answer = tuple[list[str], Iterator[Sequence[Any]]]

READING = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}
# What SQLite can be asked about itself; with a value none of them changes anything.
PRAGMAS = {
    *("table_info", "table_xinfo", "table_list", "index_list", "index_info", "index_xinfo"),
    *("foreign_key_list", "foreign_key_check", "integrity_check", "quick_check"),
    *("compile_options", "database_list", "function_list", "collation_list"),
}
FIRST_WORDS = ("SELECT", "WITH", "VALUES", "TABLE")
LONGEST_VALUE = 100_000_000
STEPS_BETWEEN_SIGNALS = 100_000
NOT_READING = "only statements that read are allowed, such as SELECT"


@contextmanager
def read_sql(url: str, query: str) -> Generator[Answer]:
    """Run one statement that reads; yield its columns, and its rows one after the other.

    A SQLite file is opened read only, the connection refuses writes, and every step that is more
    than reading is refused before it runs; PostgreSQL runs it in a read-only transaction.

    Raises:
        StoreError: If it is more than one statement, would change anything, or cannot be run.
    """
    with connected(url, readonly=True) as engine:
        is_sqlite = engine.dialect.name == "sqlite"
        run = _read_sqlite if is_sqlite else _read_server
        with run(engine, query) as answer:
            yield answer


@contextmanager
def _read_sqlite(engine: Engine, query: str) -> Generator[Answer]:
    path = shown(engine.url)
    uri = f"file:{quote(str(Path(path).absolute()))}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True)) as connection, _noting_ctrl_c() as pressed:
        connection.execute("PRAGMA query_only = ON")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE)
        connection.set_authorizer(_authorize)
        # Python sees Ctrl-C only between its own steps, so a long query takes some.
        connection.set_progress_handler(lambda: len(pressed), STEPS_BETWEEN_SIGNALS)
        try:
            cursor = connection.execute(query)
            names = [column[0] for column in cursor.description or ()]
            if not names:
                raise StoreError(f"sql: {NOT_READING}")
            yield _unlike(names), cursor
        except (sqlite3.Error, sqlite3.Warning) as error:
            if pressed:
                raise KeyboardInterrupt from error
            # The code of a refused step is SQLITE_AUTH, but not in every statement.
            refused = "not authorized" in str(error)
            why = NOT_READING if refused else " ".join(str(error).split())
            raise StoreError(f"sql: {why}") from error
        except UnicodeDecodeError as error:
            raise StoreError(f"sql: {path} is damaged: {NOT_UTF8}") from error


@contextmanager
def _noting_ctrl_c() -> Generator[list[int]]:
    """Note each Ctrl-C as well as raise it.

    What is raised inside a callback of SQLite, or while something is finalized, is lost.
    """
    pressed: list[int] = []
    before = signal.getsignal(signal.SIGINT)
    if not callable(before) or threading.current_thread() is not threading.main_thread():
        yield pressed
        return

    def note(number: int, frame: FrameType | None) -> None:
        pressed.append(number)
        before(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)


def _authorize(action: int, first: str | None, second: str | None, *where: str | None) -> int:
    """Allow a step of a statement if it reads."""
    reads = action in READING and (second or "").lower() != "load_extension"
    asks = action == sqlite3.SQLITE_PRAGMA and (first or "").lower() in PRAGMAS
    return sqlite3.SQLITE_OK if reads or asks else sqlite3.SQLITE_DENY


@contextmanager
def _read_server(engine: Engine, query: str) -> Generator[Answer]:
    statement = query.strip().rstrip(";")
    # The protocol would run several at once, and the second could end the read-only transaction.
    if ";" in statement:
        raise StoreError("sql: one statement at a time")
    if next(iter(statement.split()), "").upper() not in FIRST_WORDS:
        raise StoreError(f"sql: {NOT_READING}")
    try:
        with engine.connect() as connection:
            reader = connection.execution_options(yield_per=1000)
            found = reader.execute(text(statement.replace(":", "\\:")))
            yield _unlike(list(found.keys())), iter(found)
    except SQLAlchemyError as error:
        raise StoreError(f"sql: {explain(engine.url, error)}") from error


def _unlike(names: Sequence[str]) -> list[str]:
    """Number the columns that share a name, since a row is a mapping."""
    found: list[str] = []
    for name in names:
        others = (f"{name}_{number}" for number in count(2))
        found.append(next(each for each in chain([name], others) if each not in found))
    return found
