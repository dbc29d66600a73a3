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
from studies.merging import for_study, merge
from studies.schedules import Schedule

TUNING_SEEDS_FROM = 1000
"""Replicates from this number on are used for tuning, those below it for confirming."""

ROOTS = {
    "encoder": "encoder.d_model",
    "task": "task.name",
    "training": "training.steps",
    "evaluation": "evaluation.examples",
    "study": "study.arms",
}

Count = Annotated[int, Field(ge=1)]
Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]
TaskChoice = Annotated[SerializeAsAny[Choice], among("task")]


def _some(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if not values:
        raise ValueError("at least one is needed; got none")
    twice = [value for value in values if values.count(value) > 1]
    if twice:
        raise ValueError(f"each is given once; got {twice[0]!r} {len(twice)} times")
    return values


Many = (Strict(False), AfterValidator(_some))
"""A list of YAML, with at least one item."""
Lengths = Annotated[tuple[Count, ...], *Many]
Range = Annotated[tuple[Count, ...], Strict(False)]


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
    train_lengths: Annotated[Range, AfterValidator(_ascending)] = (2, 16)
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
    problems = [_not_a_mapping(root, value) for root, value in user.items()]
    if any(problems):
        raise ConfigError(problem for problem in problems if problem)
    user = merge(user, {"study": options}) if options else user
    data = merge(dict(defaults), for_study(defaults, user))
    try:
        return Settings(**data)
    except ValidationError as error:
        problems = problems_of(error, Settings) + _encoder_problems(data["encoder"])
    raise ConfigError(_as_typed(problem, user, in_file, file) for problem in problems)


def _not_a_mapping(root: str, value: Any) -> Problem | None:
    """What is wrong with a root that holds no keys; `task` may be a name."""
    if isinstance(value, Mapping) or root not in ROOTS or (root, type(value)) == ("task", str):
        return None
    return Problem(root, f"{root} holds keys, such as {ROOTS[root]}; got {value!r}", value)


def _encoder_problems(encoder: Mapping[str, Any]) -> list[Problem]:
    """What is wrong with the shared encoder keys, told together with the rest."""
    try:
        EncoderConfig(**encoder)
    except ConfigError as error:
        return [problem.under("encoder") for problem in error.problems]
    return []


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

    try:
        return build_part("task", chosen)
    except ConfigError as error:
        raise ConfigError(problem.under("task") for problem in error.problems) from None
