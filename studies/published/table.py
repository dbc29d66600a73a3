"""A published table: its values, whether they were read at the source, and its protocol."""

from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, ValidationError, model_validator

from registry.choices import STRICT
from registry.problems import ConfigError, problems_of
from registry.table import UnknownNameError
from registry.yaml_file import read_yaml
from studies.merging import merge

Text = Annotated[str, Field(min_length=1)]
Numbers = Annotated[list[float | None], Field(min_length=1)]
Grid = dict[str, Numbers]
Overlay = dict[str, dict[str, Any] | None]
ROOTS = {"task", "encoder", "training", "evaluation", "study"}


class Strictly(BaseModel):
    """Frozen data: nothing is coerced, nothing unknown is accepted."""

    model_config = STRICT


class Measure(Strictly):
    """What the numbers are, and which way is better."""

    metric: Literal["accuracy", "exact", "perplexity", "score", "gradient_norm"]
    unit: Literal["percent", "share", "perplexity", "norm"]
    better: Literal["higher", "lower", "neither"]
    about: Text

    @property
    def bounds(self) -> tuple[float, float]:
        """Between which values a number of this unit lies."""
        top = {"percent": 100.0, "share": 1.0}
        return 0.0, top.get(self.unit, float("inf"))


class Claim(Strictly):
    """A statement with a number: what `column` must have, between `low` and `high`."""

    about: Text
    value: float
    low: float
    high: float
    place: Text
    verified: bool
    column: str | None = None


class Protocol(Strictly):
    """How the numbers came about: settings of a study, in the roots of a config.

    `kind` is "training", "initialization" (nothing is trained), or "fit" (of attention matrices
    of these `lengths` with heads of these `widths`). `differences` say what ours does otherwise,
    `left_out` why some rows or columns are not run here.
    """

    kind: Literal["training", "initialization", "fit"]
    budget: Text
    differences: list[Text]
    settings: dict[str, Any] = {}
    lengths: list[int] = []
    widths: list[int] = []
    left_out: str = ""


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
        for grid in ("values", "spread", "lowest", "highest"):
            self._check_grid(grid, getattr(self, grid))
        for claim in self.claims:
            if claim.column is not None and claim.column not in self.columns:
                raise ValueError(f"a claim is about {claim.column!r}, which is no column")
            if not claim.low <= claim.value <= claim.high:
                raise ValueError(f"a claim lies between its bounds; got {claim}")
        overlays = [*self.rows.values(), *self.columns.values()]
        if any(one is None for one in overlays) and not self.protocol.left_out:
            raise ValueError("protocol.left_out says why a row or column is not run here")
        unknown = {key for one in [*overlays, self.protocol.settings] for key in one or {}} - ROOTS
        if unknown:
            raise ValueError(f"settings have the roots {sorted(ROOTS)}; got {sorted(unknown)}")
        return self

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
        """Every number, row by row."""
        for row in self.rows:
            for index, column in enumerate(self.columns):
                found = {
                    name: grid[row][index]
                    for name in ("value", "spread", "lowest", "highest")
                    if row in (grid := getattr(self, "values" if name == "value" else name))
                }
                if any(number is not None for number in found.values()):
                    yield Cell(row=row, column=column, verified=self.verified, **found)

    def settings(self, row: str, column: str) -> dict[str, Any] | None:
        """The settings of a cell under the roots of a config; None where it is not run here."""
        overlays = self.rows[row], self.columns[column]
        settings = self.protocol.settings
        for overlay in overlays:
            if overlay is None:
                return None
            settings = merge(settings, overlay)
        return _ranges(settings)

    @property
    def source(self) -> str:
        """Where it is printed, in one line."""
        where = f"arXiv:{self.arxiv}" if self.arxiv else self.url
        return f"{self.authors}, {self.place} ({where})"


def _ranges(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with `test_lengths: {from: 41, to: 43}` written out."""
    evaluation = dict(settings.get("evaluation", {}))
    lengths = evaluation.get("test_lengths")
    if isinstance(lengths, Mapping):
        evaluation["test_lengths"] = list(range(lengths["from"], lengths["to"] + 1))
    return {**settings, **({"evaluation": evaluation} if evaluation else {})}


def names() -> list[str]:
    """The published tables that there are."""
    files = resources.files("studies.published").iterdir()
    return sorted(file.name.removesuffix(".yaml") for file in files if file.name.endswith(".yaml"))


def load(name: str) -> Published:
    """A published table.

    Raises:
        UnknownNameError: If there is none of this name; it names the nearest ones.
        ConfigError: If its file breaks a rule; every problem is told.
    """
    if name not in names():
        raise UnknownNameError("published table", name, names())
    with resources.as_file(resources.files("studies.published") / f"{name}.yaml") as path:
        return read(path)


def read(path: Path) -> Published:
    """The published table in a file.

    Raises:
        ConfigError: If it breaks a rule; every problem is told.
    """
    try:
        return Published(**read_yaml(path))
    except ValidationError as error:
        problems = problems_of(error, Published)
    raise ConfigError(problem.under("", str(path)) for problem in problems)
