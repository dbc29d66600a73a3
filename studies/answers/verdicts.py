"""Verdicts: from the confirming runs of a plan to what the seeds say about its hypotheses."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import fsum
from typing import TYPE_CHECKING

from studies.answers.answer import ArmResult, number
from studies.design.plan import Plan
from studies.statistics.frozen import Frozen
from studies.statistics.judging import judge
from studies.statistics.outcomes import TIMES, ArmOutcome, Measure, SeedOutcome
from studies.statistics.verdict import Verdict

if TYPE_CHECKING:
    from store.records import Run, Score


def verdicts(plan: Plan, gathered: Sequence[ArmResult], frozen: Frozen) -> list[Verdict]:
    """Judge the hypotheses that a call can decide, the primary ones first."""
    from studies.design.contrasts import asked

    study = plan.settings.study
    results = {(one.cell.task, one.cell.arm): one for one in gathered}
    outcomes = {cell: outcome_of(plan, one) for cell, one in results.items()}
    judged = judge(asked(plan), outcomes, frozen, study.threshold)
    return [_with_beside(verdict, plan, results) for verdict in judged]


def _with_beside(
    verdict: Verdict, plan: Plan, results: Mapping[tuple[str, str], ArmResult]
) -> Verdict:
    """Note what the arms of a verdict measured beside its metric, where the study asks for it."""
    claim = verdict.hypothesis
    if verdict.status == "not tested":
        return verdict
    arms = {arm: results[claim.panel, arm] for arm in (claim.arm, claim.against)}
    notes: list[str] = []
    for metric in plan.study.beside:
        means = {arm: _mean(one, metric, claim.lengths) for arm, one in arms.items()}
        told = [f"{arm} {number(mean)}" for arm, mean in means.items() if mean is not None]
        title = plan.study.metrics.get(metric, metric)
        notes += [f"{title[:1].upper()}{title[1:]}: {', '.join(told)}."] if told else []
    return replace(verdict, notes=(*verdict.notes, *notes))


def _mean(result: ArmResult, metric: str, lengths: Sequence[int]) -> float | None:
    found = [result.interval(metric, length) for length in lengths]
    means = [one.mean for one in found if one is not None]
    return fsum(means) / len(means) if len(means) == len(lengths) else None


def outcome_of(plan: Plan, result: ArmResult) -> ArmOutcome:
    """What came of the confirming seeds of an arm, as statistics take it."""
    config = plan.config(result.cell)
    longest = config.training.train_lengths[1] if config.scored else None
    seeds = {run.seed: _seed(run, result.scores.get(run.id, ()), longest) for run in result.runs}
    reason = "" if result.chosen is None else result.chosen.reason
    return ArmOutcome(seeds, longest, result.floors, reason)


def _seed(run: "Run", scores: Sequence["Score"], longest: int | None) -> SeedOutcome:
    values: dict[Measure, float | None] = {}
    censored = frozenset(
        (score.metric, score.length)
        for score in scores
        if score.metric in TIMES and score.correct == 0
    )
    for split in ("train", "validation", "test"):
        for score in scores:
            if score.split == split:
                values[metric_of(score), score.length] = score.value
    return SeedOutcome(
        run.status,
        values,
        None if longest is None else values.get(("skill", longest)),
        censored,
    )


def metric_of(score: "Score") -> str:
    """The name of what was measured; one of several bins is `metric[bin]`."""
    return score.metric if score.bin is None else f"{score.metric}[{score.bin}]"
