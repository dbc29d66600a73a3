"""Seeds that work or fail, in cells whose picture is known."""

import numpy as np
import pytest

from store.aggregate import wilson
from studies.analysis.summaries import least_ratio, modes


def test_seeds_that_work_or_fail_are_two_groups() -> None:
    found = modes([0.99, 0.31, 1.0, 0.98, 0.30, 1.0, 0.97, 0.99])

    assert found is not None
    assert found.success == wilson(6, 8)
    assert found.high == pytest.approx(np.mean([0.99, 1.0, 0.98, 1.0, 0.97, 0.99]))
    assert found.low == pytest.approx(0.305)
    assert found.cut == 0.8


def test_where_the_threshold_lies_elsewhere_the_cut_is_between_the_groups() -> None:
    found = modes([0.54, 0.55, 0.80, 0.81, 0.80, 0.54], threshold=0.9)

    assert found is not None
    assert found.cut == pytest.approx((0.55 + 0.80) / 2)


@pytest.mark.parametrize(
    "values",
    [
        pytest.param([0.14, 0.19, 0.25, 0.55, 0.97], id="wide"),
        pytest.param([0.98, 0.99, 0.97, 0.99, 0.98], id="narrow"),
        pytest.param([0.58, 0.76, 0.58, 0.76, 0.58], id="modes that are near"),
        pytest.param([1.0] * 8, id="constant"),
        pytest.param([0.1, 1.0, 1.0, 1.0], id="too few"),
    ],
)
def test_one_group_is_one_group(values: list[float]) -> None:
    assert modes(values) is None


def test_one_seed_that_fails_is_a_group() -> None:
    found = modes([0.48, 0.995, 1.0, 0.998, 0.999])

    assert found is not None
    assert found.success.mean == 0.8


@pytest.mark.parametrize("n", [5, 6, 7, 8, 12])
@pytest.mark.parametrize("spread", ["even", "normal"])
def test_chance_makes_two_groups_in_one_case_of_a_hundred_at_most(n: int, spread: str) -> None:
    # Uniform spacings: the widest of n - 1 exceeds x > 1/2 with a probability of (n - 1) (1 - x) to
    # the power of n - 2; x = 2/3 for 8 values is 7 / 729. Twice both ranges would do for 15 % of
    # samples of 5.
    generator = np.random.default_rng(n)
    drawn = (
        generator.random((10_000, n)) if spread == "even" else generator.normal(size=(10_000, n))
    )
    drawn = (drawn - drawn.min(axis=1, keepdims=True)) / np.ptp(drawn, axis=1, keepdims=True)

    found = sum(modes(row) is not None for row in drawn.tolist()) / 10_000

    assert found <= 0.01 + 4 * (0.01 * 0.99 / 10_000) ** 0.5
    if n <= 8 and spread == "even":
        assert found == pytest.approx(0.01, abs=0.004)


@pytest.mark.parametrize(("n", "times"), [(5, 6.368), (6, 3.729), (7, 2.594), (8, 2.0), (20, 2.0)])
def test_fewer_seeds_need_a_wider_gap(n: int, times: float) -> None:
    # (400)^(1/3) - 1, (500)^(1/4) - 1, (600)^(1/5) - 1; from 8 on twice both ranges.
    assert least_ratio(n) == pytest.approx(times, abs=1e-3)
    for factor, groups in ((1.01, True), (0.99, False)):
        gap = times * 0.1 * factor
        values = [0.0, *[0.1] * (n - 2), 0.1 + gap]
        assert (modes(values) is not None) == groups
