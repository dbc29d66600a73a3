"""Result sets with known answers."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from store.records import Run
from studies.report.findings import Arm, Findings, Panel, Seed
from studies.tasks.task import Floors

LENGTHS = [16, 32, 64]
AT = datetime(2026, 1, 2, tzinfo=UTC)


def run(arm: str, seed: int, status: str = "done", reason: str | None = None) -> Run:
    """A confirming run without its numbers."""
    return Run(
        id=seed + 1,
        study="lengths",
        task="shift",
        arm=arm,
        phase="confirm",
        seed=seed,
        status=status,
        reason=reason,
        config={},
        config_hash=arm,
        code_hash=None,
        parameters=100,
        steps=10,
        attempt=1,
        worker=None,
        created_at=AT,
        started_at=AT,
        finished_at=AT,
        wall_seconds=1.0,
        cpu_seconds=2.0,
        peak_bytes=None,
        optuna_study=None,
        optuna_trial=None,
        environment_id=None,
        provenance={},
    )


def arm(name: str, *skills: Sequence[float] | None) -> Arm:
    """An arm whose seeds have these skills at 16, 32 and 64; None is a seed that diverged.

    An arm of fewer skills cannot be asked any further.
    """
    floors = {("accuracy", length): 0.2 for length in LENGTHS}
    seeds = [_seed(name, number, skill) for number, skill in enumerate(skills)]
    return Arm(name, seeds, floors=floors)


def _seed(name: str, number: int, skills: Sequence[float] | None) -> Seed:
    if skills is None:
        return Seed(run(name, number, "diverged", "step 3: the loss is not finite (nan)"), {}, {})
    values = {
        ("test", metric, length): skill if metric == "skill" else 0.2 + 0.8 * skill
        for length, skill in zip(LENGTHS, skills, strict=False)
        for metric in ("skill", "accuracy")
    }
    return Seed(run(name, number), values, {"loss": [(5, 1.0), (10, 0.5)]})


def panel(*arms: Arm, label: str = "shift", later: Sequence[Arm] = ()) -> Panel:
    """A panel trained on lengths 2 to 16 whose best blind guess is right once in five."""
    floors = dict.fromkeys(LENGTHS, Floors(constant=0.1, index=0.2, bag=0.15))
    return Panel(label, "shift(k=3)", (2, 16), 10, LENGTHS, floors, list(arms), list(later))


def findings(*panels: Panel, **changes: object) -> Findings:
    """The findings of a study with these panels."""
    told: Mapping[str, object] = {
        "study": "lengths",
        "question": "Which arm reaches further?",
        "about": "",
        "panels": list(panels),
        "verdicts": [],
        "threshold": 0.8,
        "differences": [("encoder.position", {"rope": "rope", "learned": "learned"})],
        "hyperparameters": {"training.batch_size": 8, "training.schedule": "linear"},
        "provenance": {"database": "sqlite:///sandbox.db"},
        "command": "python -m studies.lengths",
        "sources": ["1706.03762"],
        **changes,
    }
    return Findings(**told)  # type: ignore[arg-type]
