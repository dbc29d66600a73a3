"""The answer, from scores made up so that the right words are known."""

from collections.abc import Mapping
from io import StringIO
from types import SimpleNamespace
from typing import Any

import pytest

from store.aggregate import Interval
from studies.analysis.phrases import cell_text, number
from studies.analysis.printing import print_answer
from studies.analysis.results import ArmResult
from studies.analysis.sentences import arm_sentence
from studies.execution.trials import RATE
from studies.experiment.overrides import gather
from studies.experiment.plan import Cell, Plan
from studies.experiment.tune import Chosen
from studies.extrapolation import QUICK, STUDY

PLAN = Plan(STUDY, gather(QUICK, None, ["evaluation.test_lengths=[16, 20, 32]"]))


def result(
    skills: Mapping[int, list[float]],
    arm: str = "rope",
    statuses: tuple[str, ...] = ("done", "done"),
    chosen: Chosen | None = None,
    split: str = "test",
) -> ArmResult:
    runs: list[Any] = [SimpleNamespace(status=status) for status in statuses]
    values = {(split, "skill", length): list(found) for length, found in skills.items()}
    return ArmResult(Cell(0, "shift", arm), runs, chosen or Chosen({RATE: 3e-3}), values)


def test_an_arm_that_stays_above_the_threshold_holds() -> None:
    said = arm_sentence(PLAN, result({16: [1.0, 1.0], 20: [1.0, 0.9], 32: [0.95, 0.75]}))

    assert said == "holds to length 32 (skill .85; 0.8 or more in 1 of 2 seeds)."


def test_an_arm_falls_at_the_first_length_below_the_threshold() -> None:
    said = arm_sentence(PLAN, result({16: [1.0], 20: [0.5], 32: [0.9]}))

    assert said == "falls below 0.8 at length 20 (skill .50)."


def test_the_last_length_that_held_is_told() -> None:
    said = arm_sentence(PLAN, result({16: [1.0], 20: [0.9], 32: [0.5]}))

    assert said == "falls below 0.8 at length 32 (skill .50; still .90 at 20)."


def test_an_arm_that_did_not_fit_is_never_said_to_fall() -> None:
    said = arm_sentence(PLAN, result({16: [0.79, 0.79], 20: [0.1, 0.1], 32: [0.0, 0.0]}))

    assert said == "did not learn: skill .79 at length 16, the longest trained (below 0.8)."


def test_an_arm_that_learned_in_some_seeds_says_in_how_many() -> None:
    said = arm_sentence(PLAN, result({16: [1.0, 0.2]}, statuses=("done", "done", "diverged")))

    assert said == (
        "learned in 1 of 3 seeds only: skill .40 at length 16, the longest trained (below 0.8). "
        "1 of 3 seeds diverged and counts as one that learned nothing."
    )


def test_the_longest_trained_length_may_be_told_by_validation() -> None:
    plan = Plan(STUDY, gather(QUICK, None, ["evaluation.test_lengths=[32]"]))
    fitted = ArmResult(
        Cell(0, "shift", "rope"),
        [],
        Chosen({RATE: 3e-3}),
        {("validation", "skill", 16): [1.0], ("test", "skill", 32): [0.2]},
    )

    assert arm_sentence(plan, fitted) == "falls below 0.8 at length 32 (skill .20)."


def test_where_nothing_longer_is_tested_nothing_is_said_of_it() -> None:
    plan = Plan(STUDY, gather(QUICK, None, ["evaluation.test_lengths=[16]"]))

    told = "learns the trained lengths; no longer one is tested than 16."
    assert arm_sentence(plan, result({16: [1.0, 0.9]})) == told


def test_where_all_seeds_are_lost_there_is_no_result_and_they_are_counted() -> None:
    said = arm_sentence(PLAN, result({}, statuses=("diverged", "failed")))

    assert said == "has no result at length 16. 1 of 2 seeds diverged. 1 of 2 seeds failed."


@pytest.mark.parametrize("statuses", [(), ("planned", "planned"), ("done", "running")])
def test_what_is_still_to_be_run_has_no_result_yet(statuses: tuple[str, ...]) -> None:
    assert arm_sentence(PLAN, result({}, statuses=statuses)) == "has no result yet."


def test_a_length_that_cannot_be_asked_is_said() -> None:
    said = arm_sentence(PLAN, result({16: [1.0], 20: [0.9]}))

    assert said == "holds to length 20; it cannot be asked at length 32."


