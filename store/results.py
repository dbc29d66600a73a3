"""The read side: what the runs of a database were and what came out of them."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from store.database import check_size, make_engine, opened, require_tables, transaction
from store.encoding import record_of
from store.errors import StoreError, require_known
from store.models import ChoiceRow, EnvironmentRow, ModelRow, PlanRow, ProtocolRow, RunRow, StudyRow
from store.queries import (
    Found,
    Order,
    count_superseded,
    find,
    find_best,
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
    ) -> Generator[Callable[[], Found]]:
        """Read "runs", "scores" or "curves" one after the other, however many there are.

        Yields a function that finds them, afresh at each call; all calls see the same moment.
        """
        with transaction(self._engine) as session:
            yield lambda: find(session, kind, selection, order)

    def count_superseded(self, kind: str, selection: Selection) -> int:
        """Count the superseded runs behind the "runs", "scores" or "curves" of a selection."""
        with transaction(self._engine) as session:
            return count_superseded(session, kind, selection)

    def run(self, run_id: int) -> Run:
        """Return the run of this id."""
        with transaction(self._engine) as session:
            found = read_runs(session, [run_id])
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
        selection = Selection(where, phase, current, match)
        query = select(ModelRow).join(RunRow, RunRow.id == ModelRow.run_id)
        query = query.order_by(ModelRow.run_id, ModelRow.path)
        return self._stored(Model, query, selection.conditions)

    def protocols(self, *, study: str | None = None) -> Records[Frozen]:
        """Return the frozen plans, of one study or of all, the oldest first."""
        query = select(ProtocolRow).order_by(ProtocolRow.id)
        return self._stored(Frozen, query if study is None else query.filter_by(study=study))

    def plans(self, study: str | None = None) -> Records[Plan]:
        """Return the plans of a study's calls, or of all, the one called last at the end."""
        query = select(PlanRow).order_by(PlanRow.called_at, PlanRow.id)
        return self._stored(Plan, query if study is None else query.filter_by(study=study))

    def components(self, code_hash: str) -> list[Component]:
        """Return the parts that a run's `code_hash` stands for; none where it was not noted."""
        with transaction(self._engine) as session:
            return list(read_components(session, [code_hash])[code_hash])

    def studies(self) -> dict[str, str | None]:
        """Return the studies and their descriptions, by name."""
        query = select(StudyRow.name, StudyRow.description).order_by(StudyRow.name)
        with transaction(self._engine) as session:
            return {name: description for name, description in session.execute(query)}

    def counts(self) -> dict[str, dict[str, int]]:
        """Return how many runs each study has in each status, by study; zeros are left out."""
        cell = (RunRow.study, RunRow.status)
        found: dict[str, dict[str, int]] = {}
        with transaction(self._engine) as session:
            for study, status, count in session.execute(
                select(*cell, func.count()).group_by(*cell)
            ):
                found.setdefault(study, {})[status] = count
        return found

    def names(self, field: str) -> set[Any]:
        """Return the distinct values of one field of the runs or their scores, such as "arm"."""
        known = SCORE_COLUMNS | RUN_COLUMNS
        require_known(field, known, f"a run has no field {field!r}")
        with transaction(self._engine) as session:
            return set(session.scalars(select(known[field]).distinct()))

    def environment(self, environment_id: int) -> dict[str, Any]:
        """Return the facts about machine and packages under this id."""
        query = select(EnvironmentRow.facts).where(EnvironmentRow.id == environment_id)
        with transaction(self._engine) as session:
            found = session.scalars(query).one_or_none()
        if found is None:
            raise StoreError(f"no environment has the id {environment_id}")
        return found

    def choices(self, study: str) -> Records[Choice]:
        """Return everything that tuning chose in a study, of every search, in its order."""
        query = select(ChoiceRow).filter_by(study=study).order_by(ChoiceRow.id)
        return self._stored(Choice, query)

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
        return self._asked(Best, find_best, Selection(where, "tune", current, match))

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
        with transaction(self._engine) as session:
            return Records(summaries(session, selection, by), Summary, leading=by)

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
        with transaction(self._engine) as session:
            return Records(reaches(session, selection, level), Reach)

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
        return self._asked(Cost, costs, Selection(where, phase, current, given))

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

        return self._asked(Failure, failures, Selection(where, phase, current, match))

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

        return self._asked(Changed, changed, Selection(where, phase, current, match))

    def mixed_code(
        self,
        *,
        where: str | None = None,
        phase: object = "confirm",
        current: bool = True,
        **match: object,
    ) -> list[str]:
        """Return the parts of which these runs were done with several versions of the source."""
        from store.provenance import mixed_code

        with transaction(self._engine) as session:
            return mixed_code(session, Selection(where, phase, current, match))

    def _records(self, kind: str, selection: Selection, order: Order) -> Records[Any]:
        with self.stream(kind, selection, order) as ask:
            found = ask()
            return Records(found.records(), found.kind)

    def _asked(
        self, kind: type[T], ask: Callable[[Session, Selection], list[T]], selection: Selection
    ) -> Records[T]:
        with transaction(self._engine) as session:
            return Records(ask(session, selection), kind)

    def _stored(
        self,
        kind: type[T],
        query: Select[Any],
        conditions: Callable[[Session], Sequence[Any]] = lambda session: (),
    ) -> Records[T]:
        with transaction(self._engine) as session:
            rows = session.scalars(query.where(*conditions(session)))
            return Records((record_of(kind, row) for row in rows), kind)
