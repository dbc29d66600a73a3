"""What holds for every verdict, whatever came of the seeds."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from studies.analysis import Arm, Frozen, Seed, Verdict, judge, sentence
from studies.experiment.hypothesis import Direction, Hypothesis

NAMES = "abcd"
DIRECTIONS: list[Direction] = ["greater", "less", "different", "same"]

NOTHING = {("skill", 16): 0.0, ("accuracy", 16): 0.1, ("floor", 16): 0.1}
"""What a diverged seed stores: the scores of a model that learned nothing."""

# A skill, or how the seed ended; as time, a tenth of it in hundreds of steps, 1 being the cap.
seed = st.sampled_from([0.0, 0.2, 0.3, 0.5, 0.8, 0.9, 0.97, 1.0, 1.0, "failed", "diverged"])
arms = st.lists(st.lists(seed, max_size=7), min_size=4, max_size=4)
directions = st.lists(st.sampled_from(DIRECTIONS), min_size=3, max_size=3)


def outcome(metric: str, seeds: Sequence[float | str]) -> Arm:
    unit = 1000.0 if metric == "steps_to_fit" else 1.0
    ended = {
        number: Seed(one, NOTHING if one == "diverged" else {}, fit=0.0)
        if isinstance(one, str)
        else Seed(
            "done",
            {(metric, 16): unit * one, ("floor", 16): 0.1},
            fit=1.0,
            censored=frozenset({(metric, 16)} if unit > 1 and one == 1 else ()),
        )
        for number, one in enumerate(seeds)
    }
    return Arm(ended, longest_trained=16)


@pytest.mark.parametrize("metric", ["skill", "accuracy", "steps_to_fit"])
@given(arms=arms, directions=directions, frozen=st.integers(3, 7), fine=st.booleans())
@settings(max_examples=60, deadline=None)
def test_the_parts_of_a_verdict_go_together(
    metric: str, arms: list[list[float | str]], directions: list[Direction], frozen: int, fine: bool
) -> None:
    delta = 1e-6 if fine else 100.0 if metric == "steps_to_fit" else 0.1
    outcomes = {
        ("panel", name): outcome(metric, seeds) for name, seeds in zip(NAMES, arms, strict=True)
    }
    claims = [
        Hypothesis(one + other, "they differ", one, other, "panel", (16,), metric, direction, delta)
        for (one, other), direction in zip(pairwise(NAMES), directions, strict=True)
    ]

    judged = judge(claims, outcomes, Frozen(tuple(claims), tuple(range(frozen))))

    assert [one.hypothesis for one in judged if not one.exploratory] == claims
    for verdict in judged:
        check(verdict)


def check(verdict: Verdict) -> None:
    assert "nan" not in sentence(verdict)
    assert "None" not in sentence(verdict)
    numbers = verdict.effect, verdict.low, verdict.high, verdict.p, verdict.p_holm
    if verdict.status == "not tested":
        assert verdict.reason
        assert numbers == (None,) * 5
        return
    effect, low, high, p, p_holm = (float("nan") if one is None else one for one in numbers)
    assert low <= effect <= high
    assert 0 < p <= p_holm <= 1
    assert p_holm <= 0.05 or verdict.status != "supported"
    if verdict.status != "inconclusive":
        assert (verdict.reason, verdict.seeds_needed) == ("", None)
    elif not verdict.reason and verdict.n_arm == verdict.n_against:
        # What so many seeds left open, as many do not settle.
        assert (verdict.seeds_needed or 1001) > verdict.n_arm
