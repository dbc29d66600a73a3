"""The read side: what the runs of a database were and what came out of them."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from store.additions import frozen_record
from store.best import best_of, validation_losses
from store.claims import chunks
from store.connection import make_engine, transact
from store.errors import StoreError, nearest
from store.frames import Records
from store.options import varying
from store.reading import score_record, select_scores
from store.records import FINISHED, Best, Component, Curve, Frozen, Model, Run, Score
from store.schema import (
    ComponentRow,
    CurveRow,
    EnvironmentRow,
    ModelRow,
    ProtocolRow,
    RunRow,
    StudyRow,
)
from store.selection import CURVE_COLUMNS, RUN_COLUMNS, SCORE_COLUMNS, conditions
from store.versions import check_pages, opened, require_tables
from store.writing import run_record

T = TypeVar("T")


class Results:
    """The runs of an existing database, read only.

    Every query takes the same keywords: `study`, `task`, `arm`, `status`, `seed`, or a kind of part
    such as `position="rope"`, each one value or several; `phase`, which is "confirm" unless asked
    otherwise (None or "all" for every phase); and `where`, a condition in Python's syntax:

        Results("sqlite:///sandbox.db").scores(where='length > 40 and metric == "accuracy"').frame()

    Raises:
        StoreError: If the database is missing, damaged, not ours or of another version, or if a
            query names what does not exist.
    """

    def __init__(self, url: str) -> None:
        self._engine = opened(make_engine(url, readonly=True), check_pages, require_tables)

    def close(self) -> None:
        """Close the connections. The results may be read again after it."""
        self._engine.dispose()

    def runs(
        self, *, where: str | None = None, phase: object = "confirm", **match: object
    ) -> Records[Run]:
        """Return the runs, in the order of their ids."""

        def work(session: Session) -> list[Run]:
            chosen = conditions(session, {}, where=where, phase=phase, match=match)
            query = select(RunRow).where(*chosen).order_by(RunRow.id)
            return [run_record(row) for row in session.scalars(query)]

        return Records(self._transact(work), Run)

    def scores(
        self, *, where: str | None = None, phase: object = "confirm", **match: object
    ) -> Records[Score]:
        """Return the scores, by run; also chosen by `split`, `length`, `metric`, `n` or `bin`.

        Each carries the config options that vary among the runs it was chosen with.
        """

        def work(session: Session) -> list[Score]:
            chosen = conditions(session, SCORE_COLUMNS, where=where, phase=phase, match=match)
            rows = session.execute(select_scores().where(*chosen)).all()
            options = varying(_configs(session, {row[0] for row in rows}))
            return [score_record(row, options[row[0]]) for row in rows]

        return Records(self._transact(work), Score)

    def curves(
        self, *, where: str | None = None, phase: object = "confirm", **match: object
    ) -> Records[Curve]:
        """Return the points of training curves, by run, metric and step; also by `metric`."""

        def work(session: Session) -> list[Curve]:
            chosen = conditions(session, CURVE_COLUMNS, where=where, phase=phase, match=match)
            query = select(CurveRow.run_id, CurveRow.step, CurveRow.metric, CurveRow.value)
            query = query.join(RunRow, RunRow.id == CurveRow.run_id).where(*chosen)
            ordered = query.order_by(CurveRow.run_id, CurveRow.metric, CurveRow.step)
            return [Curve(*row) for row in session.execute(ordered)]

        return Records(self._transact(work), Curve)

    def best(self, *, where: str | None = None, **match: object) -> Records[Best]:
        """Return what tuning chose: per study, task and arm the run of lowest validation nll.

        The nll (nats) is the mean over the validation lengths. A setting that diverged or failed
        counts as tried and cannot win; of equals the earlier run wins.
        """

        if "phase" in match:
            raise StoreError("best is chosen among the tune runs, so it takes no phase")

        def work(session: Session) -> list[Best]:
            match_tuned = {"status": FINISHED, **match}
            chosen = conditions(session, {}, where=where, phase="tune", match=match_tuned)
            query = select(RunRow).where(*chosen).order_by(RunRow.id)
            arms: dict[tuple[str, str, str], list[RunRow]] = {}
            for row in session.scalars(query):
                arms.setdefault((row.study, row.task, row.arm), []).append(row)
            losses = validation_losses(session, [row.id for rows in arms.values() for row in rows])
            options = varying({row.id: row.config for rows in arms.values() for row in rows})
            return [best_of(rows, losses, options) for _, rows in sorted(arms.items())]

        return Records(self._transact(work), Best)

    def models(
        self, *, where: str | None = None, phase: object = "confirm", **match: object
    ) -> Records[Model]:
        """Return the saved weights of the runs, by run and path."""

        def work(session: Session) -> list[Model]:
            chosen = conditions(session, {}, where=where, phase=phase, match=match)
            query = select(ModelRow).join(RunRow, RunRow.id == ModelRow.run_id).where(*chosen)
            rows = session.scalars(query.order_by(ModelRow.run_id, ModelRow.path))
            return [
                Model(row.run_id, row.path, row.sha256, row.size_bytes, row.created_at)
                for row in rows
            ]

        return Records(self._transact(work), Model)

    def protocols(self, *, study: str | None = None) -> Records[Frozen]:
        """Return the frozen plans, of one study or of all, the oldest first."""

        def work(session: Session) -> list[Frozen]:
            query = select(ProtocolRow).order_by(ProtocolRow.id)
            if study is not None:
                query = query.where(ProtocolRow.study == study)
            return [frozen_record(row) for row in session.scalars(query)]

        return Records(self._transact(work), Frozen)

    def components(self, code_hash: str) -> list[Component]:
        """Return the parts that a run's `code_hash` stands for; none where it was not noted."""

        def work(session: Session) -> list[Component]:
            query = select(ComponentRow).where(ComponentRow.code_hash == code_hash)
            rows = session.scalars(query.order_by(ComponentRow.kind, ComponentRow.name))
            return [Component(row.kind, row.name, row.origin, row.source_hash) for row in rows]

        return self._transact(work)

    def studies(self) -> dict[str, str | None]:
        """Return the studies and their descriptions, by name."""

        def work(session: Session) -> dict[str, str | None]:
            query = select(StudyRow.name, StudyRow.description).order_by(StudyRow.name)
            return {name: description for name, description in session.execute(query)}

        return self._transact(work)

    def counts(self) -> dict[str, dict[str, int]]:
        """Return how many runs each study has in each status, by study; zeros are left out."""

        def work(session: Session) -> dict[str, dict[str, int]]:
            found: dict[str, dict[str, int]] = {}
            query = select(RunRow.study, RunRow.status, func.count())
            for study, status, count in session.execute(
                query.group_by(RunRow.study, RunRow.status)
            ):
                found.setdefault(study, {})[status] = count
            return found

        return self._transact(work)

    def names(self, field: str) -> set[Any]:
        """Return the distinct values of one field of the runs, such as "arm".

        Raises:
            StoreError: If a run has no such field.
        """
        if field not in RUN_COLUMNS:
            raise StoreError(f"a run has no field {field!r}; {nearest(field, RUN_COLUMNS)}")
        query = select(RUN_COLUMNS[field]).distinct()
        return self._transact(lambda session: set(session.scalars(query)))

    def environment(self, environment_id: int) -> dict[str, Any]:
        """Return the facts about machine and packages under this id.

        Raises:
            StoreError: If there are none.
        """

        def work(session: Session) -> dict[str, Any] | None:
            query = select(EnvironmentRow.facts).where(EnvironmentRow.id == environment_id)
            return session.scalars(query).one_or_none()

        found = self._transact(work)
        if found is None:
            raise StoreError(f"no environment has the id {environment_id}")
        return found

    def _transact(self, work: Callable[[Session], T]) -> T:
        return transact(self._engine, work)


def _configs(session: Session, run_ids: Iterable[int]) -> dict[int, dict[str, Any]]:
    """The config of each run; where one config was run with several sources, those as well."""
    found: dict[int, dict[str, Any]] = {}
    sources: dict[int, str | None] = {}
    of_config: dict[str, set[str | None]] = {}
    for part in chunks(run_ids):
        columns = (RunRow.id, RunRow.config, RunRow.config_hash, RunRow.code_hash)
        for number, config, key, source in session.execute(
            select(*columns).where(RunRow.id.in_(part))
        ):
            found[number], sources[number] = config, source
            of_config.setdefault(key, set()).add(source)
    if all(len(known) == 1 for known in of_config.values()):
        return found
    return {number: {**config, "code_hash": sources[number]} for number, config in found.items()}
