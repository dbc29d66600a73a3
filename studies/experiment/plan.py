"""The plan of a study: all that its runs, its answer and its report rest on, as data.

`studies.experiment.resolve` makes a plan, once, from a study and its settings. Each call stores
it (`Ledger.keep_plan`), and what follows reads nothing else: scheduler, verdicts, reports, bundles
import no plug-in and open no file for it.

    plan.study, plan.question, plan.titles …    what the study is
    plan.protocol                               seeds, settings to try, ties, threshold
    plan.arms["rope"], plan.tasks["reverse"]    the sides of the grid, by name and by label
    plan.cells(), plan[cell]                    every arm on every task, and what is planned there
    plan.claims, plan.asked(), plan.unasked()   the hypotheses, and why this call leaves some out
    plan.tuning(cell), plan.confirming(cell, setting)     the runs
    plan.to_data(), Plan.from_data(data)        the plan as JSON, and back
    latest_plan(results, "extrapolation")       the plan of the latest call that is stored
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from registry.config import hash_of
from registry.errors import UnknownNameError
from store.errors import StoreError
from store.records import Component, PlannedRun
from studies.experiment.hypothesis import Hypothesis
from studies.experiment.match import Costs, Match
from studies.experiment.settings import Search, Setting, Ties

if TYPE_CHECKING:
    from store.results import Results


@dataclass(frozen=True, order=True)
class Cell:
    """One arm on one task of a study: what is tuned and confirmed for itself.

    `panel` is the place of the task in the study; `task` is its label, under which runs are stored.
    """

    panel: int
    task: str
    arm: str


@dataclass(frozen=True)
class Protocol:
    """The rules by which the runs of a study are done and judged.

    Args:
        seed: The seed of all random streams of the study.
        confirm_seeds: The replicates of the runs that decide.
        tuning_seeds: The replicates on which each setting is tried.
        tried: The settings that every arm tries.
        tie: Validation nll (nats) within which settings count as equally good.
        ties: Which of these is taken.
        threshold: The skill from which an arm has learned, or holds.
    """

    seed: int
    confirm_seeds: tuple[int, ...]
    tuning_seeds: tuple[int, ...]
    tried: tuple[dict[str, Any], ...]
    tie: float
    ties: Ties
    threshold: float

    @property
    def seeds(self) -> int:
        """The number of confirming seeds per arm."""
        return len(self.confirm_seeds)


@dataclass(frozen=True)
class PlannedArm:
    """An arm: what it changes under the roots of a config, its levels where factors cross."""

    name: str
    overlay: dict[str, Any]
    levels: dict[str, str] = field(default_factory=dict[str, str])
    remark: str = ""


@dataclass(frozen=True)
class PlannedTask:
    """A task of a study with what goes with it.

    Args:
        label: Under which its runs are stored.
        name: The task with its options; several where the arms differ in that; "" where there is
            none.
        title: How it is headed.
        example: A sequence with its answers, as text; "" where there is none.
    """

    label: str
    name: str
    title: str
    example: str = ""


@dataclass(frozen=True)
class Criterion:
    """The score at trained lengths that ends training."""

    metric: str
    value: float


@dataclass(frozen=True)
class Try:
    """One setting of a cell, resolved.

    Args:
        setting: Dotted keys with values; empty where nothing is tuned.
        config: The resolved config, as it is stored with each run.
        kept: The config without what is as by default, which identifies the runs.
        config_hash: The hash of `kept`.
        code_hash: The hash of the source of its parts, which `Plan.code` lists.
        foreign: The source of parts that do not ship with the sandbox; it identifies runs too.
    """

    setting: dict[str, Any]
    config: dict[str, Any]
    kept: dict[str, Any]
    config_hash: str
    code_hash: str
    foreign: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class PlannedCell:
    """The runs planned for an arm on a task.

    Args:
        cell: The arm and the task.
        tries: Its settings, in the order in which they are tried; a single one is not tuned.
        tuned: Does tuning choose among them?
        scored: Is skill at the task asked for?
        task: The task with its options, or "".
        trained: The shortest and the longest trained length that has answers.
        tested: The tested lengths.
        steps: Training steps; 0 where nothing is trained.
        last_step: The step that a criterion of fit may defer the end to.
        until: The criterion of fit.
        costs: What a run costs; None where no model is trained.
        knob: The value of what arms are matched by; None where it is left at its default.
    """

    cell: Cell
    tries: tuple[Try, ...]
    tuned: bool
    scored: bool
    task: str
    trained: tuple[int, int]
    tested: tuple[int, ...]
    steps: int
    last_step: int
    until: Criterion | None = None
    costs: Costs | None = None
    knob: Any = None

    @property
    def config(self) -> dict[str, Any]:
        """The config at the first setting that is tried."""
        return self.tries[0].config

    @property
    def longest(self) -> int:
        """The longest trained length."""
        return self.trained[1]

    @property
    def beyond(self) -> tuple[int, ...]:
        """The tested lengths beyond the trained ones."""
        return tuple(length for length in self.tested if length > self.longest)

    def at(self, setting: Setting) -> Try:
        """The cell at a setting that is tried."""
        return next(one for one in self.tries if one.setting == setting)


@dataclass(frozen=True)
class Difference:
    """One key in which the configs of two arms differ, with the value of each."""

    key: str
    arm: Any
    against: Any

    def __str__(self) -> str:
        shown = ("nothing" if one is None else str(one) for one in (self.arm, self.against))
        return f"{self.key}: {' against '.join(shown)}"


@dataclass(frozen=True)
class PlannedClaim:
    """A hypothesis in this call.

    Args:
        hypothesis: What is claimed.
        primary: Is it one of the family, or reported as exploratory?
        unasked: Why this call cannot decide it, or "".
        beside: What differs between its arms beside the variables, as the study declares.
    """

    hypothesis: Hypothesis
    primary: bool
    unasked: str = ""
    beside: tuple[Difference, ...] = ()


@dataclass(frozen=True)
class Plan:
    """A study, resolved.

    Args:
        study: The name under which its runs are stored.
        question: What it asks, in one sentence.
        text: What a reader should know of it.
        variables: The dotted keys that its arms differ in.
        budget: The name of its budget.
        protocol: How its runs are done and judged.
        arms: By name, in the order of the study.
        tasks: By label, in the order of the study.
        planned: What is planned for every arm on every task.
        code: The source of all parts behind a code hash.
        claims: Its hypotheses, the primary ones first.
        frozen: What is frozen before the first run that decides.
        titles: What its tables show of runs that measure much, each with a title; empty: all.
        beside: Metrics whose means stand beside each verdict.
        program: How it is called.
        launcher: What is typed before its words.
        command: What was typed; two plans may differ in it and are equal.
        match: What arms are matched in.
        reference: The arm that the others are matched to.
        search: The search for further arms.
        generation: How often the search has added arms.
        whole: Are all arms of the study asked for?
        plugins: What registered parts of it.
        files: The absolute paths of its own file ("study") and of a settings file ("settings").
        sources: The papers that its parts and tasks name, as arXiv numbers.
        notes: What is to be said of the call before it is run.
    """

    study: str
    question: str
    text: str
    variables: tuple[str, ...]
    budget: str
    protocol: Protocol
    arms: dict[str, PlannedArm]
    tasks: dict[str, PlannedTask]
    planned: tuple[PlannedCell, ...]
    code: dict[str, tuple[Component, ...]]
    claims: tuple[PlannedClaim, ...]
    frozen: dict[str, Any]
    titles: dict[str, str] = field(default_factory=dict[str, str])
    beside: tuple[str, ...] = ()
    program: str = ""
    launcher: str = ""
    command: str = field(default="", compare=False)
    match: Match | None = None
    reference: str = ""
    search: Search | None = None
    generation: int = 0
    whole: bool = True
    plugins: tuple[dict[str, Any], ...] = ()
    files: dict[str, str] = field(default_factory=dict[str, str])
    sources: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @cached_property
    def _by_cell(self) -> dict[Cell, PlannedCell]:
        return {one.cell: one for one in self.planned}

    def __getitem__(self, cell: Cell) -> PlannedCell:
        return self._by_cell[cell]

    def cells(self, task: str | None = None) -> list[Cell]:
        """Every arm on every task, or on the task of this label, in the order of the study."""
        return [cell for cell in self._by_cell if task in (None, cell.task)]

    def cell(self, task: str, arm: str) -> Cell:
        """The cell of an arm on the task of this label."""
        return next(cell for cell in self.cells(task) if cell.arm == arm)

    def asked(self) -> list[Hypothesis]:
        """The hypotheses that this call can decide."""
        return [claim.hypothesis for claim in self.claims if not claim.unasked]

    def unasked(self) -> dict[str, str]:
        """The hypotheses that this call cannot decide, by name, each with the reason."""
        return {claim.hypothesis.name: claim.unasked for claim in self.claims if claim.unasked}

    def is_part_of(self, other: "Plan") -> bool:
        """Return whether this is the other plan, or an earlier generation of its search."""
        if self == other:
            return True
        arms = {name: other.arms.get(name) for name in self.arms}
        planned = tuple(one for one in other.planned if one.cell.arm in arms)
        same = replace(
            other, arms=arms, planned=planned, generation=self.generation, code=self.code,
            frozen=self.frozen, sources=self.sources, claims=self.claims,
        )  # fmt: skip
        return self.search is not None and self.generation < other.generation and self == same

    def tuning(self, cell: Cell) -> Iterator[PlannedRun]:
        """The tuning runs of a cell: every setting on every tuning seed; none where not tuned."""
        planned = self[cell]
        for one in planned.tries if planned.tuned else ():
            yield from self._runs(cell, one, "tune", self.protocol.tuning_seeds)

    def confirming(self, cell: Cell, setting: Setting) -> Iterator[PlannedRun]:
        """The confirming runs of a cell, once its setting is chosen."""
        return self._runs(cell, self[cell].at(setting), "confirm", self.protocol.confirm_seeds)

    def _runs(self, cell: Cell, one: Try, phase: str, seeds: Iterable[int]) -> Iterator[PlannedRun]:
        """The replicates of one config, each with the hash that identifies it."""
        tried = [dict(each.setting) for each in self[cell].tries]
        first = PlannedRun(
            study=self.study,
            task=cell.task,
            arm=cell.arm,
            phase=phase,
            seed=0,
            config=one.config,
            config_hash=one.config_hash,
            code_hash=one.code_hash,
            identity="",
            steps=self[cell].steps,
            priority=0 if phase == "tune" else 1,
            provenance={
                "budget": self.budget,
                "plugins": list(self.plugins),
                "plugin_parts": one.foreign,
                "setting": dict(one.setting),
                "tried": tried,
                "factors": dict(self.arms[cell.arm].levels),
            },
            components=self.code[one.code_hash],
        )
        for seed in seeds:
            identity = hash_of([self.study, phase, seed, one.kept, one.foreign])
            yield replace(first, seed=seed, identity=identity)

    def to_data(self) -> dict[str, Any]:
        """The plan as plain data that JSON can hold."""
        return _adapter().dump_python(self, mode="json")

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "Plan":
        """The plan that `to_data` made this of."""
        return _adapter().validate_python(data)


@cache
def _adapter() -> Any:
    return TypeAdapter(Plan)


def plan_in(results: "Results", study: str) -> Plan | None:
    """The plan of the latest call of a study; None where none is stored."""
    found = results.plans(study)
    return Plan.from_data(found[-1].plan) if found else None


def latest_plan(results: "Results", study: str) -> Plan:
    """The plan of the latest call of a study that is stored.

    Raises:
        UnknownNameError: If no study of this name is stored.
        StoreError: If it was stored without a plan.
    """
    plan = plan_in(results, study)
    if plan is not None:
        return plan
    if study in results.studies():
        raise StoreError(f"{study} has no stored plan: its runs were not planned by a study")
    raise UnknownNameError("study with runs", study, list(results.studies()))
