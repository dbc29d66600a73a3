"""Which results came from parts whose source has changed since."""

import hashlib
from collections.abc import Iterable
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session

from store.answers import Changed
from store.rows import ComponentRow, RunRow
from store.selection import Selection


def changed(session: Session, selection: Selection) -> list[Changed]:
    """Return the parts whose source is not what the runs were done with; see `Results.changed`."""
    runs: dict[str | None, list[tuple[int, str]]] = {}
    query = select(RunRow.code_hash, RunRow.id, RunRow.arm).where(*selection.conditions(session))
    for code, number, arm in session.execute(query.order_by(RunRow.id)):
        runs.setdefault(code, []).append((number, arm))
    used: dict[tuple[str, str, str, str], list[str]] = {}
    told: dict[str | None, set[str]] = {}
    for row in session.scalars(select(ComponentRow)):
        told.setdefault(row.code_hash, set()).add(row.kind)
        if row.code_hash in runs:
            part = (row.kind, row.name, row.origin, row.source_hash)
            used.setdefault(part, []).append(row.code_hash)
    found = [
        _compared(*part, (run for code in codes for run in runs[code]))
        for part, codes in sorted(used.items())
    ]
    silent = [run for code, of in runs.items() if code not in told for run in of]
    # Runs of an older version noted their parts alone.
    trained = [
        run
        for code, of in runs.items()
        if not told.get(code, {"training"}) & {"training", "perform"}
        for run in of
    ]
    return [
        *(one for one in found if one is not None),
        *_unknown(None, sorted(silent)),
        *_unknown("training", sorted(trained)),
    ]


def present_hash(origin: str) -> str | None:
    """Return the sha256 of the file that an origin names, as it is now; None where it is gone.

    The file of `module:class`, or of a module alone, is looked for where an import would look, but
    nothing is imported.
    """
    place = origin.rpartition(":")[0] or origin
    path = Path(place) if place.endswith(".py") else _file_of(place)
    if path is None or not path.is_file():
        return None
    return hashlib.sha256(path.read_bytes()).hexdigest()


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


def _compared(
    kind: str, name: str, origin: str, source_hash: str, of: Iterable[tuple[int, str]]
) -> Changed | None:
    present = present_hash(origin)
    if present == source_hash:
        return None
    nowhere = origin.startswith("__main__:")
    state = "unknown" if nowhere else "missing" if present is None else "changed"
    arms, numbers = _told(sorted(of))
    return Changed(kind, name, state, origin, len(numbers), arms, numbers, source_hash, present)


def _unknown(kind: str | None, of: list[tuple[int, str]]) -> list[Changed]:
    """One line for the runs that did not note what they were done by: at all, or of one kind."""
    if not of:
        return []
    arms, numbers = _told(of)
    return [Changed(kind, None, "unknown", None, len(numbers), arms, numbers, None, None)]


def _told(of: Iterable[tuple[int, str]]) -> tuple[str, list[int]]:
    runs = list(of)
    return ", ".join(sorted({arm for _, arm in runs})), [number for number, _ in runs]
