"""What a study found: its results, and all that a report says beside them."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from store.results import Results
from studies.analysis.gather import gather
from studies.analysis.results import StudyResults, Task
from studies.analysis.search import best, points
from studies.analysis.summaries import overall
from studies.analysis.verdicts import Frozen, verdicts
from studies.experiment.freeze import SELECTION, frozen_for, kept_for
from studies.experiment.study import Line
from studies.report.provenance import command_of, differences, provenance, shared

if TYPE_CHECKING:
    from studies.analysis.search import Point
    from studies.analysis.summaries import Overall
    from studies.analysis.verdicts import Verdict
    from studies.experiment.plan import Plan

NOTHING = Frozen((), ())
"""Where no protocol was frozen every hypothesis is exploratory."""


@dataclass(frozen=True)
class Front:
    """What a search found.

    Args:
        objectives: What it was after, each with "maximize" or "minimize".
        points: Every arm that has a value for each.
        best: Those that no other one beats in every objective.
    """

    objectives: Mapping[str, str]
    points: "list[Point]"
    best: "list[Point]"


@dataclass(frozen=True)
class Findings:
    """Everything that a report says."""

    study: str
    question: str
    about: str
    tasks: list[Task]
    verdicts: list["Verdict"]
    threshold: float
    differences: list[tuple[str, Mapping[str, Any]]]
    hyperparameters: Mapping[str, Any]
    provenance: Mapping[str, Any]
    command: str
    sources: list[str]
    selection: str = SELECTION["lowest"]
    lines: list[Line] = field(default_factory=list[Line])
    overall: list["Overall"] = field(default_factory=list["Overall"])
    front: Front | None = None


def findings_of(plan: "Plan", storage: str, shown: str | None = None) -> Findings:
    """What a study found, as far as it is stored; `shown` is the address that is told of it."""
    with closing(Results(storage)) as stored:
        kept, results = kept_for(plan, stored), gather(plan, stored)
        found = provenance(results, stored.environment, shown or storage)
    frozen = NOTHING if kept is None else frozen_for(plan, kept)
    return Findings(
        study=plan.study,
        question=plan.question,
        about=plan.text,
        tasks=results.tasks,
        verdicts=verdicts(results, frozen),
        threshold=plan.protocol.threshold,
        differences=differences(plan),
        hyperparameters=shared(plan),
        provenance=found,
        command=command_of(results),
        sources=list(plan.sources),
        selection=SELECTION[plan.protocol.ties],
        lines=[Line(**one) for run in results.runs for one in run.provenance.get("lines", ())],
        overall=overall(results),
        front=_front(results),
    )


def _front(results: StudyResults) -> Front | None:
    """What the search of the study found, where it has one."""
    search = results.plan.search
    return search and Front(search.objectives, points(results), best(results))
