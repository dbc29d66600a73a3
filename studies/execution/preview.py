"""Print what a study is and what it would do, without doing it."""

from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from typing import Any

from ruamel.yaml import YAML

from registry.config import without_defaults
from studies.analysis.printing import cost_lines, tasks_of
from studies.execution.progress import duration
from studies.execution.run_times import Took, run_times
from studies.experiment.contrasts import differences, unasked, undeclared, why_not_asked
from studies.experiment.freeze import SELECTION, frozen_for, kept_for
from studies.experiment.hypothesis import SIGNS, Hypothesis
from studies.experiment.plan import Cell, Plan
from studies.experiment.tune import in_words

LEVEL = 0.95
"""Of the intervals and tests of a family."""


def describe_plan(plan: Plan) -> None:
    """Print the text of the study, its arms, its hypotheses and its protocol."""
    print(plan.study.text.strip())
    for title, lines in (
        ("Arms", list(_arms(plan))),
        (
            "Hypotheses",
            [line for one in plan.settings.study.claims() for line in _claim(plan, one)],
        ),
        ("Protocol", list(_protocol(plan))),
        ("Costs", list(cost_lines(plan))),
        ("Settings", _settings(plan)),
    ):
        if lines:
            print(f"\n{title}\n{'-' * len(title)}")
            print("\n".join(lines))


def _arms(plan: Plan) -> Iterator[str]:
    known = " and ".join(plan.variables) or "what each arm overlays"
    yield f"The arms differ in {known}."
    for arm in plan.arms.values():
        yield f"  {arm.name}: {_yaml(arm.over(plan.study.variables))}"


def _claim(plan: Plan, claim: Hypothesis) -> Iterator[str]:
    lengths = ", ".join(map(str, claim.lengths))
    where = f"{claim.metric} on {claim.panel} at {'lengths' if claim.lengths[1:] else 'length'}"
    sign, size = SIGNS[claim.direction], f"δ = {claim.smallest_effect:g}"
    pair = claim.arm, claim.against
    if claim.than is not None:
        pair = tuple(f"({' − '.join(one)})" for one in (pair, claim.than))
    yield f"  {claim.name}: {claim.claim}"
    yield f"    {pair[0]} {sign} {pair[1]}: {where} {lengths}; {size}"
    why = why_not_asked(plan, claim)
    if why:
        yield f"    not asked here: {why}"
        return
    beside = [one for one in differences(plan, claim) if one not in undeclared(plan, claim)]
    also = [one for one in beside if not _is_variable(plan, one.key)]
    if also:
        yield f"    also differs: {'; '.join(map(str, also))}"


def _is_variable(plan: Plan, key: str) -> bool:
    """Is this what the arms are about, rather than what is declared to go along?"""
    from studies.experiment.overlays import lies_under

    declared = plan.settings.study.also_differs
    return lies_under(key, [one for one in plan.variables if one not in declared])


def _protocol(plan: Plan) -> Iterator[str]:
    study = plan.settings.study
    first = {cell.panel: cell for cell in reversed(plan.cells())}
    for panel, cell in sorted(first.items()):
        config = plan.config(cell)
        shortest, longest = config.training.train_lengths
        tested = ", ".join(map(str, config.evaluation.test_lengths))
        tasks = tasks_of(plan, panel)
        task = f"{tasks}, " if tasks else ""
        yield (
            f"  {cell.task}: {task}{config.training.steps} steps on lengths {shortest} to "
            f"{longest}; tested at {tested}"
        )
    settings = study.settings()
    if len(settings) > 1:
        tried = "; ".join(in_words(setting) for setting in settings)
        yield (
            f"  Tuning: every arm tries {tried} on {study.tuning_seeds} seed(s) of their own; "
            f"chosen: {SELECTION[study.ties]}; as good is within {study.tie:g} nats."
        )
    yield f"  Confirming: {study.seeds} fresh seeds per arm; skill {study.threshold} is learned."


def _settings(plan: Plan) -> list[str]:
    """What is shared by all runs, without what is left at its default."""
    kept = without_defaults(plan.settings)
    for key in ("hypotheses", "explored"):
        kept.get("study", {}).pop(key, None)
    kept = {key: value for key, value in _plain(kept).items() if value not in ({}, [])}
    text = StringIO()
    yaml = YAML(typ="safe", pure=True)
    yaml.dump(kept, text)
    return text.getvalue().rstrip().splitlines()


def _plain(value: Any) -> Any:
    """Settings as YAML can show them."""
    from studies.experiment.arms import Arm

    if isinstance(value, Arm):
        return value.name if value.overlay is None else {value.name: dict(value.overlay)}
    if hasattr(value, "model_dump"):
        return _plain(without_defaults(value))
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value


def _yaml(value: Any) -> str:
    text = StringIO()
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style, yaml.width = True, 10_000
    yaml.dump(_plain(value), text)
    return text.getvalue().strip()


