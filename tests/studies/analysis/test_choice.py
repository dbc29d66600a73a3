"""Settings beside the chosen one: what is shown, by tuning runs alone."""

from typing import Any

from store.records import Choice, Score
from studies.analysis.gather import (
    CHOSEN,
    NEAR,
    ORACLE,
    Alternative,
    Tried,
    alternatives,
    tried_settings,
)
from tests.studies.made_up import run, score

RATE = "training.learning_rate"
LOW, MIDDLE, HIGH = ({RATE: rate} for rate in (1e-3, 3e-3, 1e-2))


def choice(setting: dict[str, Any] | None, *near: dict[str, Any], seeds: int = 1) -> Choice:
    """Three settings were tried; the ids of their runs begin with 0, 10 and 20."""
    tried = [
        {"setting": one, "nll": 0.1, "status": "done", "runs": [10 * n + s for s in range(seeds)]}
        for n, one in enumerate((LOW, MIDDLE, HIGH))
    ]
    return Choice("s", "t", "a", "search", "rule", setting, tried=tried, near=list(near))


def skill(run_id: int, value: float | None, length: int = 32, **other: Any) -> Score:
    return score("skill", value, length, run_id=run_id, **other)


def shown(chosen: Choice, *scores: Score) -> dict[float, tuple[str, ...]]:
    by_run = {one.run_id: [each for each in scores if each.run_id == one.run_id] for one in scores}
    return {one.setting[RATE]: one.roles for one in alternatives(chosen, [32], by_run)}


def test_the_chosen_one_those_as_good_and_the_oracle_are_shown_with_their_roles() -> None:
    scores = [skill(0, 0.9), skill(10, 0.5), skill(20, 0.1)]

    assert shown(choice(MIDDLE, HIGH), *scores) == {
        1e-3: (ORACLE,), 3e-3: (CHOSEN,), 1e-2: (NEAR,)
    }  # fmt: skip


def test_trained_lengths_other_splits_bins_and_later_scores_have_no_say() -> None:
    scores = [skill(0, 0.2), skill(10, 0.5)]
    noise = [
        skill(0, 1.0, 16),
        skill(0, 1.0, split="validation"),
        skill(0, 1.0, bin=3),
        skill(0, 1.0, source="evaluate"),
        score("accuracy", 1.0, 32, run_id=0),
    ]

    assert shown(choice(LOW), *scores, *noise) == {1e-3: (CHOSEN,), 3e-3: (ORACLE,)}


def test_a_setting_is_the_mean_of_its_tuning_seeds() -> None:
    scores = {0: [skill(0, 0.9)], 1: [skill(1, 0.1)], 10: [skill(10, 0.6)], 11: [skill(11, 0.6)]}

    found = alternatives(choice(LOW, seeds=2), [32], scores)

    assert [(one.skills[32], one.roles) for one in found] == [(0.5, (CHOSEN,)), (0.6, (ORACLE,))]
    assert str(found[1]) == (
        "learning_rate 0.003: best on the test lengths (an oracle, used for no verdict); skill "
        "0.60 at 32"
    )


def test_a_setting_without_a_score_at_a_length_is_no_oracle() -> None:
    assert shown(choice(LOW, MIDDLE), skill(0, 0.5), skill(10, None)) == {}


def test_nothing_is_shown_where_the_chosen_one_is_best_and_alone() -> None:
    assert shown(choice(LOW), skill(0, 0.9), skill(10, 0.5)) == {}


def test_nothing_is_shown_where_nothing_was_chosen() -> None:
    assert shown(choice(None), skill(0, 0.9)) == {}


def test_a_skill_that_rounds_to_zero_has_no_sign() -> None:
    other = Alternative({"training.learning_rate": 0.01}, (NEAR,), {16: -0.001, 32: -0.02})

    assert str(other) == "learning_rate 0.01: fits as well; skill 0.00 at 16, -0.02 at 32"


def test_what_was_tried_says_what_was_chosen_what_is_as_good_and_what_diverged() -> None:
    known = choice(LOW, MIDDLE)
    known.tried[2]["nll"] = None
    known.edges[RATE] = "lowest"
    runs = [run(seed=n - 1, status="done" if n < 20 else "diverged") for n in (0, 10, 20)]

    assert tried_settings(known, runs) == [
        Tried("learning_rate 0.001", 0.1, chosen=True, at_edge=True),
        Tried("learning_rate 0.003", 0.1, note="as good, within the tolerance"),
        Tried("learning_rate 0.01", None, note="diverged"),
    ]
