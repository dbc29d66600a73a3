"""Check a bundle: its files, its database, its frozen plan, and every number of its report."""

import json
from collections.abc import Iterator
from contextlib import chdir, closing
from pathlib import Path
from typing import Any

from registry.errors import UnknownNameError
from store.encoding import fingerprint
from store.errors import StoreError
from store.files import sha256_of
from store.maintenance import check
from store.results import Results
from studies.bundle.make import MANIFEST, PLAN, files_of
from studies.experiment.plan import latest_plan
from studies.report.files import check_numbers

NEEDED = ("study", "plan", "database", "frozen")
"""The keys of the plan of a bundle."""


def check_bundle(folder: Path) -> list[str]:
    """The problems of a bundle, a line each; none where it is intact.

    Raises:
        StoreError: If the folder is not a bundle.
    """
    if not (folder / MANIFEST).is_file() or not (folder / PLAN).is_file():
        raise StoreError(f"{folder} is not a bundle: {MANIFEST} or {PLAN} is missing")
    # The plan names its database as seen from the bundle.
    with chdir(folder):
        wrong = list(wrong_files(Path()))
        try:
            return [*wrong, *_wrong_inside(_plan_told())]
        except (StoreError, UnknownNameError) as error:
            return [*wrong, f"the check stopped early: {error}"]


def _plan_told() -> dict[str, Any]:
    """The plan of the bundle in the current folder.

    Raises:
        StoreError: If it is no such plan.
    """
    try:
        told = json.loads(Path(PLAN).read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise StoreError(f"{PLAN} is not JSON: {error}") from None
    lacks = [key for key in NEEDED if not isinstance(told, dict) or key not in told]
    if lacks:
        raise StoreError(f"{PLAN} is not the plan of a bundle: missing {', '.join(lacks)}")
    return told


def _wrong_inside(told: dict[str, Any]) -> Iterator[str]:
    storage = f"sqlite:///{told['database']}"
    for one in check(storage)[0]:
        yield f"{one.check}: {one.place}: {one.problem}"
    with closing(Results(storage)) as results:
        yield from _wrong_plans(told, results)
        plan = latest_plan(results, told["study"])
    if plan.to_data() != told["plan"]:
        yield f"{PLAN}: the plan is another than that of the database"
    for line in check_numbers(plan, storage, Path("report")):
        yield f"report: {line}"


def _wrong_plans(told: dict[str, Any], results: Results) -> Iterator[str]:
    stored = {one.hash for one in results.protocols(study=told["study"])}
    for one in told["frozen"]:
        if fingerprint(one["protocol"]) != one["hash"]:
            yield f"{PLAN}: the plan with hash {one['hash'][:12]}… is not what it was taken of"
    if {one["hash"] for one in told["frozen"]} != stored:
        yield f"{PLAN}: its plans are others than those of the database"


def wrong_files(folder: Path) -> Iterator[str]:
    """The differences between a folder and its manifest, a line each.

    Raises:
        OSError: If there is no manifest.
    """
    told: dict[str, str] = {}
    for line in (folder / MANIFEST).read_text(encoding="utf-8", errors="replace").splitlines():
        digest, _, name = line.partition("  ")
        told[name] = digest
    there = set(files_of(folder))
    for name in sorted(told.keys() - there):
        yield f"{name}: listed in {MANIFEST} but missing"
    for name in sorted(there - told.keys()):
        yield f"{name}: not listed in {MANIFEST}"
    for name in sorted(there & told.keys()):
        if sha256_of(folder / name) != told[name]:
            yield f"{name}: checksum differs from {MANIFEST}"
