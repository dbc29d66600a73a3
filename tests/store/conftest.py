"""A fresh database, and runs to put into it."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from store.ledger import Ledger
from store.records import Choice, PlannedRun
from tests.store.postgres import Server, serving

MakeRun = Callable[..., PlannedRun]


def make_planned(seed: int = 0, **changes: Any) -> PlannedRun:
    config = {
        "encoder": {"position": {"name": "rope"}, "d_model": 64},
        "training": {"learning_rate": 0.001, "steps": 10},
    }
    fields: dict[str, Any] = {
        "study": "reach",
        "task": "copy",
        "arm": "rope",
        "phase": "confirm",
        "seed": seed,
        "config": config,
        "config_hash": "c0",
        "code_hash": None,
        "steps": 10,
    }
    fields.update(changes)
    fields.setdefault("identity", f"{fields['arm']}-{fields['phase']}-{seed}")
    return PlannedRun(**fields)


def make_choice(
    tried: Sequence[tuple[float, float | None, Sequence[int]]], chosen: int | None, **changes: Any
) -> Choice:
    """What tuning chose among rates, each with its nll and its runs."""
    rows = [
        {
            "setting": {"training.learning_rate": rate},
            "nll": nll,
            "status": "diverged" if nll is None else "done",
            "runs": list(runs),
        }
        for rate, nll, runs in tried
    ]
    won = None if chosen is None else rows[chosen]
    fields: dict[str, Any] = {
        **{"study": "reach", "task": "copy", "arm": "rope", "rule": "lowest validation nll"},
        "search": str(rows),
        "setting": won and won["setting"],
        "nll": won and won["nll"],
        "reason": None if won else "training diverged at every setting",
        "tried": rows,
        "runs": won["runs"] if won else [],
    }
    return Choice(**{**fields, **changes})


@pytest.fixture(scope="session")
def make_run() -> MakeRun:
    return make_planned


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sandbox.db"


@pytest.fixture
def url(path: Path) -> str:
    return f"sqlite:///{path}"


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with our tables, made once; alembic would cost every test a tenth of a second."""
    path = tmp_path_factory.mktemp("template") / "sandbox.db"
    Ledger.create(f"sqlite:///{path}").close()
    return path


@pytest.fixture
def ledger(template: Path, path: Path, url: str) -> Iterator[Ledger]:
    shutil.copy(template, path)
    ledger = Ledger.open(url)
    yield ledger
    ledger.close()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A PostgreSQL server; what asks for it is skipped where none can be had."""
    with serving() as found:
        yield found


@pytest.fixture
def server_url(server: Server) -> Iterator[str]:
    """An empty database of the server."""
    with server.database(f"sandbox_{uuid4().hex}") as url:
        yield url


@pytest.fixture(scope="session")
def server_template(server: Server) -> Iterator[str]:
    """The name of a database with our tables, of which others are copies."""
    name = f"template_{uuid4().hex}"
    with server.database(name) as url:
        Ledger.create(url).close()
        yield name


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def any_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database of each kind that can hold results, with our tables."""
    if request.param == "sqlite":
        path = tmp_path / "sandbox.db"
        shutil.copy(request.getfixturevalue("template"), path)
        yield f"sqlite:///{path}"
    else:
        server: Server = request.getfixturevalue("server")
        name = f"sandbox_{uuid4().hex}"
        with server.database(name, request.getfixturevalue("server_template")) as url:
            yield url


@pytest.fixture
def any_ledger(any_url: str) -> Iterator[Ledger]:
    ledger = Ledger.open(any_url)
    yield ledger
    ledger.close()
