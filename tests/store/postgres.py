"""A PostgreSQL server for tests: one that is named, or one that is started here for them.

It listens on a socket file in its own folder, so nothing outside this machine can reach it.
"""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import URL, make_url

NAMED_BY = "ENCODER_SANDBOX_POSTGRES"
# Safe enough for a server that lives as long as its tests, and much quicker.
OPTIONS = "-c listen_addresses='' -c fsync=off -c full_page_writes=off -c max_connections=50"


@dataclass(frozen=True)
class Server:
    """A running server; `url` is that of a database which is there already."""

    url: URL

    @contextmanager
    def database(self, name: str, template: str = "template0") -> Iterator[str]:
        """Make a database, and drop it in the end; yields its URL."""
        self.run(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        try:
            yield self.url.set(database=name).render_as_string(hide_password=False)
        finally:
            self.run(f'DROP DATABASE "{name}" WITH (FORCE)')

    def run(self, statement: Any) -> None:
        import psycopg

        plain = self.url.set(drivername="postgresql").render_as_string(hide_password=False)
        with closing(psycopg.connect(plain, autocommit=True)) as connection:
            connection.execute(statement)


@contextmanager
def serving() -> Iterator[Server]:
    """Give a server, or skip the test with the reason why there is none."""
    pytest.importorskip("psycopg", reason="needs psycopg: pip install 'encoder-sandbox[postgres]'")
    named = os.environ.get(NAMED_BY)
    if named is not None:
        yield Server(make_url(named))
        return
    programs = find_programs()
    if programs is None:
        pytest.skip(f"needs PostgreSQL, which .ci/run installs, or the URL of one in {NAMED_BY}")
    # Not in a folder of pytest: these let nobody else in, and a socket's path must be short.
    folder = Path(tempfile.mkdtemp(prefix="postgres"))
    try:
        with started(programs, folder):
            query = {"host": str(folder)}
            url = URL.create("postgresql+psycopg", "sandbox", database="postgres", query=query)
            yield Server(url)
    finally:
        shutil.rmtree(folder)


def find_programs() -> Path | None:
    """The folder that holds `initdb` and `pg_ctl`, the newest where there are several."""
    debian = Path("/usr/lib/postgresql")
    versions = sorted(debian.glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    found = str(versions[-1]) if versions else shutil.which("initdb")
    return None if found is None else Path(found).resolve().parent


@contextmanager
def started(programs: Path, folder: Path) -> Iterator[None]:
    """Run a server whose files are in a folder."""
    data = folder / "data"
    control: list[str] = [str(programs / "pg_ctl"), "-D", str(data), "-w"]
    how = as_somebody(folder)
    initialize = ["-U", "sandbox", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
    run(how, [str(programs / "initdb"), "-D", str(data), *initialize], folder)
    run(how, [*control, "-l", str(folder / "log"), "-o", f"-k {folder} {OPTIONS}", "start"], folder)
    try:
        yield
    finally:
        run(how, [*control, "-m", "immediate", "stop"], folder)


def as_somebody(folder: Path) -> dict[str, Any]:
    """How to run as a user that owns the folder: a server refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def run(how: dict[str, Any], words: list[str], folder: Path) -> None:
    told = folder / "told"
    # Into a file: a server that holds a pipe open would keep its reader waiting for ever.
    with told.open("w") as file:
        ended = subprocess.run(words, stdout=file, stderr=file, cwd=folder, check=False, **how)
    if ended.returncode != 0:
        pytest.skip(f"PostgreSQL does not run here: {' '.join(told.read_text().split())[-200:]}")
