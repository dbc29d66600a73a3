"""One plain sentence for each verdict, true of its numbers."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from store.aggregate import t_interval
from studies.analysis.phrases import (
    decimal,
    decimals,
    lost_seeds,
    number,
    out_of,
    p_text,
    runs_done,
    seldom_learned,
    short_of,
)
from studies.analysis.power import MOST
from studies.analysis.results import TIMES, ArmResult, Reach, reach
from studies.analysis.verdicts import Verdict
from studies.experiment.hypothesis import Hypothesis

if TYPE_CHECKING:
    from studies.experiment.plan import Plan
    from studies.training.settings import Until


def sentence(verdict: Verdict) -> str:
    """Say a verdict in one sentence, with the effect, its interval and the seeds."""
    claim = verdict.hypothesis
    head = f"{verdict.status.capitalize()} on {claim.panel}"
    if verdict.exploratory:
        head += " (exploratory)"
    if verdict.status == "not tested":
        return f"{head}: {verdict.reason}."
    told = f"{_finding(verdict)} in {measure(claim)}"
    return f"{head}: {told}: {_numbers(verdict)}{_what_is_open(verdict)}."


@dataclass(frozen=True)
class Verbs:
    """How it is said that one value is larger or smaller than another."""

    more: str
    less: str
    not_more: str
    not_less: str


OF_SCORES = Verbs("exceeds", "falls short of", "does not exceed", "does not fall short of")
OF_TIMES = Verbs("is later than", "is sooner than", "is not later than", "is not sooner than")


def _finding(verdict: Verdict) -> str:
    """What the interval says about the arms."""
    claim, low, high = verdict.hypothesis, verdict.low or 0.0, verdict.high or 0.0
    delta, (arm, other), verbs = claim.smallest_effect, subjects(claim), _verbs(claim)
    far = decimal(delta, decimals(delta))
    near = f"is within {far} of"
    if verdict.status == "inconclusive":
        return {
            "greater": f"it is open whether {arm} {verbs.more} {other} by {far}",
            "less": f"it is open whether {arm} {verbs.less} {other} by {far}",
            "different": f"it is open whether {arm} and {other} differ by {far}",
            "same": f"it is open whether {arm} {near} {other}",
        }[claim.direction]
    if low > delta:
        return f"{arm} {verbs.more} {other} by more than {far}"
    if high < -delta:
        return f"{arm} {verbs.less} {other} by more than {far}"
    if -delta < low and high < delta:
        return f"{arm} {near} {other}"
    if claim.direction == "greater":
        return f"{arm} {verbs.not_more} {other} by {far}"
    return f"{arm} {verbs.not_less} {other} by {far}"


def subjects(claim: Hypothesis) -> tuple[str, str]:
    """What is compared with what: two arms, or the lead of one with that of another."""
    if claim.than is None:
        return claim.arm, claim.against
    arm, against = claim.than
    return f"the lead of {claim.arm} over {claim.against}", f"that of {arm} over {against}"


def _verbs(claim: Hypothesis) -> Verbs:
    return OF_TIMES if claim.metric in TIMES and claim.than is None else OF_SCORES


def measure(claim: Hypothesis) -> str:
    """What is compared: "skill at length 32", "mean skill over lengths 32, 64"."""
    if claim.metric in TIMES:
        return f"{claim.metric.replace('_', ' ')} (mean up to the cap)"
    lengths = ", ".join(str(length) for length in claim.lengths)
    if len(claim.lengths) == 1:
        return f"{claim.metric} at length {lengths}"
    return f"mean {claim.metric} over lengths {lengths}"


def _numbers(verdict: Verdict) -> str:
    digits = decimals(verdict.hypothesis.smallest_effect)
    low, high = (
        decimal(bound, _telling(bound, verdict.hypothesis.smallest_effect))
        for bound in (verdict.low or 0.0, verdict.high or 0.0)
    )
    kind = "simultaneous " if verdict.family > 1 else ""
    interval = f"{kind}{verdict.level * 100:g} % interval {low} to {high}"
    p = "" if verdict.p_holm is None else f", {p_text(verdict.p_holm, verdict.family)}"
    sizes = (verdict.n_arm, verdict.n_against, *verdict.n_than)
    seeds = f"{' against '.join(map(str, sizes))} seeds"
    if len(set(sizes)) == 1:
        seeds = f"{verdict.n_arm} seeds each"
    effect = decimal(verdict.effect or 0.0, digits, signed=True)
    kind_of = "difference" if verdict.hypothesis.than is None else "difference of differences"
    return f"{kind_of} {effect} ({interval}{p}; {seeds})"


def _what_is_open(verdict: Verdict) -> str:
    if verdict.status != "inconclusive":
        return ""
    if verdict.reason:
        return f"; {verdict.reason}"
    if verdict.seeds_needed is None:
        return f"; more than {MOST} seeds each would be needed to settle it"
    return f"; about {verdict.seeds_needed} seeds each would settle it"


def _telling(bound: float, delta: float) -> int:
    """As many decimals as tell a bound from ±δ, where a few more can."""
    least = decimals(delta)
    told = (n for n in range(least, least + 4) if decimal(abs(bound), n) != decimal(delta, n))
    return next(told, least)


def arm_sentence(plan: "Plan", result: ArmResult) -> str:
    """What became of an arm: holds, falls below the threshold, or did not learn."""
    if result.runs and result.count("not_applicable") == len(result.runs):
        reasons = sorted({(run.reason or "it cannot be asked").rstrip(".") for run in result.runs})
        return f"does not apply: {'; '.join(reasons)}."
    if plan.study.metrics or not plan.config(result.cell).scored:
        done = runs_done(result.count("done"), len(result.runs))
        ended = (run for run in result.runs if run.status not in ("done", "planned", "running"))
        why = "; ".join(sorted({(run.reason or run.status).rstrip(".") for run in ended}))
        return " ".join([f"{done}{': ' * bool(why)}{why}.", *_remarks(plan, result)])
    threshold = plan.settings.study.threshold
    config = plan.config(result.cell)
    longest = config.training.train_lengths[1]
    found = reach(result, longest, config.evaluation.test_lengths, threshold)
    if result.chosen is not None and result.chosen.setting is None:
        verdict = f"has no result: {result.chosen.reason}."
    elif found.skill is not None and not found.learned:
        told = (
            f"skill {_below(found.skill, threshold)} at length {longest}, the longest trained "
            f"(below {threshold})."
        )
        verdict = f"{_missed(result, longest, threshold)}: {told}"
    elif found.held is None:
        verdict = (
            "has no result yet." if not _ended(result) else f"has no result at length {longest}."
        )
    else:
        verdict = _held(result, found, threshold, longest)
    extras = [verdict, *_remarks(plan, result)]
    return " ".join(extras)


def _missed(result: ArmResult, longest: int, threshold: float) -> str:
    values = result.values.get(("test", "skill", longest), [])
    return seldom_learned(sum(value >= threshold for value in values), len(result.runs))


def _ended(result: ArmResult) -> bool:
    ended = [run.status not in ("planned", "running") for run in result.runs]
    return bool(ended) and all(ended)


def _held(result: ArmResult, found: Reach, threshold: float, longest: int) -> str:
    """How far beyond the trained lengths the mean skill of an arm stays above the threshold."""
    held = longest if found.held is None else found.held
    if found.unasked is not None:
        return f"holds to length {held}; it cannot be asked at length {found.unasked}."
    if found.fell is not None and found.skill is not None:
        still = result.interval("skill", held) if held > longest else None
        last = "" if still is None else f"; still {number(still.mean)} at {held}"
        told = f"at length {found.fell} (skill {_below(found.skill, threshold)}{last})"
        return f"falls below {threshold} {told}."
    if held == longest:
        return f"learns the trained lengths; no longer one is tested than {longest}."
    values = result.counted("skill", held)
    # A seed without a value did not hold: it stays in the count.
    kept = sum(value >= threshold for value in values)
    seeds = out_of(kept, len(result.runs), "seed")
    mean = number(t_interval(values).mean)
    if len(values) < len(result.runs):
        return f"holds to length {held} in {seeds} only (skill {mean} where it was measured)."
    return f"holds to length {held} (skill {mean}; {threshold} or more in {seeds})."


def _below(skill: float, threshold: float) -> str:
    """A skill that falls short, such as ".72"."""
    return short_of(skill, threshold).replace("0.", ".", 1)


def _remarks(plan: "Plan", result: ArmResult) -> list[str]:
    """What a reader must know beside the verdict."""
    counted = any(metric == "skill" for _, metric, _ in result.values)
    lost = result.count("diverged"), result.count("failed"), len(result.runs)
    from studies.experiment.tune import in_words  # which loads torch

    remarks = [f"{told}." for told in lost_seeds(*lost, counted)]
    chosen = result.chosen
    if chosen is not None and chosen.setting is not None:
        for key, side in chosen.edges.items():
            told = in_words({key: chosen.setting[key]}).replace("_", " ")
            remarks.append(f"Its {told} is the {side} tried.")
    said = plan.study.remark(plan.arms[result.cell.arm], plan.settings)
    return [*remarks, said] if said else remarks


FIT = "steps_to_fit"


def fit_title(until: "Until") -> str:
    """What was waited for: "steps until accuracy 0.99 at trained lengths"."""
    return f"steps until {until.metric} {until.value:g} at trained lengths"


def fit_times(result: "ArmResult") -> str:
    """What the confirming seeds of an arm needed: "2 of 3 seeds, after 40 to 60 steps".

    A seed that ended, or failed, before it met the criterion counts among all of them.
    """
    scores = [one for of_run in result.scores.values() for one in of_run if one.metric == FIT]
    met = sorted(one.value for one in scores if one.correct and one.value is not None)
    ended = [one.value for one in scores if not one.correct and one.value is not None]
    told = out_of(len(met), len(result.runs), "seed")
    if met:
        least, most = f"{met[0]:,.0f}", f"{met[-1]:,.0f}"
        told += f", after {least} steps" if least == most else f", after {least} to {most} steps"
    if ended:
        told += f"; {len(ended)} not within {max(ended):,.0f} steps"
    return told
