"""The sentence of a verdict, on made-up seeds with a known answer."""

from dataclasses import replace
from typing import Any

import pytest

from studies.analysis import Arm, Seed, Verdict, judge, sentence
from studies.analysis.phrases import decimal, decimals, p_text
from studies.experiment.hypothesis import Hypothesis

CLAIM = Hypothesis("extends", "rope extends", "rope", "learned", "shift", (32,))

HIGH = [0.97, 0.99, 0.95, 0.98, 0.96, 0.99, 0.97, 0.98]
LOW = [0.31, 0.28, 0.35, 0.30, 0.33, 0.29, 0.32, 0.30]
WIDE = [0.10, 0.90, 0.45, 0.60, 0.30, 0.75, 0.20, 0.85]


def arm(skills: list[float], fit: float = 1.0) -> Arm:
    seeds = {n: Seed("done", {("skill", 32): one}, fit) for n, one in enumerate(skills)}
    return Arm(seeds, longest_trained=16)


def said(rope: Arm, learned: Arm, **changes: Any) -> str:
    pair = {("shift", "rope"): rope, ("shift", "learned"): learned}
    (verdict,) = judge([replace(CLAIM, **changes)], pair)
    return sentence(verdict)


def test_a_clear_winner() -> None:
    assert said(arm(HIGH), arm(LOW)) == (
        "Supported on shift: rope exceeds learned by more than .10 in skill at length 32: "
        "difference +.66 (95 % interval .64 to .68, p < .001; 8 seeds each)."
    )


def test_a_tie() -> None:
    # 7355 of the 12870 splits are at least as extreme as two equal means.
    assert said(arm(HIGH), arm(list(reversed(HIGH)))) == (
        "Refuted on shift: rope is within .10 of learned in skill at length 32: "
        "difference .00 (95 % interval -.02 to .02, p = .571; 8 seeds each)."
    )


def test_a_loser() -> None:
    assert said(arm(LOW), arm(HIGH)) == (
        "Refuted on shift: rope falls short of learned by more than .10 in skill at length 32: "
        "difference -.66 (95 % interval -.68 to -.64, p = 1.000; 8 seeds each)."
    )


def test_noise() -> None:
    assert said(arm(WIDE), arm([1 - one for one in WIDE])).startswith(
        "Inconclusive on shift: it is open whether rope exceeds learned by .10 in skill at length "
        "32: difference +.04 (95 % interval -.29 to .36, p = .417; 8 seeds each); "
    )


def test_the_seeds_that_would_settle_it_are_told() -> None:
    found = Verdict(CLAIM, "inconclusive", 0.12, -0.05, 0.29, 0.03, 0.03, 8, 8, seeds_needed=41)

    assert sentence(found).endswith("; 8 seeds each); about 41 seeds each would settle it.")


def test_a_question_too_fine_for_the_noise() -> None:
    assert said(arm(WIDE), arm([one - 0.099 for one in WIDE])).endswith(
        "; more than 1000 seeds each would be needed to settle it."
    )


def test_one_seed() -> None:
    assert said(arm([1.0]), arm([0.0])) == (
        "Not tested on shift: 1 seed against 1 cannot decide; a family of 1 needs at least 3 per "
        "arm."
    )


def test_an_arm_that_did_not_learn() -> None:
    assert said(arm(HIGH), arm(LOW, fit=0.4)) == (
        "Not tested on shift: learned did not learn: its skill is 0.40 at length 16, the longest "
        "trained (below 0.8; 0 of 8 seeds reach it)."
    )


def test_no_spread() -> None:
    assert said(arm([1.0] * 8), arm([0.0] * 8)) == (
        "Supported on shift: rope exceeds learned by more than .10 in skill at length 32: "
        "difference +1.00 (95 % interval 1.00 to 1.00, p < .001; 8 seeds each)."
    )


def test_seeds_that_work_or_fail_are_told_as_a_share() -> None:
    pair = {("shift", "rope"): arm([1.0] * 5 + [0.3, 0.31, 0.3]), ("shift", "learned"): arm(LOW)}

    (verdict,) = judge([CLAIM], pair)

    assert verdict.notes == ("rope works in 5 of 8 seeds (skill 1.00 there, 0.30 in the others).",)


