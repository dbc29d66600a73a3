"""Which values may be stored: plain Python only, so that every reader sees the same thing.

What may not is refused by a `StoreError`, which names it as `at` says.
"""

import hashlib
import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from operator import itemgetter
from typing import Any, TypeVar, cast

from store.errors import StoreError, require_known, suggest
from store.models import Table, now
from store.records import PHASES, Choice, PlannedRun

Record = TypeVar("Record")


def plain(value: object, at: str = "value") -> object:
    """Return the value in types that JSON knows, or refuse it.

    NumPy scalars become Python numbers and tuples become lists. JSON has no word for a number
    that is not finite, so nan and the infinities become the text "nan", "inf" and "-inf".

    Raises:
        StoreError: If the value, or one inside it, is an array, a tensor or another object.
    """
    value = unwrap_numpy(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, Mapping):
        return plain_dict(cast("Mapping[object, object]", value), at)
    if isinstance(value, list | tuple):
        items = cast("list[object] | tuple[object, ...]", value)
        return [plain(item, f"{at}[{index}]") for index, item in enumerate(items)]
    raise StoreError(
        f"{at} is of type {type(value).__module__}.{type(value).__qualname__}, "
        "which cannot be stored; use text, numbers, true, false, null, lists and mappings with "
        "text keys"
    )


def plain_dict(value: Mapping[Any, object], at: str) -> dict[str, object]:
    """Return a mapping in types that JSON knows; see `plain`."""
    found: dict[str, object] = {}
    for key, item in value.items():
        if not isinstance(key, str):
            raise StoreError(f"{at} has the key {key!r}; keys must be text")
        found[str.__str__(key)] = plain(item, f"{at}.{key}")
    return found


def fingerprint(data: object) -> str:
    """Return the sha256 of plain data, the same for equal data whatever the order of its keys."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def split_number(value: object, at: str) -> tuple[float | None, str | None]:
    """Split a number into what a database column can hold and a word for what it cannot.

    Returns (value, None) when it is finite, else (None, "nan" | "inf" | "-inf"); None stays None.
    """
    value = unwrap_scalar(value)
    if value is None:
        return None, None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise StoreError(
            f"{at} must be a number; got {type(value).__module__}.{type(value).__qualname__}"
        )
    number = float(value)
    return (number, None) if math.isfinite(number) else (None, str(number))


def plain_int(value: object, at: str) -> int:
    """Return a whole number as int."""
    value = unwrap_scalar(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise StoreError(f"{at} must be a whole number; got {value!r:.80}")
    if not -(2**63) <= value < 2**63:
        raise StoreError(f"{at} must fit in 64 bits; got {value}")
    return value


def plain_text(value: object, at: str) -> str:
    """Return text as str."""
    value = unwrap_numpy(value)
    if not isinstance(value, str):
        raise StoreError(f"{at} must be text; got {value!r:.80}")
    return value


def optional_int(value: object, at: str) -> int | None:
    """Return a whole number or None; see `plain_int`."""
    return None if value is None else plain_int(value, at)


def optional_text(value: object, at: str) -> str | None:
    """Return text or None; see `plain_text`."""
    return None if value is None else plain_text(value, at)


def optional_float(value: object, at: str) -> float | None:
    """Return a finite number or None."""
    number, status = split_number(value, at)
    if status is not None:
        raise StoreError(f"{at} must be finite; got {status}")
    return number


def unwrap_numpy(value: object) -> object:
    """Return the Python number or text inside a NumPy scalar, and anything else as it is."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.generic):
        return cast("Any", value).item()
    return value


def unwrap_scalar(value: object) -> object:
    """Return the Python number in an array or tensor without axes, and anything else as it is.

    A metric may come as one, such as `(a == b).float().mean()`; a trained run is not lost for it.
    """
    if type(value) is not float and getattr(value, "ndim", None) == 0:
        return cast("Any", value).item()
    return value


def storable_text(value: str) -> str:
    """Return text without lone surrogates, which file names can bring and no database takes."""
    return value.encode("utf-8", "replace").decode("utf-8").replace("\0", "\\0")


def record_of(kind: type[Record], row: Table) -> Record:
    """Return a row as a record, which needs no session."""
    return kind(**{each.name: getattr(row, each.name) for each in fields(cast("Any", kind))})


def planned_row(run: PlannedRun) -> dict[str, Any]:
    """Return the row of a planned run."""
    require_known(run.phase, PHASES, f"no phase is named {run.phase!r}")
    row = dict(vars(run))
    del row["components"]
    for name in ("seed", "steps", "priority"):
        row[name] = plain_int(row[name], name)
    row["parameters"] = optional_int(run.parameters, "parameters")
    row["config"] = plain_dict(run.config, "config")
    row["provenance"] = plain_dict(run.provenance, "provenance")
    return {**row, "status": "planned", "attempt": 0, "superseded": False, "created_at": now()}


