"""What may be stored comes back as what it was; the rest is refused before it is written."""

import json
import math
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store import Ledger, Results, plain
from store.errors import StoreError
from store.records import PlannedRun
from tests.messages import Messages


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (None, None),
        (True, True),
        (np.bool_(True), True),
        (np.int64(3), 3),
        (np.float32(0.5), 0.5),
        (np.float64(0.25), 0.25),
        (np.str_("a"), "a"),
        ((1, (2, "b")), [1, [2, "b"]]),
        ({"a": {"b": (np.int8(1),)}}, {"a": {"b": [1]}}),
        (math.nan, "nan"),
        ([math.inf, -np.float32("inf")], ["inf", "-inf"]),
        (10**30, 10**30),
    ],
)
def test_plain_values_are_what_json_knows(value: object, kept: object) -> None:
    found = plain(value)
    assert found == kept
    assert type(found) is type(kept)


@pytest.mark.parametrize(
    "value",
    [
        {"a": [0, np.zeros(2)]},
        np.array(1.0),
        {"a": {1, 2}},
        {"a": Path("x")},
        {"a": {1: 2}},
        b"x",
    ],
)
def test_other_values_are_refused_by_their_place(messages: Messages, value: Any) -> None:
    with messages.raises(StoreError):
        plain(value, "config")


MakeRun = Callable[..., PlannedRun]
LONG = "ein langer Text – 🙂 " * 5000


@pytest.fixture
def results(any_ledger: Ledger, any_url: str) -> Iterator[Results]:
    results = Results(any_url)
    yield results
    results.close()


def score(value: Any, **changes: Any) -> dict[str, Any]:
    return {"split": "test", "length": 8, "metric": "accuracy", "n": 4, "value": value, **changes}


def test_configs_and_provenance_come_back(
    any_ledger: Ledger, results: Results, make_run: MakeRun
) -> None:
    awkward = {
        "nan": math.nan,
        "inf": [math.inf, -math.inf],
        "tuple": (1, (2.5, "b")),
        "numpy": [np.float32(0.5), np.int64(2**62), np.bool_(True), np.str_("ü")],
        "text": LONG,
        "quotes": "'\"`; DROP TABLE es_runs; --\n\t\\",
        "empty": {},
        "keys": {"a.b": 1, "": 2, "größe": 3},
        "numbers": [1, 1.0, True, None, -0.0, 5e-324, 1.7976931348623157e308, 10**30],
    }
    any_ledger.plan([make_run(config={"training": awkward}, provenance=awkward)])
    (run,) = results.runs()
    kept = {
        "nan": "nan",
        "inf": ["inf", "-inf"],
        "tuple": [1, [2.5, "b"]],
        "numpy": [0.5, 2**62, True, "ü"],
    }
    assert run.config["training"] == {**awkward, **kept}
    assert run.provenance == {**awkward, **kept}
    types = [type(value) for value in run.config["training"]["numbers"]]
    assert types == [int, float, bool, type(None), float, float, float, int]


def test_scores_and_curves_come_back(
    any_ledger: Ledger, results: Results, make_run: MakeRun
) -> None:
    claim = any_ledger.claim("w", any_ledger.plan([make_run()]))
    assert claim is not None
    values = (math.nan, math.inf, -math.inf, np.float32(0.1), np.int64(1), np.float64("nan"), 1)
    scores = [score(value, bin=np.int32(at)) for at, value in enumerate(values)]
    points = [{"step": np.int64(at), "metric": "loss", "value": v} for at, v in enumerate(values)]
    any_ledger.finish(claim, "done", scores=scores, curves=points, reason="größer – 🙂")
    found = results.scores()
    assert [(one.value, one.status) for one in found] == [
        *((None, "nan"), (None, "inf"), (None, "-inf"), (float(np.float32(0.1)), None)),
        *((1.0, None), (None, "nan"), (1.0, None)),
    ]
    assert [one.bin for one in found] == list(range(7))
    assert [one.value for one in results.curves()] == [one.value for one in found]
    assert results.runs()[0].reason == "größer – 🙂"


def test_an_average_passes_over_what_is_not_finite(
    any_ledger: Ledger, results: Results, make_run: MakeRun
) -> None:
    ids = any_ledger.plan([make_run(seed) for seed in range(4)])
    for value in (math.nan, math.inf, 2.0, 3.0):
        claim = any_ledger.claim("w", ids)
        assert claim is not None
        any_ledger.finish(claim, "done", scores=[score(value)])
    (one,) = results.summary(["arm"])
    assert (one.mean, one.seeds, one.runs, one.missing) == (2.5, 2, 4, 2)
    assert [each.value for each in results.scores(sort="value")] == [2.0, 3.0, None, None]
    assert [each.value for each in results.scores(sort="-value")] == [3.0, 2.0, None, None]


def test_no_table_holds_a_value_of_numpy(ledger: Ledger, path: Path, make_run: MakeRun) -> None:
    ids = ledger.plan([make_run(config={"a": np.int64(3), "b": [np.float32(0.5)]})])
    claim = ledger.claim("w", ids)
    assert claim is not None
    numbers = score(np.float32(0.5), n=np.int16(4), length=np.uint8(8), metric=np.str_("nll"))
    ledger.finish(claim, "done", scores=[numbers], wall_seconds=np.float64(1.5))
    ledger.close()
    with closing(sqlite3.connect(path)) as connection:
        for table in ("es_runs", "es_scores"):
            (row,) = connection.execute(f"SELECT * FROM {table}")
            assert not [value for value in row if isinstance(value, bytes)]
        kinds = "SELECT typeof(n), typeof(length), typeof(metric), typeof(value) FROM es_scores"
        assert connection.execute(kinds).fetchone() == ("integer", "integer", "text", "real")
        (config,) = connection.execute("SELECT config FROM es_configs").fetchone()
    assert json.loads(config) == {"a": 3, "b": [0.5]}


def test_times_come_back_as_instants_in_utc(
    any_ledger: Ledger, results: Results, make_run: MakeRun
) -> None:
    before = datetime.now(UTC)
    claim = any_ledger.claim("w", any_ledger.plan([make_run()]))
    assert claim is not None
    any_ledger.finish(claim, "done", scores=[score(1.0)])
    run = results.runs()[0]
    assert run.started_at is not None
    assert run.finished_at is not None
    assert before <= run.created_at <= run.started_at <= run.finished_at <= datetime.now(UTC)
    assert run.created_at.tzinfo == UTC


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    # what no database takes is refused elsewhere
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=4), inner)
    ),
    max_leaves=8,
)


@given(value=JSON)
@settings(max_examples=100, deadline=None, database=None, derandomize=True)
def test_plain_data_stays_as_it_is_through_json(value: Any) -> None:
    kept = plain(value)
    assert kept == value
    assert json.loads(json.dumps(kept, allow_nan=False)) == value
    assert plain(kept) == kept
