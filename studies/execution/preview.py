"""Print what a study is and what it would do, without doing it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from io import StringIO
from typing import Any

from ruamel.yaml import YAML

from registry.config import without_defaults
from store.database import exists
from store.results import Results
from studies.analysis.contrasts import fewest
from studies.analysis.gather import RESULTS, StoredRuns
from studies.analysis.printing import cost_lines
from studies.execution.progress import duration
from studies.execution.run_times import RunTime, run_times
from studies.experiment.arms import Arm
from studies.experiment.draft import Draft
from studies.experiment.freeze import SELECTION, frozen_for, kept_for
from studies.experiment.hypothesis import SIGNS
from studies.experiment.plan import Cell, Plan, PlannedClaim
from studies.experiment.resolve import resolve
from studies.experiment.tune import in_words

LEVEL = 0.95
"""The level of the intervals and tests of a family."""


def describe(draft: Draft) -> None:
    """Print the text of the study, its arms, its hypotheses and its protocol."""
    plan = resolve(draft)
    print(plan.text.strip())
    for title, lines in (
        ("Arms", list(_arms(plan))),
        ("Hypotheses", [line for claim in plan.claims for line in _claim(claim)]),
        ("Protocol", list(_protocol(plan))),
        ("Costs", list(cost_lines(plan))),
        ("Settings", _settings(draft)),
    ):
        if lines:
            print(f"\n{title}\n{'-' * len(title)}")
            print("\n".join(lines))


def _arms(plan: Plan) -> Iterator[str]:
    known = " and ".join(plan.variables) or "what each arm overlays"
    yield f"The arms differ in {known}."
    for arm in plan.arms.values():
        yield f"  {arm.name}: {_yaml(arm.overlay, inline=True)}"


def _claim(planned: PlannedClaim) -> Iterator[str]:
    claim = planned.hypothesis
    lengths = ", ".join(map(str, claim.lengths))
    where = f"{claim.metric} on {claim.panel} at {'lengths' if claim.lengths[1:] else 'length'}"
    sign, size = SIGNS[claim.direction], f"δ = {claim.smallest_effect:g}"
    pair = claim.arm, claim.against
    if claim.than is not None:
        pair = tuple(f"({' − '.join(one)})" for one in (pair, claim.than))
    yield f"  {claim.name}: {claim.claim}"
    yield f"    {pair[0]} {sign} {pair[1]}: {where} {lengths}; {size}"
    if planned.unasked:
        yield f"    not asked here: {planned.unasked}"
    elif planned.beside:
        yield f"    also differs: {'; '.join(map(str, planned.beside))}"


def _protocol(plan: Plan) -> Iterator[str]:
    for label, task in plan.tasks.items():
        for cell in plan.cells(label)[:1]:
            planned = plan[cell]
            shortest, longest = planned.trained
            tested = ", ".join(map(str, planned.tested))
            name = f"{task.name}, " if task.name else ""
            yield (
                f"  {label}: {name}{planned.config['training']['steps']} steps on lengths "
                f"{shortest} to {longest}; tested at {tested}"
            )
    protocol = plan.protocol
    if len(protocol.tried) > 1:
        tried = "; ".join(in_words(setting) for setting in protocol.tried)
        yield (
            f"  Tuning: every arm tries {tried} on {len(protocol.tuning_seeds)} seed(s) of their "
            f"own; chosen: {SELECTION[protocol.ties]}; as good is within {protocol.tie:g} nats."
        )
    yield (
        f"  Confirming: {protocol.seeds} fresh seeds per arm; "
        f"skill {protocol.threshold} is learned."
    )


def _settings(draft: Draft) -> list[str]:
    kept = without_defaults(draft.settings)
    for key in ("hypotheses", "explored"):
        kept.get("study", {}).pop(key, None)
    kept = {key: value for key, value in _plain(kept).items() if value not in ({}, [])}
    return _yaml(kept).splitlines()


def _plain(value: Any) -> Any:
    """Settings as YAML can show them."""
    if isinstance(value, Arm):
        return value.name if value.overlay is None else {value.name: dict(value.overlay)}
    if hasattr(value, "model_dump"):
        return _plain(without_defaults(value))
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value


def _yaml(value: Any, inline: bool = False) -> str:
    text, yaml = StringIO(), YAML(typ="safe", pure=True)
    if inline:
        yaml.default_flow_style, yaml.width = True, 10_000
    yaml.dump(_plain(value), text)
    return text.getvalue().strip()


def preview(draft: Draft, storage: str, workers: int, rerun: Sequence[str] = ()) -> None:
    """Print what would be done, what is stored of it, and roughly how long the rest takes here.

    Runs of the arms of `rerun` are done again, stored or not.
    """
    plan = resolve(draft)
    tried = "; ".join(in_words(setting) for setting in plan.protocol.tried)
    print(
        f"{plan.study}: {plan.protocol.seeds} confirming seeds an arm"
        + (f"; tries {tried}" if tried else "")
    )
    stored, took = stored_runs(plan, storage), run_times(draft, storage)
    whole = {cell: len(list(plan.tuning(cell))) + plan.protocol.seeds for cell in plan.cells()}
    done = {cell: (0, whole[cell]) if cell.arm in rerun else stored[cell] for cell in whole}
    left = {cell: expected - there for cell, (there, expected) in done.items()}
    print("\n".join(_table([_row(plan, cell, took[cell], done[cell][0]) for cell in whole])))
    for line in (*cost_lines(plan), *plan.notes):
        print(line)
    for name, why in plan.unasked().items():
        print(f"cannot be judged: {name} ({why})")
    for line in _too_few(plan, _announced(plan, storage)):
        print(line)
    search = plan.search
    if search is not None and plan.whole:
        print(f"then {search.generations} times {search.size} arms that the search proposes")
    unknown = sum(left[cell] for cell, one in took.items() if one is None)
    seconds = sum(left[cell] * one.seconds for cell, one in took.items() if one is not None)
    total, rest = sum(expected for _, expected in done.values()), sum(left.values())
    print(_in_all(total, rest, unknown, duration(seconds / workers), workers))


def stored_runs(plan: Plan, storage: str) -> Mapping[Cell, tuple[int, int]]:
    """The runs of each cell that need not be done again, and those that it has in the end.

    Raises:
        StoreError: If the address or the file is no database of ours.
    """
    tuning = {cell: list(plan.tuning(cell)) for cell in plan.cells()}
    if not exists(storage):
        return {cell: (0, len(runs) + plan.protocol.seeds) for cell, runs in tuning.items()}
    with closing(Results(storage)) as results:
        stored = StoredRuns(plan, results)
        return {
            cell: (
                sum(run.status in RESULTS for run in (*stored.tuning(cell), *stored.final(cell))),
                len(runs) + stored.expected(cell),
            )
            for cell, runs in tuning.items()
        }


def _row(plan: Plan, cell: Cell, took: RunTime | None, stored: int) -> tuple[str, str, str]:
    """Task, arm, and what is done of it."""
    planned, seeds = plan[cell], plan.protocol.seeds
    tuning = len(list(plan.tuning(cell)))
    told = f"{tuning} tuning + {seeds} confirming runs" if tuning else f"{seeds} confirming runs"
    longer = planned.last_step != planned.steps
    most = f" (until it fits: {planned.last_step})" if longer else ""
    told += f" of {planned.steps} steps{most}" if planned.scored else ""
    told += "" if took is None else f", about {duration(took.seconds)} each"
    told += f" (mean of {took.stored} stored)" if took is not None and took.stored else ""
    return cell.task, cell.arm, told + (f"; {stored} stored" if stored else "")


def _table(rows: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    """Columns as wide as what is in them."""
    task, arm, _ = (max(map(len, column)) for column in zip(*rows, strict=True))
    for row in rows:
        yield f"  {row[0]:{task}}  {row[1]:{arm}}  {row[2]}"


def _announced(plan: Plan, storage: str) -> int:
    if not exists(storage):
        return 0
    with closing(Results(storage)) as results:
        kept = kept_for(plan, results)
        return 0 if kept is None else frozen_for(plan, kept).family


def _too_few(plan: Plan, announced: int) -> Iterator[str]:
    """The claims that so few seeds cannot decide, whatever their scores."""
    seeds = plan.protocol.seeds
    for primary, together in ((True, announced), (False, 0)):
        claims = [one for one in plan.claims if one.primary is primary and not one.unasked]
        asked = [one.hypothesis for one in claims]
        family = max(len(asked), together)
        least = {one.name: fewest(one.direction, family, LEVEL) for one in asked}
        for enough in sorted({one for one in least.values() if one > seeds}):
            names = ", ".join(name for name, one in least.items() if one == enough)
            yield (
                f"too few seeds to judge {names}: {seeds} an arm, where a family of "
                f"{family} needs at least {enough}"
            )


def _in_all(total: int, left: int, unknown: int, span: str, workers: int) -> str:
    """The runs left to do, and their time as far as it is known."""
    told = f"{total} runs: {total - left} stored, {left} to be done"
    noun = "worker" if workers == 1 else "workers"
    if unknown == left:
        why = "; how long runs take is known once one is stored" if left else ""
        return f"{told}{why}. Dry run: nothing was executed."
    rest = f", without {unknown} whose time is known once one is stored" if unknown else ""
    return f"{told} in about {span} with {workers} {noun}{rest}. Dry run: nothing was executed."
