"""Optuna's side of a study: each tuning run is a trial in the Optuna study of its arm."""

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from store.connection import install_sqlite_hooks

if TYPE_CHECKING:
    import optuna

    from store.records import Run

RATE = "training.learning_rate"
RATES = (1e-9, 1e3)
"""A range that holds every learning rate: Optuna refuses to change a range later."""


class Trials:
    """The trials behind tuning runs, in the database that also holds our tables.

    Our tables say what is planned and what came out; trials are brought in line with them.
    """

    def __init__(self, url: str) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._storage = optuna.storages.RDBStorage(url)
        # Optuna asks before it writes, so both must be one transaction; a connection that is open
        # already would keep its old manners.
        install_sqlite_hooks(self._storage.engine)
        self._storage.engine.dispose()

    def close(self) -> None:
        """Close the connections."""
        self._storage.remove_session()
        self._storage.engine.dispose()

    def begin(self, run: "Run", attempt: int) -> tuple[str, int]:
        """Open a trial for this attempt at a run; return its Optuna study and number."""
        import optuna

        name = study_name(run)
        study = self._study(name)
        mark = {"run": run.id, "attempt": attempt, "seed": run.seed}
        study.add_trial(
            optuna.trial.create_trial(
                state=optuna.trial.TrialState.RUNNING,
                params={RATE: run.config["training"]["learning_rate"]},
                distributions={RATE: optuna.distributions.FloatDistribution(*RATES, log=True)},
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

        by_id = {run.id: run for run in runs}
        for name in sorted({study_name(run) for run in by_id.values()}):
            study = self._study(name)
            for trial in study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.RUNNING]):
                run = by_id.get(trial.user_attrs.get("run", -1))
                if run is None or self._is_live(trial, run):
                    continue
                last = trial.number == run.optuna_trial
                self.end(name, trial.number, nlls.get(run.id) if last else None)

    def _is_live(self, trial: Any, run: "Run") -> bool:
        return run.status == "running" and trial.user_attrs.get("attempt") == run.attempt

    def _study(self, name: str) -> "optuna.Study":
        import optuna

        return optuna.create_study(
            storage=self._storage, study_name=name, direction="minimize", load_if_exists=True
        )


def study_name(run: "Run") -> str:
    """The Optuna study of a tuning run: one for an arm on a task under all its other settings."""
    from registry.config import hash_of

    config = {key: value for key, value in run.config.items() if key != "training"}
    training = {key: value for key, value in run.config["training"].items()}
    training.pop("learning_rate")
    return f"{run.study}/{run.task}/{run.arm}/{hash_of([config, training])[:8]}"
