"""Crossed factors against numbers worked by hand, ordinary least squares and known levels."""

from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats

from studies.analysis.contrasts import Cells, contrast, crossed


def cells(
    means: dict[tuple[str, str], float], seeds: int = 8, spread: float = 0.05, seed: int = 0
) -> dict[tuple[str, str], dict[int, float]]:
    generator = np.random.default_rng(seed)
    return {
        key: dict(enumerate(generator.normal(mean, spread, seeds).tolist()))
        for key, mean in means.items()
    }


ADDITIVE = {
    ("rope", "pre"): 0.9,
    ("rope", "post"): 0.7,
    ("none", "pre"): 0.5,
    ("none", "post"): 0.3,
}
CROSSING = {**ADDITIVE, ("none", "post"): 0.5}


def test_two_by_two_is_worked_by_hand() -> None:
    exact = {key: {0: mean - 0.01, 1: mean + 0.01} for key, mean in CROSSING.items()}

    first, second, interaction = crossed(exact, draws=99)

    assert (first.kind, first.levels, first.others) == ("first", ("none", "rope"), None)
    assert first.contrast.effect == pytest.approx((0.5 - 0.9 + 0.5 - 0.7) / 2)
    assert (second.kind, second.levels, second.others) == ("second", None, ("post", "pre"))
    assert second.contrast.effect == pytest.approx((0.7 - 0.9 + 0.5 - 0.5) / 2)
    assert interaction.levels == ("none", "rope")
    assert interaction.others == ("post", "pre")
    assert interaction.contrast.effect == pytest.approx((0.5 - 0.7) - (0.5 - 0.9))
    # Every cell has variance .0002 over 2 seeds: 4 cells, with weights of 1/2 or 1.
    assert first.contrast.standard_error == pytest.approx(0.01)
    assert interaction.contrast.standard_error == pytest.approx(0.02)


def test_effects_that_add_up_do_not_interact() -> None:
    first, second, interaction = crossed(cells(ADDITIVE))

    assert first.p_holm < 0.001
    assert second.p_holm < 0.001
    assert interaction.p_holm > 0.05
    assert interaction.contrast.low < 0 < interaction.contrast.high


def test_an_effect_that_depends_on_the_other_factor_interacts() -> None:
    *_, interaction = crossed(cells(CROSSING))

    assert interaction.p_holm < 0.01
    assert interaction.contrast.low < 0.2 < interaction.contrast.high
    assert interaction.contrast.low > 0


def test_the_estimate_is_that_of_least_squares() -> None:
    found = cells(CROSSING, seeds=5)
    keys = [key for key in found for _ in found[key]]
    values = np.concatenate([list(found[key].values()) for key in found])
    none = np.array([first == "none" for first, _ in keys], dtype=float)
    post = np.array([second == "post" for _, second in keys], dtype=float)
    model = np.column_stack([np.ones(len(keys)), none, post, none * post])

    *_, interaction = crossed(found, draws=9)

    assert interaction.contrast.effect == pytest.approx(np.linalg.lstsq(model, values)[0][3])


def test_an_interval_of_one_contrast_of_two_cells_is_welchs() -> None:
    # With equal columns the main effect is the mean of two Welch contrasts of the same data.
    values = cells({("a", "x"): 0.2, ("b", "x"): 0.6})
    doubled: Cells = {(row, column): values[row, "x"] for row, column in product("ab", ("x", "y"))}

    first, _, interaction = crossed(doubled, draws=9)

    a, b = (list(values[row, "x"].values()) for row in "ab")
    assert first.contrast.effect == pytest.approx(np.mean(b) - np.mean(a))
    t = np.asarray(stats.ttest_ind(b, a, equal_var=False)[0])
    assert first.contrast.standard_error == pytest.approx(first.contrast.effect / t / 2**0.5)
    assert interaction.contrast.effect == 0


def test_the_intervals_of_a_design_share_its_error() -> None:
    found = cells(CROSSING)
    samples = [list(found[key].values()) for key in CROSSING]

    *_, interaction = crossed(found, draws=9)

    assert interaction.contrast == contrast(samples, [1.0, -1.0, -1.0, 1.0], family=3)


@pytest.mark.parametrize("kind", ["first", "second", "interaction"])
def test_effects_that_are_not_asked_for_play_no_part(kind: str) -> None:
    noise = cells(dict.fromkeys(ADDITIVE, 0.5), spread=0.1, seed=3)
    moved = {
        (first, second): {
            seed: value
            + 4 * (kind != "first" and first == "none")
            + 2 * (kind != "second" and second == "post")
            for seed, value in values.items()
        }
        for (first, second), values in noise.items()
    }

    (before,), (after,) = (
        [one for one in crossed(found, draws=999) if one.kind == kind] for found in (noise, moved)
    )

    assert after.p == before.p
    assert after.contrast.effect == pytest.approx(before.contrast.effect)