def preview(plan: Plan, storage: str, workers: int, rerun: Sequence[str] = ()) -> None:
    """Print what would be done, what is stored of it, and roughly how long the rest takes here.

    Runs of the arms of `rerun` are done again, stored or not.
    """
    settings = plan.settings.study
    tried = "; ".join(in_words(setting) for setting in settings.settings())
    print(
        f"{plan.study.name}: {settings.seeds} confirming seeds an arm"
        + (f"; tries {tried}" if tried else "")
    )
    stored, took = stored_runs(plan, storage), run_times(plan, storage)
    there = {cell: 0 if cell.arm in rerun else count for cell, count in stored.items()}
    every = {cell: len(list(plan.tuning(cell))) + settings.seeds for cell in plan.cells()}
    left = {cell: count - there[cell] for cell, count in every.items()}
    print("\n".join(_table([_row(plan, cell, took[cell], there[cell]) for cell in every])))
    for line in (*cost_lines(plan), *plan.study.notes(plan)):
        print(line)
    for name, why in unasked(plan).items():
        print(f"cannot be judged: {name} ({why})")
    for line in _too_few(plan, _announced(plan, storage)):
        print(line)
    search = settings.search
    if search is not None and settings.only is None:
        print(f"then {search.generations} times {search.size} arms that the search proposes")
    unknown = sum(left[cell] for cell, one in took.items() if one is None)
    seconds = sum(left[cell] * one.seconds for cell, one in took.items() if one is not None)
    total, rest = sum(every.values()), sum(left.values())
    print(_in_all(total, rest, unknown, duration(seconds / workers), workers))


def _row(plan: Plan, cell: Cell, took: Took | None, stored: int) -> tuple[str, str, str]:
    """Panel, arm, and what is done of it."""
    config, seeds = plan.config(cell), plan.settings.study.seeds
    tuning = len(list(plan.tuning(cell)))
    told = f"{tuning} tuning + {seeds} confirming runs" if tuning else f"{seeds} confirming runs"
    training = config.training
    most = "" if training.last_step == training.steps else f" (until it fits: {training.last_step})"
    told += f" of {training.steps} steps{most}" if config.scored else ""
    told += "" if took is None else f", about {duration(took.seconds)} each"
    told += f" (mean of {took.stored} stored)" if took is not None and took.stored else ""
    return cell.task, cell.arm, told + (f"; {stored} stored" if stored else "")


def _table(rows: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    """Columns as wide as what is in them."""
    task, arm, _ = (max(map(len, column)) for column in zip(*rows, strict=True))
    for row in rows:
        yield f"  {row[0]:{task}}  {row[1]:{arm}}  {row[2]}"


def _announced(plan: Plan, storage: str) -> int:
    """How many claims were frozen together, whichever of them this call asks; 0 if none were."""
    from store.database import exists
    from store.results import Results

    if not exists(storage):
        return 0
    results = Results(storage)
    try:
        kept = kept_for(plan, results)
        return 0 if kept is None else frozen_for(plan, kept).family
    finally:
        results.close()


def _too_few(plan: Plan, announced: int) -> Iterator[str]:
    """What so few seeds cannot decide, whatever they come to."""
    from studies.analysis.power import fewest

    study, left_out = plan.settings.study, unasked(plan)
    for claims, together in ((study.hypotheses, announced), (study.explored, 0)):
        asked = [claim for claim in claims if claim.name not in left_out]
        family = max(len(asked), together)
        least = {one.name: fewest(one.direction, family, LEVEL) for one in asked}
        for enough in sorted({one for one in least.values() if one > study.seeds}):
            names = ", ".join(name for name, one in least.items() if one == enough)
            yield (
                f"too few seeds to judge {names}: {study.seeds} an arm, where a family of "
                f"{family} needs at least {enough}"
            )


def _in_all(total: int, left: int, unknown: int, span: str, workers: int) -> str:
    """How much is left to do, and how long it takes as far as that is known."""
    told = f"{total} runs: {total - left} stored, {left} to be done"
    noun = "worker" if workers == 1 else "workers"
    if unknown == left:
        why = "; how long runs take is known once one is stored" if left else ""
        return f"{told}{why}. Dry run: nothing was executed."
    rest = f", without {unknown} whose time is known once one is stored" if unknown else ""
    return f"{told} in about {span} with {workers} {noun}{rest}. Dry run: nothing was executed."


DONE = ("done", "diverged", "not_applicable")
"""Runs that are results; one that failed is done again by the next call."""


def stored_runs(plan: Plan, storage: str) -> Mapping[Cell, int]:
    """The runs of each cell that need not be done again; none where there is no database yet.

    Raises:
        StoreError: If the address or the file is no database of ours.
    """
    from store.database import exists
    from store.results import Results
    from studies.report.stored import Stored

    if not exists(storage):
        return dict.fromkeys(plan.cells(), 0)
    results = Results(storage)
    try:
        stored = Stored(plan, results)
        return {
            cell: sum(
                run.status in DONE
                for run in (*stored.tuning(cell), *stored.confirming.get(cell, ()))
            )
            for cell in plan.cells()
        }
    finally:
        results.close()
