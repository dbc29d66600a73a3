"""The search from the command line to the database: resumable, exactly once."""

import sqlite3
from pathlib import Path

import optuna
import pytest

from tests.studies.studying import call_in


@pytest.mark.slow
def test_a_search_goes_on_where_it_was_and_does_nothing_twice(tmp_path: Path) -> None:
    first = call_in(tmp_path, "head_search", "--budget=smoke", "--set=study.search.generations=1")
    with sqlite3.connect(tmp_path / "sandbox.db") as connection:
        question = "select id, arm, attempt, finished_at from es_runs order by id"
        before = connection.execute(question).fetchall()
        second = call_in(tmp_path, "head_search", "--budget=smoke", "--report=report")
        after = connection.execute(question).fetchall()
        third = call_in(tmp_path, "head_search", "--budget=smoke")
        assert connection.execute(question).fetchall() == after
    assert len(before) == 5 + 2
    assert len(after) == 5 + 2 * 2
    assert after[: len(before)] == before
    assert "Pareto front: " in first
    assert " of 9 arms; skill (maximized), step_milliseconds (minimized)" in third
    assert third == second.replace("report: report/report.html\n", "")
    page = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    assert "figure-front" in page


def test_optuna_sees_each_point_of_a_search_once(tmp_path: Path) -> None:

    from studies.analysis.summaries import Point
    from studies.execution.trials import Trials

    url = f"sqlite:///{tmp_path / 'sandbox.db'}"
    trials = Trials(url)
    space = {"encoder.n_heads": [1, 2]}
    found = [
        Point("one", {"encoder.n_heads": 1}, (0.5, 3.0)),
        Point("two", {"encoder.n_heads": 2}, (0.7, 2.0)),
    ]
    for known in (found[:1], found, found):
        trials.keep_points("s/search", space, ["maximize", "minimize"], known)
    trials.close()
    study = optuna.load_study(storage=url, study_name="s/search")
    assert [(one.params, one.values) for one in study.trials] == [
        ({"encoder.n_heads": 1}, [0.5, 3.0]),
        ({"encoder.n_heads": 2}, [0.7, 2.0]),
    ]
    assert [one.user_attrs["arm"] for one in study.best_trials] == ["two"]
