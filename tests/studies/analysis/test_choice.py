"""Settings beside the chosen one: what is shown, by tuning runs alone."""

from types import SimpleNamespace
from typing import Any

from studies.analysis.choice import CHOSEN, NEAR, ORACLE, Alternative, alternatives
from studies.experiment.tune import Chosen, Tried
from tests.studies.made_up import plan

RATE = "training.learning_rate"
LOW, MIDDLE, HIGH = ({RATE: rate} for rate in (1e-3, 3e-3, 1e-2))


def tried(number: int, setting: dict[str, Any], runs: int = 1) -> Tried:
    made: list[Any] = [SimpleNamespace(id=10 * number + one, status="done") for one in range(runs)]
    return Tried(setting, made, {})


def score(run: int, length: int, value: float | None, **other: Any) -> Any:
    known = {"split": "test", "metric": "skill", "bin": None, **other}
    return SimpleNamespace(run_id=run, length=length, value=value, **known)


def shown(chosen: Chosen, known: list[Tried], *scores: Any) -> dict[float, tuple[str, ...]]:
    made = plan(2)
    found = alternatives(made, made.cells()[0], chosen, known, scores)
    return {one.setting[RATE]: one.roles for one in found}


ALL = [tried(0, LOW), tried(1, MIDDLE), tried(2, HIGH)]


def test_the_chosen_one_those_as_good_and_the_oracle_are_shown_with_their_roles() -> None:
    scores = [score(0, 32, 0.9), score(10, 32, 0.5), score(20, 32, 0.1)]

    assert shown(Chosen(MIDDLE, near=(HIGH,)), ALL, *scores) == {
        1e-3: (ORACLE,), 3e-3: (CHOSEN,), 1e-2: (NEAR,)
    }  # fmt: skip


def test_trained_lengths_other_splits_and_bins_have_no_say() -> None:
    scores = [score(0, 32, 0.2), score(10, 32, 0.5)]
    noise = [
        score(0, 16, 1.0),
        score(0, 32, 1.0, split="validation"),
        score(0, 32, 1.0, bin=3),
        score(0, 32, 1.0, metric="accuracy"),
    ]

    assert shown(Chosen(LOW), ALL, *scores, *noise) == {1e-3: (CHOSEN,), 3e-3: (ORACLE,)}


def test_a_setting_is_the_mean_of_its_tuning_seeds() -> None:
    known = [tried(0, LOW, runs=2), tried(1, MIDDLE, runs=2)]
    scores = [score(0, 32, 0.9), score(1, 32, 0.1), score(10, 32, 0.6), score(11, 32, 0.6)]
    made = plan(2)

    found = alternatives(made, made.cells()[0], Chosen(LOW), known, scores)

    assert [(one.mean, one.roles) for one in found] == [(0.5, (CHOSEN,)), (0.6, (ORACLE,))]
    assert str(found[1]) == (
        "learning_rate 0.003: best on the test lengths (an oracle, used for no verdict); skill "
        "0.60 at 32"
    )


def test_a_setting_without_a_score_at_a_length_is_no_oracle() -> None:
    scores = [score(0, 32, 0.5), score(10, 32, None)]

    assert shown(Chosen(LOW, near=(MIDDLE,)), ALL, *scores) == {}


def test_nothing_is_shown_where_the_chosen_one_is_best_and_alone() -> None:
    assert shown(Chosen(LOW), ALL, score(0, 32, 0.9), score(10, 32, 0.5)) == {}


def test_nothing_is_shown_where_nothing_was_chosen() -> None:
    assert shown(Chosen(None, "all diverged"), ALL, score(0, 32, 0.9)) == {}


def test_a_skill_that_rounds_to_zero_has_no_sign() -> None:
    other = Alternative({"training.learning_rate": 0.01}, (NEAR,), {16: -0.001, 32: -0.02})

    assert str(other) == "learning_rate 0.01: fits as well; skill 0.00 at 16, -0.02 at 32"
