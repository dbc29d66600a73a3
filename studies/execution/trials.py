"""Optuna's side of a study: each tuning run is a trial in the Optuna study of its arm."""

import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sqlalchemy import inspect

from store.database import install_sqlite_hooks, make_engine

if TYPE_CHECKING:
    import optuna

    from store.records import Run
    from studies.experiment.search import Point
    from studies.experiment.settings import Direction

RATE = "training.learning_rate"
RATES = (1e-9, 1e3)
"""A range that holds the usual learning rates; one beyond it widens it."""
NUMBERS = (-(2**31), 2**31)
"""The same for every other number."""

OPEN = """
SELECT DISTINCT s.study_name FROM studies AS s JOIN trials AS t ON t.study_id = s.study_id
WHERE t.state = 'RUNNING'
"""


class Trials:
    """The trials behind tuning runs, in the database that also holds our tables.

    Our tables say what is planned and what came out; trials are brought in line with them.
    """

    def __init__(self, url: str) -> None:
        self.url = url

    @cached_property
    def _storage(self) -> "optuna.storages.RDBStorage":
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        storage = optuna.storages.RDBStorage(self.url)
        # Optuna asks before it writes, so both must be one transaction; a connection that is open
        # already would keep its old manners.
        install_sqlite_hooks(storage.engine)
        storage.engine.dispose()
        return storage

    def prepare(self) -> None:
        """Make Optuna's tables where they are missing, before several processes need them."""
        _ = self._storage

    def close(self) -> None:
        """Close the connections."""
        if "_storage" in self.__dict__:
            self._storage.remove_session()
            self._storage.engine.dispose()

    def begin(self, run: "Run", attempt: int) -> tuple[str, int]:
        """Open a trial for this attempt at a run; return its Optuna study and number."""
        import optuna

        name, space = study_name(run), Space.of(run)
        study = self._study(name)
        mark = {"run": run.id, "attempt": attempt, "seed": run.seed}
        study.add_trial(
            optuna.trial.create_trial(
                state=optuna.trial.TrialState.RUNNING,
                params=space.params(),
                distributions=space.distributions(),
                user_attrs=mark,
            )
        )
        numbers = [
            trial.number
            for trial in study.get_trials(deepcopy=False)
            if {key: trial.user_attrs.get(key) for key in mark} == mark
        ]
        return name, numbers[-1]

    def end(self, name: str, number: int, nll: float | None) -> None:
        """Close a trial with its validation nll, or as failed where there is none."""
        import optuna

        state = optuna.trial.TrialState.FAIL if nll is None else None
        with warnings.catch_warnings():
            # A trial that another worker closed meanwhile stays as it is.
            warnings.filterwarnings("ignore", message="Skipped telling trial")
            self._study(name).tell(number, nll, state=state, skip_if_finished=True)

    def reconcile(self, runs: Iterable["Run"], nlls: dict[int, float | None]) -> None:
        """Close the open trials of runs that are not running, with what the run's status says."""
        import optuna

        still_open = self._with_open_trials()
        by_id = {run.id: run for run in runs} if still_open else {}
        attached = {run.optuna_study for run in by_id.values() if run.optuna_study is not None}
        known = attached | {study_name(run) for run in by_id.values()}
        for name in sorted(known & still_open):
            study = self._study(name)
            for trial in study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.RUNNING]):
                run = by_id.get(trial.user_attrs.get("run", -1))
                attempt = trial.user_attrs.get("attempt")
                if run is None or (run.status == "running" and attempt == run.attempt):
                    continue
                last = trial.number == run.optuna_trial
                self.end(name, trial.number, nlls.get(run.id) if last else None)

    def _with_open_trials(self) -> set[str]:
        """The Optuna studies that have a running trial; there are none, as a rule.

        Asked by a reader, since Optuna begins to write as soon as its storage is opened.
        """
        engine = make_engine(self.url, readonly=True)
        try:
            with engine.connect() as connection:
                if not inspect(connection).has_table("trials"):
                    return set()
                return {name for (name,) in connection.exec_driver_sql(OPEN)}
        finally:
            engine.dispose()

    def keep_only(self, runs: Iterable["Run"]) -> None:
        """Delete every Optuna study that no trial of these runs is in."""
        import optuna

        numbers = {run.id for run in runs}
        for study in self._storage.get_all_studies():
            trials = self._storage.get_all_trials(study._study_id, deepcopy=False)
            if not any(trial.user_attrs.get("run") in numbers for trial in trials):
                optuna.delete_study(study_name=study.study_name, storage=self._storage)

    def keep_points(
        self,
        name: str,
        space: Mapping[str, Sequence[Any]],
        directions: "Sequence[Direction]",
        points: "Iterable[Point]",
    ) -> None:
        """Show the points of a search to Optuna's own tools, each once; the search reads none."""
        import optuna

        study = self._study(name, directions)
        with warnings.catch_warnings():
            # A part with options is a mapping, which Optuna keeps as JSON, but with a warning.
            warnings.filterwarnings("ignore", message="Choices for a categorical distribution")
            there = {trial.user_attrs.get("arm") for trial in study.get_trials(deepcopy=False)}
            choices = {
                key: optuna.distributions.CategoricalDistribution(tuple(values))
                for key, values in space.items()
            }
            for point in points:
                inside = all(point.setting[key] in space[key] for key in space)
                if point.arm not in there and inside:
                    study.add_trial(
                        optuna.trial.create_trial(
                            params=dict(point.setting),
                            distributions=dict(choices),
                            values=point.values,
                            user_attrs={"arm": point.arm},
                        )
                    )

    def _study(
        self, name: str, directions: "Sequence[Direction]" = ("minimize",)
    ) -> "optuna.Study":
        import optuna

        return optuna.create_study(
            storage=self._storage, study_name=name, directions=directions, load_if_exists=True
        )


