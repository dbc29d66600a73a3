"""Is everything in a database what it says? Every doubt is named, nothing is changed."""

import hashlib
import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from sqlalchemy import URL, Engine, delete, func, inspect, or_, select, text, update
from sqlalchemy import Table as SqlTable
from sqlalchemy.orm import Session

from store.configs import flatten, option_key, recount
from store.database import (
    NOT_UTF8,
    chunks,
    make_engine,
    opened,
    reading,
    require_tables,
    shown,
    transact,
)
from store.encoding import fingerprint
from store.errors import DamagedError, StoreError
from store.ledger import RESULTS, drop_choices
from store.models import (
    PREFIX,
    VERSION_TABLE,
    ChoiceRow,
    ComponentRow,
    ConfigRow,
    CurveRow,
    EnvironmentRow,
    ModelRow,
    PlanRow,
    ProtocolRow,
    RunRow,
    ScoreRow,
    StudyRow,
    now,
)
from store.records import FINISHED, Difference, Model, Problem
from store.results import Results
from store.weights import ModelFiles
from store.where import Selection

if TYPE_CHECKING:
    from store.records import Run


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


def wrong_hashes(session: Session) -> Iterator[Problem]:
    """Name the environments, configs, protocols and parts whose hash does not fit."""
    for row in session.scalars(select(EnvironmentRow)):
        if fingerprint(row.facts) != row.hash:
            yield _wrong(f"environment {row.id}")
    for number, digest, config in session.execute(
        select(ConfigRow.id, ConfigRow.hash, ConfigRow.config)
    ):
        if fingerprint(config) != digest:
            yield _wrong(f"config {number}")
    for row in session.scalars(select(ProtocolRow)):
        if fingerprint(row.protocol) != row.hash:
            yield _wrong(f"protocol {row.id} of {row.study}")
    for row in session.scalars(select(PlanRow)):
        if fingerprint(row.plan) != row.hash:
            yield _wrong(f"plan {row.id} of {row.study}")
    yield from _component_problems(session)


def _wrong(place: str) -> Problem:
    return Problem("hash", place, "is not what its hash was taken of: it was changed since")


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


CHECKS: tuple[Callable[[Session], Problems], ...] = (
    *(_references, _unused, _states, _totals, _repeats),
    *(trial_problems, wrong_hashes),
)