def test_a_claim_of_less_is_told_from_its_side() -> None:
    assert said(arm(LOW), arm(HIGH), direction="less").startswith(
        "Supported on shift: rope falls short of learned by more than .10"
    )
    wide = said(arm([0.5, 0.9, 0.7, 0.8]), arm([0.3, 0.6, 0.4, 0.5]), direction="less")
    assert wide.startswith("Refuted on shift: rope does not fall short of learned by .10 in skill")


def test_several_lengths_and_a_family_are_told() -> None:
    seeds = {
        n: Seed("done", {("skill", 32): one, ("skill", 64): one}, 1.0) for n, one in enumerate(HIGH)
    }
    pair = {("shift", "rope"): Arm(seeds, 16), ("shift", "learned"): Arm(seeds, 16)}
    claims = [replace(CLAIM, lengths=(32, 64), name=name) for name in ("one", "two")]

    first, _ = judge(claims, pair)

    told = sentence(first)
    assert "in mean skill over lengths 32, 64" in told
    assert "simultaneous 95 % interval" in told
    assert "Holm p = 1.000" in told


def test_what_came_later_says_so() -> None:
    found = Verdict(CLAIM, "not tested", reason="nothing ran", exploratory=True)

    assert sentence(found) == "Not tested on shift (exploratory): nothing ran."


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.564, ".56"),
        (-0.034, "-.03"),
        (1.0, "1.00"),
        (0.001, ".00"),
        (-0.001, ".00"),
        (2.5, "2.50"),
    ],
)
def test_a_share_is_told_in_few_signs(value: float, text: str) -> None:
    assert decimal(value) == text


@pytest.mark.parametrize(
    ("smallest", "digits"), [(1.0, 2), (0.2, 2), (0.1, 2), (0.05, 3), (0.01, 3), (0.002, 4)]
)
def test_decimals_follow_from_the_smallest_effect(smallest: float, digits: int) -> None:
    assert decimals(smallest) == digits


@pytest.mark.parametrize(
    ("p", "family", "text"),
    [(0.0009, 1, "p < .001"), (0.012, 1, "p = .012"), (1.0, 5, "Holm p = 1.000")],
)
def test_a_p_value_is_told_as_papers_do(p: float, family: int, text: str) -> None:
    assert p_text(p, family) == text


@pytest.mark.parametrize(
    ("skills", "told"),
    [
        (
            [0.0] * 5 + [0.3, 0.31, 0.29],
            "rope falls into two groups: skill 0.30 in 3 of 8 seeds, 0.00 in the others.",
        ),
        (
            [0.99, 1.0] * 2 + [1.3] * 4,
            "rope falls into two groups: skill 1.30 in 4 of 8 seeds, 0.99 in the others.",
        ),
    ],
)
def test_an_arm_that_works_in_no_seed_or_in_all_is_not_said_to_work_in_some(
    skills: list[float], told: str
) -> None:
    pair = {("shift", "rope"): arm(skills), ("shift", "learned"): arm(LOW)}

    (verdict,) = judge([CLAIM], pair)

    assert verdict.notes[0] == told


@pytest.mark.parametrize(
    ("low", "high", "told"),
    [
        (0.1004, 0.3, ".1004 to .30"),
        (-0.3, -0.1003, "-.30 to -.1003"),
        (-0.02, 0.0996, "-.02 to .0996"),
        (0.1, 0.3, ".10 to .30"),
        (0.0949, 0.3, ".09 to .30"),
        (0.1 + 1e-8, 0.3, ".10 to .30"),
    ],
)
def test_a_bound_is_told_from_the_smallest_effect_that_it_is_judged_by(
    low: float, high: float, told: str
) -> None:
    found = Verdict(CLAIM, "supported", (low + high) / 2, low, high, 0.01, 0.01, 8, 8)

    assert f"(95 % interval {told}, p" in sentence(found)
