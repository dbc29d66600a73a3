"""The settings of a study, checked strictly, and how they are put together.

Defaults of the budget < a YAML file < `--set` and the other options of the command line.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field, SerializeAsAny, Strict, ValidationError

import studies.tasks  # noqa: F401  (announces the table of tasks)
from registry.choices import STRICT, Choice, among
from registry.config import EncoderConfig
from registry.problems import ConfigError, Problem, problems_of
from registry.settings import with_settings
from registry.yaml_file import read_yaml
from studies.merging import merge, name_of
from studies.schedules import Schedule

TUNING_SEEDS_FROM = 1000
"""Replicates from this number on are used for tuning, those below it for confirming."""

Count = Annotated[int, Field(ge=1)]
Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]
TaskChoice = Annotated[SerializeAsAny[Choice], among("task")]


def _some(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if not values:
        raise ValueError("at least one is needed; got none")
    return values


Many = (Strict(False), AfterValidator(_some))
"""A list of YAML, with at least one item."""
Lengths = Annotated[tuple[Count, ...], *Many]


def _ascending(pair: tuple[int, ...]) -> tuple[int, ...]:
    if len(pair) != 2 or pair[0] > pair[1]:
        raise ValueError(f"train_lengths is [shortest, longest]; got {list(pair)}")
    return pair


class Strictly(BaseModel):
    """Frozen settings: nothing is coerced, nothing unknown is accepted."""

    model_config = STRICT


class Training(Strictly):
    """How a run is trained. `train_lengths` is [shortest, longest]; each batch has one length."""

    steps: Count = 600
    batch_size: Count = 64
    learning_rate: Rate = 3e-3
    weight_decay: Annotated[float, Field(ge=0)] = 0.01
    clip_norm: Annotated[float, Field(gt=0)] | None = 1.0
    schedule: Schedule = "linear"
    warmup_steps: Annotated[int, Field(ge=0)] = 50
    final_rate: Annotated[float, Field(ge=0, le=1)] = 0.1
    train_lengths: Annotated[Lengths, AfterValidator(_ascending)] = (2, 16)
    dtype: Literal["float32", "float64", "bfloat16"] = "float32"


class Evaluation(Strictly):
    """What is measured after training: `examples` sequences at each of `test_lengths`."""

    test_lengths: Lengths = (16, 32, 64)
    examples: Count = 512
    batch_size: Count = 128


class StudySeed(Strictly):
    """The part of the study's settings that a run's numbers depend on."""

    seed: int = 0


class RunConfig(Strictly):
    """Everything that the numbers of a run depend on, but for its replicate seed."""

    encoder: EncoderConfig
    task: TaskChoice
    training: Training = Training()
    evaluation: Evaluation = Evaluation()
    study: StudySeed = StudySeed()


class Panel(Strictly):
    """One task of a study, and for how many steps it is trained on."""

    task: TaskChoice
    steps: Count | None = None


class StudySettings(Strictly):
    """How a study is run: its panels, arms, seeds, and the learning rates that each arm tries."""

    seed: int = 0
    panels: Annotated[tuple[Panel, ...], *Many]
    arms: Annotated[tuple[str, ...], *Many]
    seeds: Annotated[int, Field(ge=1, le=TUNING_SEEDS_FROM)] = 8
    tuning_seeds: Count = 1
    learning_rates: Annotated[tuple[Rate, ...], *Many]
    threshold: Annotated[float, Field(gt=0, lt=1)] = 0.8


class Settings(Strictly):
    """All settings of a study. `encoder` holds the keys that its arms share."""

    encoder: dict[str, Any] = {}
    training: Training = Training()
    evaluation: Evaluation = Evaluation()
    study: StudySettings


def gather(
    defaults: Mapping[str, Any],
    file: Path | None = None,
    assignments: Iterable[str] = (),
    options: Mapping[str, Any] | None = None,
) -> Settings:
    """The settings of a study.

    Args:
        defaults: Those of the budget.
        file: A YAML file that changes some of them.
        assignments: Changes that win over the file, as `dotted.key=value`.
        options: Keys of `study` that win over all.

    Raises:
        ConfigError: If something cannot be read or breaks a rule; every problem is told.
    """
    in_file = {} if file is None else read_yaml(file)
    user: dict[str, Any] = dict(in_file)
    for assignment in assignments:
        user = merge(user, with_settings({}, [assignment]))
    user = merge(user, {"study": options}) if options else user
    data = merge(dict(defaults), _for_study(defaults, user))
    try:
        return Settings(**data)
    except ValidationError as error:
        problems = problems_of(error, Settings)
    raise ConfigError(_as_typed(problem, user, in_file, file) for problem in problems)


def _as_typed(
    problem: Problem, user: Mapping[str, Any], in_file: Mapping[str, Any], file: Path | None
) -> Problem:
    """A problem under the key that the user wrote, and with the file that holds it."""
    key = problem.key
    if "task" in user and key.startswith("study.panels.0.task"):
        key = key.removeprefix("study.panels.0.")
    if "learning_rate" in user.get("training", {}) and key.startswith("study.learning_rates"):
        key = "training.learning_rate"
    value: Any = in_file
    for step in key.split("."):
        value = value.get(step) if isinstance(value, Mapping) else None
    return replace(problem, key=key, file=None if value is None else str(file))


def _for_study(defaults: Mapping[str, Any], user: Mapping[str, Any]) -> dict[str, Any]:
    """The user's settings, with what they say of one run said of the study.

    A `task` becomes the only panel. `training.steps` holds for every panel, in place of their own
    steps, and `training.learning_rate` is the only rate that is tried.
    """
    study = dict(user.get("study", {}))
    training = user.get("training", {})
    panels = [dict(panel) for panel in study.get("panels", defaults["study"]["panels"])]
    if "task" in user:
        study["panels"] = panels = [_panel_of(user["task"], panels)]
    if "steps" in training:
        study["panels"] = [{**panel, "steps": None} for panel in panels]
    if "learning_rate" in training:
        if "learning_rates" in study:
            rule = "a study tries either one learning_rate or the list study.learning_rates"
            raise ConfigError([Problem("training.learning_rate", rule)])
        study["learning_rates"] = [training["learning_rate"]]
    kept = {key: value for key, value in user.items() if key != "task"}
    return {**kept, "study": study}


def _panel_of(task: Any, panels: list[dict[str, Any]]) -> dict[str, Any]:
    names = [name_of(panel["task"]) for panel in panels]
    if isinstance(task, Mapping) and "name" not in task:
        if len(panels) > 1:
            keys = ", ".join(f"task.{key}" for key in task)
            rule = f"{keys} needs task.name as well, since this study has several tasks"
            raise ConfigError([Problem("task", rule, task, tuple(names))])
        task = {"name": names[0], **task}
    same = next((panel for panel in panels if name_of(panel["task"]) == name_of(task)), {})
    return {**same, "task": merge({"task": same.get("task", {})}, {"task": task})["task"]}


def check_run(data: Mapping[str, Any]) -> RunConfig:
    """The checked config of a run.

    Raises:
        ConfigError: If it breaks a rule; every problem is told.
    """
    try:
        return RunConfig(**data)
    except ValidationError as error:
        raise ConfigError(problems_of(error, RunConfig)) from None


def task_of(chosen: Choice) -> Any:
    """The task that a choice names.

    Raises:
        ConfigError: If the task refuses its options.
    """
    from registry.choices import build_part

    return build_part("task", chosen)
