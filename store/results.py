"""The read side: what the runs of a database were and what came out of them."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from sqlalchemy.orm import Session

from store.asking import Asking
from store.frames import Records
from store.lookups import Lookups
from store.queries import FIND, Found, Order, count_superseded
from store.records import Curve, Run, Score
from store.selection import Selection

ANY_ORDER = Order()


class Results(Lookups, Asking):
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
        with self._reading() as session:
            yield lambda: FIND[kind](session, selection, order)

    def count_superseded(self, kind: str, selection: Selection) -> int:
        """Count the superseded runs behind the "runs", "scores" or "curves" of a selection."""
        return self._transact(lambda session: count_superseded(session, kind, selection))

    def _records(self, kind: str, selection: Selection, order: Order) -> Records[Any]:
        def work(session: Session) -> Records[Any]:
            found = FIND[kind](session, selection, order)
            return Records(found.records(), found.kind)

        return self._transact(work)
