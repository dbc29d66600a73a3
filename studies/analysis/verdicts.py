"""Verdicts on hypotheses that were written down before the seeds that decide.

A diverged seed is a result: it scores what a model that learned nothing does. A failed one, whose
run ended in an error, is not known: a verdict must hold whatever it would have been.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

import numpy as np

from store.aggregate import mean_of, wilson
from store.metrics import metric_of
from studies.analysis.contrasts import (
    ALTERNATIVES,
    TOUCHING,
    Contrast,
    contrast,
    fewest,
    seeds_needed,
    variance_of,
)
from studies.analysis.permutation import Alternative, holm, permutation_test, permuted, smallest_p
from studies.analysis.phrases import number, out_of, short_of
from studies.analysis.results import PENDING, Arm, Seed, StudyResults
from studies.analysis.summaries import modes
from studies.analysis.survival import Time, log_rank
from studies.experiment.hypothesis import Frozen, Hypothesis

Status = Literal["supported", "refuted", "inconclusive", "not tested"]

Outcomes = Mapping[tuple[str, str], Arm]
"""The outcome of each arm, by (panel, arm)."""


@dataclass(frozen=True)
class Verdict:
    """The outcome of a hypothesis, given the seeds.

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


class UntestableError(Exception):
    """A hypothesis cannot be tested; the message says why."""


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
    arms = [_restricted(outcomes[claim.panel, arm], seeds) for arm in claim.arms]
    plan, notes = results.plan, list[str]()
    for metric in plan.beside:
        means: list[str] = []
        for name, arm in zip(claim.arms, arms, strict=True):
            values = arm.measured(metric, claim.lengths)
            few = len(values) < len(arm.seeds)
            some = f" in {out_of(len(values), len(arm.seeds), 'seed')}" if few else ""
            means += [f"{name} {number(mean_of(values))}{some}"] if values else []
        title = plan.titles.get(metric, metric)
        notes += [f"{title[:1].upper()}{title[1:]}: {', '.join(means)}."] if means else []
    return replace(verdict, notes=(*verdict.notes, *notes))


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
        outcomes: The outcome of each arm, by (panel, arm).
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
    known = [all((one.panel, arm) in outcomes for arm in one.arms) for one in hypotheses]
    size = max(1, sum(known), announced)
    judged = [_judged(one, outcomes, seeds, threshold, level, size) for one in hypotheses]
    p_values = [one.p for one, there in zip(judged, known, strict=True) if there]
    adjusted = iter(holm([*p_values, *[None] * (size - len(p_values))]))
    return [
        _confirmed(one, next(adjusted)) if there else one
        for one, there in zip(judged, known, strict=True)
    ]


def _confirmed(verdict: Verdict, p_holm: float | None) -> Verdict:
    """A claim is supported where the permutation test agrees with the interval."""
    verdict = replace(verdict, p_holm=p_holm)
    if verdict.status == "supported" and p_holm is not None and p_holm > 1 - verdict.level:
        reason = "the permutation test does not confirm what the interval says"
        return replace(verdict, status="inconclusive", reason=reason)
    return verdict


def _judged(
    hypothesis: Hypothesis,
    outcomes: Outcomes,
    seeds: Collection[int] | None,
    threshold: float,
    level: float,
    family: int,
) -> Verdict:
    verdict = Verdict(hypothesis, "not tested", family=family, level=level)
    for arm in hypothesis.arms:
        if (hypothesis.panel, arm) not in outcomes:
            return replace(verdict, reason=f"{arm} has no runs on {hypothesis.panel} in this study")
    arms = [_restricted(outcomes[hypothesis.panel, arm], seeds) for arm in hypothesis.arms]
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
        parts = _samples(hypothesis, arms, threshold, family, level)
    except UntestableError as reason:
        return replace(verdict, reason=str(reason))
    sure = all(arm.fit(threshold).sure for _, arm, _ in _extrapolating(hypothesis, arms))
    return _decided(replace(verdict, notes=_notes(hypothesis, parts, threshold)), parts, sure)


