"""Judge hypotheses: primary ones by the frozen plan, and what came later than it."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from studies.experiment.hypothesis import Frozen, Hypothesis
from studies.statistics.comparisons import (
    Outcomes,
    UntestableError,
    all_sure,
    chosen,
    samples,
)
from studies.statistics.decisions import decided
from studies.statistics.multiplicity import holm
from studies.statistics.notes import notes
from studies.statistics.permutation import Splits
from studies.statistics.verdict import Verdict


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
