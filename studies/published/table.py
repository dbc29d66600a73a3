"""Published tables as data: numbers, measure, claims and protocol."""

from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, ValidationError, model_validator

from registry.choices import STRICT
from registry.errors import ConfigError, UnknownNameError, problems_of
from registry.yaml_file import read_yaml
from studies.experiment.overlays import merge

Text = Annotated[str, Field(min_length=1)]
Overlay = dict[str, dict[str, Any] | None]
ROOTS = {"task", "encoder", "perform", "training", "evaluation", "study"}


POINT = "- "
"""The beginning of a difference from the source in the notes of a plan."""


class Strictly(BaseModel):
    """Frozen data: nothing is coerced, nothing unknown is accepted."""

    model_config = STRICT


class Measure(Strictly):
    """The meaning of the numbers, and which way is better.

    `least` is the smallest difference that counts, in the unit of the table: two numbers that are
    closer are alike, and where a source gives no spread, only those that are farther apart are
    separated. `aggregate` is what the source did with its runs.
    """

    metric: Literal["accuracy", "exact", "perplexity", "score", "gradient_norm", "difference"]
    unit: Literal["percent", "share", "perplexity", "norm"]
    better: Literal["higher", "lower", "neither"]
    about: Text
    least: Annotated[float, Field(gt=0)]
    aggregate: Literal["mean", "maximum"] = "mean"

    @property
    def bounds(self) -> tuple[float, float]:
        """The bounds of numbers of this unit."""
        top = {"percent": 100.0, "share": 1.0}
        return 0.0, top.get(self.unit, float("inf"))


class Claim(Strictly):
    """A statement with a number: what `column` must have, between `low` and `high`.

    Ours is the mean of `metric` over `lengths` (none: all that are tested) on `panel`; with
    `against`, the difference from that arm. Without a metric it is not measured here.
    """

    about: Text
    low: float
    high: float
    place: Text
    verified: bool
    value: float | None = None
    column: str | None = None
    against: str | None = None
    panel: str | None = None
    metric: str | None = None
    lengths: list[int] = []


class Budgeted(Strictly):
    """The part of a table that is run, and its settings, laid over those of the protocol.

    `rows` and `arms` restrict what is run; None takes all.
    """

    about: Text
    rows: list[str] | None = None
    arms: list[str] | None = None
    encoder: dict[str, Any] = {}
    perform: dict[str, Any] = {}
    training: dict[str, Any] = {}
    evaluation: dict[str, Any] = {}
    study: dict[str, Any] = {}

    @property
    def settings(self) -> dict[str, Any]:
        """The changed settings, under the roots of a config."""
        return {root: value for root in sorted(ROOTS) if (value := getattr(self, root, None))}


class Protocol(Strictly):
    """The origin of the numbers: settings of a study, in the roots of a config.

    `kind` is "training", "initialization" (nothing is trained), or "fit" (of attention matrices).
    `differences` say what ours does otherwise, `left_out` why some rows or columns are not run
    here. `panels` and `arms` are run beside the rows and columns, for the claims. `budgets` run
    less than the whole.
    """

    kind: Literal["training", "initialization", "fit"]
    budget: Text
    differences: list[Text]
    settings: dict[str, Any] = {}
    panels: Overlay = {}
    arms: Overlay = {}
    budgets: dict[str, Budgeted] = {}
    left_out: str = ""


Numbers = Annotated[list[float | None], Field(min_length=1)]
Grid = dict[str, Numbers]
SPREADS = ("spread", "lowest", "highest")


class Cell(Strictly):
    """One number of a table; a range where the source prints one."""

    row: str
    column: str
    verified: bool
    value: float | None = None
    spread: float | None = None
    lowest: float | None = None
    highest: float | None = None

    @property
    def middle(self) -> float:
        """The number, or the middle of its range."""
        if self.value is not None:
            return self.value
        assert self.lowest is not None
        assert self.highest is not None
        return (self.lowest + self.highest) / 2


