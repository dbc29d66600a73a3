"""What a database holds under a name: studies, environments, protocols, models, parts."""

from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from store.errors import StoreError, nearest
from store.frames import Records
from store.reader import Reader
from store.reading import frozen_record, read_components, read_runs
from store.records import Component, Frozen, Model, Run
from store.rows import EnvironmentRow, ModelRow, ProtocolRow, RunRow, StudyRow
from store.selection import RUN_COLUMNS, SCORE_COLUMNS, Selection


class Lookups(Reader):
    """The part of `Results` that looks things up."""

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

    def components(self, code_hash: str) -> list[Component]:
        """Return the parts that a run's `code_hash` stands for; none where it was not noted."""

        return self._transact(lambda session: list(read_components(session, code_hash)))

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
