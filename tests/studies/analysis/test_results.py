"""Tasks, arms and seeds, counted by hand: no seed is lost, no score is misplaced."""

import pytest

from studies.analysis.results import Arm, Reach, Seed
from tests.studies.made_up import BLIND, arm, run, score, scores, seed, task


def rated(skill: float | None, fit: float | None = 1.0) -> Seed:
    return Seed("done", {("skill", 32): skill, ("skill", 64): skill}, fit)


ENDED = {3: seed("diverged"), 4: seed("failed")}
ARM = Arm({0: rated(0.9), 1: rated(0.85, 0.9), 2: rated(0.3, 0.5), **ENDED}, 16)


def test_a_value_is_the_mean_over_the_lengths() -> None:
    outcome = Seed("done", {("skill", 32): 0.8, ("skill", 64): 0.4})

    assert Arm({7: outcome}).value(7, "skill", (32, 64)) == pytest.approx(0.6)


def test_a_diverged_seed_scores_what_its_run_stored() -> None:
    one = arm("rope", "diverged", (1.0, 0.9))

    assert one.value(0, "skill", (16, 32)) == 0
    assert one.value(0, "accuracy", (16, 32)) == BLIND
    assert one.value(0, "nll", (32,)) is None
    assert one.values("accuracy", 32) == {0: BLIND, 1: pytest.approx(0.92)}


def test_the_floor_of_a_metric_is_the_stored_blind_guess_or_its_own() -> None:
    one = arm("rope", "failed", (1.0, 0.9))

    assert one.floor("accuracy", (16, 32)) == BLIND
    assert one.floor("exact", (16, 32)) == 0
    assert one.floor("nll", (16,)) is None
    assert arm("rope", "failed").floor("accuracy", (16,)) is None


def test_a_diverged_seed_did_not_fit_and_a_failed_one_is_not_known() -> None:
    # (1.0 + 0.9 + 0.5 + 0) / 4, with the failed seed in the count of seeds alone.
    found = ARM.fit(0.8)

    assert found.mean == pytest.approx(0.6)
    assert (found.solved, found.seeds, found.learned) == (2, 5, False)
    assert ARM.fit(0.59).learned


def test_a_fit_that_was_not_measured_is_not_guessed() -> None:
    assert Arm({0: rated(0.9), 1: rated(0.9, fit=None)}).fit(0.8).mean is None


def test_statuses_are_counted() -> None:
    assert (ARM.count("done"), ARM.count("diverged", "failed")) == (3, 2)


@pytest.mark.parametrize("threshold", [0.6, 0.7, 0.8, 0.9, 0.95])
@pytest.mark.parametrize("lost", [0, 1])
def test_seeds_that_all_just_reach_the_threshold_have_learned(threshold: float, lost: int) -> None:
    # A running sum of six times .8, over 6, is .7999999999999999.
    for n in range(2, 17):
        seeds = {number: rated(threshold, threshold) for number in range(n)}
        failed = {n + number: Seed("failed") for number in range(lost)}

        found = Arm({**seeds, **failed}, 16).fit(threshold)

        assert (found.mean, found.solved, found.learned) == (threshold, n, True)
        assert found.sure == (not lost)


def test_equal_scores_at_all_lengths_are_their_own_mean() -> None:
    # .8 + .8 + .8 is 2.4000000000000004.
    outcome = Seed("done", {("skill", length): 0.8 for length in (32, 64, 128)})

    assert Arm({7: outcome}).value(7, "skill", (32, 64, 128)) == 0.8


def test_the_fit_is_the_skill_at_the_longest_trained_length() -> None:
    assert seed({16: 0.9, 32: 0.2}).fit == 0.9


def test_a_test_score_wins_over_one_of_validation() -> None:
    validation = scores({16: 0.7}, split="validation")

    assert seed({16: 0.9}, *validation).fit == 0.9
    assert seed({}, *validation).fit == 0.7
    assert seed({}, *validation).places["validation", "skill", 16] == 0.7


def test_bins_are_metrics_of_their_own() -> None:
    found = seed({}, score("skill", 0.5, 32), score("skill", 0.9, 32, bin=2))

    assert found.values == {("skill", 32): 0.5, ("skill[2]", 32): 0.9}
    assert found.bins == {("skill", 32): [(2, 0.9)]}
    assert found.places == {("test", "skill", 32): 0.5}


