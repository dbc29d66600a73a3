"""Replay a case: a study and the ledger rows of its runs, stored as `studies.run` stores them.

This module alone knows the insides of the product: how a study file becomes a plan, how a plan
becomes runs, and where its numbers are made. When these move, adapt this module and nothing else
in this folder. Nothing is trained.

A case is a JSON file with `about`, `study` (what a study file says, or the name of a study that
comes with the sandbox) and `rows`. A row names a run
by `task`, `arm`, `phase`, `seed` and, where it is one of tuning, its `setting`; it ends the run
with a `status`, a `reason`, `seconds`, and with

    scores   [split, length, metric, value, n, correct, bin]   (the last two may be left out)
    curves   [step, metric, value]

A run without a row stays planned. `budget` names a budget of the study file, `seeds` and `arms` are
options of the call; `then` lists further calls of the same study, each with options and rows of
its own, which see what was stored before.
"""

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from store.ledger import Ledger
from store.results import Results
from studies.analysis.gather import results_of
from studies.analysis.results import Arm, StudyResults, Task
from studies.analysis.summaries import best, is_settled, overall, points
from studies.analysis.verdicts import verdicts
from studies.execution.scheduler import Scheduler
from studies.execution.trials import Trials
from studies.experiment.draft import Draft
from studies.experiment.freeze import freeze, frozen_for
from studies.experiment.load import Typed, load_draft
from studies.experiment.plan import Cell, Plan
from studies.experiment.resolve import resolve
from studies.experiment.search import grow
from studies.experiment.study import Study
from studies.experiment.study_file import read_study
from studies.report.figures import figures
from studies.report.files import texts
from studies.report.findings import findings_of
from studies.report.numbers import read_numbers
from studies.scoring import Measured
from studies.seeds import Seeds
from studies.training.callbacks import StoppingCriterion
from studies.training.data import trained_lengths
from studies.training.evaluation import MEASURES, of_nothing_learned, validation_lengths
from studies.training.execute import execute
from studies.training.settings import RunConfig, task_of

Case = Mapping[str, Any]

SCORE = ("split", "length", "metric", "value", "n", "correct", "bin")
CURVE = ("step", "metric", "value")
PARAMETERS = 100
CLAIM = ("name", "arm", "against", "than", "panel", "lengths", "metric", "direction")
VERDICT = (
    *("status", "effect", "low", "high", "p", "p_holm", "n_arm", "n_against", "failed_arm"),
    *("failed_against", "n_than", "failed_than", "seeds_needed", "exploratory", "family", "level"),
)
REASONS = {"tuning runs failed": "failed", "diverged": "diverged", "not over": "not over"}


def replay(case: Case, folder: Path) -> tuple[str, dict[str, Any]]:
    """Store a case in a new database; return its address and what the study says about it."""
    url = f"sqlite:///{folder / 'golden.db'}"
    file = folder / "study.yaml"
    if isinstance(case["study"], str):
        study: Study = import_module(f"studies.{case['study']}").STUDY
    else:
        file.write_text(json.dumps(case["study"], ensure_ascii=False))  # JSON is YAML
        study = read_study(file)
    told: dict[str, Any] = {}
    rows: list[Mapping[str, Any]] = []
    for call in (case, *case.get("then", ())):
        # A later call sees the rows of those before it, as it would find them stored.
        rows = [*rows, *call["rows"]]
        told = _called(_drafted(study, call), url, rows)
    return url, told


def plan_of(file: Path) -> Plan:
    """The checked plan of a study file, as the command line makes it."""
    return resolve(_drafted(read_study(file), {}))


def _drafted(study: Study, call: Case) -> Draft:
    """The checked draft of a call."""
    options = {"only": call.get("arms"), "seeds": call.get("seeds")}
    return load_draft(study, Typed(call.get("budget"), None, call.get("set", ()), options))


def code_hashes(file: Path) -> list[str | None]:
    """What stands for the code behind each run of a study file, as it is now."""
    plan = plan_of(file)
    cells = plan.cells()
    runs = [run for cell in cells for run in plan.confirming(cell, plan[cell].tries[0].setting)]
    return [run.code_hash for run in runs]


