"""Do runs and Optuna's trials still refer to each other? Optuna's tables are only read."""

import json
from collections.abc import Iterator

from sqlalchemy import inspect, select, text
from sqlalchemy.orm import Session

from store.answers import Problem
from store.rows import RunRow

TRIALS = """
SELECT s.study_name, t.number, t.state, a.value_json
FROM trials AS t
JOIN studies AS s ON s.study_id = t.study_id
LEFT JOIN trial_user_attributes AS a ON a.trial_id = t.trial_id AND a.key = 'run'
"""

Key = tuple[str, int]


def trial_problems(session: Session) -> Iterator[Problem]:
    """Name the runs whose trial is gone or is another's, and the trials whose run is gone."""
    runs = _runs(session)
    trials = _trials(session)
    of_run: dict[int, Key] = {number: key for key, (number, _) in runs.items()}
    for key, (number, _) in sorted(runs.items()):
        told = f"run {number}"
        if key not in trials:
            yield Problem("orphan", told, f"its trial {_told(key)} is not in Optuna's tables")
        elif trials[key][1] not in (number, None):
            yield Problem("orphan", told, f"its trial {_told(key)} is of run {trials[key][1]}")
    known = set(session.scalars(select(RunRow.id)))
    ours = {study for study, _ in runs}
    for key, (state, number) in sorted(trials.items()):
        # Trials of others than this sandbox name no run, and are none of our business.
        if number is None:
            continue
        if number not in known:
            yield Problem("orphan", f"trial {_told(key)}", f"its run {number} is gone")
        elif key[0] in ours and state == "RUNNING" and _is_over(runs, of_run, number, key):
            yield Problem("orphan", f"trial {_told(key)}", f"is open, but its run {number} is over")


def _runs(session: Session) -> dict[Key, tuple[int, str]]:
    query = select(RunRow.optuna_study, RunRow.optuna_trial, RunRow.id, RunRow.status)
    rows = session.execute(query.where(RunRow.optuna_trial.is_not(None)))
    return {(str(study), trial or 0): (run, status) for study, trial, run, status in rows}


def _trials(session: Session) -> dict[Key, tuple[str, int | None]]:
    there = inspect(session.connection())
    if not all(there.has_table(name) for name in ("trials", "studies", "trial_user_attributes")):
        return {}
    return {
        (study, number): (str(state), None if run is None else _number(run))
        for study, number, state, run in session.execute(text(TRIALS))
    }


def _number(value: str) -> int | None:
    found = json.loads(value)
    return found if isinstance(found, int) else None


def _is_over(
    runs: dict[Key, tuple[int, str]], of_run: dict[int, Key], number: int, key: Key
) -> bool:
    own = of_run.get(number)
    return own is None or own != key or runs[own][1] != "running"


def _told(key: Key) -> str:
    return f"{key[1]} of {key[0]!r}"
