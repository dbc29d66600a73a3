"""The `where` language means what Python means, and nothing else gets through."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import update

from store import Ledger, Results, StoreError
from store.database import make_engine, transaction
from store.models import RunRow
from store.records import PlannedRun
from store.where import RUN_COLUMNS, SCORE_COLUMNS, compile_filter
from tests.messages import Messages
from tests.store.postgres import Server

MakeRun = Callable[..., PlannedRun]
POSITIONS = ("rope", "alibi", "none")


@pytest.fixture(
    scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)]
)
def place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A filter means the same in each kind of database."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path_factory.mktemp('filters') / 'sandbox.db'}"
    else:
        server: Server = request.getfixturevalue("server")
        with server.database("filters") as url:
            yield url


@pytest.fixture(scope="module")
def results(place: str, make_run: MakeRun) -> Iterator[Results]:
    """Twelve runs with scores, some of them missing."""
    url = place
    ledger = Ledger.create(url)
    ids = ledger.plan(
        [
            make_run(seed, config=config_of(seed), config_hash=f"c{seed}", arm=POSITIONS[seed % 3])
            for seed in range(12)
        ]
    )
    while claim := ledger.claim("w", ids):
        seed = claim.run.seed
        score = {"split": "test", "length": 8 * seed, "metric": "accuracy", "n": 4}
        value = None if seed % 4 == 0 else seed / 12
        bin_ = None if seed % 2 else seed
        ledger.finish(claim, "done", scores=[{**score, "value": value, "bin": bin_}])
    ledger.close()
    results = Results(url)
    yield results
    results.close()


def config_of(seed: int) -> dict[str, Any]:
    config: dict[str, Any] = {
        "encoder": {
            "position": {"name": POSITIONS[seed % 3]},
            "mask": "causal & ~window(radius=2)" if seed % 2 else {"name": "full"},
            "d_model": 32 * (1 + seed % 2),
            "bias": seed % 2 == 0,
        },
        "training": {"learning_rate": 10.0 ** -(1 + seed % 4), "train_lengths": [1, seed]},
    }
    if seed % 3 == 0:
        config["task"] = {"k": seed, "mode": "fixed" if seed else 3}
    return config


class Ordered:
    """A value that compares as the language says: what is missing is not ordered."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return bool(self.value == other)

    __hash__ = None  # type: ignore[assignment]

    def __lt__(self, other: Any) -> bool:
        return self.value is not None and bool(self.value < other)

    def __le__(self, other: Any) -> bool:
        return self.value is not None and bool(self.value <= other)

    def __gt__(self, other: Any) -> bool:
        return self.value is not None and bool(self.value > other)

    def __ge__(self, other: Any) -> bool:
        return self.value is not None and bool(self.value >= other)


def names(seed: int) -> dict[str, Any]:
    """Return what each name of the language stands for in the row of a seed."""
    config = config_of(seed)
    mask = config["encoder"]["mask"]
    task = config.get("task", {"k": None, "mode": None})
    return {
        "seed": Ordered(seed),
        "length": Ordered(8 * seed),
        "value": Ordered(None if seed % 4 == 0 else seed / 12),
        "bin": Ordered(None if seed % 2 else seed),
        "arm": Ordered(POSITIONS[seed % 3]),
        "position": Ordered(POSITIONS[seed % 3]),
        "mask": Ordered(mask if isinstance(mask, str) else mask["name"]),
        "encoder": SimpleNamespace(
            d_model=Ordered(config["encoder"]["d_model"]), bias=Ordered(config["encoder"]["bias"])
        ),
        "training": SimpleNamespace(
            learning_rate=Ordered(config["training"]["learning_rate"]),
            train_lengths=Ordered(config["training"]["train_lengths"]),
        ),
        "task": SimpleNamespace(k=Ordered(task["k"])),
    }


def chosen(results: Results, where: str) -> list[int]:
    return [score.seed for score in results.scores(where=where)]


def meant(where: str) -> list[int]:
    return [seed for seed in range(12) if eval(where, {}, names(seed))]


COMPARISONS = st.one_of(
    st.builds(
        "{} {} {}".format,
        st.sampled_from(["seed", "length", "value", "bin", "encoder.d_model", "task.k"]),
        st.sampled_from(["<", "<=", ">", ">=", "==", "!="]),
        st.sampled_from(["0", "3", "0.25", "-1", "32", "64", "6.0"]),
    ),
    st.builds(
        "{} {} {!r}".format,
        st.sampled_from(["arm", "position", "mask"]),
        st.sampled_from(["<", "==", "!=", ">="]),
        st.sampled_from(["rope", "alibi", "full", "", "it's; DROP", "%"]),
    ),
    st.builds(
        "{} {} {!r}".format,
        st.sampled_from(["value", "bin", "task.k", "seed", "encoder.d_model"]),
        st.sampled_from(["in", "not in"]),
        st.lists(st.sampled_from([None, 0, 2, 3, 0.25, 64]), max_size=3),
    ),
    st.sampled_from(
        [
            *("value == None", "value != None", "bin == None", "None != task.k"),
            *("2 < seed <= 7", "0 <= task.k < length", "3 > seed", "seed < length"),
            *("encoder.bias == True", "encoder.bias != True", "training.learning_rate < 1e-2"),
            *("training.train_lengths == [1, 3]", "arm == position", "mask in ('full', 'none')"),
        ]
    ),
)
FORMULAS = st.recursive(
    COMPARISONS,
    lambda inner: st.one_of(
        st.builds("({} and {})".format, inner, inner),
        st.builds("({} or {})".format, inner, inner),
        st.builds("not ({})".format, inner),
    ),
    max_leaves=6,
)


