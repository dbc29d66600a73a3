"""The number of seeds that an answer needs, against formulas and simulated studies."""

import numpy as np
import pytest
from scipy import stats

from studies.analysis.contrasts import MOST, contrast, fewest, seeds_needed


@pytest.mark.parametrize(
    ("direction", "family", "n"),
    [
        ("greater", 1, 3),
        ("different", 1, 4),
        ("different", 5, 5),
        ("different", 6, 5),
        ("greater", 6, 5),
        ("same", 1, 3),
    ],
)
def test_the_fewest_seeds_follow_from_the_number_of_splits(
    direction: str, family: int, n: int
) -> None:
    # One-sided 1/C(2n, n), two-sided twice that: 1/20, 1/70, 1/252 for 3, 4, 5 seeds.
    assert fewest(direction, family, 0.95) == n  # type: ignore[arg-type]


def test_it_is_the_textbook_number_for_a_two_sample_t_test() -> None:
    # Cohen 1988, table 2.4.1: d = 0.5, two-sided 5 %, power .80: 64 per group; d = 0.8: 26.
    assert seeds_needed(0.6, (1.0, 1.0), "greater", 0.1) == 64
    assert seeds_needed(0.9, (1.0, 1.0), "greater", 0.1) == 26


def test_a_mirrored_claim_needs_as_many() -> None:
    assert seeds_needed(-0.6, (1.0, 1.0), "less", 0.1) == 64
    assert seeds_needed(-0.6, (1.0, 1.0), "different", 0.1) == 64


def test_refuting_needs_as_many_as_supporting_from_the_same_distance() -> None:
    assert seeds_needed(-0.4, (1.0, 1.0), "greater", 0.1) == 64


def test_no_spread_needs_no_more_than_the_test_does() -> None:
    assert seeds_needed(0.5, (0.0, 0.0), "greater", 0.1) == 3


def test_a_question_too_fine_has_no_number() -> None:
    assert seeds_needed(0.1, (0.3, 0.3), "greater", 0.1) is None
    assert seeds_needed(0.11, (0.3, 0.3), "greater", 0.1) is None
    assert MOST == 1000


@pytest.mark.parametrize(
    ("direction", "effect", "family"),
    [
        ("greater", 0.45, 1),
        ("greater", 0.45, 5),
        ("same", 0.02, 1),
        ("same", 0.0, 1),
        ("different", 0.3, 3),
    ],
)
def test_the_advertised_number_settles_the_claim_in_four_studies_of_five(
    direction: str, effect: float, family: int
) -> None:
    deviations, delta, studies = (0.1, 0.3), 0.15, 2000
    n = seeds_needed(effect, deviations, direction, delta, family)  # type: ignore[arg-type]
    assert n is not None
    generator = np.random.default_rng(n)
    a = generator.normal(effect, deviations[0], (studies, n))
    b = generator.normal(0, deviations[1], (studies, n))
    level = 1 - 0.05 / family
    bounds = stats.ttest_ind(a, b, axis=1, equal_var=False).confidence_interval(level)
    settled = (
        (bounds.low > -delta) & (bounds.high < delta) if direction == "same" else bounds.low > delta
    )

    assert settled.mean() == pytest.approx(0.8, abs=0.04)
    assert contrast([a[0].tolist(), b[0].tolist()], family=family).low == pytest.approx(
        bounds.low[0]
    )


def first_enough(effect: float, deviations: tuple[float, ...], delta: float, family: int) -> int:
    """The smallest number of seeds with enough power, by looking at each; by scipy.stats."""
    variances = np.array(deviations) ** 2
    for n in range(fewest("greater", family, 0.95), MOST + 1):
        degrees = (n - 1) * variances.sum() ** 2 / (variances**2).sum()
        edge = stats.t.ppf(1 - 0.025 / family, degrees)
        shift = (effect - delta) * (n / variances.sum()) ** 0.5
        # Its own function is not to be had where the chance is 1; normal seeds are near enough.
        if shift > 20 or stats.nct.sf(edge, degrees, shift) >= 0.8:
            return n
    raise AssertionError("no number of seeds is enough")


@pytest.mark.parametrize("family", [1, 6, 14])
@pytest.mark.parametrize(
    ("effect", "deviations"),
    [
        (0.449, (0.1, 0.0)),
        (0.449, (0.1, 0.1)),
        (0.3, (0.05, 0.15, 0.1, 0.1)),
        (0.5, (1e-4, 1e-4)),
        (0.5, (1e-12, 0.0)),
    ],
)
def test_it_is_the_first_number_that_is_enough_however_far_the_effect_lies(
    effect: float, deviations: tuple[float, ...], family: int
) -> None:
    expected = first_enough(effect, deviations, 0.1, family)

    assert seeds_needed(effect, deviations, "greater", 0.1, family) == expected


def test_rounding_is_no_spread_that_more_seeds_could_settle() -> None:
    # .3 - .2 and .1 differ by rounding, as do .1 + .2 and .3.
    assert seeds_needed(0.3 - 0.2, (3e-17, 1e-17), "greater", 0.1) is None
    assert seeds_needed(0.3 - 0.2, (0.0, 0.0), "greater", 0.1) is None
