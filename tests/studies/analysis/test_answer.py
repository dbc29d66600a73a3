"""The answer in words, from scores made up so that the right words are known."""

from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from store.aggregate import Interval
from store.records import Choice
from studies.analysis.phrases import cell_text, number
from studies.analysis.printing import print_answer
from studies.analysis.results import Arm, StudyResults
from studies.analysis.sentences import arm_sentence
from tests.studies.made_up import arm, plan, scores, seed, task

LENGTHS = (16, 20, 32)
RATE = "training.learning_rate"


def made(*outcomes: Any, **changes: Any) -> Arm:
    """An arm with these skills at 16, 20 and 32."""
    return arm("rope", *outcomes, lengths=LENGTHS, **changes)


def said(one: Arm, **changes: Any) -> str:
    return arm_sentence(task(one, **changes), one)


def chose(setting: dict[str, Any] | None, **told: Any) -> Choice:
    return Choice("s", "t", "a", "search", "rule", setting, **told)


def test_an_arm_that_stays_above_the_threshold_holds() -> None:
    assert said(made((1.0, 1.0, 0.95), (1.0, 0.9, 0.75))) == (
        "holds to length 32 (skill .85; 0.8 or more in 1 of 2 seeds)."
    )


def test_an_arm_falls_at_the_first_length_below_the_threshold() -> None:
    assert said(made((1.0, 0.5, 0.9))) == "falls below 0.8 at length 20 (skill .50)."


def test_the_last_length_that_held_is_told() -> None:
    assert said(made((1.0, 0.9, 0.5))) == (
        "falls below 0.8 at length 32 (skill .50; still .90 at 20)."
    )


def test_an_arm_that_did_not_fit_is_never_said_to_fall() -> None:
    assert said(made((0.79, 0.1, 0.0), (0.79, 0.1, 0.0))) == (
        "did not learn: skill .79 at length 16, the longest trained (below 0.8)."
    )


def test_an_arm_that_learned_in_some_seeds_says_in_how_many() -> None:
    assert said(made((1.0,), (0.2,), "diverged")) == (
        "learned in 1 of 3 seeds only: skill .40 at length 16, the longest trained (below 0.8). "
        "1 of 3 seeds diverged and counts as one that learned nothing."
    )


def test_the_longest_trained_length_may_be_told_by_validation() -> None:
    fitted = seed({32: 0.2}, *scores({16: 1.0}, split="validation"))

    assert said(Arm({0: fitted}, 16, lengths=(32,))) == "falls below 0.8 at length 32 (skill .20)."


def test_where_nothing_longer_is_tested_nothing_is_said_of_it() -> None:
    short = arm("rope", (1.0,), (0.9,), lengths=(16,))

    assert said(short) == "learns the trained lengths; no longer one is tested than 16."


def test_where_all_seeds_failed_there_is_no_result_and_they_are_counted() -> None:
    assert said(made("failed", "failed")) == "has no result at length 16. 2 of 2 seeds failed."


def test_an_arm_whose_seeds_diverged_did_not_learn() -> None:
    assert said(made("diverged", "failed")) == (
        "did not learn: skill .00 at length 16, the longest trained (below 0.8). 1 of 2 seeds "
        "diverged and counts as one that learned nothing. 1 of 2 seeds failed."
    )


@pytest.mark.parametrize("statuses", [(), ("planned", "planned"), ((), "running")])
def test_what_is_still_to_be_run_has_no_result_yet(statuses: tuple[Any, ...]) -> None:
    assert said(made(*statuses)) == "has no result yet."


def test_a_length_that_cannot_be_asked_is_said() -> None:
    assert said(made((1.0, 0.9))) == "holds to length 20; it cannot be asked at length 32."


def test_an_arm_without_a_learning_rate_says_why() -> None:
    assert said(made(reason="training diverged at every setting")) == (
        "has no result: training diverged at every setting."
    )


def test_an_arm_that_does_not_apply_says_why() -> None:
    ended = seed("not_applicable", reason="no kernel on this device.")

    assert said(Arm({0: ended, 1: ended}, 16)) == "does not apply: no kernel on this device."


def test_a_seed_without_a_value_is_one_that_did_not_hold() -> None:
    assert said(made((1.0, 1.0, 1.0), "failed", "failed")) == (
        "holds to length 32 in 1 of 3 seeds only (skill 1.0 where it was measured). "
        "2 of 3 seeds failed."
    )


def test_a_seed_that_diverged_counts_as_one_that_learned_nothing() -> None:
    lost = "1 of 5 seeds diverged and counts as one that learned nothing."

    # 3.9 / 5 and 3.7 / 5; the four others have means of .975 and .925.
    one = made(*[(1.0, 1.0, 1.0)] * 3, (1.0, 0.9, 0.7), "diverged")
    assert said(one) == f"falls below 0.8 at length 20 (skill .78). {lost}"


@pytest.mark.parametrize(("width", "groups"), [(200, [[16, 20, 32]]), (40, [[16, 20], [32]])])
def test_a_narrow_terminal_gets_several_tables_and_nothing_is_cut(
    width: int, groups: list[list[int]]
) -> None:
    console = Console(width=width, record=True, file=StringIO())
    arms = [
        replace(made((1.0, 0.9, -0.9), (0.2, 0.1, 0.7)), name=name)
        for name in ("sinusoidal", "none", "learned")
    ]

    print_answer(console, StudyResults(plan(2), [task(*arms)]))

    printed = console.export_text()
    headers = [line.split()[1:] for line in printed.splitlines() if line.startswith("  length")]
    assert headers == [list(map(str, group)) for group in groups] * 3
    assert "…" not in printed


def test_seeds_that_diverged_are_counted() -> None:
    told = said(made((1.0, 1.0, 1.0), "diverged", "failed"))

    assert "1 of 3 seeds diverged and counts as one that learned nothing." in told
    assert "1 of 3 seeds failed." in told


@pytest.mark.parametrize(("rate", "side"), [(1e-3, "lowest"), (1e-2, "highest")])
def test_a_learning_rate_at_the_edge_is_flagged(rate: float, side: str) -> None:
    chosen = chose({RATE: rate}, edges={RATE: side})

    assert f"Its learning rate {rate:g} is the {side} tried." in said(made((0.0,), choice=chosen))


def test_a_remark_stands_at_the_end() -> None:
    told = said(made((1.0, 0.5), remark="(Its rows beyond 16 are untrained.)"))

    assert told.endswith(" (Its rows beyond 16 are untrained.)")


def test_runs_that_measure_in_their_own_way_are_counted() -> None:
    told = said(made((1.0,), "failed"), titles={"kl": "divergence"})

    assert told == "1 of 2 runs are done: failed. 1 of 2 seeds failed."


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.564, ".56"),
        (0.9951, ".99"),
        (0.9996, "1.0"),
        (1.0, "1.0"),
        (0.0, ".00"),
        (-0.001, ".00"),
        (-0.034, "-.03"),
        (-1.2, "-1.20"),
        (1.48, "1.48"),
    ],
)
def test_a_share_is_told_in_few_signs(value: float, text: str) -> None:
    assert number(value) == text


def test_a_cell_has_mean_and_half_width() -> None:
    assert cell_text(Interval(0.5, 0.4, 0.6, 3)) == ".50±.10"
    assert cell_text(Interval(0.5, None, None, 1)) == ".50"
    assert cell_text(None) == "n/a"
