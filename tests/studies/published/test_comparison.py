"""Does an order come out as in a paper: told on results whose answer is known."""

from typing import Any

import pytest
from scipy import stats

from store.aggregate import Interval
from studies.published.comparison import (
    Ours,
    Outcome,
    Pair,
    counts,
    order_of,
    pairs_of,
    welch,
    within,
)
from studies.published.table import Cell, Published


def table(
    aggregate: str = "mean", verified: bool = True, **grids: dict[str, list[float | None]]
) -> Published:
    """A table of one row `task` and the columns a, b, c, in percent."""
    data: dict[str, Any] = {
        "title": "T",
        "authors": "A et al. 2000",
        "place": "Table 1",
        "arxiv": "2000.00000",
        "note": "none",
        "verified": verified,
        "measure": {
            "metric": "accuracy", "unit": "percent", "better": "higher", "about": "accuracy",
            "least": 5.0, "aggregate": aggregate,
        },
        "protocol": {
            "kind": "training", "budget": "b", "differences": [],
            "settings": {"study": {"seeds": 3}},
        },
        "rows": {"task": {}},
        "columns": {"a": {}, "b": {}, "c": {}},
        **grids,
    }  # fmt: skip
    return Published(**data)


VALUES: dict[str, list[float | None]] = {"task": [90.0, 50.0, 52.0]}
HIGH, LOW = [90.0, 91.0, 89.0, 90.5], [50.0, 51.0, 49.0, 50.5]
NOISY = [40.0, 95.0, 20.0, 80.0]


def ours(**columns: Any) -> dict[tuple[str, str], Ours]:
    return {
        ("task", column): one if isinstance(one, Ours) else Ours(one, len(one))
        for column, one in columns.items()
    }


def outcomes(pairs: list[Pair]) -> dict[str, Outcome]:
    return {f"{one.first}{'=' if one.alike else '>'}{one.second}": one.outcome for one in pairs}


def test_a_pair_that_the_paper_does_not_separate_is_not_asked() -> None:
    assert outcomes(pairs_of(table(values=VALUES), ours(a=HIGH, b=LOW, c=LOW))) == {
        "a>b": "agrees",
        "a>c": "agrees",
    }


def test_the_opposite_order_disagrees() -> None:
    assert outcomes(pairs_of(table(values=VALUES), ours(a=LOW, b=HIGH, c=HIGH))) == {
        "a>b": "disagrees",
        "a>c": "disagrees",
    }


@pytest.mark.parametrize(
    "unsure",
    [
        pytest.param(NOISY, id="seeds that scatter"),
        pytest.param(Ours([90.0], 1), id="one seed"),
        pytest.param(Ours(HIGH[:3], 4), id="a seed without a value"),
        pytest.param(Ours([], 4), id="no value at all"),
        pytest.param(Ours(HIGH, 4, 0.1, learned=False), id="an arm that did not learn"),
    ],
)
def test_what_is_not_known_cannot_be_told(unsure: Any) -> None:
    found = pairs_of(table(values=VALUES), ours(a=unsure, b=LOW))
    assert outcomes(found) == {"a>b": "cannot tell"}


def test_an_arm_that_was_not_run_is_in_no_pair() -> None:
    assert pairs_of(table(values=VALUES), ours(a=HIGH)) == []
    assert pairs_of(table(values=VALUES), {}) == []


def test_seeds_that_all_say_the_same_are_told_apart() -> None:
    found = pairs_of(table(values=VALUES), ours(a=[100.0] * 3, b=[50.0] * 3))
    assert outcomes(found) == {"a>b": "agrees"}


def test_more_pairs_make_wider_intervals() -> None:
    one = pairs_of(table(values=VALUES), ours(a=HIGH, b=LOW))[0].difference
    two = pairs_of(table(values=VALUES), ours(a=HIGH, b=LOW, c=LOW))[0].difference
    assert one is not None
    assert two is not None
    assert one.low is not None
    assert two.low is not None
    assert two.low < one.low
    assert one.mean == two.mean


