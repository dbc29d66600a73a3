"""Hypotheses about times that may not be reached: steps to a criterion of fit."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from studies.analysis import (
    Arm,
    Seed,
    Time,
    Verdict,
    judge,
    kaplan_meier,
    log_rank,
    sentence,
)
from studies.experiment.hypothesis import Hypothesis

CAP = 1800.0
MEASURE = ("steps_to_fit", 16)
CLAIM = Hypothesis(
    "sooner",
    "rope fits sooner",
    *("rope", "learned", "shift"),
    lengths=(16,),
    metric="steps_to_fit",
    direction="less",
    smallest_effect=100.0,
)
FAST = [300.0, 350.0, 400.0, 380.0, 320.0, 360.0, 340.0, 390.0]
SLOW = [900.0, 1000.0, 1100.0, 950.0, 1050.0, None, None, 984.0]


def arm(times: Sequence[float | str | None], cap: float = CAP) -> Arm:
    """An arm that fits at these steps; None: not before the cap; a text: a status."""
    return Arm({n: _seed(one, cap) for n, one in enumerate(times)}, longest_trained=16)


def _seed(time: float | str | None, cap: float) -> Seed:
    if isinstance(time, str):
        return Seed(time)
    if time is None:
        return Seed("done", {MEASURE: cap}, censored=frozenset({MEASURE}))
    return Seed("done", {MEASURE: time})


def verdict(rope: Arm, learned: Arm, **changes: Any) -> Verdict:
    outcomes = {("shift", "rope"): rope, ("shift", "learned"): learned}
    (found,) = judge([replace(CLAIM, **changes)], outcomes)
    return found


def times(given: Sequence[float | None]) -> list[Time]:
    return [Time(CAP, reached=False) if one is None else Time(one) for one in given]


def test_the_effect_is_the_difference_of_restricted_means_and_p_is_the_log_rank_tests() -> None:
    found = verdict(arm(FAST), arm(SLOW))

    fast, slow = (kaplan_meier(times(one), CAP).restricted_mean for one in (FAST, SLOW))
    assert found.effect == pytest.approx(fast - slow)
    assert found.p == log_rank(times(FAST), times(SLOW), "greater").p
    assert found.status == "supported"


def test_the_other_direction_is_refuted() -> None:
    assert verdict(arm(SLOW), arm(FAST)).status == "refuted"
    assert verdict(arm(SLOW), arm(FAST), direction="greater").status == "supported"


def test_it_is_said_who_is_sooner_and_who_did_not_get_there() -> None:
    found = verdict(arm(FAST), arm(SLOW))

    assert sentence(found).startswith(
        "Supported on shift: rope is sooner than learned by more than 100 in steps to fit (mean up "
        "to the cap): difference -843 (95 % interval "
    )
    assert found.notes == (
        "2 of 8 seeds of learned had not got there by step 1800, and count as that: they take at "
        "least so long.",
    )


def test_a_run_that_gets_there_at_the_very_cap_is_told_from_those_that_do_not() -> None:
    a, b = [100.0, 200.0, 300.0, None], [150.0, CAP, None, None]
    ended = [[Time(CAP) if one is None else Time(one) for one in values] for values in (a, b)]

    found = verdict(arm(a), arm(b), direction="different")

    assert found.p == log_rank(times(a), times(b)).p
    assert found.p != log_rank(ended[0], ended[1]).p
    assert len(found.notes) == 2


def test_a_diverged_seed_never_gets_there() -> None:
    found, same = (
        verdict(arm(FAST), arm([*SLOW[:7], "diverged"])),
        verdict(arm(FAST), arm([*SLOW[:7], None])),
    )

    assert (found.effect, found.p) == (same.effect, same.p)
    assert found.failed_against == 1


def test_a_failed_seed_may_have_got_there_at_once_or_never() -> None:
    found = verdict(arm(FAST), arm([*SLOW[:7], "failed"]))

    assert found.status == "supported"
    assert verdict(arm([*FAST[:7], "failed"]), arm([500.0] * 8)).status == "inconclusive"


def test_arms_with_other_caps_are_compared_up_to_the_earlier_one() -> None:
    short = arm([None] * 8, cap=600.0)
    long = arm([300.0, 350.0, 400.0, 700.0, 800.0, 340.0, 320.0, 360.0])

    found = verdict(long, short)

    assert found.effect == pytest.approx((300 + 350 + 400 + 600 + 600 + 340 + 320 + 360) / 8 - 600)
    assert any("2 of 8 seeds of rope had not got there by step 600" in one for one in found.notes)


def test_where_nobody_gets_there_nothing_is_claimed() -> None:
    found = verdict(arm([None] * 8), arm([None] * 8))

    assert found.status == "not tested"
    assert found.reason == "no seed of rope, learned got there by step 1800"


def test_a_time_that_was_not_measured_is_told() -> None:
    other = Arm({n: Seed("done", {}) for n in range(8)}, longest_trained=16)

    assert "learned has no steps_to_fit at length 16" in verdict(arm(FAST), other).reason


def test_the_same_speed_is_a_claim_too() -> None:
    shifted = [one + 5.0 for one in FAST]

    found = verdict(arm(FAST), arm(shifted), direction="same")

    assert found.status == "supported"
    assert "rope is within 100 of learned in steps to fit" in sentence(found)


def test_the_p_value_holds_whenever_failed_seeds_would_have_got_there() -> None:
    slow = arm([*SLOW[:5], "failed"])
    cases = [verdict(arm(FAST[:6]), arm([*SLOW[:5], one])) for one in (None, 0.0)]

    found = verdict(arm(FAST[:6]), slow)

    assert found.p == max(one.p or 0.0 for one in cases) == cases[1].p
    assert (cases[0].p or 0.0) < (cases[1].p or 0.0)
