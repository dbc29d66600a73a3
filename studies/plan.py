"""Plan a study: which runs it is made of, and what identifies each."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from registry.choices import Choice, build_mask
from registry.config import hash_of, without_defaults
from registry.plugins import is_plugin, origin, source_hash
from registry.problems import ConfigError, Problem
from registry.table import table_of
from studies.settings import TUNING_SEEDS_FROM, Panel, RunConfig, Settings, check_run, task_of
from studies.study import Study

if TYPE_CHECKING:
    from store.records import Component, PlannedRun

AHEAD = 64
"""Queries and keys that are looked at to tell whether a mask looks ahead."""


@dataclass(frozen=True, order=True)
class Cell:
    """One arm on one task of a study: what is tuned and confirmed for itself."""

    panel: int
    task: str
    arm: str


@dataclass(frozen=True)
class Plan:
    """A study with its checked settings, ready to be expanded into runs."""

    study: Study
    settings: Settings
    environment_id: int | None = None
    provenance: dict[str, Any] = field(default_factory=dict[str, Any])

    def cells(self) -> list[Cell]:
        """Every arm on every task, in the order of the settings."""
        return [
            Cell(number, label, arm)
            for number, label in enumerate(self.labels())
            for arm in self.settings.study.arms
        ]

    def labels(self) -> list[str]:
        """A name for each panel: its task's, with the options where a task comes twice."""
        names = [panel.task.name for panel in self.settings.study.panels]
        return [
            str(panel.task) if names.count(name) > 1 else name
            for name, panel in zip(names, self.settings.study.panels, strict=True)
        ]

    def panel(self, cell: Cell) -> Panel:
        """The panel of a cell."""
        return self.settings.study.panels[cell.panel]

    def config(self, cell: Cell, learning_rate: float) -> RunConfig:
        """The config of the runs of a cell at a learning rate.

        Raises:
            ConfigError: If the arm does not fit the rest of the config.
        """
        panel, settings = self.panel(cell), self.settings
        task = task_of(panel.task)
        training = settings.training.model_dump() | {"learning_rate": learning_rate}
        if panel.steps is not None:
            training["steps"] = panel.steps
        encoder = {
            **settings.encoder,
            "vocab_size": task.vocab_size,
            "n_classes": task.n_classes * task.answers,
            "readout": task.readout,
            self.study.kind: self.study.choose(cell.arm, settings),
        }
        config = check_run(
            {
                "encoder": encoder,
                "task": panel.task,
                "training": training,
                "evaluation": settings.evaluation.model_dump(),
                "study": {"seed": settings.study.seed},
            }
        )
        if task.causal and _looks_ahead(config.encoder.mask):
            rule = (
                f"{panel.task.name} shows its answers later in the text, so no query may attend "
                f"to a later key; use causal, alone or with & and another mask"
            )
            raise ConfigError([Problem("encoder.mask", rule, str(config.encoder.mask))])
        return config

    def tuning(self, cell: Cell) -> Iterator["PlannedRun"]:
        """The tuning runs of a cell: every learning rate on every tuning seed.

        A single learning rate leaves nothing to choose, so there are none.
        """
        rates = self.settings.study.learning_rates
        seeds = range(TUNING_SEEDS_FROM, TUNING_SEEDS_FROM + self.settings.study.tuning_seeds)
        for rate in rates if len(rates) > 1 else ():
            yield from self.runs(cell, rate, "tune", seeds)

    def confirming(self, cell: Cell, learning_rate: float) -> Iterator["PlannedRun"]:
        """The confirming runs of a cell, once its learning rate is chosen."""
        yield from self.runs(cell, learning_rate, "confirm", range(self.settings.study.seeds))

    def known(self, rates: Mapping[Cell, float | None]) -> Iterator["PlannedRun"]:
        """Every tuning run, and the confirming runs of the cells whose rate is chosen."""
        for cell in self.cells():
            yield from self.tuning(cell)
        for cell, rate in rates.items():
            if rate is not None:
                yield from self.confirming(cell, rate)

    def code_hash(self, cell: Cell) -> str:
        """The fingerprint of the source of every part of a cell's runs, as it is now."""
        return hash_of_code(components(self.config(cell, self.settings.study.learning_rates[0])))

    def runs(
        self, cell: Cell, learning_rate: float, phase: str, seeds: Iterable[int]
    ) -> Iterator["PlannedRun"]:
        """The replicates of one config, each with the hash that identifies it."""
        from store.records import PlannedRun

        config = self.config(cell, learning_rate)
        kept = without_defaults(config)
        foreign = {name: source_hash(part) for name, part in parts_of(config) if is_plugin(part)}
        parts = components(config)
        first = PlannedRun(
            study=self.study.name,
            task=cell.task,
            arm=cell.arm,
            phase=phase,
            seed=0,
            config=config.model_dump(mode="json"),
            config_hash=hash_of(kept),
            code_hash=hash_of_code(parts),
            identity="",
            steps=config.training.steps,
            environment_id=self.environment_id,
            priority=0 if phase == "tune" else 1,
            provenance={**self.provenance, "plugin_parts": foreign},
            components=parts,
        )
        for seed in seeds:
            identity = hash_of([self.study.name, phase, seed, kept, foreign])
            yield replace(first, seed=seed, identity=identity)

    def check(self) -> None:
        """Check every arm on every task.

        Raises:
            ConfigError: With every problem of every arm.
        """
        if self.study.kind in self.settings.encoder:
            rule = f"the arms of this study differ in their {self.study.kind}: name them by --arms"
            raise ConfigError([Problem(f"encoder.{self.study.kind}", rule)])
        problems = [problem for cell in self.cells() for problem in self._problems(cell)]
        problems += _set_by_task(self.settings)
        problems += [
            problem for panel in self.settings.study.panels for problem in self._short(panel)
        ]
        if problems:
            raise ConfigError(problems)

    def _problems(self, cell: Cell) -> list[Problem]:
        try:
            self.config(cell, self.settings.study.learning_rates[0])
        except ConfigError as error:
            return [self._of_arm(problem, cell.arm) for problem in error.problems]
        return []

    def _of_arm(self, problem: Problem, arm: str) -> Problem:
        if problem.key.startswith(f"encoder.{self.study.kind}"):
            return replace(problem, key=f"study.arms ({arm})")
        return problem

    def _short(self, panel: Panel) -> list[Problem]:
        """Lengths at which the task has no answers."""
        task = task_of(panel.task)
        least, most = task.min_length, task.max_length
        lengths = {
            "training.train_lengths": self.settings.training.train_lengths[1:],
            "evaluation.test_lengths": self.settings.evaluation.test_lengths,
        }
        to = "on" if most is None else f"to {most}"
        return [
            Problem(key, f"{panel.task} has answers from length {least} {to}; got {length}", length)
            for key, values in lengths.items()
            for length in values
            if length < least or (most is not None and length > most)
        ]


