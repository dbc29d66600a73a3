"""Studies whose runs are ended by hand with skills that are known, stored as real ones are."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from store import Results
from store.ledger import Ledger
from studies.analysis.results import ArmResult
from studies.analysis.verdicts import verdicts
from studies.execution.running import results_of
from studies.execution.scheduler import Scheduler
from studies.execution.trials import Trials
from studies.experiment.freeze import freeze, frozen_for
from studies.experiment.overrides import gather
from studies.experiment.plan import Plan
from studies.experiment.study import Budget, Study
from studies.statistics import Verdict

Seed = Sequence[float] | str
"""The skill of a seed at each tested length, or the status that its run ended with."""

LENGTHS = (16, 32)
CLAIM = {
    "name": "further", "claim": "Rope carries further.", "arm": "rope", "against": "learned",
    "panel": "shift", "lengths": [32],
}  # fmt: skip


def plan(seeds: int, variable: str = "encoder.position", **study: Any) -> Plan:
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
    return Plan(made, gather(settings))


class MadeUp:
    """A made-up study, stored in a folder.

    Args:
        folder: Where its database is made.
        plan: The study.
        skills: What came of the confirming seeds of each arm.
        nlls: The validation nll of each arm at each learning rate, where it is tuned.
        tuned: The skills of the tuning runs at each rate.
    """

    def __init__(
        self,
        folder: Path,
        plan: Plan,
        skills: Mapping[str, Sequence[Seed]],
        nlls: Mapping[str, Mapping[float, float]] | None = None,
        tuned: Mapping[float, Sequence[float]] | None = None,
    ) -> None:
        self.plan, self.url = plan, f"sqlite:///{folder / 'made_up.db'}"
        self.ledger = Ledger.create(self.url)
        self.scheduler = Scheduler(plan, self.ledger, Trials(self.url))
        for cell, numbers in self.scheduler.tuning.items():
            while claim := self.ledger.claim("w", numbers):
                rate = claim.run.config["training"]["learning_rate"]
                nll = {"split": "validation", "length": 16, "metric": "nll", "n": 1}
                scores = [{**nll, "value": (nlls or {})[cell.arm][rate]}]
                self.ledger.finish(claim, "done", scores=scores + _scores((tuned or {})[rate]))
        self.scheduler.advance()
        results = Results(self.url)
        self.kept = freeze(plan, self.ledger, results, [])
        results.close()
        for cell, numbers in self.scheduler.confirming.items():
            while claim := self.ledger.claim("w", numbers):
                seed = skills[cell.arm][claim.run.seed]
                if isinstance(seed, str):
                    self.ledger.finish(claim, seed, reason="made up")
                else:
                    self.ledger.finish(claim, "done", scores=_scores(seed), parameters=100)
        self.scheduler.advance()

    @property
    def results(self) -> list[ArmResult]:
        """What the runs say, arm by arm."""
        return results_of(self.scheduler)

    @property
    def verdicts(self) -> list[Verdict]:
        """What the seeds say about the claims."""
        return verdicts(self.plan, self.results, frozen_for(self.plan, self.kept))


def _scores(skills: Sequence[float]) -> list[dict[str, Any]]:
    return [
        {"split": "test", "length": length, "metric": metric, "n": 16, "value": skill}
        for length, skill in zip(LENGTHS, skills, strict=True)
        for metric in ("skill", "accuracy", "exact")
    ]


FAR = [(1.0, 0.9), (1.0, 0.92), (1.0, 0.88), (1.0, 0.91), (1.0, 0.89)]
NEAR = [(1.0, 0.3), (1.0, 0.32), (1.0, 0.28), (1.0, 0.31), (1.0, 0.29)]

CASES: dict[str, dict[str, Sequence[Seed]]] = {
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
    return MadeUp(folder, plan(len(skills["rope"])), skills)
