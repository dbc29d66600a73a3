"""The write side: which runs are planned, who does them, and what came out."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Update

from store import claims
from store.connection import make_engine
from store.keeper import Keeper
from store.model_files import ModelFiles
from store.reading import read_components, read_runs, read_scores
from store.records import Claim, Component, Model, PlannedRun, Run, Score
from store.rows import CurveRow, ModelRow, ScoreRow
from store.schema import Table, now
from store.values import plain_dict
from store.versions import create_tables, opened, refuse_other_version, require_tables
from store.writing import (
    component_rows,
    curve_rows,
    model_row,
    optional_float,
    optional_int,
    planned_row,
    score_rows,
    storable_text,
)

__all__ = ["Claim", "Ledger", "PlannedRun"]


class Ledger(Keeper):
    """The runs of a database, for those that plan and do them.

    Each method is one short transaction, so many processes may share a database. A run is done by
    the worker that claims it, until its lease runs out; a result is written only by the claim that
    still owns the run.
    """

    @classmethod
    def create(cls, url: str) -> "Ledger":
        """Open a database and make what is missing of it.

        Raises:
            StoreError: If it cannot be opened or created, is damaged, or is of another version.
        """
        refuse_other_version(url)
        return cls(opened(make_engine(url), create_tables))

    @classmethod
    def open(cls, url: str) -> "Ledger":
        """Open a database that holds our tables already; for workers.

        Raises:
            StoreError: If it is missing, cannot be opened, or is of another version.
        """
        # The reader refuses a missing file, where a writer would make an empty one, and it leaves
        # a file of another version as it is.
        opened(make_engine(url, readonly=True), require_tables).dispose()
        return cls(opened(make_engine(url), require_tables))

    def plan(self, runs: Iterable[PlannedRun], *, called_at: datetime | None = None) -> list[int]:
        """Add the runs whose identity is new; return the ids of all, in the order given.

        Runs that are there and wait still take over the config, environment, provenance and
        `code_hash` given now, since it is now that they will be done; others keep theirs.
        `called_at` names the call of the study that asks for these runs: of an arm's runs on a
        task, those that the last call did not ask for are superseded.

        Raises:
            StoreError: If a value of a run cannot be stored; then no run is added.
        """
        planned = list(runs)
        rows = [planned_row(run) for run in planned]
        parts = [row for run in planned for row in component_rows(run)]
        return self._transact(lambda session: claims.plan_runs(session, rows, parts, called_at))

    def claim(
        self, worker: str, run_ids: Sequence[int], lease_seconds: float = 60.0
    ) -> Claim | None:
        """Give the worker the planned run of lowest (priority, id) among those named, or None.

        No other worker gets the same run while the lease of `lease_seconds` lasts.
        """

        lease = timedelta(seconds=lease_seconds)
        return self._transact(lambda session: claims.claim_first(session, worker, run_ids, lease))

    def renew(self, claim: Claim, lease_seconds: float = 60.0) -> bool:
        """Lengthen the lease to `lease_seconds` from now; False when the run was lost."""
        until = now() + timedelta(seconds=lease_seconds)
        return self._change(claims.owned(claim).values(lease_until=until))

    def release(self, claim: Claim) -> None:
        """Hand a run back undone; the attempt stays counted. A lost run is left alone."""
        self._change(claims.owned(claim).values(**claims.unclaimed("planned")))

    def attach_trial(self, claim: Claim, optuna_study: str, optuna_trial: int) -> bool:
        """Note which Optuna trial stands for this attempt; False when the run was lost."""
        values = {"optuna_study": optuna_study, "optuna_trial": optuna_trial}
        return self._change(claims.owned(claim).values(**values))

    def finish(
        self,
        claim: Claim,
        status: str,
        *,
        reason: str | None = None,
        scores: Iterable[object] = (),
        curves: Iterable[object] = (),
        wall_seconds: float | None = None,
        cpu_seconds: float | None = None,
        peak_bytes: int | None = None,
        parameters: int | None = None,
        provenance: Mapping[str, object] | None = None,
        model: Model | None = None,
    ) -> bool:
        """End a run and write all its results at once, in place of any older ones.

        Scores have split, length, metric, n, value and, where they apply, bin and correct; curve
        points have step, metric and value; both as mappings or dataclasses. `provenance` is added
        to what was planned; `model` says where its weights are. Returns False, and writes nothing,
        when the run was lost.

        Raises:
            StoreError: If the status is not one of the finished ones or a value cannot be stored.
        """
        claims.check_finished(status)
        values: dict[str, Any] = {
            **claims.unclaimed(status),
            "worker": claim.worker,
            "started_at": claim.run.started_at,
            "finished_at": now(),
            "reason": None if reason is None else storable_text(reason),
            "wall_seconds": optional_float(wall_seconds, "wall_seconds"),
            "cpu_seconds": optional_float(cpu_seconds, "cpu_seconds"),
            "peak_bytes": optional_int(peak_bytes, "peak_bytes"),
        }
        if parameters is not None:
            values["parameters"] = optional_int(parameters, "parameters")
        if provenance is not None:
            values["provenance"] = {**claim.run.provenance, **plain_dict(provenance, "provenance")}
        rows: dict[type[Table], list[dict[str, Any]]] = {
            ScoreRow: score_rows(claim.run.id, scores),
            CurveRow: curve_rows(claim.run.id, curves),
            ModelRow: []
            if model is None
            else [model_row(claim.run.id, model.path, model.sha256, model.size_bytes)],
        }
        return self._transact(lambda session: claims.write_results(session, claim, values, rows))

    def recover(
        self, run_ids: Sequence[int], is_alive: Callable[[str], bool], max_attempts: int = 3
    ) -> list[Run]:
        """Take back the runs whose lease ran out or whose worker is not alive.

        They are planned again, or failed once `max_attempts` are used up. Returns them as they
        were while running, with the trial that Optuna still holds open.
        """
        held = self._transact(lambda session: claims.running(session, run_ids))
        lost = [
            (run, until) for run, until in held if until <= now() or not is_alive(run.worker or "")
        ]
        return self._transact(
            lambda session: [
                run for run, until in lost if claims.take_back(session, run, until, max_attempts)
            ]
        )

    def reset(self, run_ids: Sequence[int], statuses: Sequence[str] = ("failed",)) -> int:
        """Plan finished runs anew, without their old results and weights; return how many.

        Raises:
            StoreError: If a status is not one of the finished ones.
        """
        for status in statuses:
            claims.check_finished(status)
        count, paths = self._transact(lambda session: claims.plan_anew(session, run_ids, statuses))
        for path in paths:
            ModelFiles(self._engine.url).remove(path)
        return count

    def counts(self, run_ids: Sequence[int]) -> dict[str, int]:
        """Return how many of the runs are in each status, zeros too."""
        return self._transact(lambda session: claims.count_statuses(session, run_ids))

    def statuses(self, run_ids: Sequence[int]) -> dict[int, str]:
        """Return the status of each run; the cheap way to watch many."""
        return self._transact(lambda session: claims.read_statuses(session, run_ids))

    def runs(self, run_ids: Sequence[int]) -> list[Run]:
        """Return the runs, in the order of their ids."""
        return self._transact(lambda session: read_runs(session, run_ids))

    def scores(self, run_ids: Sequence[int]) -> list[Score]:
        """Return the scores of the runs, in the order of the runs' ids."""
        return self._transact(lambda session: read_scores(session, run_ids))

    def components(self, code_hash: str) -> tuple[Component, ...]:
        """Return the parts that a run's `code_hash` stands for; none where it was not noted."""
        return self._transact(lambda session: read_components(session, code_hash))

    def _change(self, statement: Update) -> bool:
        return self._transact(lambda session: claims.change(session, statement))
