"""An existing database, opened to be read."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeVar

from sqlalchemy.orm import Session

from store.connection import make_engine, reading, transact
from store.versions import check_size, opened, require_tables

T = TypeVar("T")


class Reader:
    """Reads a database and changes nothing in it.

    Raises:
        StoreError: If the database is missing, damaged, not ours or of another version.
    """

    def __init__(self, url: str) -> None:
        self._engine = opened(make_engine(url, readonly=True), check_size, require_tables)

    def close(self) -> None:
        """Close the connections. The results may be read again after it."""
        self._engine.dispose()

    def _transact(self, work: Callable[[Session], T]) -> T:
        return transact(self._engine, work)

    @contextmanager
    def _reading(self) -> Generator[Session]:
        with reading(self._engine) as session:
            yield session
