"""How often intervals cover the truth, in simulated studies whose truth is known.

The expected shares for means are those of an earlier simulation of the same two cases, with its
own code and draws: values that are normal, and seeds of which half work and half fail. How much
those that fail differ from each other it does not tell; that is chosen here.
"""

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from store.aggregate import Interval, t_interval, wilson
from studies.analysis.contrasts import contrast
from studies.analysis.permutation import permutation_test
from studies.analysis.summaries import Scores, interquartile_mean, stratified_bootstrap

Draw = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]


def normal(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return generator.normal(size=shape)


def works_or_fails(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    works = generator.random(shape) < 0.5
    return np.where(works, generator.uniform(0.92, 1, shape), generator.uniform(0.1, 0.55, shape))


TRUTH: dict[Draw, float] = {normal: 0.0, works_or_fails: (0.96 + 0.325) / 2}


def covered(found: Interval, truth: float) -> bool:
    return found.low is not None and found.high is not None and found.low <= truth <= found.high


@pytest.mark.parametrize(
    ("draw", "seeds", "share"),
    [
        (normal, 3, 0.95),
        (normal, 5, 0.95),
        (normal, 10, 0.95),
        (normal, 20, 0.94),
        (works_or_fails, 3, 0.79),
        (works_or_fails, 5, 0.93),
        (works_or_fails, 10, 0.94),
        (works_or_fails, 20, 0.96),
    ],
)
def test_students_interval_covers_as_often_as_the_table_says(
    draw: Draw, seeds: int, share: float
) -> None:
    drawn = draw(np.random.default_rng(seeds), (1500, seeds))

    found = np.mean([covered(t_interval(values), TRUTH[draw]) for values in drawn.tolist()])

    assert found == pytest.approx(share, abs=0.03)


def mean(scores: Scores) -> float:
    return float(np.mean(scores["task"]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("draw", "seeds", "share"),
    [
        (normal, 3, 0.77),
        (normal, 5, 0.82),
        (normal, 10, 0.91),
        (normal, 20, 0.92),
        (works_or_fails, 3, 0.75),
        (works_or_fails, 5, 0.90),
        (works_or_fails, 10, 0.92),
        (works_or_fails, 20, 0.94),
    ],
)
def test_with_few_seeds_the_bootstrap_is_as_narrow_as_the_table_says(
    draw: Draw, seeds: int, share: float
) -> None:
    drawn = draw(np.random.default_rng(seeds), (500, seeds))

    found = np.mean(
        [
            covered(
                stratified_bootstrap([{"task": values}], mean, replicates=300, seed=number),
                TRUTH[draw],
            )
            for number, values in enumerate(drawn.tolist())
        ]
    )

    # The table itself was drawn; three standard errors of 500 draws are .05 at .8.
    assert found == pytest.approx(share, abs=0.05)


@pytest.mark.slow
@pytest.mark.parametrize(("tasks", "seeds"), [(1, 5), (1, 20), (4, 10)])
@pytest.mark.parametrize("draw", [normal, works_or_fails])
def test_the_interval_of_an_interquartile_mean_is_a_little_narrow(
    draw: Draw, tasks: int, seeds: int
) -> None:
    """Of the mean of the middle half of the distribution, which a long draw tells."""
    generator, studies = np.random.default_rng(seeds), 250
    whole = np.sort(draw(generator, (400_000,)))
    truth = float(whole[100_000:-100_000].mean())
    held = 0
    for number in range(studies):
        scores = {str(task): draw(generator, (seeds,)).tolist() for task in range(tasks)}
        found = stratified_bootstrap([scores], interquartile_mean, replicates=300, seed=number)
        held += covered(found, truth)

    print(draw.__name__, tasks, seeds, held / studies)
    # Some .89 to .96; three standard errors of 250 studies are .06.
    assert 0.83 <= held / studies <= 0.98


@pytest.mark.parametrize("n", [1, 5, 8, 30])
def test_wilsons_interval_is_that_of_scipy(n: int) -> None:
    for k in range(n + 1):
        for level in (0.8, 0.95):
            ours = wilson(k, n, level)
            theirs = stats.binomtest(k, n).proportion_ci(level, method="wilson")
            assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high))


def test_wilsons_interval_covers_as_it_says_on_average_over_the_shares() -> None:
    shares = np.linspace(0.005, 0.995, 199)
    inside = np.array([[covered(wilson(k, 8), share) for k in range(9)] for share in shares])
    chances = stats.binom.pmf(np.arange(9), 8, shares.reshape(-1, 1))

    assert (inside * chances).sum(axis=1).mean() == pytest.approx(0.95, abs=0.015)


@pytest.mark.parametrize("n", [5, 8])
@pytest.mark.parametrize("draw", [normal, works_or_fails])
def test_the_intervals_of_a_family_hold_together(draw: Draw, n: int) -> None:
    # All six pairs of four arms; the arms differ, and so do their spreads.
    generator, studies, held = np.random.default_rng(n), 200, 0
    shifts, scales = np.array([0.0, 1.0, -0.5, 2.0]), np.array([1.0, 0.2, 3.0, 1.0])
    for _ in range(studies):
        drawn = draw(generator, (4, n)) - TRUTH[draw]
        arms = (drawn * scales.reshape(4, 1) + shifts.reshape(4, 1)).tolist()
        pairs = [
            (contrast([arms[i], arms[j]], family=6), shifts[i] - shifts[j])
            for i, j in combinations(range(4), 2)
        ]
        held += all(found.low <= truth <= found.high for found, truth in pairs)

    # Seeds that all work, or all fail, come by chance: 4 arms of 5 seeds do in 1 / 4 of studies.
    least = 0.95 if draw is normal or n > 5 else 0.85
    assert held / studies >= least - 3 * (least * (1 - least) / studies) ** 0.5


@pytest.mark.parametrize("draws", [150, pytest.param(3000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("draw", [normal, works_or_fails])
@pytest.mark.parametrize("scales", [(1.0, 1.0), (1.0, 4.0)], ids=["alike", "unlike"])
def test_the_permutation_test_keeps_its_level(
    draw: Draw, scales: tuple[float, float], draws: int
) -> None:
    generator, rejected = np.random.default_rng(3), 0
    for _ in range(draws):
        a, b = (scale * (draw(generator, (8,)) - TRUTH[draw]) for scale in scales)
        rejected += permutation_test(a.tolist(), b.tolist()).p <= 0.05

    # Exact where the arms are alike; where their spreads differ, nearly so: that is what the
    # studentized statistic is for.
    most = 0.05 if scales == (1.0, 1.0) else 0.08
    assert rejected / draws <= most + 3 * (most * (1 - most) / draws) ** 0.5
