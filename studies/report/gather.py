"""Gather what a study found from its plan and the database."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from studies.analysis.sentences import FIT, fit_title
from studies.experiment.freeze import SELECTION
from studies.experiment.plan import Cell
from studies.experiment.tune import Chosen, Tried, in_words
from studies.report.findings import Arm, Findings, FitTime, Panel, Seed, Setting
from studies.report.provenance import command_of, differences, provenance, shared, sources
from studies.report.stored import Stored
from studies.training.settings import task_of

if TYPE_CHECKING:
    from store.records import Score
    from studies.statistics import Verdict
    from studies.tasks.task import Floors


def gather(
    stored: Stored, storage: str, verdicts: Sequence["Verdict"], said: Mapping[Cell, str]
) -> Findings:
    """The findings of a study.

    Args:
        stored: The study with its runs.
        storage: The address of the database, as it is printed.
        verdicts: What became of its hypotheses.
        said: What became of each arm, in a sentence.
    """
    plan = stored.plan
    seeds = _seeds(stored)
    return Findings(
        study=plan.study.name,
        question=plan.study.question,
        about=plan.study.text,
        panels=[
            _panel(stored, label, seeds, said) for label in dict.fromkeys(c.task for c in seeds)
        ],
        verdicts=list(verdicts),
        threshold=plan.settings.study.threshold,
        differences=differences(plan),
        hyperparameters=shared(plan),
        provenance=provenance(stored, storage),
        command=command_of(stored),
        sources=sources(plan),
        selection=SELECTION[plan.settings.study.ties],
        lines=[
            line
            for of_cell in seeds.values()
            for seed in of_cell
            for line in plan.study.lines(seed.run)
        ],
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


def _panel(
    stored: Stored, label: str, seeds: Mapping[Cell, list[Seed]], said: Mapping[Cell, str]
) -> Panel:
    plan = stored.plan
    cells = [cell for cell in plan.cells() if cell.task == label]
    config = plan.config(cells[0])
    task = task_of(config.task) if config.scored else None
    shortest, longest = config.training.train_lengths
    shortest = shortest if task is None else max(shortest, task.min_length)
    lengths = sorted({one for cell in cells for one in plan.config(cell).evaluation.test_lengths})
    measured = {length for cell in cells for s in seeds[cell] for _, _, length in s.values}
    floors: dict[int, Floors] = (
        {} if task is None else {one: task.floors(one) for one in {*lengths, *measured}}
    )
    lowest = {("accuracy", length): one.highest for length, one in floors.items()}
    arms = [Arm(c.arm, seeds[c], _tuning(stored, c), lowest, said[c]) for c in cells]
    later = [Arm(cell.arm, _later(stored, seeds[cell]), floors=lowest) for cell in cells]
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
