"""What is printed of results whose right reading is known, and the first sentence of a report."""

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from studies.analysis.printing import print_answer, print_verdicts
from studies.analysis.sentences import arm_sentence, claims, reaches
from studies.report.findings import findings_of
from studies.training.settings import task_of
from tests.studies.made_up import CASES, FAR, MadeUp, case, draft, plan


def printed(made: MadeUp) -> str:
    console = Console(width=1000, record=True, file=StringIO())
    print_verdicts(console, made.verdicts)
    print_answer(console, made.results)
    return console.export_text()


SAID = {
    "clear winner": "Supported on shift: rope exceeds learned by more than .10 in skill at length "
    "32: difference +.60",
    "tie": "Refuted on shift: rope is within .10 of learned in skill at length 32: difference .00",
    "all failed": "Not tested on shift: all 5 seeds of rope failed.",
    "bimodal": "Inconclusive on shift: it is open whether rope exceeds learned by .10 in skill at "
    "length 32: difference +.28",
    "one seed": "Not tested on shift: 1 seed against 1 cannot decide; a family of 1 needs at least "
    "3 per arm.",
    "unlearned": "Not tested on shift: learned did not learn: its skill is 0.10 at length 16",
}

FIRST = {
    "clear winner": "1 supported (further)",
    "tie": "1 refuted (further)",
    "all failed": "1 not tested (further)",
    "bimodal": "1 inconclusive (further)",
    "one seed": "1 not tested (further)",
    "unlearned": "1 not tested (further)",
}

SECOND = {
    "clear winner": "on shift, rope stays at 0.8 skill or above up to length 32, the other arm "
    "that learned falls earlier.",
    "tie": "on shift, rope and learned stay at 0.8 skill or above up to length 32.",
    "all failed": "on shift, no arm reaches skill 0.8 at length 16; rope has no result; 5 of 10 "
    "seeds diverged and count as ones that learned nothing; 5 of 10 seeds failed.",
    "bimodal": "on shift, no arm's mean skill stays at 0.8 or above beyond the trained lengths.",
    "one seed": "on shift, rope stays at 0.8 skill or above up to length 32, the other arm "
    "that learned falls earlier.",
    "unlearned": "on shift, rope stays at 0.8 skill or above up to length 32; learned did not "
    "learn the trained lengths.",
}


@pytest.mark.parametrize("name", list(CASES))
def test_the_verdict_and_the_report_say_what_is_true_of_the_data(tmp_path: Path, name: str) -> None:
    made = case(tmp_path, name)

    assert SAID[name] in printed(made)
    told = findings_of(made.plan, made.url)
    assert (
        claims(told.verdicts) == f"Of 1 hypothesis fixed before the confirming runs: {FIRST[name]}."
    )
    assert reaches(told.tasks, told.lines) == SECOND[name]


def test_an_open_verdict_says_how_many_seeds_would_settle_it(tmp_path: Path) -> None:
    made = case(tmp_path, "bimodal")

    [verdict] = made.verdicts

    assert verdict.seeds_needed is not None
    assert f"; about {verdict.seeds_needed} seeds each would settle it." in printed(made)


def test_seeds_that_work_or_fail_are_told_as_a_share(tmp_path: Path) -> None:
    told = printed(case(tmp_path, "bimodal"))

    assert "rope works in 3 of 5 seeds (skill 0.90 there, 0.11 in the others)." in told


def test_failed_and_diverged_seeds_are_counted(tmp_path: Path) -> None:
    made = MadeUp(
        tmp_path,
        draft(7),
        {"rope": [*FAR, "failed", "diverged"], "learned": [(1.0, 0.3)] * 7},
    )

    told = printed(made)

    [verdict] = made.verdicts
    assert (verdict.n_arm, verdict.failed_arm) == (7, 2)
    lost = "1 of 7 seeds diverged and counts as one that learned nothing. 1 of 7 seeds failed."
    assert lost in told
    assert "1 of 7 seeds of rope diverged and counts as 0." in told
    assert "1 of 7 seeds of rope failed and counts as 0." in told