def test_more_levels_are_compared_with_a_reference() -> None:
    means = {(heads, links): 0.5 for heads, links in product(("1", "2", "8"), ("one", "four"))}

    found = crossed(cells(means), references=("8", "one"), draws=99)

    assert [(one.kind, one.levels, one.others) for one in found] == [
        ("first", ("1", "8"), None),
        ("first", ("2", "8"), None),
        ("second", None, ("four", "one")),
        ("interaction", ("1", "8"), ("four", "one")),
        ("interaction", ("2", "8"), ("four", "one")),
    ]


def test_cells_without_spread_are_handled() -> None:
    constant = {key: dict.fromkeys(range(5), mean) for key, mean in ADDITIVE.items()}

    first, second, interaction = crossed(constant)

    assert interaction.contrast.effect == pytest.approx(0, abs=1e-12)
    assert interaction.p == 1.0
    assert first.p < 0.01
    assert second.p < 0.01


def test_the_design_may_be_unbalanced() -> None:
    found = cells(CROSSING)
    found["rope", "pre"] = dict(list(found["rope", "pre"].items())[:4])

    *_, interaction = crossed(found)

    assert interaction.contrast.low < 0.2 < interaction.contrast.high


@pytest.mark.parametrize("studies", [60, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["first", "second", "interaction"])
def test_a_test_keeps_its_level_where_the_others_have_effects_and_spreads_differ(
    kind: str, studies: int
) -> None:
    means = {
        "first": {("a", "x"): 0.2, ("b", "x"): 0.2, ("a", "y"): 0.9, ("b", "y"): 0.9},
        "second": {("a", "x"): 0.2, ("b", "x"): 0.7, ("a", "y"): 0.2, ("b", "y"): 0.7},
        "interaction": {("a", "x"): 0.1, ("b", "x"): 0.5, ("a", "y"): 0.3, ("b", "y"): 0.7},
    }[kind]
    spreads = {("a", "x"): 0.05, ("b", "x"): 0.05, ("a", "y"): 0.1, ("b", "y"): 0.1}
    generator = np.random.default_rng(7)
    rejected, covered = 0, 0
    for number in range(studies):
        drawn = {
            key: dict(enumerate(generator.normal(means[key], spreads[key], 6).tolist()))
            for key in means
        }
        (found,) = [one for one in crossed(drawn, draws=199, seed=number) if one.kind == kind]
        rejected += found.p <= 0.05
        covered += found.contrast.low <= 0 <= found.contrast.high
    # Within three standard errors; three intervals share an error of 5 %.
    assert rejected / studies <= 0.05 + 3 * (0.05 * 0.95 / studies) ** 0.5
    assert 1 - covered / studies <= 0.05 / 3 + 3 * (0.05 / 3 / studies) ** 0.5


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        ({("a", "x"): {0: 1.0, 1: 2.0}}, "at least two levels"),
        (
            {("a", "x"): {0: 1.0, 1: 2.0}, ("b", "y"): {0: 1.0, 1: 2.0}},
            r"\('a', 'y'\) is missing",
        ),
        ({key: {0: 1.0} for key in ADDITIVE}, "at least two finite values"),
    ],
)
def test_what_is_not_crossed_is_refused(broken: Cells, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        crossed(broken)


def test_a_reference_is_a_level() -> None:
    with pytest.raises(ValueError, match="got 'alibi'"):
        crossed(cells(ADDITIVE), references=("alibi", "pre"))


@pytest.mark.parametrize("seed", range(4))
def test_a_main_effect_has_the_p_value_of_all_orders_within_the_levels(seed: int) -> None:
    """Every split of the first column with every one of the second, by Welch's statistic."""
    draw = np.random.default_rng(seed)
    sizes = draw.integers(2, 5, 4).tolist()
    samples = [draw.normal(size=n).round(seed % 2) for n in sizes]
    columns = [(samples[0], samples[2]), (samples[1], samples[3])]
    splits = [
        [
            (np.delete(pooled, one), pooled[[*one]])
            for one in combinations(range(len(pooled)), len(lower))
        ]
        for upper, lower in columns
        for pooled in [np.concatenate([lower, upper])]
    ]
    every = [_studentized(left, right) for left, right in product(*splits)]
    observed = _studentized(columns[0], columns[1])
    expected = sum(one >= observed - 1e-9 for one in every) / len(every)
    keys = [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y")]

    first, *_ = crossed(
        {key: dict(enumerate(one.tolist())) for key, one in zip(keys, samples, strict=True)}
    )

    # Of 9,999 drawn orders: within four standard errors.
    assert first.p == pytest.approx(expected, abs=4 * (expected / 9_999) ** 0.5 + 1e-4)


def _studentized(*columns: tuple[np.ndarray, np.ndarray]) -> float:
    difference = sum(lower.mean() - upper.mean() for upper, lower in columns)
    variance = sum(one.var(ddof=1) / len(one) for column in columns for one in column)
    if variance < 1e-20:
        return 0.0 if abs(difference) < 1e-12 else 1e9
    return abs(difference) / variance**0.5
