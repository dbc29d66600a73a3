"""Verdicts on made-up seeds whose right reading is known."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from studies.analysis import Arm, Frozen, Seed, Verdict, judge
from studies.experiment.hypothesis import Hypothesis

CLAIM = Hypothesis(
    name="rope_extends",
    claim="rope carries shift to longer sequences than learned does",
    arm="rope",
    against="learned",
    panel="shift",
    lengths=(32, 64),
)

HIGH = [0.97, 0.99, 0.95, 0.98, 0.96, 0.99, 0.97, 0.98]
LOW = [0.31, 0.28, 0.35, 0.30, 0.33, 0.29, 0.32, 0.30]
WIDE = [0.10, 0.90, 0.45, 0.60, 0.30, 0.75, 0.20, 0.85]


def arm(skills: Sequence[float], fit: float = 1.0, lost: Mapping[int, str] | None = None) -> Arm:
    """An arm with the same skill at both lengths; `lost` names the seeds that ended badly."""
    seeds = {
        seed: Seed("done", {("skill", 32): skill, ("skill", 64): skill}, fit)
        for seed, skill in enumerate(skills)
    }
    for seed, status in (lost or {}).items():
        nothing = {("skill", length): 0.0 for length in (32, 64)}
        seeds[seed] = Seed(status, nothing, 0.0) if status == "diverged" else Seed(status)
    return Arm(seeds, longest_trained=16)


def outcomes(rope: Arm, learned: Arm) -> dict[tuple[str, str], Arm]:
    return {("shift", "rope"): rope, ("shift", "learned"): learned}


def verdict(rope: Arm, learned: Arm, claim: Hypothesis = CLAIM) -> Verdict:
    (found,) = judge([claim], outcomes(rope, learned))
    return found


def test_a_clear_winner_is_supported() -> None:
    found = verdict(arm(HIGH), arm(LOW))

    assert found.status == "supported"
    assert found.effect == pytest.approx(sum(HIGH) / 8 - sum(LOW) / 8)
    assert found.low is not None
    assert found.low > 0.1
    assert found.p == found.p_holm == pytest.approx(1 / 12_870)
    assert (found.n_arm, found.n_against, found.seeds_needed) == (8, 8, None)


def test_a_clear_loser_is_refuted() -> None:
    found = verdict(arm(LOW), arm(HIGH))

    assert found.status == "refuted"
    assert found.p == 1.0


@pytest.mark.parametrize(
    ("direction", "status"),
    [("greater", "refuted"), ("less", "refuted"), ("different", "refuted"), ("same", "supported")],
)
def test_a_tie_is_a_tie_whatever_was_claimed(direction: str, status: str) -> None:
    claim = replace(CLAIM, direction=direction)

    assert verdict(arm(HIGH), arm(list(reversed(HIGH))), claim).status == status


@pytest.mark.parametrize(
    ("direction", "status"),
    [
        ("greater", "supported"),
        ("less", "refuted"),
        ("different", "supported"),
        ("same", "refuted"),
    ],
)
def test_a_winner_is_one_whatever_was_claimed(direction: str, status: str) -> None:
    claim = replace(CLAIM, direction=direction)

    assert verdict(arm(HIGH), arm(LOW), claim).status == status


@pytest.mark.parametrize(
    ("direction", "status"),
    [
        ("greater", "refuted"),
        ("less", "supported"),
        ("different", "supported"),
        ("same", "refuted"),
    ],
)
def test_a_loser_is_one_whatever_was_claimed(direction: str, status: str) -> None:
    claim = replace(CLAIM, direction=direction)

    assert verdict(arm(LOW), arm(HIGH), claim).status == status


@pytest.mark.parametrize("direction", ["greater", "less", "different", "same"])
def test_noise_is_inconclusive_and_asks_for_seeds(direction: str) -> None:
    found = verdict(
        arm(WIDE), arm([one - 0.05 for one in WIDE]), replace(CLAIM, direction=direction)
    )

    assert found.status == "inconclusive"
    assert found.seeds_needed is not None
    assert found.seeds_needed > 8


def test_an_effect_smaller_than_what_matters_is_not_supported_however_sure() -> None:
    found = verdict(arm(HIGH), arm([one - 0.05 for one in HIGH]))

    assert found.status == "refuted"
    assert found.p is not None
    assert found.p < 0.001


@pytest.mark.parametrize(
    ("direction", "difference"), [("greater", 0.05), ("less", -0.05), ("different", 0.05)]
)
def test_a_small_effect_is_refuted_whatever_was_claimed(direction: str, difference: float) -> None:
    better = arm([one - 0.2 + difference for one in HIGH])

    found = verdict(better, arm([one - 0.2 for one in HIGH]), replace(CLAIM, direction=direction))

    assert found.status == "refuted"


@pytest.mark.parametrize("unit", [1e-12, 1e-6, 1.0, 1e6])
@pytest.mark.parametrize("direction", ["greater", "less", "different", "same"])
def test_the_unit_of_the_metric_does_not_matter(direction: str, unit: float) -> None:
    """Errors of a computation, or steps, are told apart as skills are."""
    claim = replace(CLAIM, direction=direction)
    pairs = [(HIGH, LOW), (LOW, HIGH), (HIGH, list(reversed(HIGH))), (WIDE, HIGH)]

    for one, other in pairs:
        plain = verdict(arm(one), arm(other), claim)
        first, second = (arm([unit * skill for skill in skills]) for skills in (one, other))
        scaled = verdict(first, second, replace(claim, smallest_effect=0.1 * unit))

        assert scaled.status == plain.status
        assert (scaled.p, scaled.seeds_needed) == (plain.p, plain.seeds_needed)
        assert scaled.effect == pytest.approx((plain.effect or 0.0) * unit)


def test_arms_without_spread_are_told_apart() -> None:
    found = verdict(arm([1.0] * 8), arm([0.25] * 8))

    assert (found.status, found.effect, found.low, found.high) == ("supported", 0.75, 0.75, 0.75)


def test_arms_without_spread_that_are_equal_are_the_same() -> None:
    found = verdict(arm([1.0] * 8), arm([1.0] * 8), replace(CLAIM, direction="same"))

    assert (found.status, found.effect) == ("supported", 0.0)
    assert found.notes == (
        "All seeds of an arm score the same; a failure in up to 32 % of seeds could be unseen.",
    )


@pytest.mark.parametrize(
    ("seeds", "told"),
    [
        (1, "1 seed against 1 cannot decide; a family of 1 needs at least 3 per arm"),
        (2, "2 seeds against 2 cannot decide; a family of 1 needs at least 3 per arm"),
    ],
)
def test_too_few_seeds_are_not_tested(seeds: int, told: str) -> None:
    found = verdict(arm([1.0] * seeds), arm([0.0] * seeds))

    assert (found.status, found.reason) == ("not tested", told)


def test_a_larger_family_needs_more_seeds() -> None:
    # 1/70 is below .05 and above .05/6; 1/252 is below both.
    claims = [replace(CLAIM, name=str(n)) for n in range(6)]

    few = judge(claims, outcomes(arm([1.0] * 4), arm([0.0] * 4)))
    enough = judge(claims, outcomes(arm([1.0] * 5), arm([0.0] * 5)))

    assert verdict(arm([1.0] * 4), arm([0.0] * 4)).status == "supported"
    assert {one.reason for one in few} == {
        "4 seeds against 4 cannot decide; a family of 6 needs at least 5 per arm"
    }
    assert {one.status for one in enough} == {"supported"}


def test_three_seeds_decide_one_sided_alone() -> None:
    # 1/20 = .05 one-sided; 2/20 = .1 two-sided.
    claim = replace(CLAIM, direction="different")

    assert verdict(arm([1.0] * 3), arm([0.0] * 3)).status == "supported"
    assert verdict(arm([1.0] * 3), arm([0.0] * 3), claim).reason == (
        "3 seeds against 3 cannot decide; a family of 1 needs at least 4 per arm"
    )


@pytest.mark.parametrize("status", ["diverged", "failed"])
def test_an_arm_whose_seeds_are_all_lost_is_not_tested(status: str) -> None:
    lost = arm([0.0] * 8, lost=dict.fromkeys(range(8), status))

    found = verdict(arm(HIGH), lost)

    assert (found.status, found.reason) == ("not tested", f"all 8 seeds of learned {status}")
    assert (found.failed_arm, found.failed_against) == (0, 8)


def test_one_seed_is_not_called_all_seeds() -> None:
    assert verdict(arm(HIGH), arm([0.0], lost={0: "diverged"})).reason == (
        "the only seed of learned diverged"
    )


def test_an_arm_that_tuning_found_no_setting_for_is_not_tested() -> None:
    lost = Arm({}, 16, reason="training diverged at every learning rate")

    assert verdict(arm(HIGH), lost).reason == (
        "learned has no confirming runs: training diverged at every learning rate"
    )


def test_an_arm_that_did_not_learn_is_never_said_to_not_extrapolate() -> None:
    found = verdict(arm(HIGH), arm([0.0] * 8, fit=0.5))

    assert found.status == "not tested"
    assert found.effect is None
    assert found.reason == (
        "learned did not learn: its skill is 0.50 at length 16, the longest trained (below 0.8; "
        "0 of 8 seeds reach it)"
    )


def test_at_trained_lengths_an_arm_that_did_not_learn_has_lost() -> None:
    def trained(skills: list[float]) -> Arm:
        seeds = {seed: Seed("done", {("skill", 16): one}, one) for seed, one in enumerate(skills)}
        return Arm(seeds, longest_trained=16)

    claim = replace(CLAIM, lengths=(16,))

    assert verdict(trained(HIGH), trained(LOW), claim).status == "supported"


def test_a_diverged_seed_counts_as_one_that_learned_nothing() -> None:
    found = verdict(arm(HIGH, lost={3: "diverged"}), arm(LOW))

    assert found.effect == pytest.approx((sum(HIGH) - HIGH[3]) / 8 - sum(LOW) / 8)
    assert (found.n_arm, found.failed_arm) == (8, 1)
    assert found.notes[0] == "1 of 8 seeds of rope diverged and counts as 0."


def test_a_failed_seed_does_not_keep_a_clear_answer_back() -> None:
    found = verdict(arm([0.99] * 12, lost={0: "failed"}), arm(LOW + LOW[:4]))

    assert found.status == "supported"
    assert found.failed_arm == 1


def test_a_verdict_does_not_hang_on_what_failed_seeds_would_have_scored() -> None:
    # Counted as 0 they would make the tie a clear difference.
    lost = dict.fromkeys(range(6), "failed")

    found = verdict(arm(HIGH), arm(HIGH, lost=lost))

    assert found.status == "inconclusive"
    assert found.reason == "it hangs on what the failed seeds would have scored: run them again"


def test_seeds_that_are_still_to_be_run_hold_the_verdict_back() -> None:
    found = verdict(arm(HIGH, lost={7: "running", 6: "planned"}), arm(LOW))

    assert found.reason == "2 of 8 seeds of rope are still to be run"


def test_a_length_that_cannot_be_asked_is_said() -> None:
    asked = arm(HIGH)
    unasked = replace(
        asked,
        seeds={n: replace(one, values={("skill", 32): 0.5}) for n, one in asked.seeds.items()},
    )

    assert verdict(asked, unasked).reason == "learned has no skill at all of the lengths 32, 64"


def test_a_metric_without_a_floor_cannot_count_lost_seeds() -> None:
    claim = replace(CLAIM, metric="nll")
    seeds = {n: Seed("done", {("nll", 32): 0.1, ("nll", 64): 0.1}, 1.0) for n in range(8)}
    whole = Arm(seeds, 16)
    lost = Arm({**seeds, 0: Seed("diverged", fit=0.0)}, 16)

    assert verdict(whole, lost, claim).reason == (
        "1 of 8 seeds of learned diverged or failed, and nll has no floor to count them at"
    )
    assert verdict(whole, whole, claim).status == "refuted"


def test_an_arm_that_is_no_part_of_the_study_does_not_enlarge_the_family() -> None:
    other = replace(CLAIM, name="other", against="alibi")

    absent, found = judge([other, CLAIM], outcomes(arm(HIGH), arm(LOW)))

    assert absent.reason == "alibi has no runs on shift in this study"
    assert (found.family, found.p, found.p_holm) == (1, 1 / 12_870, 1 / 12_870)


def test_a_family_shares_its_error() -> None:
    both = [CLAIM, replace(CLAIM, name="exact", direction="less")]

    first, second = judge(both, outcomes(arm(HIGH), arm(LOW)))
    (alone,) = judge([CLAIM], outcomes(arm(HIGH), arm(LOW)))

    assert (first.p_holm, second.p_holm) == (2 / 12_870, 1.0)
    assert first.low is not None
    assert alone.low is not None
    assert first.low < alone.low


def test_later_seeds_leave_the_primary_verdict_as_it_is() -> None:
    frozen = Frozen((CLAIM,), tuple(range(8)))
    before = judge([CLAIM], outcomes(arm(HIGH), arm(LOW)), frozen)

    after = judge([CLAIM], outcomes(arm(HIGH + [0.0] * 4), arm(LOW + [1.0] * 4)), frozen)

    assert after[0] == before[0]
    assert [one.exploratory for one in after] == [False, True]
    assert (after[1].n_arm, after[1].status) == (12, "inconclusive")


def test_a_hypothesis_that_came_or_changed_later_is_exploratory() -> None:
    frozen = Frozen((CLAIM,), tuple(range(8)))
    changed = replace(CLAIM, smallest_effect=0.05)

    found = judge([changed, CLAIM], outcomes(arm(HIGH), arm(LOW)), frozen)

    assert [(one.hypothesis, one.exploratory) for one in found] == [
        (CLAIM, False),
        (changed, True),
    ]


def test_frozen_seeds_that_are_missing_hold_the_verdict_back() -> None:
    frozen = Frozen((CLAIM,), tuple(range(8)))

    (found,) = judge([CLAIM], outcomes(arm(HIGH), arm(LOW[:6])), frozen)

    assert found.reason == "2 of 8 seeds of learned are still to be run"


def test_a_family_has_at_most_six_members() -> None:
    seven = tuple(replace(CLAIM, name=f"claim_{n}") for n in range(7))

    with pytest.raises(ValueError, match="at most 6 primary contrasts; got 7: claim_0, claim_1"):
        judge(seven, {})


def test_two_hypotheses_have_two_names() -> None:
    with pytest.raises(ValueError, match="got 'rope_extends' twice"):
        Frozen((CLAIM, replace(CLAIM, claim="another")), (0, 1))


def test_claims_that_are_left_out_of_a_call_share_the_error_all_the_same() -> None:
    near, rest = [0.42, 0.5, 0.55, 0.49, 0.6], [0.3] * 5
    alone = Frozen((CLAIM,), tuple(range(5)))
    among = Frozen((CLAIM,), tuple(range(5)), announced=3)

    (small,) = judge([CLAIM], outcomes(arm(near), arm(rest)), alone)
    (whole,) = judge([CLAIM], outcomes(arm(near), arm(rest)), among)

    # .212 less the standard error .03023 times t(4): 2.7764 at .05 / 2, 3.9608 at .05 / 6.
    assert (small.family, small.low) == (1, pytest.approx(0.1281, abs=1e-4))
    assert (whole.family, whole.low) == (3, pytest.approx(0.0923, abs=1e-4))
    assert (small.status, whole.status) == ("supported", "inconclusive")
    assert (small.p_holm, whole.p_holm) == (pytest.approx(1 / 252), pytest.approx(3 / 252))


def test_failed_seeds_are_tried_some_at_the_floor_and_some_at_the_ceiling() -> None:
    # Welch: none of three at the ceiling: -.27 to -.16, one: -.56 to .53, two: -.48 to .85, three:
    # -.27 to 1.04. The bounds of one and two alone lie on both sides of -.4.
    claim = replace(CLAIM, direction="less", smallest_effect=0.4)
    lost: dict[int, str] = dict.fromkeys((2, 3, 4), "failed")

    trained = replace(arm([0.03] * 5, lost=lost), longest_trained=64)
    found = verdict(trained, arm([0.20, 0.22, 0.24, 0.30, 0.18]), claim)

    assert found.status == "inconclusive"
    assert found.reason == "it hangs on what the failed seeds would have scored: run them again"


def test_whether_an_arm_learned_must_not_hang_on_its_failed_seeds() -> None:
    # Skill .85 in 11 of 12 seeds is .78 at least, .86 at most; 1.0 is .92 at least.
    lost, against = {0: "failed"}, arm(LOW + LOW[:4])

    unsure = verdict(arm([0.99] * 12, fit=0.85, lost=lost), against)

    assert verdict(arm([0.99] * 12, fit=1.0, lost=lost), against).status == "supported"
    assert unsure.status == "inconclusive"
    assert unsure.reason == "it hangs on what the failed seeds would have scored: run them again"


def test_an_arm_that_its_failed_seeds_could_have_lifted_is_not_said_to_have_learned_nothing() -> (
    None
):
    seeds = dict(arm([0.0] * 5, fit=0.78).seeds)
    lost = Arm({**seeds, 4: Seed("failed")}, longest_trained=16)

    assert str(verdict(lost, arm(HIGH)).reason).endswith(
        "0 of 5 seeds reach it; its failed seeds could change that: run them again)"
    )


@pytest.mark.parametrize("direction", ["greater", "less", "different", "same"])
@pytest.mark.parametrize(("better", "worse"), [(0.9, 0.8), (0.8, 0.7), (0.3, 0.2), (0.35, 0.25)])
def test_an_effect_of_exactly_what_matters_is_on_neither_side_of_it(
    direction: str, better: float, worse: float
) -> None:
    # Which of .9 - .8 and .1 is larger is a matter of rounding: it is .8 - .7 elsewhere.
    claim = replace(CLAIM, direction=direction)
    high, low = arm([better] * 5), arm([worse] * 5)

    found = verdict(low, high, claim) if direction == "less" else verdict(high, low, claim)

    assert found.status == "inconclusive"


def test_a_failed_seed_is_not_said_to_have_worked_or_not() -> None:
    (told,) = verdict(arm([0.9] * 8, lost={7: "failed"}), arm(LOW)).notes
    torn = verdict(arm([0.9, 0.88, 0.9, 0.1, 0.1, 0.9, 0.9, 0.9], lost={7: "failed"}), arm(LOW))

    assert told == "1 of 8 seeds of rope failed and counts as 0."
    assert torn.notes[1] == (
        "rope works in 5 of 7 seeds (skill 0.90 there, 0.10 in the others that did not fail)."
    )


def test_the_p_value_holds_whatever_failed_seeds_would_have_scored() -> None:
    """The interval lies beyond δ in every case; the splits do not reach .05 in all of them.

    With the failed seed at 0, three against five, one of the 56 splits is as extreme as the
    observed one; at 1, where it lies above those of rope, eight are.
    """
    claim = replace(CLAIM, direction="different")
    rope, learned = [0.91, 0.90, 0.94], [0.21, 0.21, 0.21, 0.21]
    cases = [verdict(arm(rope), arm([*learned, one]), claim) for one in (0.0, 1.0)]
    assert all(one.low is not None and one.low > 0.1 for one in cases)
    assert [one.status for one in cases] == ["supported", "inconclusive"]

    found = verdict(arm(rope), arm([*learned, 0.0], lost={4: "failed"}), claim)

    assert found.p == max(one.p or 0.0 for one in cases) > 0.05
    assert found.effect == cases[0].effect
    assert found.status == "inconclusive"
    assert found.reason == "the permutation test does not confirm what the interval says"


@pytest.mark.parametrize("n", [5, 8, 9])
def test_no_number_of_seeds_settles_what_lies_at_the_bound_without_spread(n: int) -> None:
    # The deviation of nine times .9 is 1e-16 by rounding.
    assert verdict(arm([0.9] * n), arm([0.8] * n)).seeds_needed is None


@pytest.mark.parametrize("sizes", [(4, 4), (3, 5)])
def test_the_p_value_of_sameness_is_the_larger_one_of_two_tests_against_what_matters(
    sizes: tuple[int, int],
) -> None:
    """Of all splits of (rope ± .1, learned), by the exact test of scipy."""
    draw = np.random.default_rng(sum(sizes))
    rope, learned = (draw.normal(mean, 0.08, n) for mean, n in zip((0.58, 0.5), sizes, strict=True))

    def welch(x: np.ndarray, y: np.ndarray, axis: int) -> np.ndarray:
        return np.asarray(stats.ttest_ind(x, y, axis=axis, equal_var=False)[0])

    expected = [
        stats.permutation_test(
            (rope + more, learned), welch, n_resamples=10**5, alternative=side
        ).pvalue
        for more, side in ((-0.1, "less"), (0.1, "greater"))
    ]

    found = verdict(arm(rope.tolist()), arm(learned.tolist()), replace(CLAIM, direction="same"))

    assert expected[0] != expected[1]
    assert found.p == pytest.approx(max(expected), abs=1e-9)
