"""All tasks together, from skills that are written down."""

from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from store.aggregate import Interval
from studies.analysis.printing import caption, print_overall
from studies.analysis.results import StudyResults
from studies.analysis.summaries import Overall, overall
from studies.report.findings import findings_of
from studies.report.page import markdown_page
from tests.studies.made_up import FAR, NEAR, MadeUp, arm, draft, plan, task

TASKS = [{"task": {"name": "shift", "k": k, "alphabet": 3}} for k in (1, 2)]
TWO: dict[str, Any] = {"panels": TASKS, "hypotheses": []}


def found(
    skills: dict[str, list[Any]], tasks: Sequence[str] = ("one", "two")
) -> dict[str, Overall]:
    """From skills at the length beyond the trained ones, the same on each task."""
    arms = [arm(name, *map(outcome, ended)) for name, ended in skills.items()]
    told = overall(StudyResults(plan(5), [task(*arms, label=label) for label in tasks]))
    return {one.arm: one for one in told}


def outcome(skill: float | str) -> Sequence[float] | str:
    return skill if isinstance(skill, str) else (1.0, skill)


def test_the_middle_half_of_all_seeds_of_all_tasks_and_how_often_each_is_better() -> None:
    # Each skill stands twice, once a task. Of ten, two are cut at either end.
    low, high = [0.1, 0.2, 0.3, 0.4, 1.0], [0.25, 0.35, 0.45, 0.55, 0.65]

    told = found({"rope": low, "none": high})
    best, other = told["none"], told["rope"]

    assert list(told) == ["none", "rope"]
    assert best.middle.mean == pytest.approx((2 * 0.35 + 2 * 0.45 + 2 * 0.55) / 6)
    assert other.middle.mean == pytest.approx((2 * 0.2 + 2 * 0.3 + 2 * 0.4) / 6)
    assert best.gap == pytest.approx(1 - sum(high) / 5)
    # Seeds of none that are better than .1, .2, .3, .4 and 1: 5, 5, 4, 3 and 0 of 5.
    assert best.better == {"rope": pytest.approx(17 / 25)}
    assert other.better == {"none": pytest.approx(8 / 25)}
    assert best.middle.low is not None
    assert best.middle.high is not None
    assert 0.25 < best.middle.low < best.middle.mean < best.middle.high < 0.65
    assert best.middle.n == 5


def test_one_task_has_nothing_to_be_put_together() -> None:
    assert found({"rope": [0.9] * 5, "none": [0.3] * 5}, tasks=("one",)) == {}


def test_an_arm_without_a_value_is_left_out_and_a_diverged_seed_is_not() -> None:
    rope, lost = [0.9, 0.92, 0.88, 0.91, "diverged"], ["failed"] * 5

    told = found({"rope": rope, "learned": [0.3] * 5, "none": lost})

    assert set(told) == {"rope", "learned"}
    assert told["rope"].gap == pytest.approx(1 - (0.9 + 0.92 + 0.88 + 0.91) / 5)
    assert told["rope"].better == {"learned": pytest.approx(4 / 5)}


def test_terminal_and_report_show_it(tmp_path: Path) -> None:
    one = MadeUp(tmp_path, draft(5, **TWO), {"rope": FAR, "learned": NEAR})
    console = Console(width=100, record=True, file=StringIO())

    print_overall(console, overall(one.results))
    findings = findings_of(one.plan, one.url)
    page = markdown_page(findings, {})

    printed = [line.split() for line in console.export_text().splitlines()]
    assert ["rope", ".90", ".89", "to", ".91", "in", "100", "%", "of", "pairs"] in printed
    assert "5 seeds make such intervals too narrow" in page
    assert "| rope | 0.90 |" in page


def test_enough_seeds_are_not_warned_of() -> None:
    many = Overall("rope", Interval(0.5, 0.4, 0.6, 10), 0.5, {})

    assert "narrow" not in caption([many])


def test_arms_that_always_tie_are_half_better_and_it_is_said_what_that_means() -> None:
    told = found({"rope": [1.0] * 5, "none": [1.0] * 5})
    console = Console(width=100, record=True, file=StringIO())

    print_overall(console, list(told.values()))

    assert told["rope"].better == {"none": 0.5}
    assert "equal ones counting half" in caption(list(told.values()))
    assert "ties half" in console.export_text()


def test_one_seed_is_told_as_one() -> None:
    assert "1 seed makes such intervals" in caption(
        [Overall("a", Interval(0.5, 0.5, 0.5, 1), 1.0, {})]
    )