def test_an_arm_without_a_learning_rate_says_why() -> None:
    chosen = Chosen(None, "training diverged at every setting")

    said = arm_sentence(PLAN, result({}, statuses=(), chosen=chosen))

    assert said == "has no result: training diverged at every setting."


def test_an_arm_that_does_not_apply_says_why() -> None:
    runs: list[Any] = [
        SimpleNamespace(status="not_applicable", reason="no kernel on this device.")
        for _ in range(2)
    ]

    said = arm_sentence(PLAN, ArmResult(Cell(0, "shift", "rope"), runs, Chosen({RATE: 3e-3}), {}))

    assert said == "does not apply: no kernel on this device."


def test_a_seed_without_a_value_is_one_that_did_not_hold() -> None:
    said = arm_sentence(
        PLAN, result({16: [1.0], 20: [1.0], 32: [1.0]}, statuses=("done", "failed", "failed"))
    )

    assert said == (
        "holds to length 32 in 1 of 3 seeds only (skill 1.0 where it was measured). "
        "2 of 3 seeds failed."
    )


def test_a_seed_that_diverged_counts_as_one_that_learned_nothing() -> None:
    skills = {16: [1.0] * 4, 20: [1.0, 1.0, 1.0, 0.9], 32: [1.0, 1.0, 1.0, 0.7]}
    one = result(skills, statuses=("done",) * 4 + ("diverged",))
    lost = "1 of 5 seeds diverged and counts as one that learned nothing."

    # 3.9 / 5 and 3.7 / 5; the four others have means of .975 and .925.
    assert arm_sentence(PLAN, one) == f"falls below 0.8 at length 20 (skill .78). {lost}"
    assert one.counted("skill", 16) == [1.0, 1.0, 1.0, 1.0, 0.0]
    assert one.interval("accuracy", 16) is None


def test_a_seed_that_diverged_counts_with_the_floor_in_accuracy() -> None:
    values = {("test", "accuracy", 16): [1.0, 0.9], ("test", "nll", 16): [0.1, 0.3]}
    runs: list[Any] = [SimpleNamespace(status=one) for one in ("done", "done", "diverged")]
    one = ArmResult(Cell(0, "shift", "rope"), runs, None, values, floors={("accuracy", 16): 0.2})

    assert one.counted("accuracy", 16) == [1.0, 0.9, 0.2]
    assert one.counted("nll", 16) == [0.1, 0.3]  # no floor: those that measured it


@pytest.mark.parametrize(("width", "groups"), [(200, [[16, 20, 32]]), (40, [[16, 20], [32]])])
def test_a_narrow_terminal_gets_several_tables_and_nothing_is_cut(
    width: int, groups: list[list[int]]
) -> None:
    from rich.console import Console

    console = Console(width=width, record=True, file=StringIO())
    arms = [result({16: [1.0, 0.2], 20: [0.9, 0.1], 32: [-0.9, 0.7]}, arm=arm) for arm in PLAN.arms]

    plan = Plan(STUDY, gather(QUICK, None, ["evaluation.test_lengths=[16, 20, 32]", "task=shift"]))
    print_answer(console, plan, arms)

    printed = console.export_text()
    headers = [line.split()[1:] for line in printed.splitlines() if line.startswith("  length")]
    assert headers == [list(map(str, group)) for group in groups] * 3
    assert "…" not in printed


def test_seeds_that_diverged_are_counted() -> None:
    said = arm_sentence(
        PLAN, result({16: [1.0], 20: [1.0], 32: [1.0]}, statuses=("done", "diverged", "failed"))
    )

    assert "1 of 3 seeds diverged and counts as one that learned nothing." in said
    assert "1 of 3 seeds failed." in said


@pytest.mark.parametrize(("rate", "side"), [(1e-3, "lowest"), (1e-2, "highest")])
def test_a_learning_rate_at_the_edge_is_flagged(rate: float, side: str) -> None:
    chosen = Chosen({RATE: rate}, edges={RATE: side})

    said = arm_sentence(PLAN, result({16: [0.0]}, chosen=chosen))

    assert f"Its learning rate {rate:g} is the {side} tried." in said


def test_untrained_rows_are_said() -> None:
    said = arm_sentence(PLAN, result({16: [1.0], 20: [0.5]}, arm="learned"))

    assert said.endswith("(Its rows beyond 16 are untrained.)")


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
