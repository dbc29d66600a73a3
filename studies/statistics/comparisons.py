"""From a hypothesis and what came of the seeds to two samples, or to a reason why there are none.

A diverged seed is a result: it scores what a model that learned nothing does. A failed one, whose
run ended in an error, is not known: a verdict must hold whatever it would have been.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from studies.hypothesis import Hypothesis
from studies.statistics.outcomes import CEILINGS, PENDING, ArmOutcome, Fit, SeedOutcome
from studies.statistics.permutation import smallest_p
from studies.statistics.power import ALTERNATIVES, fewest

Outcomes = Mapping[tuple[str, str], ArmOutcome]
"""What came of each arm, by (panel, arm)."""


class UntestableError(Exception):
    """A hypothesis cannot be tested; the message says why."""


@dataclass(frozen=True)
class Sample:
    """The values of one arm: those known, and the bounds of those that are not.

    Args:
        values: One a seed, those of diverged seeds among them.
        unknown: How many seeds failed.
        floor: The least that they may have scored; None where it is not known.
        ceiling: The most that they may have scored; None where it is not known.
        diverged: How many seeds diverged.
    """

    values: list[float]
    unknown: int
    floor: float | None
    ceiling: float | None
    diverged: int

    def at_worst(self) -> list[float]:
        """All values, with those unknown at the floor."""
        return self.values + [self.floor] * self.unknown if self.floor is not None else self.values

    def at_best(self) -> list[float]:
        """All values, with those unknown at the ceiling."""
        if self.ceiling is None:
            return self.values
        return self.values + [self.ceiling] * self.unknown


def chosen(arm: ArmOutcome, seeds: Collection[int] | None) -> ArmOutcome:
    """The arm with these seeds alone; one that has no run yet is planned. None: all it has."""
    if seeds is None:
        return arm
    return replace(arm, seeds={one: arm.seeds.get(one, SeedOutcome("planned")) for one in seeds})


def samples(
    hypothesis: Hypothesis,
    arms: tuple[ArmOutcome, ArmOutcome],
    threshold: float,
    family: int,
    level: float,
) -> tuple[Sample, Sample]:
    """The two samples that decide about a hypothesis.

    Raises:
        UntestableError: If seeds are missing, all failed, too few, or an arm did not learn.
    """
    names = (hypothesis.arm, hypothesis.against)
    for name, arm in zip(names, arms, strict=True):
        _refuse_missing(name, arm)
    _refuse_unlearned(hypothesis, arms, threshold)
    _refuse_few(arms, hypothesis, family, level)
    first, second = (_sample(hypothesis, name, arm) for name, arm in zip(names, arms, strict=True))
    return first, second


def _refuse_missing(name: str, arm: ArmOutcome) -> None:
    total = len(arm.seeds)
    if not total or arm.reason:
        raise UntestableError(
            f"{name} has no confirming runs" + (f": {arm.reason}" if arm.reason else "")
        )
    if arm.count("not_applicable"):
        raise UntestableError(f"{name} does not apply here")
    if arm.count(*PENDING):
        raise UntestableError(
            f"{arm.count(*PENDING)} of {total} seeds of {name} are still to be run"
        )
    for status in ("diverged", "failed"):
        if arm.count(status) == total:
            raise UntestableError(f"all {total} seeds of {name} {status}")
    if arm.count("diverged", "failed") == total:
        raise UntestableError(f"all {total} seeds of {name} diverged or failed")


def _refuse_unlearned(
    hypothesis: Hypothesis, arms: tuple[ArmOutcome, ArmOutcome], threshold: float
) -> None:
    """Beyond the trained lengths a claim is about arms that have learned."""
    names, reasons = (hypothesis.arm, hypothesis.against), []
    for name, arm in zip(names, arms, strict=True):
        longest = arm.longest_trained
        if longest is None or max(hypothesis.lengths) <= longest:
            continue
        fit = arm.fit(threshold)
        if fit.mean is None:
            raise UntestableError(f"the skill of {name} at length {longest} was not measured")
        if not fit.learned:
            reasons.append(_unlearned(name, fit, longest, threshold))
    if reasons:
        raise UntestableError("; ".join(reasons))


def _unlearned(name: str, fit: Fit, longest: int, threshold: float) -> str:
    return (
        f"{name} did not learn: its skill is {fit.mean:.2f} at length {longest}, the longest "
        f"trained (below {threshold:g}; {fit.solved} of {fit.seeds} seeds reach it)"
    )


def _refuse_few(
    arms: tuple[ArmOutcome, ArmOutcome], hypothesis: Hypothesis, family: int, level: float
) -> None:
    n_arm, n_against = (len(arm.seeds) for arm in arms)
    reachable = smallest_p(n_arm, n_against, ALTERNATIVES[hypothesis.direction]) * family
    if min(n_arm, n_against) < 2 or reachable > 1 - level:
        least = fewest(hypothesis.direction, family, level)
        shown = f"{n_arm} seed" + ("s" if n_arm > 1 else "")
        raise UntestableError(
            f"{shown} against {n_against} cannot decide; a family of {family} needs at least "
            f"{least} per arm"
        )


def _sample(hypothesis: Hypothesis, name: str, arm: ArmOutcome) -> Sample:
    metric, lengths = hypothesis.metric, hypothesis.lengths
    floor = arm.floor(metric, lengths)
    unknown, diverged = arm.count("failed"), arm.count("diverged")
    if (unknown or diverged) and floor is None:
        raise UntestableError(
            f"{unknown + diverged} of {len(arm.seeds)} seeds of {name} diverged or failed, and "
            f"{metric} has no floor to count them at"
        )
    values: list[float] = []
    for seed, outcome in sorted(arm.seeds.items()):
        if outcome.status != "failed":
            value = arm.value(seed, metric, lengths)
            if value is None:
                asked = ", ".join(str(length) for length in lengths)
                raise UntestableError(f"{name} has no {metric} at all of the lengths {asked}")
            values.append(value)
    return Sample(values, unknown, floor, CEILINGS.get(metric), diverged)
