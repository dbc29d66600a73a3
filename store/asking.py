"""The questions that results answer, as methods; who lists rows need not wait for their imports."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from store.errors import StoreError
from store.frames import Records
from store.reader import Reader
from store.selection import Selection

if TYPE_CHECKING:
    from store.answers import Changed, Cost, Failure, Reach, Summary
    from store.records import Best


class Asking(Reader):
    """The part of `Results` that answers questions; the keywords choose runs as elsewhere."""

    def best(
        self, *, where: str | None = None, current: bool = True, **match: object
    ) -> "Records[Best]":
        """Return what tuning chose: the setting of lowest validation nll in each search.

        A search is what one arm of a study tried on a task under settings that are else the same.
        The nll (nats) of a run is the mean over its validation answers, that of a setting the mean
        over its tuning seeds. A setting of which a run diverged or failed counts as tried and
        cannot win, one that is not over does not count; of equals the earlier wins. Superseded runs
        are left out unless `current=False`.
        """
        from store.best import find_best
        from store.records import Best

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
    ) -> "Records[Summary]":
        """Return means over seeds with their intervals, for scores grouped by these names.

        A name is a field of runs or scores, a kind of part such as "position", or a dotted config
        key; splits and metrics are always apart, and bins are left out unless named. Superseded
        runs are left out unless `current=False`.
        """
        from store.answers import Summary
        from store.summary import summaries

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
    ) -> "Records[Reach]":
        """Return at which length the mean of each arm falls below a level.

        Lengths are taken in order from the longest that was trained; the first at which the mean
        over seeds is below the level, or at which a value lacks in every seed, is where it falls.
        """
        from store.answers import Reach
        from store.questions import reaches

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
    ) -> "Records[Cost]":
        """Return what each arm costs beside its mean of a metric, over all lengths or `length`."""
        from store.answers import Cost
        from store.questions import costs

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
    ) -> "Records[Failure]":
        """Return the runs that diverged, failed or do not apply, by arm, setting and reason."""
        from store.answers import Failure
        from store.questions import failures

        selection = Selection(where, phase, current, match)
        return Records(self._transact(lambda session: failures(session, selection)), Failure)

    def changed(
        self,
        *,
        where: str | None = None,
        phase: object = "all",
        current: bool = False,
        **match: object,
    ) -> "Records[Changed]":
        """Return the parts whose source is not what runs were done with, and those runs.

        The file of a part is looked for where an import would look, or under its own path; nothing
        is imported.
        """
        from store.answers import Changed
        from store.sources import changed

        selection = Selection(where, phase, current, match)
        return Records(self._transact(lambda session: changed(session, selection)), Changed)