def first_run(file: Path) -> Callable[[], object]:
    """What does the first run of a study file in this process, and keeps nothing of it."""
    draft = _drafted(read_study(file), {})
    config = draft.config(draft.cells()[0])
    return lambda: execute(config, 0, torch.device("cpu"))


def _called(draft: Draft, url: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Do a call: every run that has a row ends as the row says, tuning first."""
    ledger = Ledger.create(url)
    ledger.describe_study(draft.study.name, draft.study.text)
    grown: Draft | None = draft
    while grown is not None:
        draft, plan = grown, resolve(grown)
        ledger.keep_plan(plan.study, plan.to_data())
        # Optuna only mirrors what is tuned, so its side is never opened.
        scheduler = Scheduler(plan, ledger, Trials.__new__(Trials))
        _finish(draft, ledger, scheduler.tuning, rows)
        scheduler.advance()
        confirming = [number for numbers in scheduler.confirming.values() for number in numbers]
        results = Results(url)
        kept = freeze(plan, ledger, results, confirming)
        results.close()
        _finish(draft, ledger, scheduler.confirming, rows)
        found = results_of(plan, url)
        waits = plan.search is None or not is_settled(found)
        grown = None if waits else grow(draft, points(found))
    told = {
        "verdicts": [_verdict(one) for one in verdicts(found, frozen_for(plan, kept))],
        "arms": [_arm(plan, *one) for one in found.arms],
        "overall": [_overall(one) for one in overall(found)],
        "front": _front(found),
        "frozen": _without_hashes(kept.protocol) | {"runs_before": kept.runs_before},
        "report": _report(plan, url),
    }
    ledger.close()
    return told


def _finish(
    draft: Draft,
    ledger: Ledger,
    cells: Mapping[Cell, Sequence[int]],
    rows: Iterable[Mapping[str, Any]],
) -> None:
    """End the planned runs that have a row."""
    known = {_key(row): row for row in rows}
    cell_of = {number: cell for cell, numbers in cells.items() for number in numbers}
    for run in ledger.runs(list(cell_of)):
        setting = run.provenance["setting"] if run.phase == "tune" else None
        row = known.get(_key({**vars(run), "setting": setting}))
        if run.status != "planned" or row is None:
            continue
        claim = ledger.claim("golden", [run.id])
        assert claim is not None
        ledger.finish(
            claim,
            row.get("status", "done"),
            reason=row.get("reason"),
            scores=[
                *_scores(draft.config(cell_of[run.id]), row.get("scores", ())),
                *_imputed(draft.config(cell_of[run.id]), row, known.values()),
            ],
            curves=_records(CURVE, row.get("curves", ())),
            wall_seconds=row.get("seconds"),
            cpu_seconds=row.get("seconds"),
            parameters=row.get("parameters", PARAMETERS),
        )


def _scores(config: RunConfig, values: Iterable[Sequence[Any]]) -> Iterator[dict[str, Any]]:
    """The scores of a row, and beside each accuracy the floor of the task there."""
    for one in _records(SCORE, values):
        yield one
        if (one["metric"], one.get("bin")) == ("accuracy", None) and one["value"] is not None:
            floor = task_of(config.task).floors(one["length"]).highest
            yield {**one, "metric": "floor", "value": floor, "correct": None}


def _imputed(
    config: RunConfig, row: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """What a diverged run stores: the scores of a model that learned nothing."""
    if not config.scored or row.get("status") != "diverged":
        return
    refused = {
        (split, length)
        for one in rows
        if (one["task"], one["arm"]) == (row["task"], row["arm"])
        for split, length, metric, value, *_ in one.get("scores", ())
        if metric == "accuracy" and value is None
    }
    task, training = task_of(config.task), config.training
    trained = validation_lengths(*trained_lengths(task, training))
    splits = {"validation": trained, "test": config.evaluation.test_lengths}
    places = [(split, length) for split, lengths in splits.items() for length in lengths]
    measured = [
        Measured(*place, metric, int(place not in refused), task.floors(place[1]).highest)
        for place in places
        for metric in MEASURES
    ]
    criterion = StoppingCriterion(task, training, Seeds(0, 0), torch.device("cpu"))
    yield from map(vars, [*of_nothing_learned(measured), *criterion.measured(None)])


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    setting = json.dumps(row.get("setting"), sort_keys=True)
    return row["task"], row["arm"], row["phase"], row["seed"], setting


def _records(names: Sequence[str], values: Iterable[Sequence[Any]]) -> Iterator[dict[str, Any]]:
    for one in values:
        yield dict(zip(names, one, strict=False))


def _verdict(verdict: Any) -> dict[str, Any]:
    """The codes and numbers of a verdict; of its sentences, how many there are."""
    claim = {key: getattr(verdict.hypothesis, key) for key in CLAIM}
    found = {key: getattr(verdict, key) for key in VERDICT}
    return {**claim, **found, "has_reason": bool(verdict.reason), "notes": len(verdict.notes)}


def _arm(plan: Plan, task: Task, arm: Arm) -> dict[str, Any]:
    """What is said of an arm: what tuning chose, its means over seeds, how far it holds."""
    statuses = sorted({one.status for one in arm.seeds.values()})
    places = {place for one in arm.seeds.values() for place in one.places}
    told: dict[str, Any] = {
        "task": task.label,
        "arm": arm.name,
        "runs": {status: arm.count(status) for status in statuses},
        "tuning": _tuning(plan, arm),
        "means": {
            f"{split} {metric} {length}": _interval(arm.interval(metric, length, split))
            for split, metric, length in sorted(places)
            if metric != "floor"
        },
        "alternatives": [
            {"setting": one.setting, "roles": len(one.roles), "skills": dict(one.skills)}
            for one in arm.alternatives
        ],
    }
    if task.has_skill:
        reach = arm.reach(task.threshold)
        told["reach"] = {
            "learned": reach.learned,
            "held": reach.last_length_above,
            "fell": reach.first_length_below,
            "skill": reach.skill,
            "unasked": reach.unmeasured,
        }
    return told


def _tuning(plan: Plan, arm: Arm) -> dict[str, Any] | None:
    """What was chosen; where nothing is tuned, the only setting there is; None: nothing so far."""
    choice = arm.choice
    if "not over" in arm.reason:
        return None
    setting = plan.protocol.tried[0] if not arm.reason else None
    return {
        "setting": setting if choice is None else choice.setting,
        "near": [] if choice is None else choice.near,
        "edges": {} if choice is None else choice.edges,
        "reason": next((code for part, code in REASONS.items() if part in arm.reason), None),
    }


def _interval(one: Any) -> list[float | None] | None:
    return None if one is None else [one.mean, one.low, one.high, one.n]


def _overall(one: Any) -> dict[str, Any]:
    middle = _interval(one.middle)
    return {"arm": one.arm, "middle": middle, "gap": one.gap, "better": dict(one.better)}


def _front(results: StudyResults) -> dict[str, Any] | None:
    if results.plan.search is None:
        return None
    return {
        name: [{"arm": one.arm, "values": list(one.values)} for one in found(results)]
        for name, found in (("points", points), ("best", best))
    }


def _without_hashes(protocol: Mapping[str, Any]) -> dict[str, Any]:
    """What was frozen, without its fingerprints and its sentences."""
    hypotheses = [
        {key: value for key, value in one.items() if key != "claim"}
        for one in protocol["hypotheses"]
    ]
    kept = ("variables", "arms", "seeds", "tried", "match")
    told = {key: protocol[key] for key in kept}
    return {**told, "hypotheses": hypotheses, "panels": sorted(protocol["panels"])}


def _report(plan: Plan, url: str) -> dict[str, Any]:
    """Every number of the page by its key, and the rows of the table of scores."""
    findings = findings_of(plan, url)
    files = texts(findings, dict.fromkeys(figures(findings), ""))
    page = {
        key: float(exact) for key, (exact, _) in read_numbers(files["report.html"]).items() if exact
    }
    head, *rows = csv.reader(io.StringIO(files["scores.csv"], newline=""))
    kept = [row for row in rows if "floor" not in row]
    return {
        "page": page,
        "scores.csv": {"columns": head, "rows": [list(map(_cell, row)) for row in kept]},
    }


def _cell(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text