def test_what_was_added_later_is_apart() -> None:
    found = seed({16: 0.9}, score("skill", 0.3, 64, source="evaluate"))

    assert ("skill", 64) not in found.values
    assert found.later == {("test", "skill", 64): 0.3}
    one = Arm({0: found}, 16, lengths=(16,))
    assert one.values("skill", 64) == {}
    assert one.values("skill", 64, later=True) == {0: 0.3}
    assert task(one).later_lengths == [64]


def test_a_time_that_was_not_reached_is_censored() -> None:
    met, not_met = (
        seed({}, score("steps_to_fit", 30.0, split="train", correct=correct)) for correct in (1, 0)
    )

    assert met.censored == frozenset()
    assert not_met.censored == {("steps_to_fit", 16)}
    assert not_met.values == {("steps_to_fit", 16): 30.0}


@pytest.mark.parametrize("status", ["failed", "diverged", "not_applicable"])
def test_a_seed_that_ended_badly_keeps_its_status(status: str) -> None:
    found = seed(status, reason="why")

    assert (found.status, found.reason, found.lost) == (status, "why", True)
    assert arm("rope", status).lost.keys() == {0}


@pytest.mark.parametrize(
    ("test", "validation", "told"),
    [
        ({8: 0.9, 16: 0.8, 32: 0.9}, {}, Reach(True, 32)),
        ({8: 0.9, 16: 0.79, 32: 0.9}, {}, Reach(True, 8, 16, 0.79)),
        ({8: 0.9, 16: 0.8, 32: 0.1}, {}, Reach(True, 16, 32, 0.1)),
        ({8: 0.79, 16: 0.9, 32: 0.9}, {}, Reach(False, skill=0.79)),
        ({8: 0.9, 32: 0.9}, {}, Reach(True, 8, unmeasured=16)),
        ({16: 0.9, 32: 0.9}, {8: 0.9}, Reach(True, 32)),
        ({16: 0.9, 32: 0.9}, {8: 0.2}, Reach(False, skill=0.2)),
        ({16: 0.9, 32: 0.9}, {}, Reach(None)),
    ],
    ids=[
        *("holds", "falls at once", "falls later", "did not learn", "beyond its table"),
        *("validation tells", "validation tells of no learning", "nothing at the trained length"),
    ],
)
def test_lengths_are_followed_upwards_from_the_longest_trained(
    test: dict[int, float], validation: dict[int, float], told: Reach
) -> None:
    one = Arm(
        {0: seed(test, *scores(validation, split="validation"), longest=8)},
        8,
        lengths=(32, 4, 16),
    )

    assert one.reach(0.8) == told


def test_without_a_longer_length_it_holds_where_it_was_trained() -> None:
    assert Arm({0: seed({8: 0.9}, longest=8)}, 8, lengths=(4, 8)).reach(0.8) == Reach(True, 8)


def test_half_of_the_seeds_are_half_of_all_and_not_of_those_that_fitted() -> None:
    def timed(steps: float, met: int) -> Seed:
        return seed({}, score("steps_to_fit", steps, split="train", correct=met))

    def median(*seeds: Seed) -> float | None:
        return Arm(dict(enumerate(seeds))).median_time()

    early, never = [timed(40.0, 1), timed(60.0, 1)], [timed(300.0, 0)] * 2

    # By 60 steps two of four, and of four and one that failed, of which nothing is known.
    assert median(*early, *never) == 60
    assert median(*early, *never, seed("failed")) == 60
    assert median(*early, *never, seed("diverged")) is None
    assert median(early[0], *never) is None
    assert median(seed("diverged")) is None


def test_a_seed_that_is_lost_stays_in_the_share_that_solved() -> None:
    for ended in ("diverged", "failed"):
        share = arm("half", (1.0, 1.0), ended).solved(32, 0.8)

        assert share is not None
        assert (share.mean, share.n) == (0.5, 2)


@pytest.mark.parametrize("status", ["planned", "running"])
def test_a_seed_that_is_not_over_is_not_in_the_share_that_solved(status: str) -> None:
    share = arm("half", (1.0, 1.0), (1.0, 0.0), status).solved(32, 0.8)

    assert share is not None
    assert (share.mean, share.n) == (0.5, 2)
    assert arm("none", status).solved(32, 0.8) is None


def test_one_seed_has_a_mean_and_no_interval() -> None:
    interval = arm("lone", (1.0, 0.85)).interval("skill", 32)

    assert interval is not None
    assert (interval.mean, interval.low) == (0.85, None)


def test_a_run_that_is_not_stored_is_no_run() -> None:
    assert Arm({0: Seed()}).runs == []
    assert Arm({0: seed({}, seed=3)}).runs == [run(seed=3)]
