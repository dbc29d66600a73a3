"""The read side: what the runs of a database were and what came out of them."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from store.database import check_size, make_engine, opened, reading, require_tables, transact
from store.encoding import choice_record
from store.errors import StoreError, nearest
from store.models import ChoiceRow, EnvironmentRow, ModelRow, PlanRow, ProtocolRow, RunRow, StudyRow
from store.queries import (
    FIND,
    Found,
    Order,
    count_superseded,
    find_best,
    frozen_record,
    read_components,
    read_runs,
)
from store.records import (
    Best,
    Changed,
    Choice,
    Component,
    Cost,
    Curve,
    Failure,
    Frozen,
    Model,
    Plan,
    Reach,
    Records,
    Run,
    Score,
    Summary,
)
from store.where import RUN_COLUMNS, SCORE_COLUMNS, Selection

T = TypeVar("T")
ANY_ORDER = Order()


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
    ) -> Generator[Callable[[], Found[Any]]]:
        """Read "runs", "scores" or "curves" one after the other, however many there are.

        Yields a function that finds them, afresh at each call; all calls see the same moment.

        Raises:
            StoreError: If the selection names what is not there, or the database cannot be read.
        """
        with reading(self._engine) as session:
            yield lambda: FIND[kind](session, selection, order)

    def count_superseded(self, kind: str, selection: Selection) -> int:
        """Count the superseded runs behind the "runs", "scores" or "curves" of a selection."""
        return self._transact(lambda session: count_superseded(session, kind, selection))

    def run(self, run_id: int) -> Run:
        """Return the run of this id.

        Raises:
            StoreError: If there is none.
        """
        found = self._transact(lambda session: read_runs(session, [run_id]))
        if not found:
            ids = self.names("id")
            known = f"the ids are {min(ids)} to {max(ids)}" if ids else "there are no runs"
            raise StoreError(f"no run has the id {run_id}; {known}")
        return found[0]

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

    def plans(self, study: str | None = None) -> Records[Plan]:
        """Return the plans of a study's calls, or of all, the one called last at the end."""

        def work(session: Session) -> list[Plan]:
            query = select(PlanRow).order_by(PlanRow.called_at, PlanRow.id)
            if study is not None:
                query = query.where(PlanRow.study == study)
            return [
                Plan(row.id, row.study, row.hash, row.plan, row.created_at, row.called_at)
                for row in session.scalars(query)
            ]

        return Records(self._transact(work), Plan)

    def components(self, code_hash: str) -> list[Component]:
        """Return the parts that a run's `code_hash` stands for; none where it was not noted."""

        found = self._transact(lambda session: read_components(session, [code_hash]))
        return list(found[code_hash])

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
        """Return the distinct values of one field of the runs or their scores, such as "arm".

        Raises:
            StoreError: If there is no such field.
        """
        known = SCORE_COLUMNS | RUN_COLUMNS
        if field not in known:
            raise StoreError(f"a run has no field {field!r}; {nearest(field, known)}")
        query = select(known[field]).distinct()
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

    def choices(self, study: str) -> Records[Choice]:
        """Return everything that tuning chose in a study, of every search, in its order."""

        def work(session: Session) -> list[Choice]:
            query = select(ChoiceRow).where(ChoiceRow.study == study).order_by(ChoiceRow.id)
            return [choice_record(row) for row in session.scalars(query)]

        return Records(self._transact(work), Choice)

    def best(
        self, *, where: str | None = None, current: bool = True, **match: object
    ) -> Records[Best]:
        """Return what tuning chose for each arm of a study on a task.

        The study that tuned decided it, and this tells what it stored: the chosen setting with its
        validation nll (nats), the mean over its tuning seeds, or that there was none to choose.
        Choices that rest on superseded runs are left out unless `current=False`.
        """
        if "phase" in match:
            raise StoreError("best is chosen among the tune runs, so it takes no phase")
        selection = Selection(where, "tune", current, match)
        return Records(self._transact(lambda session: find_best(session, selection)), Best)

    def summary(
        self,
        by: Sequence[str] = ("study", "task", "arm", "length"),
        *,
        where: str | None = None,
        phase: object = "confirm",
        current: bool = True,
        **match: object,
    ) -> Records[Summary]:
        """Return means over seeds with their intervals, for scores grouped by these names.

        A name is a field of runs or scores, a kind of part such as "position", or a dotted config
        key; splits and metrics are always apart, and bins are left out unless named. Superseded
        runs are left out unless `current=False`.
        """
        from store.grouping import summaries

        selection = Selection(where, phase, current, match)
        found = self._transact(lambda session: summaries(session, selection, by))
        return Records(found, Summary, leading=by)

    def below(
        self,
        level: float,
        *,
        metric: str = "accuracy",
        split: str = "test",
        where: str | None = None,
        phase: object = "confirm",
        current: bool = True,
        **match: object,
    ) -> Records[Reach]:
        """Return up to which length the mean of each arm holds a level, and where it falls below.

        Lengths are taken in order from the longest that was trained, up to the first at which no
        seed has a value.
        """
        from store.grouping import reaches

        given = {**match, "metric": metric, "split": split}
        selection = Selection(where, phase, current, given)
        return Records(self._transact(lambda session: reaches(session, selection, level)), Reach)

    def cost(
        self,
        *,
        metric: str = "accuracy",
        split: str = "test",
        where: str | None = None,
        phase: object = "confirm",
        current: bool = True,
        **match: object,
    ) -> Records[Cost]:
        """Return what each arm costs beside its mean of a metric, over all lengths or `length`."""
        from store.grouping import costs

        given = {**match, "metric": metric, "split": split}
        selection = Selection(where, phase, current, given)
        return Records(self._transact(lambda session: costs(session, selection)), Cost)

    def failures(
        self,
        *,
        where: str | None = None,
        phase: object = "all",
        current: bool = True,
        **match: object,
    ) -> Records[Failure]:
        """Return the runs that diverged, failed or do not apply, by arm, setting and reason."""
        from store.grouping import failures

        selection = Selection(where, phase, current, match)
        return Records(self._transact(lambda session: failures(session, selection)), Failure)

    def changed(
        self,
        *,
        where: str | None = None,
        phase: object = "all",
        current: bool = False,
        **match: object,
    ) -> Records[Changed]:
        """Return the parts whose source is not what runs were done with, and those runs.

        The file of a part is looked for where an import would look, or under its own path; nothing
        is imported.
        """
        from store.provenance import changed

        selection = Selection(where, phase, current, match)
        return Records(self._transact(lambda session: changed(session, selection)), Changed)

    def _records(self, kind: str, selection: Selection, order: Order) -> Records[Any]:
        def work(session: Session) -> Records[Any]:
            found = FIND[kind](session, selection, order)
            return Records(found.records(), found.kind)

        return self._transact(work)

    def _transact(self, work: Callable[[Session], T]) -> T:
        return transact(self._engine, work)