def test_a_diverged_seed_counts_alike_in_sentence_table_verdict_and_report(tmp_path: Path) -> None:
    seeds = [(1.0, 0.95)] * 9 + ["diverged"]
    made = MadeUp(tmp_path, draft(10), {"rope": seeds, "learned": [(1.0, 0.3)] * 10})
    mean = 9 * 0.95 / 10

    told = printed(made)
    [verdict] = made.verdicts
    kept = (
        "holds to length 32 (skill .85; 0.8 or more in 9 of 10 seeds). 1 of 10 seeds diverged and "
    )
    [task] = findings_of(made.plan, made.url).tasks
    arm = task.arms[0]
    skill, accuracy = arm.interval("skill", 32), arm.interval("accuracy", 32)

    assert kept in told
    assert arm_sentence(task, arm) == f"{kept}counts as one that learned nothing."
    assert verdict.effect == pytest.approx(mean - 0.3)
    assert skill is not None
    assert accuracy is not None
    assert skill.mean == pytest.approx(mean)
    assert accuracy.mean == pytest.approx(mean + (task.blind_guess(32) or 0) / 10)


def test_every_metric_has_a_table_with_its_arms_and_accuracy_has_its_floor(tmp_path: Path) -> None:
    made = case(tmp_path, "clear winner")

    lines = [line.split() for line in printed(made).splitlines()]

    # 0.0158 is the standard deviation of .28 .29 .30 .31 .32, and t(4) = 2.776.
    assert lines.count(["learned", "1.0±.00", ".30±.02"]) == 3
    assert lines.count(["rope", "1.0±.00", ".90±.02"]) == 3
    task = task_of(made.draft.config(made.draft.cells()[0]).task)
    [floor] = [line for line in lines if line[:1] == ["floor"]]
    assert floor[1:] == [f"{task.floors(one).highest:.2f}".lstrip("0") for one in (16, 32)]


RATES = [1e-3, 3e-3, 1e-2]
TUNED = {1e-3: (1.0, 0.5), 3e-3: (1.0, 0.8), 1e-2: (1.0, 0.2)}


def tuned(folder: Path, **study: Any) -> MadeUp:
    """The highest rate is best by .001 nats; the middle one reaches furthest."""
    nlls = {1e-3: 0.9, 3e-3: 0.101, 1e-2: 0.1}
    made = draft(5, learning_rates=RATES, **study)
    return MadeUp(
        folder,
        made,
        {"rope": FAR, "learned": FAR},
        {"rope": nlls, "learned": nlls},
        TUNED,
    )


def test_an_optimum_at_the_edge_is_flagged(tmp_path: Path) -> None:
    assert "Its learning rate 0.01 is the highest tried." in printed(tuned(tmp_path))


def test_near_tied_settings_and_the_labelled_oracle_stand_beside_the_chosen_one(
    tmp_path: Path,
) -> None:
    told = printed(tuned(tmp_path))

    assert "settings that tuning tried (tuning runs)" in told
    assert "learning_rate 0.01: chosen; skill 0.20 at 32" in told
    assert (
        "learning_rate 0.003: fits as well and best on the test lengths (an oracle, used for no "
        "verdict); skill 0.80 at 32"
    ) in told
    assert "learning_rate 0.001:" not in told


def test_the_middle_of_near_tied_settings_is_taken_where_the_protocol_says_so(
    tmp_path: Path,
) -> None:
    made = tuned(tmp_path, ties="middle")

    told = printed(made)

    assert "learning_rate 0.003: chosen and best on the test lengths" in told
    assert "learning_rate 0.01: fits as well; skill 0.20 at 32" in told
    assert "highest tried" not in told
    assert all("3 tried" not in arm_sentence(*one) for one in made.results.arms)


def test_claims_that_a_call_cannot_judge_are_named_with_the_reason() -> None:
    console = Console(file=StringIO(), width=120)

    print_verdicts(console, [], plan(2, only=["rope"]).unasked())

    told = "Not judged: no arm 'learned' in this call; its arms: rope."
    assert console.file.getvalue().split(maxsplit=1) == ["further", f"{told}\n"]  # type: ignore[attr-defined]
