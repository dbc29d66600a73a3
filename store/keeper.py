"""The part of the write side that keeps what is around runs."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from sqlalchemy import Engine
from sqlalchemy.orm import Session

from store import additions
from store.connection import transact
from store.records import Frozen
from store.schema import now
from store.values import plain_dict
from store.writing import model_row, score_rows

T = TypeVar("T")


class Keeper:
    """Writes environments, studies, frozen protocols, models and later scores; see `Ledger`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def close(self) -> None:
        """Close the connections. The ledger may be used again after it."""
        self._engine.dispose()

    def environment(self, facts: Mapping[str, object]) -> int:
        """Store facts about machine and packages, once; return their id."""
        kept = plain_dict(facts, "environment")
        return self._transact(lambda session: additions.add_environment(session, kept))

    def describe_study(self, name: str, description: str) -> str | None:
        """Set the description of a study, new or not; return what it was, None if it had none."""
        return self._transact(lambda session: additions.describe_study(session, name, description))

    def freeze(
        self, study: str, protocol: Mapping[str, object], run_ids: Sequence[int] | None = None
    ) -> Frozen:
        """Keep the plan of a study as it is now; one equal to a kept plan changes nothing.

        `runs_before` of the answer says whether a confirming run of the study had begun when this
        plan was first frozen; of `run_ids` alone, where these are the runs that it is about.

        Raises:
            StoreError: If the protocol holds what cannot be stored.
        """
        kept = plain_dict(protocol, "protocol")
        return self._transact(
            lambda session: additions.freeze_protocol(session, study, kept, run_ids)
        )

    def save_model(self, run_id: int, *, path: str, sha256: str, size_bytes: int) -> None:
        """Note where the weights of a run were saved, in place of an older note of that path.

        A run that is planned anew loses its models, as it does its results.

        Raises:
            StoreError: If there is no such run, or `sha256` is not 64 hexadecimal digits.
        """
        row = model_row(run_id, path, sha256, size_bytes)
        self._transact(lambda session: additions.add_model(session, row))

    def add_scores(
        self, run_id: int, scores: Iterable[object], *, source: str | None = None
    ) -> None:
        """Add scores to a run that is done, such as those of lengths evaluated later.

        Scores are given as to `finish`. One that is there already, of the same split, length,
        metric and bin, is replaced. `source` says what measured them.

        Raises:
            StoreError: If there is no such run, it is not done, or a value cannot be stored.
        """
        rows = score_rows(run_id, scores, source, now())
        self._transact(lambda session: additions.add_later_scores(session, run_id, rows))

    def _transact(self, work: Callable[[Session], T]) -> T:
        return transact(self._engine, work)
