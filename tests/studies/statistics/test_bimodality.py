"""Seeds that work or fail, in cells whose picture is known."""

import numpy as np
import pytest

from store.intervals import wilson
from studies.statistics.bimodality import modes


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


def test_chance_makes_two_groups_of_8_seeds_in_one_case_of_a_hundred() -> None:
    # Uniform spacings: the widest of n - 1 exceeds 2/3 with probability (n - 1) / 3^(n - 2), which
    # for 8 values is 7 / 729.
    generator = np.random.default_rng(0)
    drawn = generator.random((20_000, 8))
    drawn = (drawn - drawn.min(axis=1, keepdims=True)) / np.ptp(drawn, axis=1, keepdims=True)

    found = sum(modes(row) is not None for row in drawn.tolist())

    assert found / 20_000 == pytest.approx(7 / 729, abs=4 * (7 / 729 / 20_000) ** 0.5)
