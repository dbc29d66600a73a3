"""One plain sentence for each verdict, true of its numbers."""

import math
from dataclasses import dataclass

from studies.experiment.hypothesis import Hypothesis
from studies.statistics.outcomes import TIMES
from studies.statistics.power import MOST
from studies.statistics.verdict import Verdict


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
    far = share(delta, decimals(delta))
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
        share(bound, _telling(bound, verdict.hypothesis.smallest_effect))
        for bound in (verdict.low or 0.0, verdict.high or 0.0)
    )
    kind = "simultaneous " if verdict.family > 1 else ""
    interval = f"{kind}{verdict.level * 100:g} % interval {low} to {high}"
    p = "" if verdict.p_holm is None else f", {p_text(verdict.p_holm, verdict.family)}"
    sizes = (verdict.n_arm, verdict.n_against, *verdict.n_than)
    seeds = f"{' against '.join(map(str, sizes))} seeds"
    if len(set(sizes)) == 1:
        seeds = f"{verdict.n_arm} seeds each"
    effect = share(verdict.effect or 0.0, digits, signed=True)
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


def decimals(smallest_effect: float) -> int:
    """How many decimals it takes to tell values apart that differ by a tenth of δ."""
    return (
        0 if smallest_effect >= 10 else max(2, 1 - math.floor(math.log10(smallest_effect) + 1e-9))
    )


def _telling(bound: float, delta: float) -> int:
    """As many decimals as tell a bound from ±δ, where a few more can."""
    least = decimals(delta)
    told = (n for n in range(least, least + 4) if share(abs(bound), n) != share(delta, n))
    return next(told, least)


def share(value: float, digits: int = 2, signed: bool = False) -> str:
    """A share in few signs: ".56", "-.03", "1.00"; with its sign where it is a difference."""
    text = f"{value:+.{digits}f}" if signed else f"{value:.{digits}f}"
    if float(text) == 0:
        return f"{0:.{digits}f}"[1:] or "0"
    return text.replace("0.", ".", 1) if text.lstrip("+-").startswith("0.") else text


def p_text(p: float, family: int = 1) -> str:
    """A p-value as papers print it: "p = .012", "p < .001"; adjusted ones say so."""
    name = "p" if family == 1 else "Holm p"
    if p < 0.001:
        return f"{name} < .001"
    return f"{name} = {p:.3f}".replace("= 0.", "= .")
