"""The care of a database: check it, remove runs, compare them, copy it, bring it up to date."""

import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from sqlalchemy import URL, Engine, delete, event, func, inspect, or_, select, text, update
from sqlalchemy.orm import Session

from store import database
from store.configs import flatten, option_key, recount
from store.database import (
    NOT_UTF8,
    chunks,
    connected,
    make_engine,
    require_tables,
    rows_among,
    shown,
    transaction,
    version_of,
)
from store.encoding import fingerprint
from store.errors import DamagedError, StoreError
from store.files import sha256
from store.ledger import RESULTS, drop_choices, drop_results
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
from store.records import FINISHED, Difference, Fault, Model
from store.results import Results
from store.weights import ModelFiles
from store.where import Selection

if TYPE_CHECKING:
    from store.records import Run

# Checking ---------------------------------------------------------------------------------------

Faults = Iterator[Fault]
MOST = 20
"""Of one kind of fault, so many are named; the rest are counted."""


def check(url: str) -> tuple[list[Fault], str]:
    """Look at a whole database; return what is wrong, and what was looked at, in a sentence.

    Checked are SQLite's pages and indexes, references between tables, totals, hashes, the
    references between runs and Optuna's trials, in both directions, and files of weights. Nothing
    is changed.
    """
    try:
        engine = make_engine(url, readonly=True)
    except DamagedError as error:
        return [Fault("integrity", "file", str(error))], f"{url}: nothing else was looked at"
    place = shown(engine.url)
    try:
        broken = _few(_pages(engine))
        if broken:
            return broken, f"{place}: the file is damaged; nothing else was looked at"
        require_tables(engine)
        with transaction(engine) as session:
            found = [fault for one in CHECKS for fault in _few(one(session))]
            found += _few(ModelFiles(url).faults(session))
            runs = session.scalars(select(func.count(RunRow.id))).one()
            scores = session.scalars(select(func.count(ScoreRow.id))).one()
            return found, f"{place}: {runs} runs and {scores} scores were looked at"
    finally:
        engine.dispose()


def _few(faults: Faults) -> list[Fault]:
    """The first of the faults, and how many more there are."""
    first = list(islice(faults, MOST))
    more = sum(1 for _ in faults)
    return [*first, Fault("more", "", f"{more} more like the last")] if more else first


def _pages(engine: Engine) -> Faults:
    if engine.dialect.name != "sqlite":
        return
    try:
        with transaction(engine) as session:
            for (told,) in session.execute(text(f"PRAGMA integrity_check({MOST + 1})")):
                if told != "ok":
                    yield Fault("integrity", "file", " ".join(str(told).split()))
    except StoreError as error:
        yield Fault("integrity", "file", str(error))


def _references(session: Session) -> Faults:
    if session.get_bind().dialect.name != "sqlite":
        return  # there no connection can break them
    for table, row, parent, _ in session.execute(text("PRAGMA foreign_key_check")):
        if str(table).startswith(PREFIX):
            yield Fault("orphan", f"{table} row {row}", f"refers to a row of {parent} that is gone")


def _unused(session: Session) -> Faults:
    used = select(RunRow.config_id)
    for number in session.scalars(select(ConfigRow.id).where(ConfigRow.id.not_in(used))):
        yield Fault("orphan", f"config {number}", "no run has it; prune removes it")


def _states(session: Session) -> Faults:
    """Runs whose columns contradict their status."""
    over, running = RunRow.status.in_(FINISHED), RunRow.status == "running"
    scored = select(ScoreRow.run_id)
    rules = [
        (over & RunRow.finished_at.is_(None), "is over but not finished at any time"),
        (~over & RunRow.finished_at.is_not(None), "was finished but is not over"),
        ((RunRow.status == "done") & RunRow.id.not_in(scored), "is done but has no scores"),
        (~over & RunRow.id.in_(scored), "has scores but is not over"),
        (running & (RunRow.worker.is_(None)), "is running without a worker"),
        (
            running & (RunRow.lease_until < now()),
            "is running but its lease ran out; the study's own command takes it back",
        ),
        (over & (RunRow.attempt < 1), "is over but was never claimed"),
    ]
    for condition, fault in rules:
        query = select(RunRow.id, RunRow.status).where(condition).order_by(RunRow.id)
        for number, status in session.execute(query):
            yield Fault("status", f"run {number} ({status})", fault)


