"""From a hypothesis and what came of the seeds to a sample per arm, or to a reason for none.

A diverged seed is a result: it scores what a model that learned nothing does. A failed one, whose
run ended in an error, is not known: a verdict must hold whatever it would have been.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from store.metrics import metric_of
from studies.analysis.permutation import smallest_p
from studies.analysis.phrases import short_of
from studies.analysis.power import ALTERNATIVES, fewest
from studies.analysis.results import PENDING, Arm, Fit, Seed
from studies.analysis.survival import Time
from studies.experiment.hypothesis import Hypothesis

Outcomes = Mapping[tuple[str, str], Arm]
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
        reached: Of times, one a value: was it reached, rather than the end of the run? Else empty.
    """

    values: list[float]
    unknown: int
    floor: float | None
    ceiling: float | None
    diverged: int
    reached: tuple[bool, ...] = ()

    def at_worst(self) -> "Sample":
        """The sample as if those unknown had scored the floor."""
        return next(self.possible())

    def possible(self) -> Iterator["Sample"]:
        """The sample as if this many of those unknown had scored the ceiling, the others the floor.

        Of times the ceiling is reached, the floor is not.
        """
        if self.floor is None or self.ceiling is None:
            yield self
            return
        for high in range(self.unknown + 1):
            low = self.unknown - high
            values = [*self.values, *[self.floor] * low, *[self.ceiling] * high]
            reached = (*self.reached, *[False] * low, *[True] * high) if self.reached else ()
            yield replace(self, values=values, unknown=0, reached=reached)


def chosen(arm: Arm, seeds: Collection[int] | None) -> Arm:
    """The arm with these seeds alone; one that has no run yet is planned. None: all it has."""
    if seeds is None:
        return arm
    return replace(arm, seeds={one: arm.seeds.get(one, Seed("planned")) for one in seeds})


def samples(
    hypothesis: Hypothesis,
    arms: Sequence[Arm],
    threshold: float,
    family: int,
    level: float,
) -> list[Sample]:
    """The samples that decide about a hypothesis, one for each of its arms.

    Raises:
        UntestableError: If seeds are missing, all failed, too few, or an arm did not learn.
    """
    names = hypothesis.arms
    for name, arm in zip(names, arms, strict=True):
        _refuse_missing(name, arm)
    _refuse_unlearned(hypothesis, arms, threshold)
    _refuse_few(arms, hypothesis, family, level)
    if metric_of(hypothesis.metric).kind == "time":
        return times_of(hypothesis, arms)
    return [_sample(hypothesis, name, arm) for name, arm in zip(names, arms, strict=True)]


def _refuse_missing(name: str, arm: Arm) -> None:
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
            every = f"all {total} seeds" if total > 1 else "the only seed"
            raise UntestableError(f"{every} of {name} {status}")
    if arm.count("diverged", "failed") == total:
        raise UntestableError(f"all {total} seeds of {name} diverged or failed")


def _refuse_unlearned(hypothesis: Hypothesis, arms: Sequence[Arm], threshold: float) -> None:
    """Beyond the trained lengths a claim is about arms that have learned."""
    names, reasons = hypothesis.arms, list[str]()
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
    skill = short_of(fit.mean or 0.0, threshold)
    open_ = "" if fit.sure else "; its failed seeds could change that: run them again"
    return (
        f"{name} did not learn: its skill is {skill} at length {longest}, the longest "
        f"trained (below {threshold:g}; {fit.solved} of {fit.seeds} seeds reach it{open_})"
    )


def all_sure(hypothesis: Hypothesis, arms: Sequence[Arm], threshold: float) -> bool:
    """Do the arms of a claim beyond the trained lengths learn, whatever failed seeds scored?"""
    return all(
        arm.fit(threshold).sure
        for arm in arms
        if arm.longest_trained is not None and max(hypothesis.lengths) > arm.longest_trained
    )


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
    values: list[float] = []
    for seed, outcome in sorted(arm.seeds.items()):
        if outcome.status != "failed":
            value = arm.value(seed, metric, lengths)
            if value is None:
                asked = ", ".join(str(length) for length in lengths)
                raise UntestableError(f"{name} has no {metric} at all of the lengths {asked}")
            values.append(value)
    return Sample(values, unknown, floor, metric_of(metric).ceiling, diverged)


def times_of(hypothesis: Hypothesis, arms: Sequence[Arm]) -> list[Sample]:
    """Times up to the earliest cap of the arms; whoever has not got there by then counts with it.

    The mean of such a sample is the restricted mean time, as all runs are followed up to the cap.
    A diverged seed never gets there; a failed one may have done so at once, or never.

    Raises:
        UntestableError: If a time was not measured, or no seed of any arm gets there.
    """
    measure = hypothesis.metric, hypothesis.lengths[0]
    ended = [
        value
        for arm in arms
        for one in arm.seeds.values()
        if measure in one.censored and (value := one.values.get(measure)) is not None
    ]
    known = [
        _known_times(name, arm, measure) for name, arm in zip(hypothesis.arms, arms, strict=True)
    ]
    cap = min(ended) if ended else max(time.steps for of_arm in known for time in of_arm)
    found = [_up_to(float(cap), arm, times) for arm, times in zip(arms, known, strict=True)]
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


def _up_to(cap: float, arm: Arm, times: Sequence[Time]) -> Sample:
    diverged = arm.count("diverged")
    reached = [time.reached and time.steps <= cap for time in times] + [False] * diverged
    values = [min(float(time.steps), cap) for time in times] + [cap] * diverged
    return Sample(values, arm.count("failed"), cap, 0.0, diverged, tuple(reached))
