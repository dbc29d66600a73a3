"""Print what a study is and what it would do, without doing it."""

from io import StringIO

from ruamel.yaml import YAML

from studies.estimate import seconds_of
from studies.plan import Plan
from studies.progress import duration


def describe_plan(plan: Plan) -> None:
    """Print the text of the study and its settings."""
    text = StringIO()
    YAML(typ="safe", pure=True).dump(plan.settings.model_dump(mode="json"), text)
    print(f"{plan.study.text.strip()}\n\nSettings\n--------\n{text.getvalue()}", end="")


def preview(plan: Plan, workers: int) -> None:
    """Print what would be done, and roughly how long it takes on this machine."""
    settings, total = plan.settings.study, 0.0
    rates = ", ".join(f"{rate:g}" for rate in settings.learning_rates)
    print(f"{plan.study.name}: learning rates {rates}; {settings.seeds} confirming seeds an arm")
    for cell in plan.cells():
        tune, steps = len(list(plan.tuning(cell))), plan.config(cell, 1.0).training.steps
        seconds = seconds_of(plan.config(cell, settings.learning_rates[0]))
        total += seconds * (tune + settings.seeds)
        print(
            f"  {cell.task:20} {cell.arm:16} {tune} tuning + {settings.seeds} confirming runs "
            f"of {steps} steps, about {duration(seconds)} each"
        )
    print(f"about {duration(total / workers)} with {workers} workers; nothing was done")
