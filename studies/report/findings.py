"""The findings of a study, with all that a report says beside them, and their provenance."""

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, Any

from store.results import Results
from studies.analysis.gather import StoredRuns, gather
from studies.analysis.printing import cost_rows
from studies.analysis.results import StudyResults, Task
from studies.analysis.sentences import changed_code
from studies.analysis.summaries import best, overall, points
from studies.analysis.verdicts import Frozen, verdicts
from studies.experiment.freeze import SELECTION, frozen_for, kept_for
from studies.experiment.overlays import differing, leaves
from studies.experiment.plan import Cell, Plan
from studies.experiment.study import Line

if TYPE_CHECKING:
    from studies.analysis.summaries import Overall, Point
    from studies.analysis.verdicts import Verdict


@dataclass(frozen=True)
class Front:
    """The Pareto front of a search, beside all arms that have a value for every objective."""

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
    notes: list[str] = field(default_factory=list[str])


def findings_of(plan: "Plan", storage: str, shown: str | None = None) -> Findings:
    """Collect the stored findings of a study; `shown` is the address that the report names."""
    with closing(Results(storage)) as stored:
        kept, results = kept_for(plan, stored), gather(StoredRuns(plan, stored))
        found = provenance(results, stored.environment, shown or storage)
    # Where no protocol was frozen every hypothesis is exploratory.
    frozen = Frozen((), ()) if kept is None else frozen_for(plan, kept)
    search = plan.search
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
        command=plan.command or plan.program,
        sources=list(plan.sources),
        selection=SELECTION[plan.protocol.ties],
        lines=[Line(**one) for run in results.runs for one in run.provenance.get("lines", ())],
        overall=overall(results),
        notes=[changed_code(arm, runs) for arm, runs in results.changed.items()],
        front=search and Front(search.objectives, points(results), best(results)),
    )


MACHINE = ("python", "platform", "cpu", "threads")
"""The facts of an environment that a report names."""


def provenance(
    results: StudyResults, environment: Callable[[int], Mapping[str, Any]], storage: str
) -> dict[str, str]:
    """Tabulate where and by what the runs were done; several values where they differ.

    `environment` tells the facts of an environment by its id.
    """
    runs = [run for run in results.runs if run.finished_at]
    ended = [run.finished_at for run in runs if run.finished_at]
    facts = [
        environment(number)
        for number in sorted({run.environment_id for run in runs if run.environment_id})
    ]
    # Arms differ in their parts, and so in their source: versions are told apart in each by itself.
    hashes = [{run.code_hash for run in arm.runs if run.finished_at} for _, arm in results.arms]
    versions = max(map(len, hashes), default=0)
    packages = [f"{name} {one}" for each in facts for name, one in each.get("packages", {}).items()]
    found = {
        "database": [storage],
        "confirming runs": [
            f"{len(runs)}, of {versions} version{'s' * (versions != 1)} of the source"
        ],
        "last finished": [f"{max(ended):%Y-%m-%d %H:%M:%S} UTC"] if ended else [],
        "commit": [_commit(run.provenance.get("git") or {}) for run in runs],
        **{key: [str(one[key]) for one in facts if key in one] for key in MACHINE},
        "packages": [", ".join(dict.fromkeys(packages))],
        "CPU hours": [f"{sum(run.cpu_seconds or 0 for run in runs) / 3600:.2f}"],
    }
    return {key: "; ".join(dict.fromkeys(one)) for key, one in found.items() if any(one)}


def _commit(git: Mapping[str, Any]) -> str:
    commit = str(git.get("commit") or "")
    return f"{commit[:12]} with changes" if commit and git.get("dirty") else commit[:12]


ENTRY = re.compile(r"^@\w+\{.*?^\}$", re.DOTALL | re.MULTILINE)


def known() -> dict[str, str]:
    """Return the entries of our bibliography by arXiv number."""
    file = resources.files("studies.report").joinpath("references.bib")
    entries = ENTRY.findall(file.read_text(encoding="utf-8"))
    return {_number(entry): entry for entry in entries}


def _number(entry: str) -> str:
    found = re.search(r"eprint\s*=\s*\{([^}]+)\}", entry)
    if found is None:
        raise ValueError(f"an entry has no eprint: {entry.splitlines()[0]}")
    return found[1]


def bibtex(sources: Iterable[str]) -> str:
    """The entries of papers, by their arXiv numbers.

    A paper that we have no entry for is named in a comment.
    """
    entries = known()
    return "\n\n".join(entries.get(number, f"% no entry for arXiv:{number}") for number in sources)


ENCODER = "encoder."


def differences(plan: Plan) -> list[tuple[str, Mapping[str, Any]]]:
    """Tabulate what differs between arms: keys of their configs, and what follows from them.

    Costs are those of the first panel, counted in the built models.
    """
    first: dict[str, Cell] = {}
    for cell in plan.cells():
        first.setdefault(cell.arm, cell)
    flat = {arm: dict(leaves(plan[cell].config)) for arm, cell in first.items()}
    changed = sorted({key for label in plan.tasks for key in _changed(plan, label)})
    rows: list[tuple[str, Mapping[str, Any]]] = [
        (key, {arm: _shown(one.get(key)) for arm, one in flat.items()}) for key in changed
    ]
    costs = {arm: cost_rows(plan[cell].costs) for arm, cell in first.items()}
    heads = dict.fromkeys(head for one in costs.values() for head in one)
    rows += [(head, {arm: one.get(head, "") for arm, one in costs.items()}) for head in heads]
    if plan.match is not None:
        roles = {arm: "reference" if arm == plan.reference else "matched" for arm in first}
        rows.append((f"matched: {plan.match}", roles))
    return rows


def _changed(plan: Plan, label: str) -> set[str]:
    """Return the keys in which arms of a panel differ; those of an encoder where there is one."""
    flat = [dict(leaves(plan[cell].config)) for cell in plan.cells(label)]
    built = [one for one in flat if any(key.startswith(ENCODER) for key in one)]
    of_encoder = {key for key in differing(*built) if key.startswith(ENCODER)}
    return of_encoder | {key for key in differing(*flat) if not key.startswith(ENCODER)}


def _shown(value: Any) -> str:
    if isinstance(value, Mapping) and "name" in value:
        options = ", ".join(f"{key}={one}" for key, one in value.items() if key != "name")
        return f"{value['name']} ({options})" if options else str(value["name"])
    if isinstance(value, list) and any(isinstance(one, Mapping) for one in value):
        return ", ".join(map(_shown, value))
    return "" if value is None else str(value)


def shared(plan: Plan) -> dict[str, str]:
    """Return the settings that every run shares, under dotted keys."""
    flat = [dict(leaves(plan[cell].config)) for cell in plan.cells()]
    tuned = {key for setting in plan.protocol.tried for key in setting} | set(differing(*flat))
    return {
        key: "none" if value is None else _shown(value)
        for key, value in flat[0].items()
        if key not in tuned
    }