@dataclass(frozen=True)
class Space:
    """The setting of a tuning run, and what Optuna has to know of the values that are tried.

    Args:
        setting: Dotted keys with values.
        choices: The values, as text, of each key that has others than numbers among them.
        whole: The keys whose values are all whole numbers; rates are on a scale of their own.
    """

    setting: Mapping[str, Any]
    choices: Mapping[str, list[str]]
    whole: list[str]

    @classmethod
    def of(cls, run: "Run") -> "Space":
        own = run.provenance.get("setting") or {RATE: run.config["training"]["learning_rate"]}
        each = [*run.provenance.get("tried", []), own]
        tried = {key: [one[key] for one in each if key in one] for key in own}
        choices = {
            key: list(dict.fromkeys(map(_text, values)))
            for key, values in tried.items()
            if not all(map(_is_number, values))
        }
        numbers = sorted(tried.keys() - choices.keys() - {RATE})
        whole = [key for key in numbers if all(isinstance(one, int) for one in tried[key])]
        return cls(own, choices, whole)

    def params(self) -> dict[str, Any]:
        """The setting as Optuna keeps it: numbers as they are, and as text what has others."""
        return {
            key: _text(value) if key in self.choices else value
            for key, value in self.setting.items()
        }

    def distributions(self) -> dict[str, Any]:
        """The distribution of each key; the choices of a text are the values tried."""
        from optuna.distributions import (
            CategoricalDistribution,
            FloatDistribution,
            IntDistribution,
        )

        found: dict[str, Any] = {}
        for key, value in self.setting.items():
            if key in self.choices:
                found[key] = CategoricalDistribution(self.choices[key])
                continue
            low, high = RATES if key == RATE else NUMBERS
            kind = IntDistribution if key in self.whole else FloatDistribution
            found[key] = kind(min(low, value), max(high, value), log=key == RATE)
        return found


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def study_name(run: "Run") -> str:
    """The Optuna study of a tuning run: one for an arm on a task under all its other settings.

    Optuna lets a key be of one kind in a study, so another list that changes a kind is another one.
    """
    from registry.config import hash_of

    space, rest = Space.of(run), dict(run.config)
    for key in space.setting:
        rest = _without(rest, key.split("."))
    training = rest.pop("training", {})
    known = [rest, training, *(kinds for kinds in (space.choices, space.whole) if kinds)]
    return f"{run.study}/{run.task}/{run.arm}/{hash_of(known)[:8]}"


def _without(config: Any, path: list[str]) -> Any:
    """A config without the value at a path."""
    first, *rest = path
    if not isinstance(config, dict) or first not in config:
        return config
    if not rest:
        return {key: value for key, value in config.items() if key != first}
    return {**config, first: _without(config[first], rest)}
