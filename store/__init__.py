"""The result store: every planned, running and finished run with its scores, in one database.

`Ledger` writes it, `Results` reads it, and `python -m store` prints it.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from store.aggregate import Interval, t_interval, wilson
    from store.database import install_sqlite_hooks, make_engine
    from store.encoding import plain
    from store.errors import StoreError
    from store.ledger import Ledger
    from store.provenance import environment_facts, git_facts
    from store.records import (
        Best,
        Choice,
        Claim,
        Component,
        Curve,
        Frozen,
        Model,
        Plan,
        PlannedRun,
        Records,
        Run,
        Score,
    )
    from store.results import Results

__all__ = [
    "Best",
    "Choice",
    "Claim",
    "Component",
    "Curve",
    "Frozen",
    "Interval",
    "Ledger",
    "Model",
    "Plan",
    "PlannedRun",
    "Records",
    "Results",
    "Run",
    "Score",
    "StoreError",
    "environment_facts",
    "git_facts",
    "install_sqlite_hooks",
    "make_engine",
    "plain",
    "t_interval",
    "wilson",
]

_RECORDS = (
    *("Best", "Choice", "Claim", "Component", "Curve", "Frozen", "Model", "Plan", "PlannedRun"),
    *("Records", "Run", "Score"),
)
_HOMES = {
    **dict.fromkeys(_RECORDS, "store.records"),
    **dict.fromkeys(("Interval", "t_interval", "wilson"), "store.aggregate"),
    **dict.fromkeys(("environment_facts", "git_facts"), "store.provenance"),
    **dict.fromkeys(("install_sqlite_hooks", "make_engine"), "store.database"),
    "Ledger": "store.ledger",
    "Results": "store.results",
    "StoreError": "store.errors",
    "plain": "store.encoding",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'store' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