def component_rows(run: PlannedRun) -> list[dict[str, Any]]:
    """Return the rows of the parts behind a planned run."""
    if run.components and run.code_hash is None:
        raise StoreError("a run with components needs the code_hash that stands for them")
    return [{"code_hash": run.code_hash, **vars(part)} for part in run.components]


Encode = Callable[[object, str], object]
SCORE: Mapping[str, Encode] = {
    "split": plain_text,
    "length": plain_int,
    "metric": plain_text,
    "bin": optional_int,
    "n": plain_int,
    "correct": optional_int,
    "shift": optional_text,
}
CURVE: Mapping[str, Encode] = {"step": plain_int, "metric": plain_text}
SCORE_KEYS = ("split", "length", "metric", "bin", "n", "correct", "value", "shift", "imputed")
SCORE_NEEDS = frozenset({"split", "length", "metric", "n", "value"})
CURVE_KEYS = ("step", "metric", "value")
# A Score or Curve that was read may be written again; these are set by the ledger.
IGNORED_KEYS = frozenset(
    {"run_id", "study", "task", "arm", "phase", "seed", "status", "options", "created_at", "source"}
)


def score_rows(
    run_id: int,
    scores: Iterable[object],
    source: str | None = None,
    created_at: datetime | None = None,
) -> list[dict[str, Any]]:
    """Return the rows of a run's scores, given as mappings or dataclasses.

    `source` and `created_at` are None for what the run itself measured.
    """
    rows: list[dict[str, Any]] = []
    for score in scores:
        found = _keys(score, SCORE_KEYS, SCORE_NEEDS, "score")
        row = {name: encode(found.get(name), f"a score's {name}") for name, encode in SCORE.items()}
        row["value"], row["status"] = split_number(found["value"], "a score's value")
        row["imputed"] = bool(found.get("imputed", False))
        rows.append({**row, "run_id": run_id, "source": source, "created_at": created_at})
    _refuse_repeats(rows, ("split", "length", "metric", "bin", "shift"), "score")
    return rows


def curve_rows(run_id: int, curves: Iterable[object]) -> list[dict[str, Any]]:
    """Return the rows of a run's curve points, given as mappings or dataclasses."""
    rows: list[dict[str, Any]] = []
    for point in curves:
        found = _keys(point, CURVE_KEYS, frozenset(CURVE_KEYS), "curve point")
        row = {name: encode(found[name], f"a curve's {name}") for name, encode in CURVE.items()}
        value, _ = split_number(found["value"], "a curve's value")
        rows.append({**row, "run_id": run_id, "value": value})
    _refuse_repeats(rows, ("step", "metric"), "curve point")
    return rows


def _keys(
    item: object, allowed: Sequence[str], needed: frozenset[str], what: str
) -> Mapping[str, object]:
    if isinstance(item, Mapping):
        found = cast("Mapping[str, object]", item)
    elif is_dataclass(item) and not isinstance(item, type):
        found = {name: getattr(item, name) for name in item.__dataclass_fields__}
        found = {name: value for name, value in found.items() if name not in IGNORED_KEYS}
    else:
        raise StoreError(f"a {what} must be a mapping or a dataclass; got {type(item).__name__}")
    if not needed <= found.keys():
        missing = [name for name in allowed if name in needed and name not in found]
        raise StoreError(f"a {what} lacks {', '.join(missing)}; got {sorted(found)}")
    for name in found:
        if name not in allowed:
            raise StoreError(f"a {what} has no {name!r}; {suggest(str(name), allowed)}")
    return found


def _refuse_repeats(rows: list[dict[str, Any]], names: Sequence[str], what: str) -> None:
    keys = list(map(itemgetter(*names), rows))
    if len(set(keys)) < len(keys):
        twice = next(key for at, key in enumerate(keys) if key in keys[:at])
        raise StoreError(f"a {what} is given twice: {dict(zip(names, twice, strict=True))}")


def choice_row(choice: Choice) -> dict[str, Any]:
    """Return the row of what tuning chose."""
    lists = ("setting", "tried", "near", "edges", "runs")
    kept = {name: plain(getattr(choice, name), name) for name in lists}
    nll = optional_float(choice.nll, "nll")
    return {**vars(choice), **kept, "nll": nll, "created_at": now()}


def model_row(run_id: int, path: str, sha256: str, size_bytes: int) -> dict[str, Any]:
    """Return the row of a run's saved weights."""
    if not re.fullmatch("[0-9a-f]{64}", sha256):
        raise StoreError(f"a sha256 is 64 hexadecimal digits; got {sha256!r:.80}")
    size = plain_int(size_bytes, "size_bytes")
    row = {"run_id": run_id, "path": plain_text(path, "path"), "sha256": sha256}
    return {**row, "size_bytes": size, "created_at": now()}
