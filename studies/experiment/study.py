"""Studies: a question, the variables that the arms differ in, and budgets."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from rich.console import Console

    from studies.experiment.arms import Arm
    from studies.experiment.overlays import Layer
    from studies.experiment.settings import Settings

    Show = Callable[[Console, Any], None]


@runtime_checkable
class Axes(Protocol):
    """Further studies of one question, by name."""

    def names(self) -> list[str]:
        """Their names, sorted."""
        ...

    def read(self, name: str) -> "Study":
        """The study of this name."""
        ...


@dataclass(frozen=True)
class Budget:
    """The extent of a study. `settings` are nested like the config roots of a study.

    `layers` are what a file says of it, from the top down, where the study is written in one.
    """

    about: str
    settings: Mapping[str, Any]
    layers: tuple["Layer", ...] = ()

    @classmethod
    def smoke(cls, settings: Mapping[str, Any]) -> "Budget":
        """A budget that only shows whether everything works."""
        return cls("seconds, to see that everything works; its numbers mean nothing", settings)


@dataclass(frozen=True)
class Line:
    """A finding of a run in words: the question, the outcome in a word or two, the detail.

    A run keeps such lines as `lines` in its provenance; a report shows them.
    """

    asked: str
    outcome: str
    detail: str


@dataclass(frozen=True)
class Study:
    """A study, as data; its arms, hypotheses and protocol are in the settings of its budgets.

    Args:
        name: Under which its runs are stored.
        question: What it asks, in one sentence.
        text: What a reader should know: question, variable, hypotheses, protocol, reading.
        variables: The dotted keys that its arms differ in. With a single one, an arm may be named
            by its bare value, such as the name of a part.
        budgets: By name; the first is the default where none is called "quick".
        complete: What the config of a run becomes before it is checked, such as a table that needs
            a row for every tested length.
        metrics: What its tables show of a way to do runs that measures much, each with its title;
            by default everything that is measured on tests.
        beside: Metrics of which a reader needs the means of both arms beside each verdict.
        remark: A remark that belongs beside every result of an arm, or "".
        plugins: Files and modules that register what it needs, for its workers too.
        file: The file that describes it, where that is no module.
        called: The module and the words that run it, where it is one of several that share both.
        axes: Further studies of the same question, which `--axis` runs.
        show: What prints its answer, where that is not the usual tables.
        notes: What is to be said of a call before it is run, in lines of `--plan`.
    """

    name: str
    question: str
    text: str
    variables: tuple[str, ...]
    budgets: Mapping[str, Budget]
    complete: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda roots: roots
    remark: Callable[["Arm", "Settings"], str] = lambda arm, settings: ""
    metrics: Mapping[str, str] = field(default_factory=dict[str, str])
    beside: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    file: Path | None = None
    called: str = ""
    axes: Axes | None = None
    show: "Show | None" = None
    notes: Callable[[Any], Sequence[str]] = lambda plan: ()

    @property
    def launcher(self) -> str:
        """The command without the options."""
        own = f"studies.{self.name}" if self.file is None else "studies.run"
        return f"python -m {self.called.partition(' ')[0] or own}"

    @property
    def program(self) -> str:
        """The command that runs the study."""
        if self.called:
            return f"python -m {self.called}"
        return self.launcher if self.file is None else f"{self.launcher} {self.file}"

    @property
    def default_budget(self) -> str:
        """The budget that is meant where none is named."""
        return "quick" if "quick" in self.budgets else next(iter(self.budgets))