SCORE_PLACE = (ScoreRow.run_id, ScoreRow.split, ScoreRow.metric, ScoreRow.length)


def _totals(session: Session) -> Faults:
    """Scores whose numbers contradict each other, or that are there twice."""
    share = ScoreRow.metric.in_(("accuracy", "exact"))
    off = func.abs(ScoreRow.value - ScoreRow.correct * 1.0 / ScoreRow.n) > 1e-9
    counted = ScoreRow.correct.is_not(None) & (ScoreRow.n > 0)
    both = ScoreRow.value.is_not(None) & ScoreRow.status.is_not(None)
    rules = [
        (ScoreRow.correct > ScoreRow.n, "counts more right answers than answers"),
        (or_(ScoreRow.n < 0, ScoreRow.correct < 0), "counts fewer than none"),
        (share & counted & off, "is not the share of right answers that its counts give"),
        (both, "has a value and says that it has none"),
    ]
    for condition, fault in rules:
        for row in session.execute(select(*SCORE_PLACE).where(condition)):
            yield Fault("totals", _score_place(*row), fault)
    key = (*SCORE_PLACE, ScoreRow.bin, ScoreRow.shift)
    twice = select(*SCORE_PLACE, func.count()).group_by(*key).having(func.count() > 1)
    for run, split, metric, length, count in session.execute(twice):
        yield Fault("totals", _score_place(run, split, metric, length), f"is there {count} times")


def _score_place(run: int, split: str, metric: str, length: int) -> str:
    return f"run {run}, {split} {metric} at length {length}"


HASHED: tuple[tuple[Any, str, str], ...] = (
    (EnvironmentRow, "facts", "environment {0.id}"),
    (ConfigRow, "config", "config {0.id}"),
    (ProtocolRow, "protocol", "protocol {0.id} of {0.study}"),
    (PlanRow, "plan", "plan {0.id} of {0.study}"),
)


