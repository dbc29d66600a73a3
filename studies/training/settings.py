"""The settings of a run, checked strictly: everything that its numbers depend on."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    SerializeAsAny,
    Strict,
    ValidationError,
    model_validator,
)

import studies.probes  # announces its table, as the next one does
import studies.tasks  # noqa: F401
from registry.choices import STRICT, Choice, among, build_part, resolve
from registry.config import EncoderConfig
from registry.errors import ConfigError, Problem, problems_of
from store.metrics import METRICS
from studies.training.references import refers

Whole = Annotated[int, Field(ge=0)]
Count = Annotated[int, Field(ge=1)]
Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Part = Annotated[float, Field(ge=0, lt=1)]

if TYPE_CHECKING:
    Share = str
else:
    Share = Literal[tuple(sorted(one.name for one in METRICS.values() if one.ceiling == 1))]
"""A share of the right that a model may reach."""


def _once(values: Sequence[Any]) -> None:
    """Refuse a list that says something twice."""
    twice = [value for value in values if values.count(value) > 1]
    if twice:
        raise ValueError(f"each is given once; got {twice[0]!r} {len(twice)} times")


def _told_apart(probes: tuple[Choice, ...]) -> tuple[Choice, ...]:
    """Refuse two probes of one name: what they measure could not be told apart."""
    _once([probe.name for probe in probes])
    return probes


def _task(value: Any) -> Choice | None:
    return None if value is None else resolve("task", value)


TaskChoice = Annotated[SerializeAsAny[Choice] | None, BeforeValidator(_task)]
Probe = Annotated[SerializeAsAny[Choice], among("probe")]
Probes = Annotated[tuple[Probe, ...], Strict(False), AfterValidator(_told_apart)]
Model = Annotated[SerializeAsAny[Choice] | None, refers("model", "vocab_size", "n_classes")]
Perform = Annotated[SerializeAsAny[Choice] | None, refers("perform", "work")]


def some(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Refuse a list that is empty or says something twice."""
    if not values:
        raise ValueError("must not be empty")
    _once(values)
    return values


Schedule = Literal["constant", "linear", "cosine", "noam"]
Many = (Strict(False), AfterValidator(some))
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


class Until(Strictly):
    """A criterion of fit: the mean of a metric over trained lengths reaches a value.

    With `stop` training ends there, and goes on to `cap` times its steps where it is not met;
    without, the first step at which it is met is noted and nothing changes. There are `every` steps
    between looks (null: a fiftieth of the steps), at `examples` sequences of each length.
    """

    metric: Share = "accuracy"
    value: Annotated[float, Field(gt=0, le=1)] = 0.99
    stop: bool = True
    cap: Annotated[float, Field(ge=1, allow_inf_nan=False)] = 3.0
    every: Count | None = None
    examples: Count = 64


class Training(Strictly):
    """How a run is trained. `train_lengths` is [shortest, longest]; each batch has one length.

    No steps at all leave the model as it was initialized. `examples` is how many sequences there
    are to train on, "infinite" for fresh ones at every step. `until` trains to the same fit.
    `warmup_steps` below 1 are a share of the steps. A batch of several lengths has as many
    sequences of each as of the others, and is padded with 0 to the longest. Weights, moments and
    activations are of `dtype`; what is not trained may be float16.
    """

    steps: Whole = 600
    batch_size: Count = 64
    learning_rate: Rate = 3e-3
    weight_decay: Annotated[float, Field(ge=0)] = 0.01
    clip_norm: Annotated[float, Field(gt=0)] | None = 1.0
    schedule: Schedule = "linear"
    warmup_steps: Whole | Part = 50
    final_rate: Annotated[float, Field(ge=0, le=1)] = 0.1
    train_lengths: Annotated[Range, AfterValidator(_ascending)] = (2, 16)
    dtype: Literal["float32", "float64", "bfloat16", "float16"] = "float32"
    examples: Count | Literal["infinite"] = "infinite"
    lengths_per_batch: Count = 1
    until: Until | None = None

    @model_validator(mode="after")
    def _lengths_fit(self) -> "Training":
        if self.lengths_per_batch > 1 and self.examples != "infinite":
            raise ValueError(
                "batches of several lengths hold fresh sequences; got lengths_per_batch="
                f"{self.lengths_per_batch} with examples={self.examples}; leave out one of them"
            )
        if self.batch_size % self.lengths_per_batch:
            raise ValueError(
                "each length of a batch has as many sequences, so lengths_per_batch must divide "
                f"batch_size; got {self.lengths_per_batch} and {self.batch_size}"
            )
        return self

    @model_validator(mode="after")
    def _steps_keep_their_size(self) -> "Training":
        if self.dtype == "float16" and self.steps:
            raise ValueError(
                "AdamW cannot train in float16: squares of gradients below 2e-4 round to 0 there, "
                "and steps become thousands of times too large; use bfloat16 or float32"
            )
        return self

    @property
    def warmup(self) -> int:
        """The last step of the warm-up."""
        share = isinstance(self.warmup_steps, float)
        return round(self.warmup_steps * self.steps) if share else int(self.warmup_steps)

    @property
    def last_step(self) -> int:
        """The step at which training ends at the latest."""
        if self.until is None or not self.until.stop:
            return self.steps
        return math.ceil(self.steps * self.until.cap)


