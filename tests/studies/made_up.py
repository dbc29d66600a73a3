"""Results whose right reading is known: in memory, or stored as real ones are."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from registry.errors import ConfigError
from store import Results
from store.ledger import Ledger
from store.records import Run, Score
from studies.analysis.gather import results_of, seed_of
from studies.analysis.results import Arm, Seed, StudyResults, Task
from studies.analysis.verdicts import verdicts
from studies.execution.scheduler import Scheduler
from studies.execution.trials import Trials
from studies.experiment.draft import Draft
from studies.experiment.freeze import freeze, frozen_for
from studies.experiment.overrides import gather
from studies.experiment.plan import Plan
from studies.experiment.resolve import resolve
from studies.experiment.study import Budget, Study
from studies.experiment.validate import draft_problems
from studies.report.findings import Findings
from studies.statistics import Verdict
from studies.training.settings import check_run, task_of

Outcome = Sequence[float] | str
"""The skill of a seed at each tested length, or the status that its run ended with."""

LENGTHS = (16, 32)
BLIND = 0.2
"""The accuracy of the best blind guess, at every length."""

AT = datetime(2026, 1, 2, tzinfo=UTC)


def run(arm: str = "rope", seed: int = 0, status: str = "done", **other: Any) -> Run:
    """A final run without its numbers."""
    told: dict[str, Any] = {
        **dict.fromkeys(("worker", "peak_bytes", "optuna_study", "optuna_trial"), None),
        **dict.fromkeys(("started_at", "finished_at", "created_at"), AT),
        **{"environment_id": None, "provenance": {}, "config": {}, "config_hash": arm},
        **{"code_hash": None, "parameters": 100, "steps": 10, "attempt": 1, "reason": None},
        **{"wall_seconds": 1.0, "cpu_seconds": 2.0},
        **other,
    }
    return Run(
        id=seed + 1, study="lengths", task="shift", arm=arm, phase="confirm", seed=seed,
        status=status, **told,
    )  # fmt: skip


def score(metric: str, value: float | None, length: int = 16, **other: Any) -> Score:
    """One number of a run, of its test set unless something else is said."""
    told: dict[str, Any] = {
        **{"run_id": 1, "study": "lengths", "task": "shift", "arm": "rope", "phase": "confirm"},
        **{"seed": 0, "split": "test", "bin": None, "n": 16, "correct": None},
        **other,
    }
    return Score(length=length, metric=metric, value=value, **told)


def scores(skills: Mapping[int, float], **other: Any) -> list[Score]:
    """The scores of a run with these skills, by length."""
    return [
        score(metric, value, length, **other)
        for length, skill in skills.items()
        for metric, value in (
            *(("skill", skill), ("exact", skill)),
            *(("accuracy", BLIND + (1 - BLIND) * skill), ("floor", BLIND)),
        )
    ]


def seed(
    skills: Mapping[int, float] | str,
    *more: Score,
    longest: int | None = 16,
    lengths: Iterable[int] = LENGTHS,
    curves: Mapping[str, list[tuple[int, float]]] | None = None,
    **told: Any,
) -> Seed:
    """A seed with these skills by length, or one that ended without; `more` are further scores."""
    status = skills if isinstance(skills, str) else "done"
    if status == "diverged":  # as a run stores what it counts as
        own = scores(dict.fromkeys(lengths, 0.0), imputed=True)
    else:
        own = scores({} if isinstance(skills, str) else skills)
    return seed_of(run(**{"status": status, **told}), [*own, *more], curves or {}, longest)


def arm(
    name: str,
    *outcomes: Outcome,
    lengths: Sequence[int] = LENGTHS,
    longest: int | None = 16,
    **changes: Any,
) -> Arm:
    """An arm from what came of its seeds; one of fewer skills cannot be asked any further."""
    curves = {"loss": [(5, 1.0), (10, 0.5)]}
    seeds = {
        number: seed(
            one if isinstance(one, str) else dict(zip(lengths, one, strict=False)),
            **{"longest": longest, "lengths": lengths, "arm": name, "seed": number},
            curves=curves if not isinstance(one, str) else {},
        )
        for number, one in enumerate(outcomes)
    }
    return replace(Arm(seeds, longest, name=name, lengths=tuple(lengths)), **changes)


def further(name: str, *outcomes: Outcome) -> Arm:
    """An arm with these skills at 16, 32 and 64."""
    return arm(name, *outcomes, lengths=(16, 32, 64))


def task(*arms: Arm, **changes: Any) -> Task:
    """A task trained on lengths 2 to 16."""
    lengths = sorted({length for one in arms for length in one.lengths})
    made = Task("shift", "shift(k=3)", "shift(k=3)", (2, 16), 10, lengths, True, list(arms))
    return replace(made, **changes)


def findings(*tasks: Task, **changes: Any) -> Findings:
    """The findings of a study with these tasks."""
    told: dict[str, Any] = {
        "study": "lengths",
        "question": "Which arm reaches further?",
        "about": "",
        "tasks": list(tasks),
        "verdicts": [],
        "threshold": 0.8,
        "differences": [("encoder.position", {"rope": "rope", "learned": "learned"})],
        "hyperparameters": {"training.batch_size": 8, "training.schedule": "linear"},
        "provenance": {"database": "sqlite:///sandbox.db"},
        "command": "python -m studies.lengths",
        "sources": ["1706.03762"],
        **changes,
    }
    return Findings(**told)


CLAIM = {
    "name": "further", "claim": "Rope carries further.", "arm": "rope", "against": "learned",
    "panel": "shift", "lengths": [32],
}  # fmt: skip


def draft(seeds: int, variable: str = "encoder.position", **study: Any) -> Draft:
    """Two arms on one panel with one claim, unless something else is said."""
    settings: dict[str, Any] = {
        "encoder": {"d_model": 8, "n_heads": 2, "n_layers": 1},
        "training": {"steps": 10, "warmup_steps": 0, "train_lengths": [2, 16]},
        "evaluation": {"test_lengths": list(LENGTHS), "examples": 16},
        "study": {
            "panels": [{"task": {"name": "shift", "k": 1, "alphabet": 3}}],
            "seeds": seeds,
            "learning_rates": [1e-3],
            "hypotheses": [CLAIM],
            **({} if "factors" in study else {"arms": ["rope", "learned"]}),
            **study,
        },
    }
    made = Study("made_up", "Which carries further?", "Made up.", (variable,), {
        "own": Budget("", settings)
    })  # fmt: skip
    return Draft(made, gather(settings))


def plan(seeds: int, **study: Any) -> Plan:
    """The plan of that draft."""
    return resolve(draft(seeds, **study))


class MadeUp:
    """A made-up study, stored in a folder.

    Args:
        folder: Where its database is made.
        draft: The study.
        skills: What came of the confirming seeds of each arm.
        nlls: The validation nll of each arm at each learning rate, where it is tuned; None: the
            run diverged.
        tuned: The skills of the tuning runs at each rate.
    """

    def __init__(
        self,
        folder: Path,
        draft: Draft,
        skills: Mapping[str, Sequence[Outcome]],
        nlls: Mapping[str, Mapping[float, float | None]] | None = None,
        tuned: Mapping[float, Sequence[float]] | None = None,
    ) -> None:
        self.draft, self.plan = draft, resolve(draft)
        self.url = f"sqlite:///{folder / 'made_up.db'}"
        self.ledger = Ledger.create(self.url)
        self.scheduler = Scheduler(self.plan, self.ledger, Trials(self.url))
        for cell, numbers in self.scheduler.tuning.items():
            while claim := self.ledger.claim("w", numbers):
                rate = claim.run.config["training"]["learning_rate"]
                value = (nlls or {})[cell.arm][rate]
                if value is None:
                    self.ledger.finish(claim, "diverged", reason="made up")
                    continue
                nll = {"split": "validation", "length": 16, "metric": "nll", "n": 1}
                scores = [{**nll, "value": value}]
                scores += _stored(claim.run, (tuned or {})[rate])
                self.ledger.finish(claim, "done", scores=scores)
        self.scheduler.advance()
        results = Results(self.url)
        self.kept = freeze(self.plan, self.ledger, results, [])
        results.close()
        for cell, numbers in self.scheduler.confirming.items():
            while claim := self.ledger.claim("w", numbers):
                ended = skills[cell.arm][claim.run.seed]
                status = ended if isinstance(ended, str) else "done"
                reason, scores = None if status == "done" else "made up", _stored(claim.run, ended)
                self.ledger.finish(claim, status, reason=reason, scores=scores, parameters=100)
        self.scheduler.advance()

    @property
    def results(self) -> StudyResults:
        """What the runs say."""
        return results_of(self.plan, self.url)

    @property
    def verdicts(self) -> list[Verdict]:
        """What the seeds say about the claims."""
        return verdicts(self.results, frozen_for(self.plan, self.kept))


def _stored(run: Run, ended: Outcome) -> list[dict[str, Any]]:
    """What a run of these skills stores, or one that ended so."""
    task = task_of(check_run(run.config).task)
    if ended == "diverged":
        skills: Sequence[float | None] = [None for _ in LENGTHS]
    else:
        skills = [] if isinstance(ended, str) else ended
    return [
        {
            **{"split": "test", "length": length, "metric": metric, "n": 16},
            **{"value": lost if skill is None else kept, "imputed": skill is None},
        }
        for length, skill in zip(LENGTHS, skills, strict=bool(skills))
        for floor in [task.floors(length).highest]
        for metric, kept, lost in (
            *(("skill", skill, 0.0), ("exact", skill, 0.0)),
            *(("accuracy", skill, floor), ("floor", floor, floor)),
        )
    ]


FAR = [(1.0, 0.9), (1.0, 0.92), (1.0, 0.88), (1.0, 0.91), (1.0, 0.89)]
NEAR = [(1.0, 0.3), (1.0, 0.32), (1.0, 0.28), (1.0, 0.31), (1.0, 0.29)]

CASES: dict[str, dict[str, Sequence[Outcome]]] = {
    "clear winner": {"rope": FAR, "learned": NEAR},
    "tie": {"rope": FAR, "learned": FAR[::-1]},
    "all failed": {"rope": ["failed"] * 5, "learned": ["diverged"] * 5},
    "bimodal": {"rope": [FAR[0], FAR[1], FAR[2], (1.0, 0.1), (1.0, 0.12)], "learned": NEAR},
    "one seed": {"rope": FAR[:1], "learned": NEAR[:1]},
    "unlearned": {"rope": FAR, "learned": [(0.1, 0.0)] * 5},
}
"""Result sets whose right reading is known."""


def case(folder: Path, name: str) -> MadeUp:
    """One of these, stored."""
    skills = CASES[name]
    return MadeUp(folder, draft(len(skills["rope"])), skills)


def check_draft(draft: Draft) -> None:
    """Refuse a draft with every problem that it has, as a call would."""
    problems = draft_problems(draft)
    if problems:
        raise ConfigError(problems)
