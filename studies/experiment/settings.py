"""The protocol of a study: its panels, its arms, how they are tuned, and what is claimed."""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from functools import reduce
from itertools import product
from typing import Annotated, Any, Literal, get_type_hints

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    Strict,
    ValidationError,
    model_validator,
)
from pydantic import create_model as make_model

from registry.choices import STRICT
from registry.errors import ConfigError, Problem, mapping, problems_of
from studies.experiment.arms import Arm, crossed, read_arms, read_factors
from studies.experiment.hypothesis import LARGEST_FAMILY, Hypothesis
from studies.experiment.match import Match, read_match
from studies.experiment.overlays import leaves, merge, nested, read_each, refuse_other_roots
from studies.training.settings import (
    Count,
    Evaluation,
    Many,
    Model,
    Perform,
    Rate,
    Strictly,
    TaskChoice,
    Training,
    Whole,
    some,
)

Direction = Literal["maximize", "minimize"]
PARAMETERS = "parameters"
"""The objective that is the number of parameters; all others are metrics."""


Values = Annotated[tuple[Any, ...], Strict(False), Field(min_length=1)]


class Search(Strictly):
    """The space and the objectives of a search.

    Args:
        space: The values of each dotted key, in order.
        objectives: What is maximized or minimized: metrics at the longest trained length, as means
            over panels and seeds, or `parameters`.
        generations: How often further arms are proposed.
        size: How many at a time.
    """

    space: Annotated[dict[str, Values], Field(min_length=1)]
    objectives: Annotated[dict[str, Direction], Field(min_length=1)]
    generations: Whole = 4
    size: Count = 6


TUNING_SEEDS_FROM = 1000
"""Replicates from this number on are used for tuning, those below it for confirming."""

Arms = Annotated[tuple[Arm, ...], BeforeValidator(read_arms)]
Factors = Annotated[dict[str, dict[str, Any]], BeforeValidator(read_factors)]
Overlay = dict[str, Any]
Nothing: Any = Field({})
Setting = Mapping[str, Any]
"""One setting of tuning: dotted keys with values."""
Ties = Literal["lowest", "middle"]
"""Which of near-tied settings is taken: that of lowest nll, or the one nearest to the middle."""

Pair = Annotated[tuple[str, str], Strict(False)] | None
Names = Annotated[tuple[str, ...], *Many] | None


class Panel(Strictly):
    """One part of a study: a task, and what else is changed in it for every arm.

    `label` names it, by default after its task; `steps` is short for `training.steps`; `arms` are
    the names of those that it is for, where not all fit.
    """

    label: str | None = None
    task: TaskChoice = None
    steps: Whole | None = None
    arms: Names = None
    encoder: Overlay = Nothing
    model: Model = None
    perform: Perform = None
    training: Overlay = Nothing
    evaluation: Overlay = Nothing

    def overlay(self) -> dict[str, Any]:
        """The changes of the panel, under the roots of a config."""
        changed: dict[str, Any] = {
            root: nested(getattr(self, root)) for root in ("encoder", "training", "evaluation")
        }
        if self.steps is not None:
            changed["training"] = {"steps": self.steps} | changed["training"]
        for root in ("task", "model", "perform"):
            chosen = getattr(self, root)
            changed |= {} if chosen is None else {root: chosen.model_dump()}
        return {root: value for root, value in changed.items() if value}


def _settings(given: Any) -> Any:
    """A grid becomes the list of its settings."""
    if isinstance(given, Mapping):
        lists = {key: one if isinstance(one, list) else [one] for key, one in given.items()}
        given = [dict(zip(lists, values, strict=True)) for values in product(*lists.values())]
    if not isinstance(given, list | tuple):
        rule = f"settings are a list of mappings, or a grid of lists; got {given!r}"
        raise ConfigError([Problem("", rule, given)])
    read_each(lambda one: refuse_other_roots(one[1], str(one[0])), enumerate(given))
    return some(tuple(dict(leaves(setting)) for setting in given))


def _hypothesis(given: Any) -> Hypothesis:
    if isinstance(given, Hypothesis):
        return given
    hints = get_type_hints(Hypothesis)
    options: dict[str, Any] = {
        each.name: (hints[each.name], ... if each.default is MISSING else each.default)
        for each in fields(Hypothesis)
    }
    options["lengths"] = (Annotated[tuple[Count, ...], Strict(False)], ...)
    options["than"] = (Pair, None)
    model = make_model("Hypothesis", __config__=STRICT, **options)
    try:
        return Hypothesis(**model(**mapping(given)).model_dump())
    except ValidationError as error:
        raise ConfigError(problems_of(error, model)) from None


