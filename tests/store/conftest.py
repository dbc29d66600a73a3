"""A fresh database, and runs to put into it."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from store.ledger import Ledger
from store.records import PlannedRun

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