def _restricted(arm: Arm, seeds: Collection[int] | None) -> Arm:
    """Return the arm with these seeds alone, planned where they have no run; None: all it has."""
    if seeds is None:
        return arm
    return replace(arm, seeds={one: arm.seeds.get(one, Seed("planned")) for one in seeds})


@dataclass(frozen=True)
class Sample:
    """The values of one arm: those known, and the bounds of those that are not.

    Args:
        values: One a seed, those of diverged seeds among them.
        unknown: How many seeds failed.
        floor: The least that they may have scored; None where it is not known.
        ceiling: The most that they may have scored; None where it is not known.
        diverged: How many seeds diverged.
        reached: Of times, one a value: was it reached, rather than the end of the run? Else empty.
    """

    values: list[float]
    unknown: int
    floor: float | None
    ceiling: float | None
    diverged: int
    reached: tuple[bool, ...] = ()

    def possible(self) -> Iterator["Sample"]:
        """The sample as if this many of those unknown had scored the ceiling, the others the floor.

        It begins with all of them at the floor. Of times the ceiling is reached, the floor is not.
        """
        if self.floor is None or self.ceiling is None:
            yield self
            return
        for high in range(self.unknown + 1):
            low = self.unknown - high
            values = [*self.values, *[self.floor] * low, *[self.ceiling] * high]
            reached = (*self.reached, *[False] * low, *[True] * high) if self.reached else ()
            yield replace(self, values=values, unknown=0, reached=reached)


def _samples(
    hypothesis: Hypothesis, arms: Sequence[Arm], threshold: float, family: int, level: float
) -> list[Sample]:
    """The samples that decide about a hypothesis, one for each of its arms.

    Raises:
        UntestableError: If seeds are missing, all failed, too few, or an arm did not learn.
    """
    named = list(zip(hypothesis.arms, arms, strict=True))
    for name, arm in named:
        _refuse_missing(name, arm)
    _refuse_unlearned(hypothesis, arms, threshold)
    _refuse_few(arms, hypothesis, family, level)
    if metric_of(hypothesis.metric).kind == "time":
        return _times(hypothesis, named)
    return [_sample(hypothesis, name, arm) for name, arm in named]


def _refuse_missing(name: str, arm: Arm) -> None:
    total, pending = len(arm.seeds), arm.count(*PENDING)
    if not total or arm.reason:
        why = f": {arm.reason}" if arm.reason else ""
        raise UntestableError(f"{name} has no confirming runs{why}")
    if arm.count("not_applicable"):
        raise UntestableError(f"{name} does not apply here")
    if pending:
        raise UntestableError(f"{pending} of {total} seeds of {name} are still to be run")
    for status in ("diverged", "failed"):
        if arm.count(status) == total:
            every = f"all {total} seeds" if total > 1 else "the only seed"
            raise UntestableError(f"{every} of {name} {status}")
    if arm.count("diverged", "failed") == total:
        raise UntestableError(f"all {total} seeds of {name} diverged or failed")


def _extrapolating(hypothesis: Hypothesis, arms: Sequence[Arm]) -> Iterator[tuple[str, Arm, int]]:
    """Yield the arms of a claim beyond their longest trained length, with name and length."""
    for name, arm in zip(hypothesis.arms, arms, strict=True):
        if arm.longest_trained is not None and max(hypothesis.lengths) > arm.longest_trained:
            yield name, arm, arm.longest_trained


def _refuse_unlearned(hypothesis: Hypothesis, arms: Sequence[Arm], threshold: float) -> None:
    """Beyond the trained lengths a claim is about arms that have learned."""
    reasons: list[str] = []
    for name, arm, longest in _extrapolating(hypothesis, arms):
        fit = arm.fit(threshold)
        if fit.mean is None:
            raise UntestableError(f"the skill of {name} at length {longest} was not measured")
        if not fit.learned:
            skill = short_of(fit.mean, threshold)
            open_ = "" if fit.sure else "; its failed seeds could change that: run them again"
            reasons.append(
                f"{name} did not learn: its skill is {skill} at length {longest}, the longest "
                f"trained (below {threshold:g}; {fit.solved} of {fit.seeds} seeds reach it{open_})"
            )
    if reasons:
        raise UntestableError("; ".join(reasons))


