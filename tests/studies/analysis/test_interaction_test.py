"""The permutation test of an interaction, against all orders and against its level."""

from itertools import permutations

import numpy as np
import pytest

from studies.analysis.contrasts import contrast
from studies.analysis.permutation import interaction_p

ADDITIVE = [0.9, 0.7, 0.5, 0.3]
CROSSING = [0.9, 0.7, 0.5, 0.5]
WEIGHTS = [1.0, -1.0, -1.0, 1.0]


def cells(
    means: list[float], seeds: int = 8, spread: float = 0.05, seed: int = 0
) -> list[list[float]]:
    generator = np.random.default_rng(seed)
    return [generator.normal(mean, spread, seeds).tolist() for mean in means]


def test_effects_that_add_up_do_not_interact() -> None:
    assert interaction_p(cells(ADDITIVE), "two-sided") > 0.05


def test_an_effect_that_depends_on_the_other_factor_interacts() -> None:
    found = cells(CROSSING)

    assert interaction_p(found, "two-sided") < 0.01
    assert interaction_p(found, "greater") < 0.01
    assert interaction_p(found, "less") > 0.9


def test_main_effects_play_no_part() -> None:
    noise = cells([0.5] * 4, spread=0.1, seed=3)
    moved = [
        [value + more for value in values] for values, more in zip(noise, (0, 2, 4, 6), strict=True)
    ]

    assert interaction_p(moved, "two-sided") == interaction_p(noise, "two-sided")


def test_cells_without_spread_are_handled() -> None:
    assert interaction_p([[mean] * 5 for mean in ADDITIVE], "two-sided") == 1.0


def test_the_table_may_be_unbalanced() -> None:
    first, *others = cells(CROSSING)

    assert interaction_p([first[:4], *others], "two-sided") < 0.05


@pytest.mark.parametrize("seed", range(2))
def test_the_p_value_is_that_of_all_orders_of_the_residuals(seed: int) -> None:
    table = np.random.default_rng(seed).normal(size=(2, 2, 2))
    fitted = table.mean((1, 2), keepdims=True) + table.mean((0, 2), keepdims=True) - table.mean()
    every = np.array(list(permutations((table - fitted).ravel()))).reshape(-1, 4, 2)
    effects = every.mean(2) @ np.array(WEIGHTS)
    t = np.abs(effects) / np.sqrt((every.var(2, ddof=1) / 2).sum(1))
    expected = float((t >= t[0] - 1e-9).mean())

    found = interaction_p(table.reshape(4, 2).tolist(), "two-sided")

    # Of 9,999 drawn orders: within four standard errors.
    assert found == pytest.approx(expected, abs=4 * (expected / 9_999) ** 0.5 + 1e-4)


@pytest.mark.parametrize("studies", [60, pytest.param(1000, marks=pytest.mark.slow)])
def test_it_keeps_its_level_where_main_effects_and_spreads_differ(studies: int) -> None:
    generator = np.random.default_rng(7)
    rejected, covered = 0, 0
    for _ in range(studies):
        drawn = [
            generator.normal(mean, spread, 6).tolist()
            for mean, spread in ((0.1, 0.05), (0.3, 0.1), (0.5, 0.05), (0.7, 0.1))
        ]
        interval = contrast(drawn, WEIGHTS)
        rejected += interaction_p(drawn, "two-sided") <= 0.05
        covered += interval.low <= 0 <= interval.high
    # Within three standard errors.
    limit = 0.05 + 3 * (0.05 * 0.95 / studies) ** 0.5
    assert rejected / studies <= limit
    assert 1 - covered / studies <= limit
