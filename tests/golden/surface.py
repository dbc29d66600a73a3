"""What a stored case answers to the public queries, and how two answers are compared.

Codes, keys and numbers are kept. Sentences, times, paths, versions and hashes are left out, and so
is what is stored of the floor as a score of its own.
"""

import contextlib
import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from unittest import mock

from store.__main__ import main
from tests.golden.replay import Case

QUERIES: dict[str, tuple[str, ...]] = {
    "runs": ("runs", "--phase", "all"),
    "scores": ("scores", "--phase", "all"),
    "curves": ("curves", "--phase", "all"),
    "failures": ("failures",),
    "best": ("best",),
    "lengths accuracy": ("lengths",),
    "lengths skill": ("lengths", "--metric", "skill"),
    "lengths exact": ("lengths", "--metric", "exact"),
    "below skill": ("lengths", "--below", "0.8", "--metric", "skill"),
    "below accuracy": ("lengths", "--below", "0.8"),
    "cost": ("cost",),
    "cost skill": ("cost", "--metric", "skill"),
}
"""The words after `python -m store`, by the name under which the answer is kept."""

TOLERANCE = 1e-12
SENTENCES = {"verdict"}
VOLATILE = {
    *("created_at", "started_at", "finished_at", "called_at", "lease_until", "worker", "source"),
    *("code_hash", "config_hash", "identity", "environment_id", "provenance", "config", "search"),
    *("optuna_study", "optuna_trial", "attempt", "shift"),
}


def answers(url: str, case: Case) -> dict[str, Any]:
    """The JSON that `python -m store` prints for each query."""
    more: Mapping[str, Sequence[str]] = case.get("queries", {})
    return {name: _table(_printed(url, words)) for name, words in {**QUERIES, **more}.items()}


def _printed(url: str, words: Sequence[str]) -> list[dict[str, Any]] | int:
    """What `python -m store` prints, in this process; its exit code where that is not 0."""
    typed = [*words, "--format", "json", "--storage", url]
    told = io.StringIO()
    # The command changes how garbage is collected, for its own short life.
    with (
        mock.patch("gc.set_threshold"),
        mock.patch("gc.freeze"),
        contextlib.redirect_stdout(told),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        try:
            main(typed)
        except SystemExit as end:
            if end.code:
                return int(end.code)
    return json.loads(told.getvalue())


def _table(rows: Sequence[Mapping[str, Any]] | int) -> dict[str, Any]:
    """Rows without what is no code, key or number: the names of the columns, and the values."""
    if isinstance(rows, int):
        return {"exit": rows}
    kept = [row for row in rows if row.get("metric") != "floor"]
    names = dict.fromkeys(key for row in kept for key in row)
    columns = [name for name in names if name not in VOLATILE | SENTENCES]
    return {"columns": columns, "rows": [[row.get(name) for name in columns] for row in kept]}


def differences(expected: Any, found: Any, place: str = "") -> Iterator[str]:
    """Where two trees of JSON differ; numbers may differ by rounding."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in (*expected, *(key for key in found if key not in expected)):
            at = f"{place}/{key}"
            if key not in found:
                yield f"{at}: missing, expected {_short(expected[key])}"
            elif key not in expected:
                yield f"{at}: not expected, got {_short(found[key])}"
            else:
                yield from differences(expected[key], found[key], at)
    elif isinstance(expected, list) and isinstance(found, list):
        if len(expected) != len(found):
            yield f"{place}: {len(expected)} expected, got {len(found)}"
        for number, pair in enumerate(zip(expected, found, strict=False)):
            yield from differences(*pair, f"{place}[{number}]")
    elif not _same(expected, found):
        yield f"{place}: expected {_short(expected)}, got {_short(found)}"


def _same(expected: Any, found: Any) -> bool:
    numbers = [
        one for one in (expected, found) if isinstance(one, int | float) and one is not True
        and one is not False
    ]  # fmt: skip
    if len(numbers) == 2:
        return math.isclose(*numbers, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return type(expected) is type(found) and expected == found


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < 100 else f"{text[:100]}…"