def _refuse_few(arms: Sequence[Arm], hypothesis: Hypothesis, family: int, level: float) -> None:
    sizes = list(zip(hypothesis.weights, (len(arm.seeds) for arm in arms), strict=True))
    n_arm, n_against = (min(n for weight, n in sizes if weight == sign) for sign in (1, -1))
    reachable = smallest_p(n_arm, n_against, ALTERNATIVES[hypothesis.direction]) * family
    if min(n_arm, n_against) < 2 or reachable > 1 - level:
        least = fewest(hypothesis.direction, family, level)
        shown = f"{n_arm} seed" + ("s" if n_arm > 1 else "")
        raise UntestableError(
            f"{shown} against {n_against} cannot decide; a family of {family} needs at least "
            f"{least} per arm"
        )


def _sample(hypothesis: Hypothesis, name: str, arm: Arm) -> Sample:
    metric, lengths = hypothesis.metric, hypothesis.lengths
    floor = arm.floor(metric, lengths)
    unknown, diverged = arm.count("failed"), arm.count("diverged")
    if (unknown or diverged) and floor is None:
        raise UntestableError(
            f"{unknown + diverged} of {len(arm.seeds)} seeds of {name} diverged or failed, and "
            f"{metric} has no floor to count them at"
        )
    counted = [seed for seed, one in sorted(arm.seeds.items()) if one.status != "failed"]
    found = [arm.value(seed, metric, lengths) for seed in counted]
    values = [value for value in found if value is not None]
    if len(values) < len(found):
        asked = ", ".join(map(str, lengths))
        raise UntestableError(f"{name} has no {metric} at all of the lengths {asked}")
    return Sample(values, unknown, floor, metric_of(metric).ceiling, diverged)


def _times(hypothesis: Hypothesis, arms: Sequence[tuple[str, Arm]]) -> list[Sample]:
    """Times up to the earliest cap of the arms; whoever has not got there by then counts with it.

    The mean of such a sample is the restricted mean time, as all runs are followed up to the cap.
    A diverged seed never gets there; a failed one may have done so at once, or never.

    Raises:
        UntestableError: If a time was not measured, or no seed of any arm gets there.
    """
    measure = hypothesis.metric, hypothesis.lengths[0]
    ended = [
        value
        for _, arm in arms
        for one in arm.seeds.values()
        if measure in one.censored and (value := one.values.get(measure)) is not None
    ]
    known = [_known_times(name, arm, measure) for name, arm in arms]
    cap = float(min(ended) if ended else max(time.steps for of_arm in known for time in of_arm))
    found: list[Sample] = []
    for (_, arm), times in zip(arms, known, strict=True):
        diverged = arm.count("diverged")
        reached = [time.reached and time.steps <= cap for time in times] + [False] * diverged
        values = [min(float(time.steps), cap) for time in times] + [cap] * diverged
        found.append(Sample(values, arm.count("failed"), cap, 0.0, diverged, tuple(reached)))
    if not any(any(one.reached) for one in found):
        raise UntestableError(f"no seed of {', '.join(hypothesis.arms)} got there by step {cap:g}")
    return found


def _known_times(name: str, arm: Arm, measure: tuple[str, int]) -> list[Time]:
    times: list[Time] = []
    for _, one in sorted(arm.seeds.items()):
        value = one.values.get(measure)
        if one.status in ("diverged", "failed"):
            continue
        if value is None:
            raise UntestableError(f"{name} has no {measure[0]} at length {measure[1]}")
        times.append(Time(value, measure not in one.censored))
    return times


def _decided(verdict: Verdict, parts: Sequence[Sample], sure: bool) -> Verdict:
    """A verdict from the samples of the arms, in the order of the hypothesis.

    Its numbers take failed seeds at the floor, and holds whatever they would have scored: `sure`
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
        status=_reading(claim, found),
        effect=found.effect,
        low=found.low,
        high=found.high,
        p=max(_p_value(claim, mixture) for mixture in mixtures),
    )
    if not sure or any(_reading(claim, one) != verdict.status for one in intervals):
        reason = "it hangs on what the failed seeds would have scored: run them again"
        return replace(verdict, status="inconclusive", reason=reason)
    if verdict.status != "inconclusive":
        return verdict
    deviations = [variance_of(one.values) ** 0.5 for one in mixtures[0]]
    needed = seeds_needed(
        found.effect, deviations, claim.direction, claim.smallest_effect, family, level
    )
    return replace(verdict, seeds_needed=needed)


def _reading(claim: Hypothesis, found: Contrast) -> Status:
    """Read an interval as an answer to a claim, given the smallest effect of interest δ.

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


