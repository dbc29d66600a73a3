"""The read side: what the runs of a database were and what came out of them."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, TypeVar

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from store.additions import frozen_record
from store.best import find_best
from store.connection import make_engine, reading, transact
from store.errors import StoreError, nearest
from store.frames import Records
from store.queries import FIND, Found, Order
from store.records import Best, Component, Curve, Frozen, Model, Run, Score
from store.rows import ComponentRow, EnvironmentRow, ModelRow, ProtocolRow, RunRow, StudyRow
from store.selection import RUN_COLUMNS, Selection
from store.versions import check_size, opened, require_tables

ANY_ORDER = Order()
T = TypeVar("T")


class Results:
    """The runs of an existing database, read only.

    Every query takes the same keywords: `study`, `task`, `arm`, `status`, `seed`, or a kind of part
    such as `position="rope"`, each one value or several; `phase`, which is "confirm" unless asked
    otherwise (None or "all" for every phase); `current=True` for those runs alone that the last
    call of their study asked for; and `where`, a condition in Python's syntax:

        Results("sqlite:///sandbox.db").scores(where='length > 40 and metric == "accuracy"').frame()

    Raises:
        StoreError: If the database is missing, damaged, not ours or of another version, or if a
            query names what does not exist.
    """

    def __init__(self, url: str) -> None:
        self._engine = opened(make_engine(url, readonly=True), check_size, require_tables)

    def close(self) -> None:
        """Close the connections. The results may be read again after it."""
        self._engine.dispose()

    def runs(
        self,
        *,
        where: str | None = None,
        phase: object = "confirm",
        current: bool = False,
        sort: str | None = None,
        limit: int | None = None,
        **match: object,
    ) -> Records[Run]:
        """Return the runs, in the order of their ids unless `sort` says otherwise."""
        return self._records("runs", Selection(where, phase, current, match), Order(sort, limit))

    def scores(
        self,
        *,
        where: str | None = None,
        phase: object = "confirm",
        current: bool = False,
        sort: str | None = None,
        limit: int | None = None,
        **match: object,
    ) -> Records[Score]:
        """Return the scores, by run; also chosen by `split`, `length`, `metric`, `n` or `bin`.

        Each carries the config options that vary among the runs it was chosen with.
        """
        return self._records("scores", Selection(where, phase, current, match), Order(sort, limit))

    def curves(
        self,
        *,
        where: str | None = None,
        phase: object = "confirm",
        current: bool = False,
        sort: str | None = None,
        limit: int | None = None,
        **match: object,
    ) -> Records[Curve]:
        """Return the points of training curves, by run, metric and step; also by `metric`."""
        return self._records("curves", Selection(where, phase, current, match), Order(sort, limit))

    @contextmanager
    def stream(
        self, kind: str, selection: Selection, order: Order = ANY_ORDER
    ) -> Generator[Found[Any]]:
        """Read "runs", "scores" or "curves" one after the other, however many there are.

        They are read in one transaction, so they are of one moment.

        Raises:
            StoreError: If the selection names what is not there, or the database cannot be read.
        """
        with reading(self._engine) as session:
            yield FIND[kind](session, selection, order)

    def best(
        self, *, where: str | None = None, current: bool = False, **match: object
    ) -> Records[Best]:
        """Return what tuning chose: the setting of lowest validation nll in each search.

        A search is what one arm of a study tried on a task under settings that are else the same.
        The nll (nats) of a run is the mean over its validation answers, that of a setting the mean
        over its tuning seeds. A setting of which a run diverged or failed counts as tried and
        cannot win, one that is not over does not count; of equals the earlier wins.
        """
        if "phase" in match:
            raise StoreError("best is chosen among the tune runs, so it takes no phase")
        selection = Selection(where, "tune", current, match)
        return Records(self._transact(lambda session: find_best(session, selection)), Best)

    def models(
        self,
        *,
        where: str | None = None,
        phase: object = "confirm",
        current: bool = False,
        **match: object,
    ) -> Records[Model]:
        """Return the saved weights of the runs, by run and path."""

        def work(session: Session) -> list[Model]:
            chosen = Selection(where, phase, current, match).conditions(session)
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

    def _records(self, kind: str, selection: Selection, order: Order) -> Records[Any]:
        def work(session: Session) -> Records[Any]:
            found = FIND[kind](session, selection, order)
            return Records(found.records, found.kind)

        return self._transact(work)

    def _transact(self, work: Callable[[Session], T]) -> T:
        return transact(self._engine, work)