def _few(claims: tuple[Hypothesis, ...]) -> tuple[Hypothesis, ...]:
    if len(claims) > LARGEST_FAMILY:
        raise ValueError(
            f"at most {LARGEST_FAMILY} hypotheses are primary, since each costs the others power; "
            f"got {len(claims)}; put the rest under explored"
        )
    return claims


Claim = Annotated[Hypothesis, BeforeValidator(_hypothesis)]
Tries = Annotated[tuple[dict[str, Any], ...], BeforeValidator(_settings)]


class StudySettings(Strictly):
    """The protocol of a study.

    Args:
        seed: The seed of all its random streams.
        panels: The tasks, and what else is changed with each.
        arms: Bare values of the variable, or names with overlays.
        factors: A crossed design: dotted keys with the levels of each; its cells are arms too.
        only: The names of the arms of this call; null: all.
        also_differs: Keys that may differ between the arms of a contrast beside the variables.
        match: What every arm has as much of as a reference arm: parameters, flops_per_token, tokens
            or steps; null: nothing is adjusted.
        seeds: Confirming seeds per arm.
        tuning_seeds: Seeds per setting that is tried.
        learning_rates: Short for settings that differ in `training.learning_rate` alone.
        tune: The settings that every arm tries: a list of overlays, or a grid of lists.
        tie: Validation nll (nats) within which settings count as equally good.
        ties: Which of these is taken: "lowest" nll, or nearest to the "middle" of the list.
        threshold: The skill from which an arm has learned, or holds.
        hypotheses: What is claimed before the first confirming run: at most six, the primary ones.
        explored: Further hypotheses, which are reported as exploratory.
        search: A search for further arms, which begins at those declared; null: none.
    """

    seed: int = 0
    panels: Annotated[tuple[Panel, ...], *Many]
    arms: Arms = ()
    factors: Factors = Nothing
    only: Names = None
    also_differs: Annotated[tuple[str, ...], Strict(False)] = ()
    match: Annotated[Match | None, BeforeValidator(read_match)] = None
    seeds: Annotated[int, Field(ge=1, le=TUNING_SEEDS_FROM)] = 8
    tuning_seeds: Count = 1
    learning_rates: Annotated[tuple[Rate, ...], *Many] | None = None
    tune: Tries | None = None
    tie: Annotated[float, Field(ge=0)] = 0.01
    ties: Ties = "lowest"
    threshold: Annotated[float, Field(gt=0, lt=1)] = 0.8
    hypotheses: Annotated[tuple[Claim, ...], Strict(False), AfterValidator(_few)] = ()
    explored: Annotated[tuple[Claim, ...], Strict(False)] = ()
    search: Search | None = None

    @model_validator(mode="after")
    def _named_once(self) -> "StudySettings":
        names = [claim.name for claim in self.claims()]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise ValueError(f"a hypothesis has a name of its own; {twice[0]!r} comes twice")
        return self

    def claims(self) -> tuple[Hypothesis, ...]:
        """Every hypothesis, the primary ones first."""
        return (*self.hypotheses, *self.explored)

    def declared(self) -> list[Arm]:
        """The arms of the study, those of a crossed design first."""
        return [*crossed(self.factors), *self.arms]

    def settings(self) -> list[dict[str, Any]]:
        """The settings that every arm tries, as dotted keys with values; one is empty if none."""
        if self.tune is not None:
            return [dict(setting) for setting in self.tune]
        rates = self.learning_rates or ()
        return [{"training.learning_rate": rate} for rate in rates] or [{}]


class Settings(Strictly):
    """All settings of a study. `encoder` holds the keys that its arms share."""

    encoder: Overlay = Nothing
    model: Model = None
    perform: Perform = None
    training: Training = Training()
    evaluation: Evaluation = Evaluation()
    study: StudySettings

    def shared(self) -> dict[str, Any]:
        """The settings that all runs share, under the roots of a config."""
        roots: dict[str, Any] = {
            "encoder": self.encoder,
            "training": self.training.model_dump(),
            "evaluation": self.evaluation.model_dump(),
            "study": {"seed": self.study.seed},
        }
        for root in ("model", "perform"):
            chosen = getattr(self, root)
            roots |= {} if chosen is None else {root: chosen.model_dump()}
        return roots


def merge_all(*overlays: Mapping[str, Any]) -> dict[str, Any]:
    """Overlays laid over one another, the last on top."""
    return reduce(merge, overlays, dict[str, Any]())
