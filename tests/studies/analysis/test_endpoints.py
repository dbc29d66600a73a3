"""Several endpoints at once, against single tests and against the error that they may make."""

import math
from itertools import combinations

import numpy as np
import pytest

from studies.analysis.contrasts import compare_endpoints, contrast
from studies.analysis.permutation import holm, permutation_test

GENERATOR = np.random.default_rng(5)
FAR = {"16": [0.9, 0.8, 0.95, 0.85, 0.9], "64": [0.5, 0.4, 0.6, 0.55, 0.45]}
NEAR = {"16": [0.9, 0.82, 0.93, 0.86, 0.91], "64": [0.1, 0.15, 0.05, 0.2, 0.1]}


def test_one_endpoint_is_a_single_test() -> None:
    found = compare_endpoints({"64": FAR["64"]}, {"64": NEAR["64"]})["64"]

    alone = permutation_test(FAR["64"], NEAR["64"])
    assert found.p == found.p_adjusted == alone.p == pytest.approx(2 / 252)


def test_the_endpoint_that_differs_is_told() -> None:
    found = compare_endpoints(FAR, NEAR)

    assert found["64"].p_adjusted < 0.05
    assert found["16"].p_adjusted > 0.5
    assert found["64"].contrast.effect == pytest.approx(0.38)
    assert found["64"].contrast == contrast([FAR["64"], NEAR["64"]], family=2)


def test_an_endpoint_told_twice_costs_nothing() -> None:
    found = compare_endpoints({**FAR, "again": FAR["64"]}, {**NEAR, "again": NEAR["64"]})

    assert found["64"].p_adjusted == compare_endpoints(FAR, NEAR)["64"].p_adjusted
    assert found["again"].p_adjusted == found["64"].p_adjusted


def test_it_asks_for_no_less_than_a_single_test() -> None:
    for _ in range(20):
        a, b = ({name: GENERATOR.normal(mean, 1, 4).tolist() for name in "xyz"} for mean in (1, 0))

        found = compare_endpoints(a, b)

        for name, one in found.items():
            assert one.p == permutation_test(a[name], b[name]).p
            assert one.p <= one.p_adjusted


def test_a_more_extreme_endpoint_never_has_the_larger_p_value() -> None:
    for _ in range(40):
        a, b = ({name: GENERATOR.normal(size=3).tolist() for name in "wxyz"} for _ in range(2))

        found = compare_endpoints(a, b)

        by_t = sorted(found, key=lambda one: -abs(permutation_test(a[one], b[one]).statistic))
        adjusted = [found[one].p_adjusted for one in by_t]
        assert adjusted == sorted(adjusted)


def test_the_order_of_the_endpoints_plays_no_part() -> None:
    far, near = (dict(reversed(arm.items())) for arm in (FAR, NEAR))

    assert compare_endpoints(far, near) == compare_endpoints(FAR, NEAR)


@pytest.mark.parametrize("families", [80, pytest.param(2000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("correlation", [0.0, 0.95])
def test_without_a_difference_few_families_claim_one(correlation: float, families: int) -> None:
    generator = np.random.default_rng(11)
    claimed = 0
    for _ in range(families):
        shared = generator.normal(size=(8, 1))
        own = generator.normal(size=(8, 5))
        values = correlation**0.5 * shared + (1 - correlation) ** 0.5 * own
        a, b = ({str(n): half[:, n].tolist() for n in range(5)} for half in np.split(values, 2))
        claimed += min(one.p_adjusted for one in compare_endpoints(a, b).values()) <= 0.05
    # Of 70 splits, 2 / 70 = .029 is the only p-value from .05 down.
    assert claimed / families <= 0.05 + 3 * (0.05 * 0.95 / families) ** 0.5


def test_where_endpoints_go_together_little_is_lost() -> None:
    shared = [0.0, 0.3, 0.5, 0.2, 0.4, 0.1]
    better = [value + 0.25 for value in shared]
    a = {str(n): [value * (1 + n / 100) for value in better] for n in range(6)}
    b = {str(n): [value * (1 + n / 100) for value in shared] for n in range(6)}

    found = compare_endpoints(a, b)["0"]

    assert found.p_adjusted < 2 * found.p
    assert (holm([found.p] * 6)[0] or 0.0) == pytest.approx(6 * found.p)


@pytest.mark.parametrize(
    ("a", "b", "told"),
    [
        ({}, {}, r"got \[\] and \[\]"),
        ({"x": [1.0, 2.0]}, {"y": [1.0, 2.0]}, r"got \['x'\] and \['y'\]"),
        (
            {"x": [1.0, 2.0], "y": [1.0]},
            {"x": [1.0, 2.0], "y": [1.0, 2.0]},
            "got {'x': 2, 'y': 1} seeds",
        ),
        ({"x": [1.0]}, {"x": [1.0]}, "at least two finite values"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    a: dict[str, list[float]], b: dict[str, list[float]], told: str
) -> None:
    with pytest.raises(ValueError, match=told):
        compare_endpoints(a, b)


@pytest.mark.parametrize("sizes", [(3, 3), (2, 4), (4, 3)])
@pytest.mark.parametrize("ties", [False, True])
def test_it_is_the_closed_test_of_the_largest_statistic(sizes: tuple[int, int], ties: bool) -> None:
    """Adjusted is the largest p-value of all sets of endpoints that hold this one.

    That of a set is the share of splits whose largest |t| in it reaches the observed one.
    """
    generator, (n_a, n), names = np.random.default_rng(sum(sizes)), (sizes[0], sum(sizes)), "wxyz"
    values = generator.normal(size=(4, n)) + [[1.5], [0.5], [0.0], [0.0]] * (np.arange(n) < n_a)
    values = values.round() if ties else values
    t = np.array(
        [
            [abs(_welch(row[[*one]], np.delete(row, one))) for one in combinations(range(n), n_a)]
            for row in values
        ]
    )

    found = compare_endpoints(
        dict(zip(names, values[:, :n_a].tolist(), strict=True)),
        dict(zip(names, values[:, n_a:].tolist(), strict=True)),
    )

    for place, name in enumerate(names):
        sets = [
            [*one] for size in range(1, 5) for one in combinations(range(4), size) if place in one
        ]
        shares = [(t[one].max(axis=0) >= t[one, 0].max() - 1e-9).mean() for one in sets]
        assert found[name].p_adjusted == pytest.approx(max(shares), abs=1e-9)


def _welch(a: np.ndarray, b: np.ndarray) -> float:
    variance = a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b)
    difference = a.mean() - b.mean()
    if variance < 1e-20:
        return 0.0 if abs(difference) < 1e-12 else math.copysign(1e9, difference)
    return difference / variance**0.5
