"""What the seeds say about a hypothesis that was written down before them."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

import numpy as np

from store.aggregate import mean_of, wilson
from store.metrics import metric_of
from studies.analysis.contrasts import Contrast, contrast, variance_of
from studies.analysis.permutation import (
    Alternative,
    Splits,
    holm,
    permutation_test,
    permuted,
    splits_of,
)
from studies.analysis.phrases import number, out_of
from studies.analysis.power import TOUCHING, seeds_needed
from studies.analysis.results import StudyResults
from studies.analysis.samples import Outcomes, Sample, UntestableError, all_sure, chosen, samples
from studies.analysis.summaries import modes
from studies.analysis.survival import Time, log_rank
from studies.experiment.hypothesis import Frozen, Hypothesis

Status = Literal["supported", "refuted", "inconclusive", "not tested"]


@dataclass(frozen=True)
class Verdict:
    """What the seeds say about a hypothesis.

    Args:
        hypothesis: The claim.
        status: "supported" or "refuted" where the interval of the effect leaves no other reading,
            "inconclusive" where it does, "not tested" where there is a `reason` not to ask.
        effect: Mean of the arm minus mean of what it is compared with; of an interaction, less the
            same difference of the other pair.
        low: The lower bound of the interval that holds for the whole family at once.
        high: Its upper bound.
        p: Of the permutation test: of no difference against the claimed one, or, where "same" is
            claimed, of a difference as large as the smallest effect of interest. Where seeds
            failed, the largest of all that they might have scored.
        p_holm: `p`, adjusted for the family.
        n_arm: Seeds of the arm.
        n_against: Seeds of what it is compared with.
        failed_arm: How many of them diverged or failed; they are counted.
        failed_against: Likewise.
        n_than: Seeds of each arm of the other pair of an interaction.
        failed_than: How many of them diverged or failed.
        seeds_needed: How many seeds per arm would settle an inconclusive claim; None where it is
            settled, or where more than `power.MOST` would be needed.
        reason: Why it was not tested, or what else keeps it from being settled.
        exploratory: Did the hypothesis, or some of the seeds, come after the plan was frozen?
        family: How many hypotheses the interval and `p_holm` account for.
        level: Of the family of intervals.
        notes: What a reader must know beside the numbers, each a sentence.
    """

    hypothesis: Hypothesis
    status: Status
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_holm: float | None = None
    n_arm: int = 0
    n_against: int = 0
    failed_arm: int = 0
    failed_against: int = 0
    n_than: tuple[int, ...] = ()
    failed_than: tuple[int, ...] = ()
    seeds_needed: int | None = None
    reason: str = ""
    exploratory: bool = False
    family: int = 1
    level: float = 0.95
    notes: tuple[str, ...] = ()


def judge(
    hypotheses: Sequence[Hypothesis],
    outcomes: Outcomes,
    frozen: Frozen | None = None,
    threshold: float = 0.8,
    level: float = 0.95,
) -> list[Verdict]:
    """Judge hypotheses by what came of the seeds.

    The primary verdicts come first, in the order of the hypotheses, from the frozen seeds alone:
    they stay what they are, however many seeds are added. After them come exploratory ones, a
    family of their own: hypotheses that the plan does not hold, and the primary ones once more
    where there are later seeds, with all of them.

    Args:
        hypotheses: The claims.
        outcomes: What came of each arm, by (panel, arm).
        frozen: The plan; None: these hypotheses, and all seeds there are.
        threshold: The skill at the longest trained length from which on an arm has learned.
        level: Of the intervals of a family.

    Raises:
        ValueError: If the family is too large, or has two hypotheses of one name.
    """
    plan = frozen or Frozen(tuple(hypotheses), ())
    primary = plan.primary(hypotheses)
    seeds = None if frozen is None else frozen.seeds
    announced = 0 if frozen is None else frozen.family
    found = _family(primary, outcomes, seeds, threshold, level, announced)
    later = [one for one in primary if frozen and _has_later(one, outcomes, frozen)]
    exploring = plan.exploratory(hypotheses) + later
    explored = _family(exploring, outcomes, None, threshold, level)
    return found + [replace(one, exploratory=True) for one in explored]


def _has_later(hypothesis: Hypothesis, outcomes: Outcomes, frozen: Frozen) -> bool:
    arms = [outcomes.get((hypothesis.panel, arm)) for arm in hypothesis.arms]
    return any(arm is not None and frozen.later(arm.seeds) for arm in arms)


def _family(
    hypotheses: Sequence[Hypothesis],
    outcomes: Outcomes,
    seeds: Collection[int] | None,
    threshold: float,
    level: float,
    announced: int = 0,
) -> list[Verdict]:
    """Judge hypotheses together. Those about arms that the study does not have are no part.

    Others that were announced with them count, whether or not they are judged here: who leaves
    them out does not get a smaller correction.
    """
    known = sum(_known(one, outcomes) for one in hypotheses)
    size = max(1, known, announced)
    splits: dict[tuple[int, int], Splits] = {}
    judged = [
        _one(hypothesis, outcomes, seeds, threshold, level, size, splits)
        for hypothesis in hypotheses
    ]
    p_values = [one.p for one in judged if _known(one.hypothesis, outcomes)]
    adjusted = iter(holm([*p_values, *[None] * (size - known)]))
    return [
        _confirmed(one, next(adjusted)) if _known(one.hypothesis, outcomes) else one
        for one in judged
    ]


def _known(hypothesis: Hypothesis, outcomes: Outcomes) -> bool:
    return all((hypothesis.panel, arm) in outcomes for arm in hypothesis.arms)


def _confirmed(verdict: Verdict, p_holm: float | None) -> Verdict:
    """A claim is supported where the permutation test agrees with the interval."""
    verdict = replace(verdict, p_holm=p_holm)
    if verdict.status == "supported" and p_holm is not None and p_holm > 1 - verdict.level:
        reason = "the permutation test does not confirm what the interval says"
        return replace(verdict, status="inconclusive", reason=reason)
    return verdict


def _one(
    hypothesis: Hypothesis,
    outcomes: Outcomes,
    seeds: Collection[int] | None,
    threshold: float,
    level: float,
    family: int,
    splits: dict[tuple[int, int], Splits],
) -> Verdict:
    verdict = Verdict(hypothesis, "not tested", family=family, level=level)
    for arm in hypothesis.arms:
        if (hypothesis.panel, arm) not in outcomes:
            return replace(verdict, reason=f"{arm} has no runs on {hypothesis.panel} in this study")
    arms = [chosen(outcomes[hypothesis.panel, arm], seeds) for arm in hypothesis.arms]
    n_arm, n_against, *n_than = (len(arm.seeds) for arm in arms)
    failed_arm, failed_against, *failed_than = (arm.count("diverged", "failed") for arm in arms)
    verdict = replace(
        verdict,
        n_arm=n_arm,
        n_against=n_against,
        failed_arm=failed_arm,
        failed_against=failed_against,
        n_than=tuple(n_than),
        failed_than=tuple(failed_than),
    )
    try:
        parts = samples(hypothesis, arms, threshold, family, level)
    except UntestableError as reason:
        return replace(verdict, reason=str(reason))
    verdict = replace(verdict, notes=notes(hypothesis, parts, threshold))
    return decided(verdict, parts, splits, all_sure(hypothesis, arms, threshold))


def decided(
    verdict: Verdict,
    parts: Sequence[Sample],
    splits: dict[tuple[int, int], Splits],
    sure: bool = True,
) -> Verdict:
    """A verdict from the samples of the arms, in the order of the hypothesis.

    It is told with failed seeds at the floor, and holds whatever they would have scored: `sure`
    tells whether the arms learned all the same, the interval must read the same, and p is the
    largest. Some at the floor and others at the ceiling spread an arm more than all at either, so
    that an interval may reach further than at both of these: each number of them is looked at.
    """
    claim, level, family = verdict.hypothesis, verdict.level, verdict.family
    mixtures = list(product(*(one.possible() for one in parts)))
    intervals = [
        contrast([one.values for one in mixture], claim.weights, level, family)
        for mixture in mixtures
    ]
    found = intervals[0]
    verdict = replace(
        verdict,
        status=reading(claim, found),
        effect=found.effect,
        low=found.low,
        high=found.high,
        p=max(p_value(claim, mixture, splits) for mixture in mixtures),
    )
    if not sure or any(reading(claim, one) != verdict.status for one in intervals):
        reason = "it hangs on what the failed seeds would have scored: run them again"
        return replace(verdict, status="inconclusive", reason=reason)
    if verdict.status != "inconclusive":
        return verdict
    deviations = [variance_of(one.values) ** 0.5 for one in mixtures[0]]
    needed = seeds_needed(
        found.effect, deviations, claim.direction, claim.smallest_effect, family, level
    )
    return replace(verdict, seeds_needed=needed)


def reading(claim: Hypothesis, found: Contrast) -> Status:
    """What an interval says about a claim, given the smallest effect of interest δ.

    greater: supported above +δ, refuted below +δ; less: the mirror image; different: supported
    beyond ±δ on either side, refuted within ±δ; same: the other way round. A bound that lies at δ,
    but for rounding, is on neither side of it.
    """
    inner, outer = (claim.smallest_effect * (1 + sign * TOUCHING) for sign in (-1, 1))
    above, below = found.low > outer, found.high < -outer
    within = -inner < found.low and found.high < inner
    yes, no = {
        "greater": (above, found.high < inner),
        "less": (below, found.low > -inner),
        "different": (above or below, within),
        "same": (within, above or below),
    }[claim.direction]
    return "supported" if yes else "refuted" if no else "inconclusive"


AllSplits = dict[tuple[int, int], Splits]
"""The splits of samples of two sizes, kept for all claims that share them."""

Test = Callable[[Alternative, float], float]
"""The p-value of an alternative, once so much is added to the first sample."""

SOONER: dict[Alternative, Alternative] = {
    "two-sided": "two-sided",
    "greater": "less",
    "less": "greater",
}
"""Fewer steps are sooner, which is what the log-rank statistic grows with."""

DRAWS, SEED = 9_999, 0
"""Permutations of an interaction, and the seed of their draws."""


def p_value(claim: Hypothesis, parts: Sequence[Sample], splits: AllSplits) -> float:
    """The p-value of a claim about samples without unknown values.

    Of "same" it is the larger one of two one-sided tests against ±δ.

    A difference is tested by permutations of the studentized difference of means, one of times by
    a log-rank test, an interaction by permutations of the residuals of the additive model. Where
    "same" is claimed of times, the means up to the cap are compared.

    Source of the two one-sided tests: Schuirmann 1987, doi:10.1007/BF01068419.
    """
    values = [one.values for one in parts]
    means = _of_means(values, splits) if claim.than is None else _of_interaction(values)
    if claim.direction == "same":
        delta = claim.smallest_effect
        return max(means("less", -delta), means("greater", delta))
    alternative = "two-sided" if claim.direction == "different" else claim.direction
    if claim.than is None and parts[0].reached:
        return _of_times(parts, alternative, splits)
    return means(alternative, 0.0)


def _of_means(values: Sequence[list[float]], splits: AllSplits) -> Test:
    a, b = values
    known = _splits(len(a), len(b), splits)
    return lambda alternative, more: (
        permutation_test([one + more for one in a], b, alternative, known).p
    )


def _of_interaction(values: Sequence[list[float]]) -> Test:
    """The four cells as a table: the change in its rows, the other factor in its columns."""
    weights = np.array([[1.0, -1.0], [-1.0, 1.0]])

    def test(alternative: Alternative, more: float) -> float:
        arm, against, than_arm, than_against = map(np.array, values)
        table = [[arm + more, than_arm], [against, than_against]]
        generator = np.random.default_rng(SEED)
        return permuted("interaction", table, weights, generator, DRAWS, alternative)

    return test


def _of_times(parts: Sequence[Sample], alternative: Alternative, splits: AllSplits) -> float:
    a, b = ([*map(Time, one.values, one.reached)] for one in parts)
    known = _splits(len(a), len(b), splits)
    return log_rank(a, b, SOONER[alternative], known).p


def _splits(n_a: int, n_b: int, known: AllSplits) -> Splits:
    if (n_a, n_b) not in known:
        known[n_a, n_b] = splits_of(n_a, n_b)
    return known[n_a, n_b]


def notes(hypothesis: Hypothesis, parts: Sequence[Sample], threshold: float) -> tuple[str, ...]:
    """Sentences about lost seeds, arms that work in some seeds only, and seeds that all agree."""
    found: list[str] = []
    for name, sample in zip(hypothesis.arms, parts, strict=True):
        found += _lost(name, sample)
        found += _late(name, sample)
        found += _split(name, sample, hypothesis.metric, threshold)
    return (*found, *_constant(parts))


def _lost(name: str, sample: Sample) -> Iterator[str]:
    n = len(sample.values) + sample.unknown
    for count, what in ((sample.diverged, "diverged"), (sample.unknown, "failed")):
        if count:
            told = f"{out_of(count, n, 'seed')} of {name} {what}"
            yield f"{told} and {'counts' if count == 1 else 'count'} as {sample.floor:g}."


def _late(name: str, sample: Sample) -> Iterator[str]:
    """Runs that would have taken longer than they were given."""
    late = sample.reached.count(False)
    if late:
        yield (
            f"{late} of {len(sample.values) + sample.unknown} seeds of {name} had not got there by "
            f"step {sample.floor:g}, and count as that: they take at least so long."
        )


def _split(name: str, sample: Sample, metric: str, threshold: float) -> Iterator[str]:
    """Two groups of seeds: what a failed one scored is not known, so that it is in neither.

    That an arm works in the upper ones is said where the threshold lies between the groups.
    """
    found = modes(sample.values, threshold) if metric_of(metric).kind == "share" else None
    if found is None:
        return
    seeds = out_of(round(found.success.mean * found.success.n), found.success.n, "seed")
    others = f"{found.low:.2f} in the others" + " that did not fail" * bool(sample.unknown)
    if found.cut == threshold:
        yield f"{name} works in {seeds} ({metric} {found.high:.2f} there, {others})."
    else:
        yield f"{name} falls into two groups: {metric} {found.high:.2f} in {seeds}, {others}."


def _constant(parts: Sequence[Sample]) -> Iterator[str]:
    """Seeds that all agree say nothing about a rare failure."""
    values = [sample.at_worst().values for sample in parts if not sample.reached]
    if values and all(len(set(one)) == 1 for one in values):
        n = min(map(len, values))
        unseen = wilson(0, n).high or 0.0
        share = f"{unseen * 100:.0f} % of seeds"
        yield f"All seeds of an arm score the same; a failure in up to {share} could be unseen."


def verdicts(results: StudyResults, frozen: Frozen) -> list[Verdict]:
    """Judge the hypotheses that a call can decide, the primary ones first."""
    plan = results.plan
    outcomes = {(task.label, arm.name): arm for task, arm in results.arms}
    judged = judge(plan.asked(), outcomes, frozen, plan.protocol.threshold)
    return [_with_beside(verdict, results, outcomes, frozen) for verdict in judged]


def _with_beside(
    verdict: Verdict, results: StudyResults, outcomes: Outcomes, frozen: Frozen
) -> Verdict:
    """Note what the arms of a verdict measured beside its metric, where the study asks for it.

    By the seeds of the verdict, of which those that diverged count as they do there.
    """
    claim, seeds = verdict.hypothesis, None if verdict.exploratory else frozen.seeds
    if verdict.status == "not tested":
        return verdict
    arms = {arm: chosen(outcomes[claim.panel, arm], seeds) for arm in claim.arms}
    plan, notes = results.plan, list[str]()
    for metric in plan.beside:
        each = {arm: one.measured(metric, claim.lengths) for arm, one in arms.items()}
        told = [_mean(arm, values, len(arms[arm].seeds)) for arm, values in each.items() if values]
        title = plan.titles.get(metric, metric)
        notes += [f"{title[:1].upper()}{title[1:]}: {', '.join(told)}."] if told else []
    return replace(verdict, notes=(*verdict.notes, *notes))


def _mean(arm: str, values: Sequence[float], seeds: int) -> str:
    """The mean of an arm, with how many seeds it is of where some have no value."""
    some = f" in {out_of(len(values), seeds, 'seed')}" if len(values) < seeds else ""
    return f"{arm} {number(mean_of(values))}{some}"