@given(where=FORMULAS)
@settings(max_examples=80, deadline=None, database=None, derandomize=True)
def test_a_filter_means_what_python_means(results: Results, where: str) -> None:
    assert chosen(results, where) == meant(where)


@pytest.mark.parametrize(
    ("where", "seeds"),
    [
        ('position in ("rope", "alibi") and length >= 64 and value > 0.7', [9, 10]),
        ("bin is None", [1, 3, 5, 7, 9, 11]),
        ("value is not None and seed < 4", [1, 2, 3]),
        ('  mask == "causal & ~window(radius=2)" and seed<4  ', [1, 3]),
        ('status == "done" and id <= 2 and steps == 10 and parameters is None', [0, 1]),
        ("seed in ()", []),
        ("task.mode == 3", [0]),
        ("training.train_lengths == [1, 3]", [3]),
        ("training.train_lengths in ([1, 3], [1, 4])", [3, 4]),
        ("training.train_lengths != [1, 3] and seed < 5", [0, 1, 2, 4]),
        ('created_at > "2000" and seed == 5', [5]),
    ],
)
def test_filters_by_example(results: Results, where: str, seeds: list[int]) -> None:
    assert chosen(results, where) == seeds


REFUSED = [
    "lenght > 3",
    "training.learning_rat > 3",
    "seed > 1 and nosuch.key == 1",
    "seed = 1",
    "",
    "seed >",
    "seed",
    "True",
    "1 == 1",
    "seed + 1 == 2",
    "seed == 2 + 1",
    "seed == '1'",
    "arm == 1",
    "arm == ['a']",
    "position == 1",
    "encoder.d_model == '64'",
    "task.mode < 4",
    "seed < None",
    "seed is 3",
    "'a' in arm",
    "arm in 'abc'",
    "arm in (arm, 'a')",
    "seed == 10**3",
    "seed == 99999999999999999999",
    "value < 1e999",
    "created_at > 'yesterday'",
    "started_at in ('2026-13-01',)",
    "started_at == ''",
    "arm == 'a\\0'",
    "arm == '\\ud800'",
    "seed == 1j",
    "arm == b'a'",
    "__import__('os').system('true') == 0",
    "().__class__ == 1",
    "arm.__class__ == 'a'",
    "(lambda: 1) == seed",
    "[x for x in arm] == seed",
    "(y := 3) == seed",
    "f'{arm}' == arm",
    "seed == 1; DROP TABLE es_runs",
    "config == '{}'",
    "arm.upper() == 'A'",
    "arm if seed else arm",
    "(" * 300 + "seed == 1" + ")" * 300,
    "not " * 150 + "seed == 1",
    "seed" + ".a" * 500 + " == 1",
]


def test_anything_else_is_refused_by_its_place(messages: Messages) -> None:
    keys = {"encoder.d_model": {"number"}, "task.mode": {"number", "text"}}
    keys["training.learning_rate"] = {"number", "null"}
    for text in REFUSED:
        with messages.raises(StoreError) as caught:
            compile_filter(text, RUN_COLUMNS | SCORE_COLUMNS, lambda: keys)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["' OR 1=1 --", '" OR ""="', "'); DROP TABLE es_runs; --", "%", "_"]
)
def test_text_is_never_sql(results: Results, text: str) -> None:
    assert chosen(results, f"arm == {text!r}") == []
    assert chosen(results, f"position == {text!r}") == []
    assert len(results.runs()) == 12


def test_a_run_has_no_score_columns(messages: Messages, results: Results) -> None:
    with messages.raises(StoreError):
        results.runs(where="metric == 'nll'")


@pytest.mark.parametrize(
    ("where", "count"),
    [
        ("started_at > '2026-03-05 11:59'", 12),
        ("started_at > '2026-03-05 12:00'", 0),
        ("started_at >= '2026-03-05T13:00+01:00'", 12),
        ("started_at > '2026-03-05T11:00-02:00'", 0),
        ("started_at < '2026-03-05T11:00-02:00'", 12),
        ("started_at == '2026-03-05T12:00:00Z'", 12),
        ("started_at in ('2020-01-01', '2026-03-05T12Z')", 12),
        ("started_at != '2026-03-05T12:00'", 0),
        ("started_at >= '2026-03-05'", 12),
        ("started_at >= '2026-03-06'", 0),
        ("started_at > '2026-03' and started_at < '2026-04'", 12),
        ("'2026' < started_at < '2027'", 12),
        ("started_at is None", 0),
        ("finished_at >= created_at", 12),
    ],
)
def test_times_are_compared_as_instants(
    results: Results, place: str, where: str, count: int
) -> None:
    noon = datetime(2026, 3, 5, 12, tzinfo=UTC)
    engine = make_engine(place)
    times = update(RunRow).values(created_at=noon, started_at=noon, finished_at=noon)
    with transaction(engine) as session:
        session.execute(times)
    engine.dispose()
    assert len(results.runs(where=where)) == count
