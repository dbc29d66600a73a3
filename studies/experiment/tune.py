"""Tuning: every arm tries the same settings, and one is chosen at trained lengths alone."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from statistics import stdev
from typing import TYPE_CHECKING, Any

from registry.config import hash_of
from store.records import Choice
from studies.experiment.plan import Cell, Plan
from studies.experiment.settings import Setting, Ties

if TYPE_CHECKING:
    from store.records import Run


@dataclass(frozen=True)
class Tried:
    """One setting with its tuning runs and the mean validation nll of each (nats), by run."""

    setting: Setting
    runs: Sequence["Run"]
    nlls: Mapping[int, float | None]

    @property
    def nll(self) -> float | None:
        """The mean over the tuning seeds; None where one of them has none."""
        known = self._known
        return sum(known) / len(known) if known and len(known) == len(self.runs) else None

    @property
    def standard_error(self) -> float:
        """The standard error of `nll` over the tuning seeds; 0 for a single seed."""
        return stdev(self._known) / len(self._known) ** 0.5 if len(self._known) > 1 else 0.0

    @property
    def _known(self) -> list[float]:
        return [value for run in self.runs if (value := self.nlls.get(run.id)) is not None]


def validation_nll(scores: Iterable[Any]) -> float | None:
    """The mean validation nll over answers; None where it was not measured or not finite."""
    rows = [one for one in scores if one.split == "validation" and one.metric == "nll"]
    total = sum(one.n for one in rows)
    if not total or any(one.value is None for one in rows):
        return None
    mean = math.fsum(one.value * one.n for one in rows) / total
    return mean if math.isfinite(mean) else None


def by_setting(
    plan: Plan, cell: Cell, runs: Sequence["Run"], nlls: Mapping[int, float | None]
) -> list[Tried]:
    """The tuning runs of a cell, in the order of the plan, as what was tried."""
    own, seeds = iter(runs), len(plan.protocol.tuning_seeds)
    return [Tried(one.setting, [*islice(own, seeds)], nlls) for one in plan[cell].tries]


def choose(cell: Cell, tried: Sequence[Tried], tolerance: float, ties: Ties = "lowest") -> Choice:
    """Choose the setting of lowest mean validation nll over the tuning seeds.

    Settings within `tolerance` nats of it, or within one standard error of its mean over the
    tuning seeds, are near-tied. With "middle" the one of them that stands nearest to the middle of
    the list is taken, whichever is lowest by chance. Longer lengths and other arms have no say.
    """
    without = undecided(cell, tried, tolerance, ties)
    runs = [run for one in tried for run in one.runs]
    failed = sum(run.status == "failed" for run in runs)
    if failed:
        return replace(without, reason=f"{failed} of {len(runs)} tuning runs failed")
    known = [(one.nll, one) for one in tried if one.nll is not None]
    if not known:
        return replace(without, reason="training diverged at every setting")
    lowest, best = min(known, key=lambda pair: pair[0])
    width = max(tolerance, best.standard_error)
    tied = [one for nll, one in known if nll <= lowest + width]
    taken = best if ties == "lowest" else min(tied, key=lambda one: _from_middle(one, tried))
    return replace(
        without,
        setting=dict(taken.setting),
        nll=taken.nll,
        near=[dict(one.setting) for one in tied if one is not taken],
        edges=edges(taken.setting, tried),
        runs=[run.id for run in taken.runs],
    )


def undecided(
    cell: Cell, tried: Sequence[Tried], tolerance: float, ties: Ties, reason: str | None = None
) -> Choice:
    """The record of what was tried for a cell, without a setting."""
    known = [
        {
            "setting": dict(one.setting),
            "nll": one.nll,
            "status": _status(one.runs),
            "runs": [run.id for run in one.runs],
        }
        for one in tried
    ]
    ids = [[one["setting"], one["runs"]] for one in known]
    return Choice(
        study=tried[0].runs[0].study,
        task=cell.task,
        arm=cell.arm,
        search=hash_of({"tried": ids, "tolerance": tolerance, "ties": ties}),
        rule=f"lowest validation nll; within {tolerance:g} nats, the {ties}",
        setting=None,
        reason=reason,
        tried=known,
    )


def _status(runs: Sequence["Run"]) -> str:
    """The worst that became of the runs of a setting."""
    statuses = {run.status for run in runs}
    return next((one for one in ("failed", "diverged") if one in statuses), "done")


def _from_middle(one: Tried, tried: Sequence[Tried]) -> tuple[float, int]:
    """The distance from the middle of the list, then the place in it."""
    place = [other is one for other in tried].index(True)
    return abs(place - (len(tried) - 1) / 2), place


def edges(setting: Setting, tried: Sequence[Tried]) -> dict[str, str]:
    """The numeric keys of a setting that are at an end of what was tried."""
    found: dict[str, str] = {}
    for key, value in setting.items():
        values = [one.setting[key] for one in tried if key in one.setting]
        if not all(_is_number(one) for one in values) or len(set(values)) < 2:
            continue
        if value in (min(values), max(values)):
            found[key] = "lowest" if value == min(values) else "highest"
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def in_words(setting: Setting) -> str:
    """A setting as it is printed: "learning_rate 0.003, warmup_steps 100"."""
    return ", ".join(f"{key.rpartition('.')[2]} {_value(one)}" for key, one in setting.items())


def _value(value: Any) -> str:
    return f"{value:g}" if _is_number(value) else str(value)