class Published(Strictly):
    """A table of a paper.

    `rows` and `columns` say for each of them what it changes in the protocol's settings, None where
    it is not run here. `values`, `spread` (standard deviations), `lowest` and `highest` hold a row
    of numbers in the order of the columns. `verified` tells whether the numbers were read at their
    `place`; `approximate` how far they may be off, where they were read off a figure.
    """

    title: Text
    authors: Text
    place: Text
    note: Text
    verified: bool
    measure: Measure
    protocol: Protocol
    rows: Overlay
    columns: Overlay
    values: Grid = {}
    spread: Grid = {}
    lowest: Grid = {}
    highest: Grid = {}
    claims: list[Claim] = []
    approximate: Annotated[float, Field(gt=0)] | None = None
    arxiv: Annotated[str, Field(pattern=r"^\d{4}\.\d{4,5}$")] | None = None
    url: Annotated[str, Field(pattern=r"^https://")] | None = None

    @model_validator(mode="after")
    def _consistent(self) -> "Published":
        if (self.arxiv is None) == (self.url is None):
            raise ValueError("a table has one source: arxiv or url")
        for grid in ("values", *SPREADS):
            self._check_grid(grid, getattr(self, grid))
        for claim in self.claims:
            self._check_claim(claim)
        self._check_budgets()
        overlays = [*self.rows.values(), *self.columns.values()]
        if any(one is None for one in overlays) and not self.protocol.left_out:
            raise ValueError("protocol.left_out says why a row or column is not run here")
        unknown = {key for one in [*overlays, self.protocol.settings] for key in one or {}} - ROOTS
        if unknown:
            raise ValueError(f"settings have the roots {sorted(ROOTS)}; got {sorted(unknown)}")
        return self

    def _check_claim(self, claim: Claim) -> None:
        arms = {*self.columns, *self.protocol.arms}
        for arm in (claim.column, claim.against):
            if arm is not None and arm not in arms:
                raise ValueError(f"a claim is about {arm!r}, which is no column")
        if claim.panel is not None and claim.panel not in {*self.rows, *self.protocol.panels}:
            raise ValueError(f"a claim is about {claim.panel!r}, which is no row or panel")
        if claim.value is not None and not claim.low <= claim.value <= claim.high:
            raise ValueError(f"a claim lies between its bounds; got {claim}")

    def _check_budgets(self) -> None:
        rows, arms = set(self.runnable_rows()), set(self.runnable_arms())
        for name, budget in self.protocol.budgets.items():
            for what, given, known in (("rows", budget.rows, rows), ("arms", budget.arms, arms)):
                strange = [one for one in given or () if one not in known]
                if strange:
                    rule = f"budget {name} has {what} that are run here, {sorted(known)}"
                    raise ValueError(f"{rule}; got {strange}")

    def runnable_rows(self) -> dict[str, dict[str, Any]]:
        """Return the overlays of rows, and of panels beside them, that are run."""
        return _runnable({**self.rows, **self.protocol.panels})

    def runnable_arms(self) -> dict[str, dict[str, Any]]:
        """Return the overlays of columns, and of arms beside them, that are run."""
        return _runnable({**self.columns, **self.protocol.arms})

    def _check_grid(self, name: str, grid: Mapping[str, list[float | None]]) -> None:
        low, high = self.measure.bounds
        for row, numbers in grid.items():
            if row not in self.rows:
                raise ValueError(f"{name} has a row {row!r} that is not among the rows")
            if len(numbers) != len(self.columns):
                rule = f"{name}.{row} has one number a column, {len(self.columns)} of them"
                raise ValueError(f"{rule}; got {len(numbers)}")
            if any(one is not None and not low <= one <= high for one in numbers):
                raise ValueError(f"{name}.{row} lies between {low} and {high}; got {numbers}")

    def cells(self) -> Iterator[Cell]:
        """Yield every number, row by row."""
        for row in self.rows:
            for index, column in enumerate(self.columns):
                grids = {"value": self.values, **{one: getattr(self, one) for one in SPREADS}}
                found = {name: grid[row][index] for name, grid in grids.items() if row in grid}
                if any(number is not None for number in found.values()):
                    yield Cell(row=row, column=column, verified=self.verified, **found)

    def settings(self, row: str, column: str) -> dict[str, Any] | None:
        """Return the settings of a cell under the roots of a config; None where it is not run."""
        first, second = self.rows[row], self.columns[column]
        if first is None or second is None:
            return None
        return ranges_written_out(merge(merge(self.protocol.settings, first), second))

    @property
    def source(self) -> str:
        """The place of its publication, in one line."""
        where = f"arXiv:{self.arxiv}" if self.arxiv else self.url
        return f"{self.authors}, {self.place} ({where})"


def _runnable(overlays: Overlay) -> dict[str, dict[str, Any]]:
    return {name: overlay for name, overlay in overlays.items() if overlay is not None}


def ranges_written_out(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings with `test_lengths: {from: 41, to: 43}` written out."""
    evaluation = dict(settings.get("evaluation", {}))
    lengths = evaluation.get("test_lengths")
    if isinstance(lengths, Mapping):
        evaluation["test_lengths"] = list(range(lengths["from"], lengths["to"] + 1))
    return {**settings, **({"evaluation": evaluation} if evaluation else {})}


def names() -> list[str]:
    """Return the names of the published tables."""
    files = resources.files("studies.published").iterdir()
    return sorted(file.name.removesuffix(".yaml") for file in files if file.name.endswith(".yaml"))


def load(name: str) -> Published:
    """Load a published table.

    Raises:
        UnknownNameError: If there is none of this name; it names the nearest ones.
        ConfigError: If its file breaks a rule, with every problem.
    """
    if name not in names():
        raise UnknownNameError("published table", name, names())
    with resources.as_file(resources.files("studies.published") / f"{name}.yaml") as path:
        return read(path)


def read(path: Path) -> Published:
    """Read the published table in a file.

    Raises:
        ConfigError: If it breaks a rule, with every problem.
    """
    try:
        return Published(**read_yaml(path))
    except ValidationError as error:
        problems = problems_of(error, Published)
    raise ConfigError(problem.under("", str(path)) for problem in problems)
