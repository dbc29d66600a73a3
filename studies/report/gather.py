"""Gather what a study found from its plan and the database."""

import shlex
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from studies.cost_table import cost_rows
from studies.fit_times import FIT, fit_title
from studies.freezing import SELECTION
from studies.knobs import reference_of
from studies.merging import leaves
from studies.plan import Cell, Plan
from studies.report.findings import Arm, Findings, FitTime, Panel, Seed, Setting
from studies.report.references import cited
from studies.report.stored import Stored
from studies.settings import RunConfig, task_of
from studies.tuning import Chosen, Tried, in_words

if TYPE_CHECKING:
    from store.records import Score
    from studies.statistics import Verdict
    from studies.tasks.task import Floors


def gather(stored: Stored, storage: str, verdicts: Sequence["Verdict"]) -> Findings:
    """The findings of a study.

    Args:
        stored: The study with its runs.
        storage: The address of the database, as it is printed.
        verdicts: What became of its hypotheses.
    """
    plan = stored.plan
    seeds = _seeds(stored)
    return Findings(
        study=plan.study.name,
        question=plan.study.question,
        about=plan.study.text,
        panels=[_panel(stored, label, seeds) for label in dict.fromkeys(c.task for c in seeds)],
        verdicts=list(verdicts),
        threshold=plan.settings.study.threshold,
        differences=differences(plan),
        hyperparameters=_shared(plan),
        provenance=_provenance(stored, storage),
        command=command_of(stored),
        sources=_sources(plan),
        selection=SELECTION[plan.settings.study.ties],
    )


def _seeds(stored: Stored) -> dict[Cell, list[Seed]]:
    drawn: dict[int, dict[str, list[tuple[int, float]]]] = defaultdict(lambda: defaultdict(list))
    for point in stored.results.curves(study=stored.plan.study.name):
        if point.value is not None:
            drawn[point.run_id][point.metric].append((point.step, point.value))
    return {
        cell: [
            Seed(
                run,
                _values(stored.scores[run.id]),
                dict(drawn[run.id]),
                _bins(stored.scores[run.id]),
                _fit(stored.scores[run.id]),
            )
            for run in runs
        ]
        for cell, runs in ((cell, stored.confirming.get(cell, [])) for cell in stored.plan.cells())
    }


def _later(stored: Stored, seeds: Iterable[Seed]) -> list[Seed]:
    """The same seeds, with what was added to them after the study."""
    return [replace(seed, values=_values(stored.later[seed.run.id]), curves={}) for seed in seeds]


def _values(scores: Iterable["Score"]) -> dict[tuple[str, str, int], float]:
    return {
        (score.split, score.metric, score.length): score.value
        for score in scores
        if score.value is not None and score.bin is None
    }


def _bins(scores: Iterable["Score"]) -> dict[tuple[str, int], list[tuple[int, float]]]:
    found: dict[tuple[str, int], list[tuple[int, float]]] = defaultdict(list)
    for score in scores:
        if score.split == "test" and score.bin is not None and score.value is not None:
            found[score.metric, score.length].append((score.bin, score.value))
    return {key: sorted(points) for key, points in found.items()}


def _fit(scores: Iterable["Score"]) -> FitTime | None:
    found = (one for one in scores if one.metric == FIT and one.value is not None)
    return next((FitTime(one.value or 0.0, bool(one.correct)) for one in found), None)


def _panel(stored: Stored, label: str, seeds: Mapping[Cell, list[Seed]]) -> Panel:
    plan = stored.plan
    cells = [cell for cell in plan.cells() if cell.task == label]
    config = plan.config(cells[0])
    task = task_of(config.task) if config.scored else None
    shortest, longest = config.training.train_lengths
    shortest = shortest if task is None else max(shortest, task.min_length)
    lengths = sorted({one for cell in cells for one in plan.config(cell).evaluation.test_lengths})
    arms = [Arm(cell.arm, seeds[cell], _tuning(stored, cell)) for cell in cells]
    later = [Arm(cell.arm, _later(stored, seeds[cell])) for cell in cells]
    measured = {length for arm in arms for s in arm.seeds for _, _, length in s.values}
    floors: dict[int, Floors] = (
        {} if task is None else {one: task.floors(one) for one in {*lengths, *measured}}
    )
    name = "" if config.task is None else str(config.task)
    steps = config.training.steps
    trained, titles = (shortest, longest), plan.study.metrics
    until = config.training.until if config.scored else None
    fit = "" if until is None else fit_title(until)
    return Panel(label, name, trained, steps, lengths, floors, arms, later, titles, fit)


def _tuning(stored: Stored, cell: Cell) -> list[Setting]:
    chosen = stored.chosen[cell]
    return [
        Setting(
            label=in_words(tried.setting),
            nll=tried.nll,
            chosen=tried.setting == chosen.setting,
            at_edge=tried.setting == chosen.setting and bool(chosen.edges),
            note=_note(tried, chosen),
        )
        for tried in stored.tried(cell)
    ]


def _note(tried: Tried, chosen: Chosen) -> str:
    if tried.nll is None:
        return "; ".join(sorted({run.reason or run.status for run in tried.runs}))
    near = any(tried.setting == one for one in chosen.near)
    return "as good, within the tolerance" if near else ""


