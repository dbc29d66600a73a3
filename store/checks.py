"""Is everything in a database what it says? Every doubt is named, nothing is changed."""

from collections.abc import Callable, Iterator

from sqlalchemy import Engine, func, or_, select, text
from sqlalchemy.orm import Session

from store.answers import Problem
from store.connection import make_engine, reading, shown
from store.errors import DamagedError, StoreError
from store.fingerprints import wrong_hashes
from store.model_files import ModelFiles
from store.records import FINISHED
from store.rows import ConfigRow, RunRow, ScoreRow
from store.schema import PREFIX, now
from store.trials import trial_problems
from store.versions import require_tables

Problems = Iterator[Problem]
MOST = 20
"""Of one kind of problem, so many are named; the rest are counted."""


def check(url: str) -> tuple[list[Problem], str]:
    """Look at a whole database; return the problems, and what was looked at, in a sentence.

    Checked are SQLite's pages and indexes, references between tables, totals, hashes, the
    references between runs and Optuna's trials, in both directions, and files of weights.

    Raises:
        StoreError: If the database is missing, is not ours, or is of another version.
    """
    try:
        engine = make_engine(url, readonly=True)
    except DamagedError as error:
        return [Problem("integrity", "file", str(error))], f"{url}: nothing else was looked at"
    try:
        broken = list(_few(_pages(engine)))
        if broken:
            return broken, f"{shown(engine.url)}: the file is damaged; nothing else was looked at"
        require_tables(engine)
        with reading(engine) as session:
            found = [problem for one in CHECKS for problem in _few(one(session))]
            found += _few(ModelFiles(url).problems(session))
            return found, _looked_at(session, shown(engine.url))
    finally:
        engine.dispose()


def _few(problems: Problems) -> Problems:
    """The first of the problems, and how many more there are."""
    more = 0
    for number, problem in enumerate(problems):
        if number < MOST:
            yield problem
        else:
            more += 1
    if more:
        yield Problem("more", "", f"{more} more like the last")


def _pages(engine: Engine) -> Problems:
    if engine.dialect.name != "sqlite":
        return
    try:
        with reading(engine) as session:
            for (told,) in session.execute(text(f"PRAGMA integrity_check({MOST + 1})")):
                if told != "ok":
                    yield Problem("integrity", "file", " ".join(str(told).split()))
    except StoreError as error:
        yield Problem("integrity", "file", str(error))


def _references(session: Session) -> Problems:
    if session.get_bind().dialect.name != "sqlite":
        return  # there no connection can break them
    for table, row, parent, _ in session.execute(text("PRAGMA foreign_key_check")):
        if str(table).startswith(PREFIX):
            yield Problem(
                "orphan", f"{table} row {row}", f"refers to a row of {parent} that is gone"
            )


def _unused(session: Session) -> Problems:
    used = select(RunRow.config_id)
    for number in session.scalars(select(ConfigRow.id).where(ConfigRow.id.not_in(used))):
        yield Problem("orphan", f"config {number}", "no run has it; prune removes it")


def _states(session: Session) -> Problems:
    """Runs whose columns contradict their status."""
    over = RunRow.status.in_(FINISHED)
    scored = select(ScoreRow.run_id)
    rules = [
        (over & RunRow.finished_at.is_(None), "is over but not finished at any time"),
        (~over & RunRow.finished_at.is_not(None), "was finished but is not over"),
        ((RunRow.status == "done") & RunRow.id.not_in(scored), "is done but has no scores"),
        (~over & RunRow.id.in_(scored), "has scores but is not over"),
        ((RunRow.status == "running") & (RunRow.worker.is_(None)), "is running without a worker"),
        (
            (RunRow.status == "running") & (RunRow.lease_until < now()),
            "is running but its lease ran out; the study's own command takes it back",
        ),
        (over & (RunRow.attempt < 1), "is over but was never claimed"),
    ]
    for condition, told in rules:
        query = select(RunRow.id, RunRow.status).where(condition).order_by(RunRow.id)
        for number, status in session.execute(query):
            yield Problem("status", f"run {number} ({status})", told)


def _totals(session: Session) -> Problems:
    """Scores whose numbers contradict each other."""
    share = ScoreRow.metric.in_(("accuracy", "exact"))
    off = func.abs(ScoreRow.value - ScoreRow.correct * 1.0 / ScoreRow.n) > 1e-9
    counted = ScoreRow.correct.is_not(None) & (ScoreRow.n > 0)
    rules = [
        (ScoreRow.correct > ScoreRow.n, "counts more right answers than answers"),
        (or_(ScoreRow.n < 0, ScoreRow.correct < 0), "counts fewer than none"),
        (share & counted & off, "is not the share of right answers that its counts give"),
        (
            ScoreRow.value.is_not(None) & ScoreRow.status.is_not(None),
            "has a value and says that it has none",
        ),
    ]
    for condition, told in rules:
        columns = (ScoreRow.run_id, ScoreRow.split, ScoreRow.length, ScoreRow.metric)
        for run, split, length, metric in session.execute(select(*columns).where(condition)):
            yield Problem("totals", f"run {run}, {split} {metric} at length {length}", told)


def _repeats(session: Session) -> Problems:
    key = (ScoreRow.run_id, ScoreRow.split, ScoreRow.metric, ScoreRow.length, ScoreRow.bin)
    query = select(*key[:4], func.count()).group_by(*key).having(func.count() > 1)
    for run, split, metric, length, count in session.execute(query):
        place = f"run {run}, {split} {metric} at length {length}"
        yield Problem("totals", place, f"is there {count} times")


def _looked_at(session: Session, place: str) -> str:
    runs = session.scalars(select(func.count(RunRow.id))).one()
    scores = session.scalars(select(func.count(ScoreRow.id))).one()
    return f"{place}: {runs} runs and {scores} scores were looked at"


CHECKS: tuple[Callable[[Session], Problems], ...] = (
    *(_references, _unused, _states, _totals, _repeats),
    *(trial_problems, wrong_hashes),
)
