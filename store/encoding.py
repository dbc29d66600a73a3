"""Which values may be stored: plain Python only, so that every reader sees the same thing."""

import hashlib
import json
import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from operator import itemgetter
from typing import Any, cast

from store.errors import StoreError, nearest
from store.models import ChoiceRow, RunRow, now
from store.records import PHASES, Choice, PlannedRun, Run

type_names = "text, numbers, true, false, null, lists and mappings with text keys"


def plain(value: object, at: str = "value") -> object:
    """Return the value in types that JSON knows, or refuse it.

    NumPy scalars become Python numbers and tuples become lists. JSON has no word for a number
    that is not finite, so nan and the infinities become the text "nan", "inf" and "-inf".
    `at` names the value in the error.

    Raises:
        StoreError: If the value, or one inside it, is an array, a tensor or another object.
    """
    value = unwrap_numpy(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else finiteness(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, Mapping):
        return _plain_mapping(cast("Mapping[object, object]", value), at)
    if isinstance(value, list | tuple):
        items = cast("list[object] | tuple[object, ...]", value)
        return [plain(item, f"{at}[{index}]") for index, item in enumerate(items)]
    raise StoreError(
        f"{at} is of type {type(value).__module__}.{type(value).__qualname__}, "
        f"which cannot be stored; use {type_names}"
    )


def plain_dict(value: Mapping[str, object], at: str) -> dict[str, object]:
    """Return a mapping in types that JSON knows; see `plain`."""
    return _plain_mapping(cast("Mapping[object, object]", value), at)


def fingerprint(data: object) -> str:
    """Return the sha256 of plain data, the same for equal data whatever the order of its keys."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def split_number(value: object, at: str) -> tuple[float | None, str | None]:
    """Split a number into what a database column can hold and a word for what it cannot.

    Returns (value, None) when it is finite, else (None, "nan" | "inf" | "-inf"); None stays None.

    Raises:
        StoreError: If the value is not a number.
    """
    if type(value) is float and math.isfinite(value):
        return value, None
    value = unwrap_scalar(value)
    if value is None:
        return None, None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise StoreError(
            f"{at} must be a number; got {type(value).__module__}.{type(value).__qualname__}"
        )
    number = float(value)
    return (number, None) if math.isfinite(number) else (None, finiteness(number))


def plain_int(value: object, at: str) -> int:
    """Return a whole number as int.

    Raises:
        StoreError: If the value is not a whole number or needs more than 64 bits.
    """
    if type(value) is not int:
        value = unwrap_scalar(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise StoreError(f"{at} must be a whole number; got {value!r:.80}")
    if not -(2**63) <= value < 2**63:
        raise StoreError(f"{at} must fit in 64 bits; got {value}")
    return value


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
    if getattr(value, "ndim", None) == 0:
        return cast("Any", value).item()
    return value


def finiteness(value: float) -> str:
    """Return the word for a number that is not finite: "nan", "inf" or "-inf"."""
    return str(float(value))


def _plain_mapping(value: Mapping[object, object], at: str) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, item in value.items():
        if not isinstance(key, str):
            raise StoreError(f"{at} has the key {key!r}; keys must be text")
        found[str.__str__(key)] = plain(item, f"{at}.{key}")
    return found


SCORE_KEYS = ("split", "length", "metric", "bin", "n", "correct", "value", "shift", "imputed")
SCORE_NEEDS = frozenset({"split", "length", "metric", "n", "value"})
CURVE_KEYS = ("step", "metric", "value")
CURVE_NEEDS = frozenset(CURVE_KEYS)
# A Score or Curve that was read may be written again; these are set by the ledger.
IGNORED_KEYS = frozenset(
    {"run_id", "study", "task", "arm", "phase", "seed", "status", "options", "created_at", "source"}
)


def planned_row(run: PlannedRun) -> dict[str, Any]:
    """Return the row of a planned run.

    Raises:
        StoreError: If a value cannot be stored.
    """
    if run.phase not in PHASES:
        raise StoreError(f"no phase is named {run.phase!r}; {nearest(run.phase, PHASES)}")
    row: dict[str, Any] = {each.name: getattr(run, each.name) for each in fields(run)}
    del row["components"]
    for name in ("seed", "steps", "priority"):
        row[name] = plain_int(row[name], name)
    row["parameters"] = optional_int(run.parameters, "parameters")
    row["config"] = plain_dict(run.config, "config")
    row["provenance"] = plain_dict(run.provenance, "provenance")
    fresh = {"status": "planned", "attempt": 0, "superseded": False}
    return {**row, **fresh, "created_at": now()}


def component_rows(run: PlannedRun) -> list[dict[str, Any]]:
    """Return the rows of the parts behind a planned run.

    Raises:
        StoreError: If the run names parts but has no `code_hash` that stands for them.
    """
    if run.components and run.code_hash is None:
        raise StoreError("a run with components needs the code_hash that stands for them")
    return [{"code_hash": run.code_hash, **vars(part)} for part in run.components]


def score_rows(
    run_id: int,
    scores: Iterable[object],
    source: str | None = None,
    created_at: datetime | None = None,
) -> list[dict[str, Any]]:
    """Return the rows of a run's scores, given as mappings or dataclasses.

    `source` and `created_at` are None for what the run itself measured.

    Raises:
        StoreError: If a key is unknown or missing, a value cannot be stored, or a row repeats.
    """
    rows: list[dict[str, Any]] = []
    for score in scores:
        found = _keys(score, SCORE_KEYS, SCORE_NEEDS, "score")
        value, status = split_number(found["value"], "a score's value")
        shift = found.get("shift")
        rows.append(
            {
                "run_id": run_id,
                "split": _text(found["split"], "a score's split"),
                "length": plain_int(found["length"], "a score's length"),
                "metric": _text(found["metric"], "a score's metric"),
                "bin": optional_int(found.get("bin"), "a score's bin"),
                "n": plain_int(found["n"], "a score's n"),
                "correct": optional_int(found.get("correct"), "a score's correct"),
                "value": value,
                "status": status,
                "created_at": created_at,
                "source": source,
                "shift": None if shift is None else _text(shift, "a score's shift"),
                "imputed": bool(found.get("imputed", False)),
            }
        )
    _refuse_repeats(rows, ("split", "length", "metric", "bin", "shift"), "score")
    return rows


def curve_rows(run_id: int, curves: Iterable[object]) -> list[dict[str, Any]]:
    """Return the rows of a run's curve points, given as mappings or dataclasses.

    Raises:
        StoreError: As for `score_rows`.
    """
    rows: list[dict[str, Any]] = []
    for point in curves:
        found = _keys(point, CURVE_KEYS, CURVE_NEEDS, "curve point")
        rows.append(
            {
                "run_id": run_id,
                "step": plain_int(found["step"], "a curve's step"),
                "metric": _text(found["metric"], "a curve's metric"),
                "value": split_number(found["value"], "a curve's value")[0],
            }
        )
    _refuse_repeats(rows, ("step", "metric"), "curve point")
    return rows


def choice_row(choice: Choice) -> dict[str, Any]:
    """Return the row of what tuning chose.

    Raises:
        StoreError: If a value cannot be stored.
    """
    lists = ("setting", "tried", "near", "edges", "runs")
    kept = {name: plain(getattr(choice, name), name) for name in lists}
    nll = optional_float(choice.nll, "nll")
    return {**vars(choice), **kept, "nll": nll, "created_at": now()}


def choice_record(row: ChoiceRow) -> Choice:
    """Return the row of a choice as a record."""
    return Choice(**{each.name: getattr(row, each.name) for each in fields(Choice)})


def model_row(run_id: int, path: str, sha256: str, size_bytes: int) -> dict[str, Any]:
    """Return the row of a run's saved weights.

    Raises:
        StoreError: If `sha256` is not 64 hexadecimal digits, or the size is not a whole number.
    """
    if not re.fullmatch("[0-9a-f]{64}", sha256):
        raise StoreError(f"a sha256 is 64 hexadecimal digits; got {sha256!r:.80}")
    size = plain_int(size_bytes, "size_bytes")
    place = _text(path, "path")
    return {
        "run_id": run_id,
        "path": place,
        "sha256": sha256,
        "size_bytes": size,
        "created_at": now(),
    }


def run_record(row: RunRow) -> Run:
    """Return a run's row as a record that needs no session."""
    return Run(**{each.name: getattr(row, each.name) for each in fields(Run)})


def optional_int(value: object, at: str) -> int | None:
    """Return a whole number or None; see `plain_int`."""
    return None if value is None else plain_int(value, at)


def optional_float(value: object, at: str) -> float | None:
    """Return a finite number or None.

    Raises:
        StoreError: If the value is not a finite number.
    """
    number, status = split_number(value, at)
    if status is not None:
        raise StoreError(f"{at} must be finite; got {status}")
    return number


def storable_text(value: str) -> str:
    """Return text without lone surrogates, which file names can bring and no database takes."""
    return value.encode("utf-8", "replace").decode("utf-8").replace("\0", "\\0")


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
            raise StoreError(f"a {what} has no {name!r}; {nearest(str(name), allowed)}")
    return found


def _text(value: object, at: str) -> str:
    if type(value) is str:
        return value
    value = unwrap_numpy(value)
    if not isinstance(value, str):
        raise StoreError(f"{at} must be text; got {value!r:.80}")
    return value


def _refuse_repeats(rows: list[dict[str, Any]], names: Sequence[str], what: str) -> None:
    keys = list(map(itemgetter(*names), rows))
    if len(set(keys)) == len(keys):
        return
    twice = next(key for at, key in enumerate(keys) if key in keys[:at])
    raise StoreError(f"a {what} is given twice: {dict(zip(names, twice, strict=True))}")
