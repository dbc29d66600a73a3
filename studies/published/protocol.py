"""What stands beside the numbers of a published table: the measure, claims, the protocol."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from registry.choices import STRICT

Text = Annotated[str, Field(min_length=1)]
Overlay = dict[str, dict[str, Any] | None]
ROOTS = {"task", "encoder", "perform", "training", "evaluation", "study"}


class Strictly(BaseModel):
    """Frozen data: nothing is coerced, nothing unknown is accepted."""

    model_config = STRICT


class Measure(Strictly):
    """What the numbers are, and which way is better.

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
        """Between which values a number of this unit lies."""
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
    """How much of a table is run, and how: settings laid over those of the protocol.

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
        """What it changes, under the roots of a config."""
        return {root: value for root in sorted(ROOTS) if (value := getattr(self, root, None))}


class Protocol(Strictly):
    """How the numbers came about: settings of a study, in the roots of a config.

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
