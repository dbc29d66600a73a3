"""What tuning chose: in each search, the setting of lowest validation nll over its seeds."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from store.configs import leaves_of, varying
from store.errors import StoreError
from store.models import RunRow, ScoreRow
from store.queries import run_records, select_runs
from store.records import FINISHED, Best, Run
from store.where import Selection

Options = Mapping[int, dict[str, Any]]


@dataclass(frozen=True)
class Setting:
    """The runs of one config in a search, one a tuning seed, and their mean validation nll.

    `nll` is None where a run did not finish with a finite one.
    """

    runs: Sequence[Any]
    nll: float | None


def find_best(session: Session, selection: Selection) -> list[Best]:
    """Return what each search chose; see `Results.best`."""
    if "phase" in selection.match or selection.phase != "tune":
        raise StoreError("best is chosen among the tune runs, so it takes no phase")
    chosen = selection.conditions(session)
    found = (RunRow.id, RunRow.study, RunRow.task, RunRow.arm, RunRow.optuna_study)
    told = (RunRow.config_id, RunRow.config_hash, RunRow.status)
    rows = session.execute(select(*found, *told).where(*chosen).order_by(RunRow.id)).all()
    losses = _validation_losses(session, chosen)
    options = varying(leaves_of(session, {row.config_id for row in rows}))
    searches: dict[tuple[str, ...], list[Any]] = {}
    for row in rows:
        key = (row.study, row.task, row.arm, row.optuna_study or "")
        searches.setdefault(key, []).append(row)
    best = [_best(own[0], _settings(own, losses), options) for _, own in sorted(searches.items())]
    return _with_configs(session, best)


def _validation_losses(session: Session, chosen: Iterable[Any]) -> dict[int, float]:
    """The mean validation nll of each run over its answers, where it is finite at every length."""
    answers = func.sum(ScoreRow.n)
    query = (
        select(RunRow.id, func.sum(ScoreRow.value * ScoreRow.n) / answers)
        .join(ScoreRow, ScoreRow.run_id == RunRow.id)
        .where(*chosen, ScoreRow.split == "validation", ScoreRow.metric == "nll")
        .where(ScoreRow.bin.is_(None))
        .group_by(RunRow.id)
        .having(func.count() == func.count(ScoreRow.value), answers > 0)
    )
    return {number: mean for number, mean in session.execute(query)}


def _settings(rows: Sequence[Any], losses: Mapping[int, float]) -> list[Setting]:
    """The settings of a search whose runs are all over."""
    by_config: dict[str, list[Any]] = {}
    for row in rows:
        by_config.setdefault(row.config_hash, []).append(row)
    return [
        Setting(own, _mean([losses.get(row.id) if row.status == "done" else None for row in own]))
        for own in by_config.values()
        if all(row.status in FINISHED for row in own)
    ]


def _mean(values: Sequence[float | None]) -> float | None:
    finite = [value for value in values if value is not None]
    return sum(finite) / len(finite) if len(finite) == len(values) else None


def _best(first: Any, settings: Sequence[Setting], options: Options) -> Best:
    cell, tried = (first.study, first.task, first.arm), len(settings)
    ranked = [(one.nll, one.runs[0].id, one) for one in settings if one.nll is not None]
    if not ranked:
        return Best(*cell, None, None, tried, None)
    nll, run_id, won = min(ranked, key=lambda each: each[:2])
    own = options[won.runs[0].config_id]
    among = [options[setting.runs[0].config_id] for setting in settings]
    return Best(*cell, run_id, nll, tried, None, len(won.runs), _edge(own, among), own)


def _edge(own: Mapping[str, Any], among: Sequence[Mapping[str, Any]]) -> str | None:
    """Which option of the chosen setting is the lowest or the highest of those tried."""
    told: list[str] = []
    for name, value in own.items():
        tried = [one.get(name) for one in among]
        # An option can be a list, which is neither a number nor a member of a set.
        numbers = [each for each in tried if isinstance(each, int | float)]
        if len(numbers) < len(tried) or len(set(numbers)) < 2 or isinstance(value, bool):
            continue
        if value in (min(numbers), max(numbers)):
            told.append(f"{'lowest' if value == min(numbers) else 'highest'} {name}")
    return ", ".join(told) or None


def _with_configs(session: Session, best: Sequence[Best]) -> list[Best]:
    wanted = [one.run_id for one in best if one.run_id is not None]
    query = select_runs().where(RunRow.id.in_(wanted))
    runs: dict[int | None, Run] = {
        run.id: run for run, _ in run_records(session, session.execute(query))
    }
    return [replace(one, config=runs[one.run_id].config) if one.run_id else one for one in best]