def _hashes(session: Session) -> Faults:
    """What is not, or no longer, what its hash was taken of."""
    changed = "is not what its hash was taken of: it was changed since"
    for table, content, place in HASHED:
        for row in session.scalars(select(table)):
            if fingerprint(getattr(row, content)) != row.hash:
                yield Fault("hash", place.format(row), changed)
    found: dict[str, dict[str, str]] = {}
    for row in session.scalars(select(ComponentRow)):
        found.setdefault(row.code_hash, {})[f"{row.kind} {row.name}"] = row.source_hash
    for code, parts in found.items():
        words = json.dumps(parts, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        if not sha256(words.encode()).startswith(code):
            yield Fault("hash", f"parts of source {code}", changed)


TRIALS = """
SELECT s.study_name, t.number, t.state, a.value_json
FROM trials AS t
JOIN studies AS s ON s.study_id = t.study_id
LEFT JOIN trial_user_attributes AS a ON a.trial_id = t.trial_id AND a.key = 'run'
"""

Trial = tuple[str, int]


def _trials(session: Session) -> Faults:
    """Runs whose trial is gone or is another's, and trials whose run is gone or over."""
    query = select(RunRow.optuna_study, RunRow.optuna_trial, RunRow.id, RunRow.status)
    rows = session.execute(query.where(RunRow.optuna_trial.is_not(None)))
    runs = {(str(row[0]), row[1] or 0): (row[2], row[3]) for row in rows}
    trials = _optuna_trials(session)
    for key, (number, _) in sorted(runs.items()):
        its = f"its trial {key[1]} of {key[0]!r}"
        if key not in trials:
            yield Fault("orphan", f"run {number}", f"{its} is not in Optuna's tables")
        elif trials[key][1] not in (number, None):
            yield Fault("orphan", f"run {number}", f"{its} is of run {trials[key][1]}")
    known, ours = set(session.scalars(select(RunRow.id))), {study for study, _ in runs}
    for key, (state, number) in sorted(trials.items()):
        place = f"trial {key[1]} of {key[0]!r}"
        # Trials of others than this sandbox name no run, and are none of our business.
        if number is None:
            continue
        if number not in known:
            yield Fault("orphan", place, f"its run {number} is gone")
        elif key[0] in ours and state == "RUNNING" and runs.get(key) != (number, "running"):
            yield Fault("orphan", place, f"is open, but its run {number} is over")


def _optuna_trials(session: Session) -> dict[Trial, tuple[str, int | None]]:
    """The state of each trial, and the run that it says it is of."""
    there = inspect(session.connection())
    if not all(there.has_table(name) for name in ("trials", "studies", "trial_user_attributes")):
        return {}
    found: dict[Trial, tuple[str, int | None]] = {}
    for study, number, state, value in session.execute(text(TRIALS)):
        run = None if value is None else json.loads(value)
        found[study, number] = (str(state), run if isinstance(run, int) else None)
    return found


CHECKS: tuple[Callable[[Session], Faults], ...] = (
    *(_references, _unused, _states, _totals, _trials, _hashes),
)

# Removing runs ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pruned:
    """What is removed, or would be: runs by status, and the rows that belong to them."""

    runs: dict[str, int]
    scores: int
    curves: int
    models: list[str]
    trials: int


def prune(url: str, selection: Selection, *, preview: bool = False) -> Pruned:
    """Remove the runs that a selection names, with their scores, curves and models.

    Configs, environments and notes on parts that no run needs any more go with them; files of
    models and Optuna's trials stay. A `preview` returns what would be removed, and changes nothing.

    Raises:
        StoreError: If one of the runs is running, or the database cannot be opened.
    """
    with connected(url, readonly=True) as engine:
        require_tables(engine)
        if preview:
            with transaction(engine) as session:
                return _chosen(session, selection)[1]
    with connected(url) as engine, transaction(engine) as session:
        ids, pruned = _chosen(session, selection)
        drop_results(session, ids)
        for part in chunks(ids):
            session.execute(delete(RunRow).where(RunRow.id.in_(part)))
        drop_choices(session, ids)
        _remove_unused(session)
        return pruned


def _chosen(session: Session, selection: Selection) -> tuple[list[int], Pruned]:
    """Return the runs that a selection names, and what belongs to them; none may be running."""
    query = select(RunRow.id, RunRow.status, RunRow.optuna_trial).order_by(RunRow.id)
    rows = session.execute(query.where(*selection.conditions(session))).all()
    held = [row[0] for row in rows if row[1] == "running"]
    if held:
        raise StoreError(
            f"run {held[0]} is running (and {len(held) - 1} more); choose others, "
            "or stop the study first"
        )
    ids, statuses = [row[0] for row in rows], [row[1] for row in rows]
    paths = select(ModelRow.path).order_by(ModelRow.run_id)
    return ids, Pruned(
        runs={status: statuses.count(status) for status in dict.fromkeys(statuses)},
        scores=_count(session, ScoreRow.run_id, ids),
        curves=_count(session, CurveRow.run_id, ids),
        models=[path for (path,) in rows_among(session, paths, ModelRow.run_id, ids)],
        trials=sum(row[2] is not None for row in rows),
    )


def _count(session: Session, column: Any, ids: Sequence[int]) -> int:
    return sum(count for (count,) in rows_among(session, select(func.count(column)), column, ids))


def _remove_unused(session: Session) -> None:
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


# Comparing two runs -----------------------------------------------------------------------------

RUN_FIELDS = (
    *("study", "task", "arm", "phase", "seed", "status", "reason", "parameters", "steps"),
    *("wall_seconds", "peak_bytes", "config_hash", "code_hash"),
)


def differences(results: Results, first: "Run", second: "Run") -> list[Difference]:
    """Return in what two runs differ: themselves, config, source, environment, and scores."""
    one, other = _parts(results, first), _parts(results, second)
    return [
        Difference(part, name, one[part].get(name), other[part].get(name))
        for part in one
        for name in dict.fromkeys([*one[part], *other[part]])
        if option_key(one[part], name) != option_key(other[part], name)
    ]


def _parts(results: Results, run: "Run") -> dict[str, Mapping[str, Any]]:
    sources = results.components(run.code_hash) if run.code_hash else []
    place = run.environment_id
    scores = {
        f"{score.split} {score.length} {score.metric}"
        + ("" if score.bin is None else f" bin {score.bin}"): score.value
        for score in results.scores(phase="all", where=f"id == {run.id}")
    }
    return {
        "run": {name: getattr(run, name) for name in RUN_FIELDS},
        "config": flatten(run.config),
        "source": {f"{part.kind} {part.name}": part.source_hash for part in sources},
        "environment": {} if place is None else flatten(results.environment(place)),
        "provenance": flatten(run.provenance),
        "scores": scores,
    }


# Copying ----------------------------------------------------------------------------------------

SOURCE_IS_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def backup(url: str, target: str) -> str:
    """Copy a database to a new file; return what was done, in a sentence.

    SQLite copies it page by page from one moment, while others go on writing. The copy is checked,
    and takes its name once it is whole.

    Raises:
        StoreError: If there are no tables of ours, the target exists or cannot be written, or the
            copy is damaged.
    """
    with connected(url, readonly=True) as engine:
        if engine.dialect.name != "sqlite":
            raise StoreError("only SQLite files are copied here; use pg_dump for PostgreSQL")
        size = _copy_file(shown(engine.url), Path(target))
    weights = ModelFiles(url).folder
    tail = f"; the weights in {weights} are not copied" if weights.is_dir() else ""
    return f"{shown(engine.url)} is copied to {target}: {size} bytes, checked{tail}"


def _copy_file(source: str, target: Path) -> int:
    """Copy a SQLite file; return the size of the copy in bytes."""
    if target.exists():
        raise StoreError(f"{target} exists; name a new file, so that no copy is lost")
    beside = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        _copy(source, beside)
        os.replace(beside, target)
    except (sqlite3.Error, OSError) as error:
        if getattr(error, "sqlite_errorcode", None) in SOURCE_IS_DAMAGED:
            raise StoreError(f"{source} is damaged: {error}") from error
        raise StoreError(f"{target} cannot be written: {error}") from error
    except UnicodeDecodeError as error:
        raise StoreError(f"{source} is damaged: {NOT_UTF8}") from error
    finally:
        for name in (beside, Path(f"{beside}-journal"), Path(f"{beside}-wal")):
            name.unlink(missing_ok=True)
    return target.stat().st_size


def _copy(source: str, target: Path) -> None:
    uri = f"file:{quote(str(Path(source).absolute()))}?mode=ro"
    ours = "SELECT 1 FROM sqlite_master WHERE name = ?"
    with (
        closing(sqlite3.connect(uri, uri=True)) as original,
        closing(sqlite3.connect(target)) as copy,
    ):
        # In one step, so that it is of one moment: a copy in several begins anew at every write.
        original.backup(copy, pages=-1)
        # One file that can be mailed or put away, without a log beside it.
        copy.execute("PRAGMA journal_mode = DELETE")
        problem = copy.execute("PRAGMA quick_check(1)").fetchone()[0]
        if problem != "ok":
            raise StoreError(f"{source} is damaged, and so is its copy: {problem}")
        if copy.execute(ours, (VERSION_TABLE,)).fetchone() is None:
            raise StoreError(f"{source} holds no encoder-sandbox tables")


def extract(url: str, study: str, target: Path) -> None:
    """Copy what belongs to a study to a new SQLite file; Optuna's tables are copied whole.

    Ids stay, so that what names a run still names it. The files of weights are verified and lie
    beside the copy, where its rows say.

    Raises:
        StoreError: If a run of the study is running, a file of weights is missing or changed, or
            the target exists or cannot be written.
    """
    with closing(Results(url)) as results:
        running = results.counts().get(study, {}).get("running", 0)
        models = results.models(study=study, phase=None)
    if running:
        raise StoreError(f"{study} is being done ({running} running); wait for it or stop it first")
    backup(url, str(target))
    paths = _copy_weights(models, ModelFiles(url), ModelFiles(url_of(target)))
    with connected(url_of(target)) as engine, transaction(engine) as session:
        others = select(RunRow.id).where(RunRow.study != study)
        for table in RESULTS:
            session.execute(delete(table).where(table.run_id.in_(others)))
        for table in (RunRow, ConfigRow, ProtocolRow, PlanRow, ChoiceRow):
            session.execute(delete(table).where(table.study != study))
        session.execute(delete(StudyRow).where(StudyRow.name != study))
        _remove_unused(session)
        for model, path in paths:
            own = (ModelRow.run_id == model.run_id, ModelRow.path == model.path)
            session.execute(update(ModelRow).where(*own).values(path=path))


def _copy_weights(
    models: Sequence[Model], source: ModelFiles, target: ModelFiles
) -> list[tuple[Model, str]]:
    """Copy files of weights; return where each is now."""
    paths: list[tuple[Model, str]] = []
    for model in models:
        source.read(model)
        target.folder.mkdir(exist_ok=True)
        new = target.folder / Path(model.path).name
        if new.exists():
            raise StoreError(f"two files of weights are named {new.name}, one is {model.path}")
        shutil.copyfile(source.home / model.path, new)
        paths.append((model, new.relative_to(target.home).as_posix()))
    return paths


def seal(target: Path) -> None:
    """Make one file of a database that nobody has open: no log beside it, no room left in it."""
    with closing(sqlite3.connect(target, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("VACUUM")


def url_of(file: Path) -> str:
    """The URL of a SQLite file."""
    return URL.create("sqlite", database=str(file)).render_as_string()


# Bringing it up to date -------------------------------------------------------------------------

MIGRATIONS = Path(__file__).parent / "migrations"


def upgrade(url: str) -> str:
    """Bring the tables of a database to this code's version; return what was done, in a sentence.

    A SQLite file is first copied beside itself, since an upgrade cannot be undone.

    Raises:
        StoreError: If there is nothing to upgrade, or no way from the version found.
    """
    newest = database.SCHEMA_VERSION
    with connected(url, readonly=True) as engine:
        place, found = shown(engine.url), version_of(engine)
        if found is None or not database.FIRST_VERSION <= found <= newest:
            require_tables(engine)
    if found == newest:
        return f"{place} is at version {found} already"
    with connected(url) as engine:
        copy = ""
        if engine.dialect.name == "sqlite":
            target = f"{place}.{datetime.now(UTC).strftime('%Y%m%dT%H%M%SZ')}.backup"
            _copy_file(place, Path(target))
            copy = f"; the old file is {target}"
            # A table is replaced by another: the rows that refer to the old one would be deleted.
            event.listen(engine, "connect", _without_foreign_keys)
            engine.dispose()
        with transaction(engine) as session:
            _migrate(session)
            for broken in _references(session):
                raise StoreError(f"the upgrade was given up: {broken.place} {broken.problem}")
    return f"{place}: version {found} became {newest}{copy}"


def _without_foreign_keys(connection: sqlite3.Connection, record: object) -> None:
    connection.execute("PRAGMA foreign_keys = OFF")


def _migrate(session: Session) -> None:
    # Alembic costs half a second to import, so only who changes the tables pays for it.
    from alembic.command import upgrade as run_scripts
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config(attributes={"connection": session.connection()})
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    try:
        run_scripts(config, "head")
    except CommandError as error:
        raise StoreError(f"the tables cannot be upgraded: {error}") from error
