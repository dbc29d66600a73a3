"""Resolve a draft: make its plan, in which everything that follows from it is worked out once."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from registry.choices import Choice
from registry.config import hash_of, without_defaults
from registry.registry import registry_of
from studies.experiment.contrasts import beside, why_not_asked
from studies.experiment.draft import Draft
from studies.experiment.freeze import protocol_of
from studies.experiment.match import costs_of
from studies.experiment.plan import (
    Cell,
    Criterion,
    Plan,
    PlannedArm,
    PlannedCell,
    PlannedClaim,
    PlannedTask,
    Protocol,
    Try,
)
from studies.experiment.settings import TUNING_SEEDS_FROM
from studies.training.identity import components, foreign_sources, hash_of_code
from studies.training.settings import RunConfig, task_of

if TYPE_CHECKING:
    from store.records import Component
    from studies.tasks.task import Task

ARXIV = re.compile(r"arXiv:(\d{4}\.\d{4,5})")
EXAMPLE = 8
"""An example of a task has so many symbols, or as many as the task needs."""


def resolve(draft: Draft, known: Plan | None = None) -> Plan:
    """The plan of a draft that is right.

    Args:
        draft: The study with its settings.
        known: An earlier plan of the study; what it says of costs is not counted again.

    Raises:
        ConfigError: If a config is refused after all.
    """
    study, settings = draft.study, draft.settings.study
    sources = _Sources()
    planned = tuple(_cell(draft, cell, sources) for cell in draft.cells())
    plan = Plan(
        study=study.name,
        question=study.question,
        text=study.text,
        variables=draft.variables,
        budget=draft.budget,
        protocol=_protocol(draft),
        arms={name: _arm(draft, name) for name in draft.arms},
        tasks={label: _task(draft, label) for label in draft.labels()},
        planned=tuple(_with_costs(draft, one, known) for one in planned),
        code=sources.code,
        claims=tuple(_claims(draft)),
        frozen=protocol_of(draft),
        titles=dict(study.metrics),
        beside=study.beside,
        program=study.program,
        launcher=study.launcher,
        match=settings.match,
        reference="" if settings.match is None else draft.reference,
        search=settings.search,
        generation=draft.generation,
        whole=settings.only is None,
        plugins=draft.plugins,
        files=dict(draft.files),
        sources=_papers(draft),
        notes=tuple(study.notes(draft)),
    )
    # What is used is what is stored, to the type of every value.
    return Plan.from_data(plan.to_data())


def _protocol(draft: Draft) -> Protocol:
    study = draft.settings.study
    return Protocol(
        seed=study.seed,
        confirm_seeds=tuple(range(study.seeds)),
        tuning_seeds=tuple(range(TUNING_SEEDS_FROM, TUNING_SEEDS_FROM + study.tuning_seeds)),
        tried=tuple(study.settings()),
        tie=study.tie,
        ties=study.ties,
        threshold=study.threshold,
    )


def _arm(draft: Draft, name: str) -> PlannedArm:
    arm = draft.arms[name]
    remark = draft.study.remark(arm, draft.settings)
    return PlannedArm(name, arm.over(draft.study.variables), dict(arm.levels), remark)


def _claims(draft: Draft) -> Iterator[PlannedClaim]:
    study = draft.settings.study
    for claim in study.claims():
        why = why_not_asked(draft, claim)
        also = () if why else tuple(beside(draft, claim))
        yield PlannedClaim(claim, claim in study.hypotheses, why, also)


def _task(draft: Draft, label: str) -> PlannedTask:
    """A task; where arms differ in it, the example is of the first."""
    cells = [cell for cell in draft.cells() if cell.task == label]
    configs = [draft.config(cell) for cell in cells]
    names = dict.fromkeys(str(one.task) for one in configs if one.task is not None)
    name = " or ".join(names)
    named = bool(cells) and bool(draft.panel(cells[0]).label)
    scored = next((one for one in configs if one.scored), None)
    example = "" if scored is None else _example(task_of(scored.task), scored)
    return PlannedTask(label, name, f"{label}: {name}" if named else name, example)


def _example(task: "Task", config: RunConfig) -> str:
    """A sequence with its answers; "" where the task fails at it, which its runs will tell."""
    import torch

    longest = config.training.train_lengths[1]
    length = max(task.min_length, min(EXAMPLE, longest))
    try:
        batch = task.sample(torch.Generator().manual_seed(0), 1, length)
        tokens = " ".join(task.spell(int(token)) for token in batch.tokens[0])
        return f"{tokens} -> {' '.join(_answers(task, batch.targets[0].flatten()))}"
    except Exception:  # a user's task
        return ""


def _answers(task: "Task", targets: Any) -> Iterator[str]:
    """Class ids as they stand in the task, a dot where nothing is asked."""
    for target in targets.tolist():
        yield "." if target < 0 else str(target)


class _Sources:
    """The source of the parts of configs, looked up once for all that have the same parts."""

    def __init__(self) -> None:
        self.code: dict[str, tuple[Component, ...]] = {}
        self._known: dict[str, tuple[str, dict[str, str]]] = {}

    def of(self, config: RunConfig) -> tuple[str, dict[str, str]]:
        """The hash of all parts of a config, and the source of those that are not ours."""
        parts = config.encoder, config.model, config.perform, config.task, config.evaluation.probes
        key = repr(parts)
        if key not in self._known:
            found = components(config)
            digest = hash_of_code(found)
            self.code[digest] = found
            self._known[key] = digest, foreign_sources(config)
        return self._known[key]


def _cell(draft: Draft, cell: Cell, sources: _Sources) -> PlannedCell:
    settings = draft.settings.study.settings()
    config = draft.config(cell)
    training, until = config.training, config.training.until
    shortest, longest = training.train_lengths
    if config.scored:
        shortest = max(shortest, task_of(config.task).min_length)
    match = draft.settings.study.match
    return PlannedCell(
        cell=cell,
        tries=tuple(_try(draft.config(cell, setting), setting, sources) for setting in settings),
        tuned=len(settings) > 1 and config.scored,
        scored=config.scored,
        task="" if config.task is None else str(config.task),
        trained=(shortest, longest),
        tested=config.evaluation.test_lengths,
        steps=0 if config.task is None else training.steps,
        last_step=training.last_step,
        until=None if until is None else Criterion(until.metric, until.value),
        knob=None if match is None else match.value_in(config),
    )


def _try(config: RunConfig, setting: dict[str, Any], sources: _Sources) -> Try:
    kept = without_defaults(config)
    code, foreign = sources.of(config)
    return Try(dict(setting), config.plain(), kept, hash_of(kept), code, foreign)


def _with_costs(draft: Draft, planned: PlannedCell, known: Plan | None) -> PlannedCell:
    """A cell with what its runs cost, which is counted in the built model."""
    config = draft.config(planned.cell)
    if config.task is None or config.perform is not None:
        return planned
    before = () if known is None else known.planned
    counted = (one.costs for one in before if _first_run(one) == _first_run(planned))
    return replace(planned, costs=next(counted, None) or costs_of(config))


def _first_run(planned: PlannedCell) -> tuple[Cell, dict[str, Any], str]:
    first = planned.tries[0]
    return planned.cell, first.config, first.code_hash


def _papers(draft: Draft) -> tuple[str, ...]:
    parts = {part for cell in draft.cells() for part in _classes(draft.config(cell))}
    return tuple(sorted({number for part in parts for number in cited(part.__doc__ or "")}))


@cache
def cited(text: str) -> tuple[str, ...]:
    """The arXiv numbers in a text, in their order."""
    return tuple(dict.fromkeys(ARXIV.findall(text)))


def _classes(config: RunConfig) -> Iterable[type]:
    holders = [("task", config.task)]
    if config.encoder is not None:
        kinds = type(config.encoder).model_fields
        holders += [(kind, getattr(config.encoder, kind)) for kind in kinds]
    for kind, chosen in holders:
        if isinstance(chosen, Choice) and chosen.name.isidentifier():
            yield registry_of(kind)[chosen.name]
