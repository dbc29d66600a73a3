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
from registry.yaml_file import parse_yaml, read_yaml
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
        user = merge(user, assigned(assignment))
    user = merge(user, {"study": options}) if options else user
    one_task = "task" in user
    data = merge(dict(defaults), _panels_of_task(defaults, user))
    try:
        return Settings(**data)
    except ValidationError as error:
        problems = problems_of(error, Settings)
    raise ConfigError(_as_typed(problem, in_file, file, one_task) for problem in problems)


def _as_typed(
    problem: Problem, in_file: Mapping[str, Any], file: Path | None, one_task: bool
) -> Problem:
    """A problem under the key that the user wrote, and with the file that holds it."""
    key = problem.key
    if one_task and key.startswith("study.panels.0.task"):
        key = key.removeprefix("study.panels.0.")
    value: Any = in_file
    for step in key.split("."):
        value = value.get(step) if isinstance(value, Mapping) else None
    return replace(problem, key=key, file=None if value is None else str(file))


def _panels_of_task(defaults: Mapping[str, Any], user: dict[str, Any]) -> dict[str, Any]:
    """The user's settings, with a `task` turned into the study's only panel.

    `training.steps` holds for every panel, so it also takes the place of their own steps.
    """
    known = user.get("study", {}).get("panels")
    panels = [dict(panel) for panel in known or defaults["study"]["panels"]]
    user = dict(user)
    task = user.pop("task", None)
    if task is not None:
        panels = [_panel_of(task, panels)]
    steps = user.get("training", {}).get("steps")
    if steps is not None:
        panels = [{key: panel[key] for key in panel if key != "steps"} for panel in panels]
    if task is None and steps is None:
        return user
    return merge(user, {"study": {"panels": panels}})


def _panel_of(task: Any, panels: list[dict[str, Any]]) -> dict[str, Any]:
    names = [_name(panel["task"]) for panel in panels]
    if isinstance(task, Mapping) and "name" not in task:
        if len(panels) > 1:
            keys = ", ".join(f"task.{key}" for key in task)
            rule = f"{keys} needs task.name as well, since this study has several tasks"
            raise ConfigError([Problem("task", rule, task, tuple(names))])
        task = {"name": names[0], **task}
    same = next((panel for panel in panels if _name(panel["task"]) == _name(task)), {})
    return {**same, "task": merge({"task": same.get("task", {})}, {"task": task})["task"]}


def _name(chosen: Any) -> Any:
    return chosen.get("name") if isinstance(chosen, Mapping) else chosen


def assigned(assignment: str) -> dict[str, Any]:
    """The nested mapping of `dotted.key=value`, where the value is YAML.

    Raises:
        ConfigError: If it has no `=`, an empty key or a value that is not YAML.
    """
    key, sign, text = assignment.partition("=")
    if not sign or not all(key.split(".")):
        rule = f"an assignment reads dotted.key=value; got {assignment!r}"
        raise ConfigError([Problem(key, rule, assignment)])
    try:
        value = parse_yaml(text)
    except ConfigError as error:
        raise ConfigError(problem.under(key) for problem in error.problems) from None
    for step in reversed(key.split(".")):
        value = {step: value}
    return value


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """`below` with what `above` says; a choice of another name replaces, the same one adds."""
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        if isinstance(value, Mapping):
            if isinstance(old, str) and "name" not in value and key not in ("encoder", "study"):
                old = {"name": old}
            other = "name" in value and _name(old) != value["name"]
            merged[key] = (
                dict(value) if other or not isinstance(old, Mapping) else merge(old, value)
            )
        elif isinstance(value, str) and isinstance(old, Mapping) and _name(old) == value:
            continue
        else:
            merged[key] = value
    return merged


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
