"""Facts about the machine, the packages and the source, kept with every run."""

import hashlib
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import astuple
from importlib.machinery import PathFinder
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from store.encoding import record_of
from store.models import ComponentRow, RunRow, ScoreRow
from store.records import Changed, Component
from store.source_code import hash_of_file
from store.where import SCORE_COLUMNS, Selection

PACKAGES = (
    *("encoder-sandbox", "torch", "numpy", "einops", "jaxtyping", "optuna", "sqlalchemy"),
    *("alembic", "pydantic", "ruamel.yaml", "scipy", "pandas"),
)
GIT_SECONDS = 30


def environment_facts(extra: Mapping[str, object]) -> dict[str, Any]:
    """Return what is known about this machine and its packages, and `extra` beside it.

    A package that is not installed is left out.
    """
    return {
        "python": sys.version.split()[0],
        "implementation": platform.python_implementation(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cpu": _cpu_model(Path("/proc/cpuinfo")),
        "cpu_count": os.cpu_count(),
        "host": platform.node(),
        "packages": _versions(),
        **extra,
    }


def git_facts(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return commit, branch, whether tracked files differ, and the sha256 of that difference.

    Returns {"commit": None} outside git, before the first commit, and where git is missing.
    """
    commit = _git(path, "rev-parse", "--verify", "HEAD")
    if commit is None:
        return {"commit": None}
    branch = _git(path, "rev-parse", "--abbrev-ref", "HEAD")
    difference = _git(path, "diff", "--no-ext-diff", "--no-textconv", "--binary", "HEAD")
    return {
        "commit": commit.decode().strip(),
        "branch": None if branch is None else branch.decode(errors="replace").strip(),
        "dirty": None if difference is None else bool(difference),
        "diff_sha256": hashlib.sha256(difference).hexdigest() if difference else None,
    }


def _versions() -> dict[str, str]:
    found: dict[str, str] = {}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _cpu_model(source: Path) -> str | None:
    if not source.exists():
        return platform.processor() or None
    text = source.read_text(encoding="utf-8", errors="replace")
    lines = (line.partition(":") for line in text.splitlines())
    return next((value.strip() for name, _, value in lines if name.strip() == "model name"), None)


def _git(path: str | os.PathLike[str], *words: str) -> bytes | None:
    """Return what git prints, or None when it refuses, is missing or takes too long."""
    # Without optional locks git leaves the index alone, which another process may be writing.
    command = ["git", "--no-optional-locks", "-C", os.fspath(path), *words]
    try:
        done = subprocess.run(command, capture_output=True, timeout=GIT_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def changed(session: Session, selection: Selection) -> list[Changed]:
    """Return the parts whose source is not what the runs were done with; see `Results.changed`."""
    runs: dict[str | None, list[tuple[int, str]]] = {}
    query = select(RunRow.code_hash, RunRow.id, RunRow.arm).where(*selection.conditions(session))
    for code, number, arm in session.execute(query.order_by(RunRow.id)):
        runs.setdefault(code, []).append((number, arm))
    used: dict[Component, list[tuple[int, str]]] = {}
    noted: set[str | None] = set()
    for row in session.scalars(select(ComponentRow)):
        noted.add(row.code_hash)
        if row.code_hash in runs:
            used.setdefault(record_of(Component, row), []).extend(runs[row.code_hash])
    found: list[Changed] = []
    for part, of in sorted(used.items(), key=lambda item: astuple(item[0])):
        present = present_hash(part.origin)
        if present != part.source_hash:
            nowhere = part.origin.startswith("__main__:")
            state = "unknown" if nowhere else "missing" if present is None else "changed"
            found.append(_changed(of, state, part, present))
    silent = [run for code, of in runs.items() if code not in noted for run in of]
    return found + ([_changed(silent, "unknown")] if silent else [])


def mixed_code(session: Session, selection: Selection) -> list[str]:
    """Return kind and name of the parts with several sources; see `Results.mixed_code`."""
    codes = select(RunRow.code_hash).distinct()
    if selection.where is None:
        codes = codes.where(*selection.conditions(session))
    else:  # which may be about scores
        codes = codes.join(ScoreRow, ScoreRow.run_id == RunRow.id)
        codes = codes.where(*selection.conditions(session, SCORE_COLUMNS))
    part = ComponentRow.kind, ComponentRow.name
    several = func.count(ComponentRow.source_hash.distinct()) > 1
    query = select(*part).where(ComponentRow.code_hash.in_(codes)).group_by(*part).having(several)
    return [f"{kind} {name}" for kind, name in session.execute(query.order_by(*part))]


def _changed(
    of: Iterable[tuple[int, str]],
    state: str,
    part: Component | None = None,
    present: str | None = None,
) -> Changed:
    """Return what is said of a part of these runs; of no part where runs did not note theirs."""
    runs = sorted(of)
    return Changed(
        kind=part and part.kind,
        name=part and part.name,
        state=state,
        origin=part and part.origin,
        runs=len(runs),
        arms=", ".join(sorted({arm for _, arm in runs})),
        run_ids=[number for number, _ in runs],
        source_hash=part and part.source_hash,
        present_hash=present,
    )


def present_hash(origin: str) -> str | None:
    """Return the fingerprint of the file that an origin names, as it is; None where it is gone.

    The file of `module:class`, or of a module alone, is looked for where an import would look, but
    nothing is imported.
    """
    place = origin.rpartition(":")[0] or origin
    path = Path(place) if place.endswith(".py") else _file_of(place)
    if path is None or not path.is_file():
        return None
    return hash_of_file(path)


def _file_of(module: str) -> Path | None:
    top, *rest = module.split(".")
    try:
        # Nothing is run to find what is at the top; deeper, `find_spec` would import the parents.
        spec = find_spec(top) if top and top != "__main__" else None
    except (ValueError, ImportError):
        return None
    name = top
    for part in rest:
        if spec is None or spec.submodule_search_locations is None:
            return None
        name = f"{name}.{part}"
        spec = PathFinder.find_spec(name, spec.submodule_search_locations)
    return Path(spec.origin) if spec is not None and spec.origin else None