def _component_problems(session: Session) -> Iterator[Problem]:
    found: dict[str, dict[str, str]] = {}
    for row in session.scalars(select(ComponentRow)):
        found.setdefault(row.code_hash, {})[f"{row.kind} {row.name}"] = row.source_hash
    for code, parts in found.items():
        words = json.dumps(parts, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        if not hashlib.sha256(words.encode()).hexdigest().startswith(code):
            yield _wrong(f"parts of source {code}")


TRIALS = """
SELECT s.study_name, t.number, t.state, a.value_json
FROM trials AS t
JOIN studies AS s ON s.study_id = t.study_id
LEFT JOIN trial_user_attributes AS a ON a.trial_id = t.trial_id AND a.key = 'run'
"""

Key = tuple[str, int]


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


@dataclass(frozen=True)
class Pruned:
    """What is removed, or would be: runs by status, and the rows that belong to them."""

    runs: dict[str, int]
    scores: int
    curves: int
    models: list[str]
    trials: int


def preview(url: str, selection: Selection) -> Pruned:
    """Return what `carry_out` would remove; nothing is changed.

    Raises:
        StoreError: If one of the runs is running, or the database cannot be opened.
    """
    engine = opened(make_engine(url, readonly=True), require_tables)
    try:
        return transact(engine, lambda session: would_prune(session, selection)[1])
    finally:
        engine.dispose()


def carry_out(url: str, selection: Selection) -> Pruned:
    """Remove the runs that a selection names, and return what was removed; see `prune`.

    Raises:
        StoreError: As for `preview`.
    """
    opened(make_engine(url, readonly=True), require_tables).dispose()
    engine = make_engine(url)
    try:
        return transact(engine, lambda session: prune(session, selection))
    finally:
        engine.dispose()


def would_prune(session: Session, selection: Selection) -> tuple[list[int], Pruned]:
    """Return the runs that a selection names, and what would go with them.

    Raises:
        StoreError: If one of them is running.
    """
    chosen = selection.conditions(session)
    query = select(RunRow.id, RunRow.status, RunRow.optuna_trial).where(*chosen)
    rows = session.execute(query.order_by(RunRow.id)).all()
    held = [row[0] for row in rows if row[1] == "running"]
    if held:
        raise StoreError(
            f"run {held[0]} is running (and {len(held) - 1} more); choose others, "
            "or stop the study first"
        )
    ids = [row[0] for row in rows]
    statuses = [row[1] for row in rows]
    pruned = Pruned(
        runs={status: statuses.count(status) for status in dict.fromkeys(statuses)},
        scores=_count(session, ScoreRow, ids),
        curves=_count(session, CurveRow, ids),
        models=_models(session, ids),
        trials=sum(row[2] is not None for row in rows),
    )
    return ids, pruned


def prune(session: Session, selection: Selection) -> Pruned:
    """Remove the runs that a selection names, with their scores, curves and models.

    Configs, environments and notes on parts that no run needs any more go with them; files of
    models and Optuna's trials stay.

    Raises:
        StoreError: If one of the runs is running.
    """
    ids, pruned = would_prune(session, selection)
    for part in chunks(ids):
        for table in (ScoreRow, CurveRow, ModelRow):
            session.execute(delete(table).where(table.run_id.in_(part)))
        session.execute(delete(RunRow).where(RunRow.id.in_(part)))
    drop_choices(session, ids)
    remove_unused(session)
    return pruned


def remove_unused(session: Session) -> None:
    """Remove configs, environments and notes on parts that no run needs."""
    unused = ConfigRow.id.not_in(select(RunRow.config_id))
    studies = session.scalars(select(ConfigRow.study).where(unused).distinct()).all()
    session.execute(delete(ConfigRow).where(unused))
    for study in studies:
        recount(session, study)
    environments = select(RunRow.environment_id).where(RunRow.environment_id.is_not(None))
    session.execute(delete(EnvironmentRow).where(EnvironmentRow.id.not_in(environments)))
    codes = select(RunRow.code_hash).where(RunRow.code_hash.is_not(None))
    session.execute(delete(ComponentRow).where(ComponentRow.code_hash.not_in(codes)))


def _count(session: Session, table: Any, ids: Sequence[int]) -> int:
    rows: SqlTable = table.__table__
    return sum(
        session.scalars(select(func.count()).select_from(rows).where(rows.c.run_id.in_(part))).one()
        for part in chunks(ids)
    )


def _models(session: Session, ids: Sequence[int]) -> list[str]:
    return [
        path
        for part in chunks(ids)
        for path in session.scalars(
            select(ModelRow.path).where(ModelRow.run_id.in_(part)).order_by(ModelRow.run_id)
        )
    ]


RUN_FIELDS = (
    *("study", "task", "arm", "phase", "seed", "status", "reason", "parameters", "steps"),
    *("wall_seconds", "peak_bytes", "config_hash", "code_hash"),
)


def differences(results: "Results", first: "Run", second: "Run") -> list[Difference]:
    """Return in what two runs differ: themselves, config, source, environment, and scores."""
    one, other = _parts(results, first), _parts(results, second)
    return [each for part in one for each in _differences(part, one[part], other[part])]


def _parts(results: "Results", run: "Run") -> dict[str, Mapping[str, Any]]:
    return {
        "run": {name: getattr(run, name) for name in RUN_FIELDS},
        "config": flatten(run.config),
        "source": _sources(results, run),
        "environment": _environment(results, run),
        "provenance": flatten(run.provenance),
        "scores": _scores(results, run),
    }


def _differences(
    part: str, first: Mapping[str, Any], second: Mapping[str, Any]
) -> Iterator[Difference]:
    for name in dict.fromkeys([*first, *second]):
        if option_key(first, name) != option_key(second, name):
            yield Difference(part, name, first.get(name), second.get(name))


def _sources(results: "Results", run: "Run") -> dict[str, str]:
    parts = results.components(run.code_hash) if run.code_hash else []
    return {f"{part.kind} {part.name}": part.source_hash for part in parts}


def _environment(results: "Results", run: "Run") -> dict[str, Any]:
    place = run.environment_id
    return {} if place is None else flatten(results.environment(place))


def _scores(results: "Results", run: "Run") -> dict[str, float | None]:
    found = results.scores(phase="all", where=f"id == {run.id}")
    return {
        " ".join(
            [
                one.split,
                str(one.length),
                one.metric,
                *([] if one.bin is None else [f"bin {one.bin}"]),
            ]
        ): one.value
        for one in found
    }


SOURCE_IS_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def backup(url: str, target: str) -> str:
    """Copy a database to a new file; return what was done, in a sentence.

    SQLite copies it page by page from one moment, while others go on writing. The copy is checked,
    and takes its name once it is whole.

    Raises:
        StoreError: If there are no tables of ours, the target exists or cannot be written, or the
            copy is damaged.
    """
    engine = make_engine(url, readonly=True)
    try:
        if engine.dialect.name != "sqlite":
            raise StoreError("only SQLite files are copied here; use pg_dump for PostgreSQL")
        size = copy_file(engine, Path(target))
    finally:
        engine.dispose()
    weights = ModelFiles(url).folder
    tail = f"; the weights in {weights} are not copied" if weights.is_dir() else ""
    return f"{shown(engine.url)} is copied to {target}: {size} bytes, checked{tail}"


def copy_file(engine: Engine, target: Path) -> int:
    """Copy the SQLite file of an engine; return the size of the copy in bytes.

    Raises:
        StoreError: As for `backup`.
    """
    if target.exists():
        raise StoreError(f"{target} exists; name a new file, so that no copy is lost")
    beside = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        _copy(shown(engine.url), beside)
        os.replace(beside, target)
    except (sqlite3.Error, OSError) as error:
        if getattr(error, "sqlite_errorcode", None) in SOURCE_IS_DAMAGED:
            raise StoreError(f"{shown(engine.url)} is damaged: {error}") from error
        raise StoreError(f"{target} cannot be written: {error}") from error
    except UnicodeDecodeError as error:
        raise StoreError(f"{shown(engine.url)} is damaged: {NOT_UTF8}") from error
    finally:
        for name in (beside, Path(f"{beside}-journal"), Path(f"{beside}-wal")):
            name.unlink(missing_ok=True)
    return target.stat().st_size


def _copy(source: str, target: Path) -> None:
    uri = f"file:{quote(str(Path(source).absolute()))}?mode=ro"
    with (
        closing(sqlite3.connect(uri, uri=True)) as original,
        closing(sqlite3.connect(target)) as copy,
    ):
        # In one step, so that it is of one moment: a copy in several begins anew at every write.
        original.backup(copy, pages=-1)
        # One file that can be mailed or put away, without a log beside it.
        copy.execute("PRAGMA journal_mode = DELETE")
        problem = copy.execute("PRAGMA quick_check(1)").fetchone()[0]
        ours = copy.execute(
            "SELECT 1 FROM sqlite_master WHERE name = ?", (VERSION_TABLE,)
        ).fetchone()
    if problem != "ok":
        raise StoreError(f"{source} is damaged, and so is its copy: {problem}")
    if ours is None:
        raise StoreError(f"{source} holds no encoder-sandbox tables")


def extract(url: str, study: str, target: Path) -> None:
    """Copy what belongs to a study to a new SQLite file; Optuna's tables are copied whole.

    Ids stay, so that what names a run still names it. The files of weights are verified and lie
    beside the copy, where its rows say.

    Raises:
        StoreError: If a run of the study is running, a file of weights is missing or changed, or
            the target exists or cannot be written.
    """
    results = Results(url)
    try:
        running = results.counts().get(study, {}).get("running", 0)
        models = results.models(study=study, phase=None)
    finally:
        results.close()
    if running:
        raise StoreError(f"{study} is being done ({running} running); wait for it or stop it first")
    backup(url, str(target))
    paths = _copy_files(models, ModelFiles(url), ModelFiles(url_of(target)))
    engine = make_engine(url_of(target))
    try:
        transact(engine, lambda session: _keep_only(session, study, paths))
    finally:
        engine.dispose()


def seal(target: Path) -> None:
    """Make one file of a database that nobody has open: no log beside it, no room left in it."""
    with closing(sqlite3.connect(target, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("VACUUM")


def url_of(file: Path) -> str:
    """The URL of a SQLite file."""
    return URL.create("sqlite", database=str(file)).render_as_string()


def _copy_files(
    models: tuple[Model, ...], source: ModelFiles, target: ModelFiles
) -> Mapping[tuple[int, str], str]:
    """Copy files of weights; return where each is now, by run and old path."""
    paths: dict[tuple[int, str], str] = {}
    for model in models:
        source.read(model)
        target.folder.mkdir(exist_ok=True)
        new = target.folder / Path(model.path).name
        if new.exists():
            raise StoreError(f"two files of weights are named {new.name}, one is {model.path}")
        shutil.copyfile(source.home / model.path, new)
        paths[model.run_id, model.path] = new.relative_to(target.home).as_posix()
    return paths


def _keep_only(session: Session, study: str, paths: Mapping[tuple[int, str], str]) -> None:
    others = select(RunRow.id).where(RunRow.study != study)
    for table in RESULTS:
        session.execute(delete(table).where(table.run_id.in_(others)))
    for table in (RunRow, ConfigRow, ProtocolRow, PlanRow, ChoiceRow):
        session.execute(delete(table).where(table.study != study))
    session.execute(delete(StudyRow).where(StudyRow.name != study))
    remove_unused(session)
    for (number, old), new in paths.items():
        own = (ModelRow.run_id == number, ModelRow.path == old)
        session.execute(update(ModelRow).where(*own).values(path=new))
