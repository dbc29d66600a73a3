"""Interactions as hypotheses: a difference of differences, judged in the family of all claims."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from studies.analysis import Arm, Seed, Verdict, contrast, judge, sentence
from studies.analysis.permutation import interaction_p
from studies.experiment.hypothesis import Hypothesis

CLAIM = Hypothesis(
    "gain",
    "rope gains more under pre",
    *("rope × pre", "none × pre", "shift"),
    lengths=(32,),
    than=("rope × post", "none × post"),
)
NOISE = np.array([0.03, -0.02, 0.01, -0.01, 0.02, -0.03, 0.00, 0.00])


def arm(skills: Sequence[float], fit: float = 1.0) -> Arm:
    seeds = {n: Seed("done", {("skill", 32): one}, fit) for n, one in enumerate(skills)}
    return Arm(seeds, longest_trained=16)


def cells(*means: float) -> dict[tuple[str, str], Arm]:
    """Arms with these means, in the order of the claim, and the same spread about them."""
    return {
        ("shift", name): arm((mean + np.roll(NOISE, n)).tolist())
        for n, (name, mean) in enumerate(zip(CLAIM.arms, means, strict=True))
    }


def verdict(outcomes: Any, claim: Hypothesis = CLAIM) -> Verdict:
    (found,) = judge([claim], outcomes)
    return found


def test_the_effect_is_the_difference_of_two_differences_with_welchs_interval() -> None:
    """With one variance in all cells of 8 seeds, Welch's degrees of freedom are 4 · 7."""
    found = verdict(cells(0.9, 0.5, 0.6, 0.5))

    half = stats.t.ppf(0.975, 28) * 2 * NOISE.std(ddof=1) / 8**0.5
    assert found.effect == pytest.approx((0.9 - 0.5) - (0.6 - 0.5))
    assert (found.low, found.high) == (pytest.approx(0.3 - half), pytest.approx(0.3 + half))
    assert found.status == "supported"


def test_effects_that_add_up_are_no_interaction() -> None:
    """Each factor moves the skill by .3, wherever the other one is."""
    assert verdict(cells(0.9, 0.6, 0.6, 0.3)).status == "refuted"
    assert verdict(cells(0.9, 0.6, 0.6, 0.3), replace(CLAIM, direction="same")).status == (
        "supported"
    )


@pytest.mark.parametrize(
    ("direction", "status"), [("greater", "refuted"), ("less", "supported"), ("same", "refuted")]
)
def test_the_direction_is_that_of_the_difference_of_differences(
    direction: Any, status: str
) -> None:
    found = verdict(cells(0.5, 0.5, 0.9, 0.5), replace(CLAIM, direction=direction))

    assert found.effect == pytest.approx(-0.4)
    assert found.status == status


def test_its_two_sided_p_value_and_effect_are_those_of_the_four_cells() -> None:
    outcomes = cells(0.62, 0.6, 0.6, 0.6)
    samples = {
        name: [one.values["skill", 32] or 0.0 for one in outcome.seeds.values()]
        for (_, name), outcome in outcomes.items()
    }
    table = [samples[f"{row} × {column}"] for row in ("rope", "none") for column in ("pre", "post")]

    found = verdict(outcomes, replace(CLAIM, direction="different"))

    assert found.effect == contrast(table, [1.0, -1.0, -1.0, 1.0]).effect
    assert found.p == interaction_p(table, "two-sided")


def test_it_is_one_claim_of_the_family() -> None:
    plain = Hypothesis("pre", "rope is better", "rope × pre", "none × pre", "shift", (32,))

    both = judge([plain, CLAIM], cells(0.9, 0.5, 0.6, 0.5))

    assert [one.family for one in both] == [2, 2]
    alone = verdict(cells(0.9, 0.5, 0.6, 0.5))
    assert both[1].p_holm == pytest.approx(min(1.0, max(2 * both[0].p, both[1].p)))  # type: ignore[operator,type-var]
    assert both[1].high - both[1].low > alone.high - alone.low  # type: ignore[operator]


def test_it_is_said_as_a_sentence() -> None:
    told = sentence(verdict(cells(0.9, 0.5, 0.6, 0.5)))

    assert told.startswith(
        "Supported on shift: the lead of rope × pre over none × pre exceeds that of rope × post "
        "over none × post by more than .10 in skill at length 32: difference of differences +.30 ("
    )
    assert told.endswith("; 8 seeds each).")


def test_an_open_one_says_the_seeds_that_would_settle_it() -> None:
    found = verdict(cells(0.62, 0.5, 0.5, 0.5))

    assert found.status == "inconclusive"
    assert found.seeds_needed is not None
    assert found.seeds_needed > 8
    assert f"about {found.seeds_needed} seeds each would settle it" in sentence(found)


@pytest.mark.parametrize("place", range(4))
def test_an_arm_that_did_not_learn_leaves_it_untested(place: int) -> None:
    outcomes = cells(0.9, 0.5, 0.6, 0.5)
    name = CLAIM.arms[place]
    outcomes["shift", name] = arm([0.5] * 8, fit=0.1)

    found = verdict(outcomes)

    assert found.status == "not tested"
    assert f"{name} did not learn" in found.reason


@pytest.mark.parametrize("place", range(4))
def test_a_failed_seed_of_any_arm_may_leave_it_open(place: int) -> None:
    outcomes = cells(0.85, 0.5, 0.6, 0.5)
    name = CLAIM.arms[place]
    seeds = {**outcomes["shift", name].seeds, 7: Seed("failed")}
    outcomes["shift", name] = replace(outcomes["shift", name], seeds=seeds)

    found = verdict(outcomes)

    assert found.status == "inconclusive"
    assert "run them again" in found.reason or "permutation" in found.reason
    assert (found.failed_arm, found.failed_against, *found.failed_than)[place] == 1


def test_an_arm_without_runs_is_named() -> None:
    outcomes = cells(0.9, 0.5, 0.6, 0.5)
    del outcomes["shift", "none × post"]

    assert "none × post has no runs on shift" in verdict(outcomes).reason


def test_four_arms_are_four() -> None:
    with pytest.raises(ValueError, match="got 'none × pre' twice"):
        replace(CLAIM, than=("rope × post", "none × pre"))


@pytest.mark.parametrize("count", [40, pytest.param(600, marks=pytest.mark.slow)])
@pytest.mark.parametrize("spreads", [(0.05,) * 4, (0.02, 0.02, 0.1, 0.02)])
def test_where_effects_add_up_an_interaction_is_seldom_claimed(
    spreads: tuple[float, ...], count: int
) -> None:
    """Normal seeds, with one spread or several; at most 5 % of claims, within their interval."""
    generator, found = np.random.default_rng(3), 0
    claim = replace(CLAIM, direction="different", smallest_effect=1e-6)
    for _ in range(count):
        outcomes = {
            ("shift", name): arm(generator.normal(mean, spread, 8).tolist())
            for name, mean, spread in zip(claim.arms, (0.9, 0.6, 0.7, 0.4), spreads, strict=True)
        }
        found += verdict(outcomes, claim).status == "supported"

    print(spreads, count, found)
    assert found <= stats.binom.ppf(0.99, count, 0.05)
