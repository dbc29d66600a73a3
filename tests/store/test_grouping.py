"""Means that the database prepares are those of a loop over plain rows."""

import math
from collections.abc import Callable, Iterator, Sequence
from statistics import mean, stdev
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t
from sqlalchemy import delete, insert

from store import Ledger, PlannedRun, Results, make_engine
from store.encoding import score_rows
from store.grouping import Group
from store.models import RunRow, ScoreRow
from store.records import Summary

GROUPINGS = [("arm", "length"), ("arm",), ("training.learning_rate", "length"), ("seed",), ()]
KINDS = [("test", "accuracy"), ("test", "nll"), ("validation", "nll")]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A database that examples fill and empty again."""
    url = f"sqlite:///{tmp_path_factory.mktemp('grouping')}/sandbox.db"
    Ledger.create(url).close()
    return url


@st.composite
def runs(draw: st.DrawFn) -> list[tuple[str, float, int, list[Any]]]:
    """Runs with arm, rate, seed and scores: as a rule alike, now and then one lacks or is NaN."""
    lengths = draw(st.lists(st.sampled_from([8, 16, 32, 64]), min_size=1, unique=True))
    usual = st.floats(-1e6, 1e6).map(lambda value: round(value, 6))
    value = st.one_of(usual, usual, usual, st.none())
    found: list[tuple[str, float, int, list[Any]]] = []
    for _ in range(draw(st.integers(1, 12))):
        whole = draw(st.sampled_from([True, True, False]))
        own = [(*kind, length) for kind in KINDS for length in lengths]
        if not whole:
            own = draw(st.lists(st.sampled_from(own), unique=True))
        arm, rate = draw(st.sampled_from("ab")), draw(st.sampled_from([0.1, 0.2]))
        scores = [(*key, draw(value)) for key in own]
        found.append((arm, rate, draw(st.integers(-1, 2)), scores))
    return found


@given(runs=runs())
@settings(max_examples=20, deadline=None, database=None, derandomize=True)
def test_a_summary_is_that_of_a_loop_over_rows(
    url: str, make_run: Callable[..., PlannedRun], runs: list[Any]
) -> None:
    fill(url, make_run, runs)
    results = Results(url)
    for by in GROUPINGS:
        meant = dict(by_hand(runs, by))

        found = results.summary(by)

        made = {(tuple(one.group.values()), one.split, one.metric): one for one in found}
        assert list(made) == sorted(meant, key=lambda key: (*key[0], key[2], key[1]))
        for key, one in made.items():
            compare(one, *meant[key])
    results.close()


def fill(url: str, make_run: Callable[..., PlannedRun], runs: list[Any]) -> None:
    """Put these runs into the tables, in place of the last ones."""
    engine = make_engine(url)
    with engine.begin() as connection:
        connection.execute(delete(RunRow))
    ledger = Ledger.open(url)
    for at, (arm, rate, seed, scores) in enumerate(runs):
        config = {"encoder": {}, "training": {"learning_rate": rate}}
        (number,) = ledger.plan([make_run(seed, arm=arm, config=config, identity=f"run {at}")])
        rows = [
            {"split": split, "metric": metric, "length": length, "n": 4, "value": value}
            for split, metric, length, value in scores
        ]
        with engine.begin() as connection:
            if rows:
                connection.execute(insert(ScoreRow), score_rows(number, rows))
    ledger.close()
    engine.dispose()


def by_hand(
    runs: list[Any], by: tuple[str, ...]
) -> Iterator[tuple[Any, tuple[list[float], int, int]]]:
    """The means over seeds of each group, how many runs there are, and how many lack a value."""
    per_run: dict[Any, list[float | None]] = {}
    for at, (arm, rate, seed, scores) in enumerate(runs):
        for split, metric, length, value in scores:
            names = {"arm": arm, "seed": seed, "split": split, "length": length}
            names["training.learning_rate"] = rate
            key = (tuple(names[name] for name in by), split, metric)
            per_run.setdefault((key, at, seed), []).append(value)
    groups: dict[Any, list[tuple[int, float | None]]] = {}
    for (key, _, seed), values in per_run.items():
        value = None if None in values else mean([one for one in values if one is not None])
        groups.setdefault(key, []).append((seed, value))
    for key, values in groups.items():
        seeds = sorted({seed for seed, value in values if value is not None})
        own = [mean([v for s, v in values if s == seed and v is not None]) for seed in seeds]
        yield key, (own, len(values), sum(value is None for _, value in values))


def compare(one: Summary, seeds: Sequence[float], runs: int, missing: int) -> None:
    assert (one.seeds, one.runs, one.missing) == (len(seeds), runs, missing)
    # 15 digits of each value are kept, so what is small beside the values has fewer.
    close = 1e-12 * max(map(abs, seeds), default=0)
    if not seeds:
        assert (one.mean, one.method) == (None, None)
        return
    assert one.mean == pytest.approx(mean(seeds), rel=1e-12, abs=close)
    if len(seeds) == 1:
        assert (one.low, one.high, one.method) == (None, None, None)
        return
    half = t.ppf(0.975, len(seeds) - 1) * stdev(seeds) / math.sqrt(len(seeds))
    bounds = (mean(seeds) - half, mean(seeds) + half)
    assert (one.low, one.high) == pytest.approx(bounds, rel=1e-9, abs=1e3 * close)
    assert one.method == "t, 95 %"


Score = tuple[int, str, int, float | None]


@st.composite
def scores(draw: st.DrawFn) -> list[Score]:
    """Scores run by run: seed, metric, length, value; measured alike, or not quite."""
    kinds = st.tuples(st.sampled_from(["accuracy", "nll"]), st.sampled_from([8, 16, 32]))
    alike = draw(st.lists(kinds, min_size=1, max_size=6, unique=True))
    found: list[Score] = []
    for _ in range(draw(st.integers(1, 5))):
        own = draw(st.one_of(st.just(alike), st.permutations(alike)))
        own = own[: draw(st.sampled_from([len(own), len(own), 1]))]
        seed = draw(st.integers(0, 2))
        values = st.one_of(st.none(), st.floats(0, 1, allow_nan=False))
        found += [(seed, metric, length, draw(values)) for metric, length in own]
    return found


@given(configs=st.lists(scores(), min_size=1, max_size=4), same=st.booleans())
@settings(max_examples=100, deadline=None, database=None, derandomize=True)
def test_a_seed_has_the_mean_of_its_values_whatever_the_config(
    configs: list[list[Score]], same: bool
) -> None:
    if same:
        configs = [configs[0]] * len(configs)
    meant: dict[int, list[float]] = {}
    for seed, _, _, value in (score for scores in configs for score in scores):
        meant.setdefault(seed, []).extend([] if value is None else [value])

    columns = [list(zip(*found, strict=True)) for found in configs]
    group = Group(
        seeds=[seeds for seeds, _, _, _ in columns], values=[values for *_, values in columns]
    )
    made = group.by_seed()

    means = [sum(each) / len(each) for _, each in sorted(meant.items()) if each]
    assert [round(one, 12) for one in made] == [round(one, 12) for one in means]