def differences(plan: Plan) -> list[tuple[str, Mapping[str, Any]]]:
    """What differs between arms: keys of their configs, and what follows without being said.

    Costs are those of the first panel, counted in the built models.
    """
    first: dict[str, Cell] = {}
    for cell in plan.cells():
        first.setdefault(cell.arm, cell)
    flat = {arm: dict(leaves(plan.config(cell).plain())) for arm, cell in first.items()}
    changed = sorted({key for label in plan.labels() for key in _changed(plan, label)})
    rows: list[tuple[str, Mapping[str, Any]]] = [
        (key, {arm: _shown(one.get(key)) for arm, one in flat.items()}) for key in changed
    ]
    costs = {arm: cost_rows(plan.config(cell)) for arm, cell in first.items()}
    heads = dict.fromkeys(head for one in costs.values() for head in one)
    rows += [(head, {arm: one.get(head, "") for arm, one in costs.items()}) for head in heads]
    match = plan.settings.study.match
    if match is not None:
        reference = reference_of(plan, match)
        told = {arm: "reference" if arm == reference else "matched" for arm in first}
        rows.append((f"matched: {match}", told))
    return rows


def _changed(plan: Plan, label: str) -> list[str]:
    """The keys in which arms of one panel differ; one without an encoder has none of its keys."""
    here = [cell for cell in plan.cells() if cell.task == label]
    flat = [dict(leaves(plan.config(cell).plain())) for cell in here]
    built = [one for one in flat if any(key.startswith(ENCODER) for key in one)]
    keys = {key for one in flat for key in one}
    return [
        key
        for key in keys
        for having in [built if key.startswith(ENCODER) else flat]
        if len({repr(one.get(key)) for one in having}) > 1
    ]


def _shown(value: Any) -> str:
    if isinstance(value, Mapping) and "name" in value:
        options = ", ".join(f"{key}={one}" for key, one in value.items() if key != "name")
        return f"{value['name']} ({options})" if options else str(value["name"])
    return "" if value is None else str(value)


def _shared(plan: Plan) -> dict[str, str]:
    """The settings that every run shares, under dotted keys."""
    flat = [dict(leaves(plan.config(cell).plain())) for cell in plan.cells()]
    tuned = {key for setting in plan.settings.study.settings() for key in setting}
    return {
        key: _shown(value)
        for key, value in flat[0].items()
        if key not in tuned and all(repr(one.get(key)) == repr(value) for one in flat)
    }


def _provenance(stored: Stored, storage: str) -> dict[str, str]:
    """Where and by what the runs were done; several where they differ."""
    runs = [run for of_cell in stored.confirming.values() for run in of_cell if run.finished_at]
    facts = [
        stored.results.environment(number)
        for number in sorted({run.environment_id for run in runs if run.environment_id})
    ]
    sources = len({run.code_hash for run in runs})
    packages = [f"{name} {one}" for each in facts for name, one in each.get("packages", {}).items()]
    told = {
        "database": [storage],
        "confirming runs": [
            f"{len(runs)}, of {sources} version{'s' * (sources != 1)} of the source"
        ],
        "last finished": [max(str(run.finished_at) for run in runs)] if runs else [],
        "commit": [_commit(run.provenance.get("git") or {}) for run in runs],
        **{key: [str(one[key]) for one in facts if key in one] for key in MACHINE},
        "packages": [", ".join(dict.fromkeys(packages))],
        "CPU hours": [f"{sum(run.cpu_seconds or 0 for run in runs) / 3600:.2f}"],
    }
    return {key: "; ".join(dict.fromkeys(one)) for key, one in told.items() if any(one)}


ENCODER = "encoder."

MACHINE = ("python", "platform", "cpu", "threads")
"""The facts of an environment that a report names."""


def _commit(git: Mapping[str, Any]) -> str:
    commit = str(git.get("commit") or "")
    return f"{commit[:12]} with changes" if commit and git.get("dirty") else commit[:12]


def command_of(stored: Stored) -> str:
    """What was typed for the latest of the runs."""
    runs = [run for of_cell in stored.confirming.values() for run in of_cell]
    if not runs:
        return stored.plan.study.program
    words = max(runs, key=lambda run: run.created_at).provenance.get("command", [])
    if stored.plan.study.called and words and not words[0].startswith("-"):
        # One of several that ran in turn is called by its name alone.
        words = [stored.plan.study.name, *words[1:]]
    return f"{stored.plan.study.launcher} {shlex.join(map(str, words))}".rstrip()


def _sources(plan: Plan) -> list[str]:
    """The papers that the parts and tasks of the study name."""
    found: dict[str, None] = {}
    for cell in plan.cells():
        for part in _classes(plan.config(cell)):
            found |= dict.fromkeys(cited(part.__doc__ or ""))
    return sorted(found)


def _classes(config: RunConfig) -> Iterable[type]:
    from registry.choices import Choice
    from registry.table import table_of

    holders = [("task", config.task)]
    if config.encoder is not None:
        kinds = type(config.encoder).model_fields
        holders += [(kind, getattr(config.encoder, kind)) for kind in kinds]
    for kind, chosen in holders:
        if isinstance(chosen, Choice) and chosen.name.isidentifier():
            yield table_of(kind)[chosen.name]
