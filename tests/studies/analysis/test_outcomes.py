"""What came of seeds, counted by hand."""

import pytest

from studies.analysis.results import ArmOutcome, SeedOutcome


def seed(skill: float | None, fit: float | None = 1.0) -> SeedOutcome:
    return SeedOutcome("done", {("skill", 32): skill, ("skill", 64): skill}, fit)


LOST = {3: SeedOutcome("diverged"), 4: SeedOutcome("failed")}
ARM = ArmOutcome({0: seed(0.9), 1: seed(0.85, 0.9), 2: seed(0.3, 0.5), **LOST}, 16)


def test_a_value_is_the_mean_over_the_lengths() -> None:
    outcome = SeedOutcome("done", {("skill", 32): 0.8, ("skill", 64): 0.4})

    assert ArmOutcome({7: outcome}).value(7, "skill", (32, 64)) == pytest.approx(0.6)


def test_a_diverged_seed_scores_what_a_model_scores_that_learned_nothing() -> None:
    floors = {("accuracy", 32): 0.25, ("accuracy", 64): 0.35}
    arm = ArmOutcome({3: SeedOutcome("diverged")}, floors=floors)

    assert arm.value(3, "skill", (32, 64)) == 0
    assert arm.value(3, "accuracy", (32, 64)) == pytest.approx(0.3)
    assert arm.value(3, "nll", (32,)) is None


def test_a_diverged_seed_did_not_fit_and_a_failed_one_is_not_known() -> None:
    # (1.0 + 0.9 + 0.5 + 0) / 4, with the failed seed in the count of seeds alone.
    found = ARM.fit(0.8)

    assert found.mean == pytest.approx(0.6)
    assert (found.solved, found.seeds, found.learned) == (2, 5, False)
    assert ARM.fit(0.59).learned


def test_a_fit_that_was_not_measured_is_not_guessed() -> None:
    assert ArmOutcome({0: seed(0.9), 1: seed(0.9, fit=None)}).fit(0.8).mean is None


def test_statuses_are_counted() -> None:
    assert (ARM.count("done"), ARM.count("diverged", "failed")) == (3, 2)


@pytest.mark.parametrize("threshold", [0.6, 0.7, 0.8, 0.9, 0.95])
@pytest.mark.parametrize("lost", [0, 1])
def test_seeds_that_all_just_reach_the_threshold_have_learned(threshold: float, lost: int) -> None:
    # A running sum of six times .8, over 6, is .7999999999999999.
    for n in range(2, 17):
        seeds = {number: seed(threshold, threshold) for number in range(n)}
        failed = {n + number: SeedOutcome("failed") for number in range(lost)}

        found = ArmOutcome({**seeds, **failed}, 16).fit(threshold)

        assert (found.mean, found.solved, found.learned) == (threshold, n, True)
        assert found.sure == (not lost)


def test_equal_scores_at_all_lengths_are_their_own_mean() -> None:
    # .8 + .8 + .8 is 2.4000000000000004.
    outcome = SeedOutcome("done", {("skill", length): 0.8 for length in (32, 64, 128)})

    assert ArmOutcome({7: outcome}).value(7, "skill", (32, 64, 128)) == 0.8