class Evaluation(Strictly):
    """What is measured after training: `examples` sequences at each of `test_lengths`.

    Where positions are random, predicted probabilities are averaged over `position_draws` draws.
    `checkpoints` says how often that is done before, evenly spread over the steps, on
    `checkpoint_examples` sequences a length; `probes` look into the model.
    """

    test_lengths: Lengths = (16, 32, 64)
    examples: Count = 512
    batch_size: Count = 128
    position_draws: Count = 1
    checkpoints: Whole = 0
    checkpoint_examples: Count = 128
    probes: Probes = ()


class StudySeed(Strictly):
    """The part of the study's settings that a run's numbers depend on."""

    seed: int = 0


class RunConfig(Strictly):
    """Everything that the numbers of a run depend on, but for its replicate seed.

    The model is an `encoder`, or a `model` that a function of the user's builds. `perform` names
    how the run is done; null trains the model on the task and scores it.
    """

    encoder: EncoderConfig | None = None
    model: Model = None
    perform: Perform = None
    task: TaskChoice = None
    training: Training = Training()
    evaluation: Evaluation = Evaluation()
    study: StudySeed = StudySeed()

    @property
    def scored(self) -> bool:
        """Is skill at the task asked for, or does `perform` measure something else of it?"""
        return self.task is not None and (self.perform is None or self.training.steps > 0)

    def plain(self) -> dict[str, Any]:
        """The config as plain data, without the roots that it lacks."""
        data = self.model_dump(mode="json")
        return {root: value for root, value in data.items() if value is not None}


def check_run(data: Mapping[str, Any]) -> RunConfig:
    """The checked config of a run; a ConfigError names every rule that it breaks."""
    try:
        return RunConfig(**data)
    except ValidationError as error:
        wrong = problems_of(error, RunConfig)
        raise ConfigError(with_its_place(one, RunConfig) for one in wrong) from None


def with_its_place(problem: Problem, settings: type[BaseModel]) -> Problem:
    """A key that nobody reads where it stands, with the root under which it is read."""
    if problem.code != "unknown_key" or problem.nearest is not None:
        return problem
    last = problem.key.rpartition(".")[2]
    kinds = {root: field.annotation for root, field in settings.model_fields.items()}
    places = [
        f"{root}.{last}"
        for root, kind in {**kinds, "encoder": EncoderConfig}.items()
        if last in getattr(kind, "model_fields", ())
    ]
    return replace(problem, nearest=places[0]) if places else problem


def probe_of(chosen: Choice) -> Any:
    """The probe that a choice names; a ConfigError where it refuses its options."""
    return build_part("probe", chosen)


def task_of(chosen: Choice | None) -> Any:
    """The task that a choice names; a ConfigError where it refuses its options."""
    assert chosen is not None, "a run that trains has a task"
    try:
        return build_part("task", chosen)
    except ConfigError as error:
        raise ConfigError(problem.under("task") for problem in error.problems) from None
