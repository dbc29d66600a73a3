"""A fresh database, and runs to put into it."""

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


@pytest.fixture
def ledger(url: str) -> Iterator[Ledger]:
    ledger = Ledger.create(url)
    yield ledger
    ledger.close()
