"""Files: written whole or not at all, and told apart by their sha256."""

import hashlib
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from store.errors import StoreError

HALF = ".part"
"""How the name of a file ends that is not written to its end."""


@contextmanager
def writing(place: Path) -> Generator[None]:
    """Turn what the system refuses while a place is written into an error of one line.

    Raises:
        StoreError: If it cannot be written.
    """
    try:
        yield
    except OSError as error:
        raise StoreError(f"{place} cannot be written: {error.strerror or error}") from error


@contextmanager
def replacing(path: Path) -> Generator[Path]:
    """A path beside, whose file takes the place of `path` once it is whole.

    Whoever reads sees the old file or the new one, and a kill leaves the old one.

    Raises:
        StoreError: If it cannot be written.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}{HALF}")
    with writing(path):
        try:
            yield beside
            os.replace(beside, path)
        finally:
            beside.unlink(missing_ok=True)


def sha256(content: bytes) -> str:
    """The sha256 of bytes, in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def sha256_of(path: Path) -> str:
    """The sha256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
