"""Check a bundle: its files, its database, its frozen plan, and every number of its report."""

import json
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

from registry.problems import ConfigError
from registry.table import DuplicateNameError, UnknownNameError
from store.checks import check
from store.errors import StoreError
from store.results import Results
from store.values import fingerprint
from studies.bundle.contents import PLAN
from studies.bundle.manifest import NAME, wrong_files
from studies.cli.recall import plan_of
from studies.report.make import check_numbers

NEEDED = ("study", "words", "database", "frozen")
"""What the plan of a bundle says."""


def check_bundle(folder: Path) -> list[str]:
    """What is wrong with a bundle, a line each; empty where all is as it was made.

    Raises:
        StoreError: If the folder holds no bundle.
    """
    if not (folder / NAME).is_file() or not (folder / PLAN).is_file():
        raise StoreError(f"{folder} holds no bundle: it lacks {NAME} or {PLAN}")
    # The words of a plan name files as seen from the bundle.
    with chdir(folder):
        wrong = list(wrong_files(Path()))
        try:
            return [*wrong, *_wrong_inside(_plan_told())]
        except (StoreError, ConfigError, UnknownNameError, DuplicateNameError) as error:
            return [*wrong, f"it cannot be looked into any further: {error}"]


def _plan_told() -> dict[str, Any]:
    """What the plan of the bundle at hand says.

    Raises:
        StoreError: If it is no such plan.
    """
    try:
        told = json.loads(Path(PLAN).read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise StoreError(f"{PLAN} is not JSON: {error}") from None
    lacks = [key for key in NEEDED if not isinstance(told, dict) or key not in told]
    if lacks:
        raise StoreError(f"{PLAN} is not the plan of a bundle: it lacks {', '.join(lacks)}")
    return told


def _wrong_inside(told: dict[str, Any]) -> Iterator[str]:
    storage = f"sqlite:///{told['database']}"
    for one in check(storage)[0]:
        yield f"{one.check}: {one.place}: {one.problem}"
    yield from _wrong_plans(told, storage)
    plan = plan_of(told["study"], told["words"])
    for line in check_numbers(plan, storage, Path("report")):
        yield f"report: {line}"


def _wrong_plans(told: dict[str, Any], storage: str) -> Iterator[str]:
    results = Results(storage)
    try:
        stored = {one.hash for one in results.protocols(study=told["study"])}
    finally:
        results.close()
    for one in told["frozen"]:
        if fingerprint(one["protocol"]) != one["hash"]:
            yield f"{PLAN}: the plan with hash {one['hash'][:12]}… is not what it was taken of"
    if {one["hash"] for one in told["frozen"]} != stored:
        yield f"{PLAN}: its plans are others than those of the database"