SOONER: dict[Alternative, Alternative] = {
    "two-sided": "two-sided",
    "greater": "less",
    "less": "greater",
}
"""Fewer steps are sooner, which is what the log-rank statistic grows with."""

DRAWS, SEED = 9_999, 0
"""Permutations of an interaction, and the seed of their draws."""


def _p_value(claim: Hypothesis, parts: Sequence[Sample]) -> float:
    """The p-value of a claim about samples without unknown values.

    Of "same" it is the larger one of two one-sided tests against ±δ.

    A difference is tested by permutations of the studentized difference of means, one of times by
    a log-rank test, an interaction by permutations of the residuals of the additive model. Where
    "same" is claimed of times, the means up to the cap are compared.

    Source of the two one-sided tests: Schuirmann 1987, doi:10.1007/BF01068419.
    """
    test = _test_of([one.values for one in parts])
    if claim.direction == "same":
        delta = claim.smallest_effect
        return max(test("less", -delta), test("greater", delta))
    alternative = "two-sided" if claim.direction == "different" else claim.direction
    if claim.than is None and parts[0].reached:
        a, b = ([*map(Time, one.values, one.reached)] for one in parts)
        return log_rank(a, b, SOONER[alternative]).p
    return test(alternative, 0.0)


def _test_of(values: Sequence[list[float]]) -> Callable[[Alternative, float], float]:
    """Return a function: the p-value of an alternative, with this added to the first sample."""

    def of_means(alternative: Alternative, more: float) -> float:
        return permutation_test([one + more for one in values[0]], values[1], alternative).p

    def of_interaction(alternative: Alternative, more: float) -> float:
        # The change is in the rows of the table, the other factor in its columns.
        arm, against, than_arm, than_against = map(np.array, values)
        table = [[arm + more, than_arm], [against, than_against]]
        weights, generator = np.array([[1.0, -1.0], [-1.0, 1.0]]), np.random.default_rng(SEED)
        return permuted("interaction", table, weights, generator, DRAWS, alternative)

    return of_means if len(values) == 2 else of_interaction


def _notes(hypothesis: Hypothesis, parts: Sequence[Sample], threshold: float) -> tuple[str, ...]:
    """Sentences about lost seeds, arms that work in some seeds only, and seeds that all agree."""
    found: list[str] = []
    for name, sample in zip(hypothesis.arms, parts, strict=True):
        total, late = len(sample.values) + sample.unknown, sample.reached.count(False)
        for count, what in ((sample.diverged, "diverged"), (sample.unknown, "failed")):
            if count:
                head = f"{out_of(count, total, 'seed')} of {name} {what}"
                counts = "counts" if count == 1 else "count"
                found.append(f"{head} and {counts} as {sample.floor:g}.")
        if late:
            found.append(
                f"{late} of {total} seeds of {name} had not got there by "
                f"step {sample.floor:g}, and count as that: they take at least so long."
            )
        if metric_of(hypothesis.metric).kind == "share":
            found += _groups(name, sample, hypothesis.metric, threshold)
    return (*found, *_constant(parts))


def _groups(name: str, sample: Sample, metric: str, threshold: float) -> Iterator[str]:
    """Note two groups of seeds; a failed seed, whose score is not known, is in neither.

    That an arm works in the upper ones is said where the threshold lies between the groups.
    """
    found = modes(sample.values, threshold)
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
    values = [next(sample.possible()).values for sample in parts if not sample.reached]
    if values and all(len(set(one)) == 1 for one in values):
        unseen = wilson(0, min(map(len, values))).high or 0.0
        share = f"{unseen * 100:.0f} % of seeds"
        yield f"All seeds of an arm score the same; a failure in up to {share} could be unseen."