RANGES: dict[str, Any] = {
    "lowest": {"task": [90.0, 50.0, 50.0]},
    "highest": {"task": [95.0, 50.0, 50.0]},
}


def test_ranges_that_are_the_same_are_alike_and_asked_so() -> None:
    found = pairs_of(table(**RANGES), ours(a=HIGH, b=LOW, c=LOW))
    assert outcomes(found) == {"a>b": "agrees", "a>c": "agrees", "b=c": "agrees"}
    found = pairs_of(table(**RANGES), ours(b=LOW, c=HIGH))
    assert outcomes(found) == {"b=c": "disagrees"}
    found = pairs_of(table(**RANGES), ours(b=LOW, c=NOISY))
    assert outcomes(found) == {"b=c": "cannot tell"}


def test_ranges_that_overlap_are_neither_separated_nor_alike() -> None:
    one, other = (
        Cell(row="r", column=column, verified=True, lowest=low, highest=high)
        for column, low, high in (("a", 50.0, 70.0), ("b", 60.0, 80.0))
    )
    assert order_of(table(), one, other) is None


def test_a_spread_separates_where_welch_does() -> None:
    def cells(middle: float) -> tuple[Cell, Cell]:
        values = (("a", middle), ("b", 50.0))
        return tuple(  # type: ignore[return-value]
            Cell(row="r", column=column, verified=True, value=value, spread=4.0)
            for column, value in values
        )

    # Three seeds with sd 4: t(4, .975) · 4 · √(2/3) = 9.07.
    assert order_of(table(), *cells(59.1)) == ("a", "b", False)
    assert order_of(table(), *cells(59.0)) is None


def test_the_maximum_is_judged_beside_the_mean() -> None:
    lucky = [50.0, 49.0, 51.0, 90.0]
    [pair] = pairs_of(table("maximum", values=VALUES), ours(a=lucky, b=LOW))
    assert (pair.outcome, pair.by_maximum) == ("cannot tell", "agrees")
    [pair] = pairs_of(table("maximum", values=VALUES), ours(a=LOW, b=[50.0, 49.0, 51.0, 95.0]))
    assert (pair.outcome, pair.by_maximum) == ("cannot tell", "disagrees")
    [pair] = pairs_of(table("maximum", values=VALUES), ours(a=LOW, b=LOW))
    assert pair.by_maximum == "cannot tell"
    [pair] = pairs_of(table(values=VALUES), ours(a=HIGH, b=LOW))
    assert pair.by_maximum is None


@pytest.mark.parametrize(("first", "second"), [(HIGH, LOW), (HIGH, NOISY), (LOW, [49.0, 49.5])])
def test_an_interval_is_that_of_scipy(first: list[float], second: list[float]) -> None:
    expected = stats.ttest_ind(first, second, equal_var=False)
    low, high = expected.confidence_interval(0.95)
    moments = [(sum(one) / len(one), stats.tvar(one), len(one)) for one in (first, second)]
    found = welch(moments[0], moments[1], 0.95)
    # Degrees of freedom are rounded down, so ours is a little wider, never narrower.
    assert found.low is not None
    assert found.high is not None
    assert found.low <= low + 1e-9
    assert found.high >= high - 1e-9
    assert found.mean == pytest.approx((low + high) / 2)
    assert found.high - found.low < 2 * (high - low)


@pytest.mark.parametrize(
    ("low", "high", "outcome"),
    [
        (0.1, 0.2, "agrees"), (-0.5, 0.2, "cannot tell"), (0.9, 1.2, "cannot tell"),
        (1.1, 1.2, "disagrees"), (-0.3, -0.1, "disagrees"), (None, None, "cannot tell"),
    ],
)  # fmt: skip
def test_a_claim_is_met_inside_of_its_bounds(
    low: float | None, high: float | None, outcome: Outcome
) -> None:
    assert within(Interval(0.0, low, high, 3), 0.0, 1.0) == outcome


def test_outcomes_are_counted() -> None:
    assert counts(["agrees", "cannot tell", "agrees"]) == {
        "agrees": 2, "disagrees": 0, "cannot tell": 1,
    }  # fmt: skip