def _looks_ahead(mask: Choice) -> bool:
    """May some query attend to a later key?"""
    allowed = build_mask(mask).dense(1, 1, AHEAD, AHEAD)
    return bool(allowed.expand(1, 1, AHEAD, AHEAD).triu(1).any())


def _set_by_task(settings: Settings) -> list[Problem]:
    told = ("vocab_size", "n_classes", "readout")
    rule = "the task decides this key; leave it out"
    return [Problem(f"encoder.{key}", rule) for key in told if key in settings.encoder]


def components(config: RunConfig) -> tuple["Component", ...]:
    """The source of each part of a run and of its task's generator, as it is now."""
    from store.records import Component

    return tuple(
        Component(*name.split(" ", 1), origin=origin(part), source_hash=source_hash(part))
        for name, part in parts_of(config)
    )


def hash_of_code(parts: Iterable["Component"]) -> str:
    """The fingerprint that stands for the source of all parts of a run."""
    return hash_of({f"{part.kind} {part.name}": part.source_hash for part in parts})


def parts_of(config: RunConfig) -> Iterator[tuple[str, type]]:
    """The classes that a run is made of, under their kind and name."""
    for kind in type(config.encoder).model_fields:
        yield from _classes(kind, getattr(config.encoder, kind))
    yield from _classes("task", config.task)


def _classes(kind: str, chosen: object) -> Iterator[tuple[str, type]]:
    if not isinstance(chosen, Choice):
        return
    if chosen.name.isidentifier():
        yield f"{kind} {chosen.name}", table_of(kind)[chosen.name]
    for inner in chosen.options().values():
        yield from _classes(kind, inner)
