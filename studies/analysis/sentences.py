"""Plain sentences for verdicts, for arms and for a whole study, each true of its numbers.

Terminal, page and Python print these; there is no other prose about results.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from store.aggregate import t_interval
from store.metrics import metric_of
from studies.analysis.contrasts import MOST
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
from studies.analysis.results import PENDING, Arm, Reach, Task
from studies.analysis.verdicts import Status, Verdict
from studies.experiment.hypothesis import SIGNS, Hypothesis
from studies.experiment.tune import in_words

if TYPE_CHECKING:
    from studies.experiment.study import Line


ORDER: tuple[Status, ...] = ("supported", "refuted", "inconclusive", "not tested")
"""The order of the outcomes of claims."""

NAMED = 6
"""So many arms are named in a sentence; more are counted."""

WORDS = ("none", "nothing", "all")
"""Names of arms that would read as words of the sentence."""


def sentence(verdict: Verdict) -> str:
    """Say a verdict in one sentence, with the effect, its interval and the seeds."""
    claim = verdict.hypothesis
    head = f"{verdict.status.capitalize()} on {claim.panel}"
    if verdict.exploratory:
        head += " (exploratory)"
    if verdict.status == "not tested":
        return f"{head}: {verdict.reason}."
    text = f"{_finding(verdict)} in {measure(claim)}"
    return f"{head}: {text}: {_numbers(verdict)}{_what_is_open(verdict)}."


def _finding(verdict: Verdict) -> str:
    claim, low, high = verdict.hypothesis, verdict.low or 0.0, verdict.high or 0.0
    delta, (arm, other) = claim.smallest_effect, subjects(claim)
    far = decimal(delta, decimals(delta))
    near = f"is within {far} of"
    more, less, not_more, not_less = (
        ("is later than", "is sooner than", "is not later than", "is not sooner than")
        if is_time(claim) and claim.than is None
        else ("exceeds", "falls short of", "does not exceed", "does not fall short of")
    )
    if verdict.status == "inconclusive":
        return {
            "greater": f"it is open whether {arm} {more} {other} by {far}",
            "less": f"it is open whether {arm} {less} {other} by {far}",
            "different": f"it is open whether {arm} and {other} differ by {far}",
            "same": f"it is open whether {arm} {near} {other}",
        }[claim.direction]
    if low > delta:
        return f"{arm} {more} {other} by more than {far}"
    if high < -delta:
        return f"{arm} {less} {other} by more than {far}"
    if -delta < low and high < delta:
        return f"{arm} {near} {other}"
    return f"{arm} {not_more if claim.direction == 'greater' else not_less} {other} by {far}"


def subjects(claim: Hypothesis) -> tuple[str, str]:
    """The two sides of a claim: arms, or the lead of one arm and that of another."""
    if claim.than is None:
        return claim.arm, claim.against
    arm, against = claim.than
    return f"the lead of {claim.arm} over {claim.against}", f"that of {arm} over {against}"


def is_time(claim: Hypothesis) -> bool:
    """Return whether a claim is about a time, which a run may end without."""
    return metric_of(claim.metric).kind == "time"


def measure(claim: Hypothesis) -> str:
    """The measure of a claim: "skill at length 32", "mean skill over lengths 32, 64"."""
    if is_time(claim):
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
    """Return the number of decimals that tell a bound from ±δ, where a few more can."""
    least = decimals(delta)
    enough = (n for n in range(least, least + 4) if decimal(abs(bound), n) != decimal(delta, n))
    return next(enough, least)


def arm_sentence(task: Task, arm: Arm) -> str:
    """Say whether an arm holds, falls below the threshold, or did not learn."""
    if arm.seeds and arm.count("not_applicable") == len(arm.seeds):
        reasons = {(one.reason or "it cannot be asked").rstrip(".") for one in arm.seeds.values()}
        return f"does not apply: {'; '.join(sorted(reasons))}."
    if not task.has_skill:
        done = runs_done(arm.count("done"), len(arm.seeds))
        lost = {(one.reason or one.status).rstrip(".") for one in arm.lost.values()}
        why = "; ".join(sorted(lost))
        return " ".join([f"{done}{': ' * bool(why)}{why}.", *_remarks(arm)])
    return " ".join([_outcome(task, arm), *_remarks(arm)])


def _outcome(task: Task, arm: Arm) -> str:
    """Say how far an arm holds, or why that is not known."""
    found, longest, threshold = arm.reach(task.threshold), task.trained[1], task.threshold
    if arm.reason:
        return f"has no result: {arm.reason}."
    if found.skill is not None and not found.learned:
        missed = seldom_learned(arm.learners(threshold), len(arm.seeds))
        below = f"skill {_below(found.skill, threshold)} at length {longest}"
        return f"{missed}: {below}, the longest trained (below {threshold})."
    if found.last_length_above is None:
        over = bool(arm.seeds) and not arm.count(*PENDING)
        return f"has no result at length {longest}." if over else "has no result yet."
    return _held(arm, found, found.last_length_above, longest, threshold)


def _held(arm: Arm, found: Reach, held: int, longest: int, threshold: float) -> str:
    """Say how far beyond the trained lengths the mean skill stays above the threshold."""
    if found.unmeasured is not None:
        return f"holds to length {held}; it cannot be asked at length {found.unmeasured}."
    if found.first_length_below is not None and found.skill is not None:
        still = arm.interval("skill", held) if held > longest else None
        last = "" if still is None else f"; still {number(still.mean)} at {held}"
        text = f"(skill {_below(found.skill, threshold)}{last})"
        return f"falls below {threshold} at length {found.first_length_below} {text}."
    if held == longest:
        return f"learns the trained lengths; no longer one is tested than {longest}."
    values = arm.values("skill", held).values()
    # A seed without a value did not hold: it stays in the count.
    kept = sum(value >= threshold for value in values)
    seeds = out_of(kept, len(arm.seeds), "seed")
    mean = number(t_interval(values).mean)
    if len(values) < len(arm.seeds):
        return f"holds to length {held} in {seeds} only (skill {mean} where it was measured)."
    return f"holds to length {held} (skill {mean}; {threshold} or more in {seeds})."


def _below(skill: float, threshold: float) -> str:
    return short_of(skill, threshold).replace("0.", ".", 1)


def _remarks(arm: Arm) -> list[str]:
    lost = arm.count("diverged"), arm.count("failed"), len(arm.seeds)
    remarks = [f"{text}." for text in lost_seeds(*lost, arm.has_skill)]
    choice = arm.choice
    if choice is not None and choice.setting is not None:
        for key, side in choice.edges.items():
            text = in_words({key: choice.setting[key]}).replace("_", " ")
            remarks.append(f"Its {text} is the {side} tried.")
    return [*remarks, arm.remark] if arm.remark else remarks


def fit_times(arm: Arm) -> str:
    """Say when the seeds met the criterion of fit: "2 of 3 seeds, after 40 to 60 steps".

    A seed that ended, or failed, before it met the criterion counts among all of them.
    """
    met, ended = arm.times(), arm.times(reached=False)
    text = out_of(len(met), len(arm.seeds), "seed")
    if met:
        least, most = f"{met[0]:,.0f}", f"{met[-1]:,.0f}"
        text += f", after {least} steps" if least == most else f", after {least} to {most} steps"
    if ended:
        text += f"; {len(ended)} not within {max(ended):,.0f} steps"
    return text


def changed_code(arm: str, runs: Sequence[int]) -> str:
    """The sentence on runs of an arm that were done with other code than the latest call has."""
    return f"The code of arm {arm!r} changed after {len(runs)} of its runs (first: run {runs[0]})."


def claims(verdicts: list[Verdict]) -> str:
    """Count the primary hypotheses by status, each by its name.

    A call may ask a part of the family alone.
    """
    primary = [verdict for verdict in verdicts if not verdict.exploratory]
    if not primary and verdicts:
        return (
            "No verdict follows a plan that was fixed before the confirming runs: every one is "
            "exploratory."
        )
    if not primary:
        return "This study makes no claim, so none is tested."
    groups = {
        status: [one.hypothesis.name for one in primary if one.status == status] for status in ORDER
    }
    parts = [
        f"{len(names)} {status} ({'; '.join(names)})" for status, names in groups.items() if names
    ]
    fixed = max(len(primary), *(verdict.family for verdict in primary))
    noun = "hypothesis" if fixed == 1 else "hypotheses"
    part = f", {len(primary)} asked here" if len(primary) < fixed else ""
    return f"Of {fixed} {noun} fixed before the confirming runs{part}: {', '.join(parts)}."


def contrast_name(hypothesis: Hypothesis) -> str:
    """A contrast in few signs, such as "rope > learned on shift"."""
    sign, one, other = SIGNS[hypothesis.direction], hypothesis.arm, hypothesis.against
    if hypothesis.than is not None:
        one, other = (" − ".join(pair) for pair in ((one, other), hypothesis.than))
        one, other = f"({one})", f"({other})"
    what = "" if hypothesis.metric == "skill" else f" in {hypothesis.metric}"
    return f"{one} {sign} {other}{what} on {hypothesis.panel}"


def reaches(tasks: list[Task], lines: "list[Line]") -> str:
    """Say which arms hold furthest beyond the trained lengths, and which did not learn, by task."""
    trained = [task for task in tasks if task.has_skill]
    if not trained:
        return outcomes(lines) or f"measured were {listed([task.label for task in tasks])}."
    short = [task for task in trained if max(task.lengths) <= task.trained[1]]
    if len(short) == len(trained) > 1:
        parts, threshold = [_learned(task) for task in trained], trained[0].threshold
        return f"skill {threshold:g} at the trained lengths is reached by {listed(parts)}."
    return "; ".join(_furthest(task) + _lost(task) for task in trained) + "."


def outcomes(lines: "list[Line]") -> str:
    """Count the outcomes; all but the commonest are named while they are few."""
    if not lines:
        return ""
    groups: dict[str, list[str]] = {}
    for line in lines:
        groups.setdefault(line.outcome, []).append(line.asked)
    commonest, *others = sorted(groups, key=lambda outcome: -len(groups[outcome]))
    parts = [f"{len(groups[commonest])} of {len(lines)} {commonest}"]
    for outcome in others:
        asked = groups[outcome]
        names = f" ({'; '.join(asked)})" if len(asked) <= NAMED else ""
        parts.append(f"{len(asked)} {outcome}{names}")
    return f"{', '.join(parts)}."


def _learned(task: Task) -> str:
    learned = sum(bool(arm.reach(task.threshold).learned) for arm in task.arms)
    return f"{out_of(learned, len(task.arms), 'arm')} on {task.label}"


def _furthest(task: Task) -> str:
    found = {arm.name: arm.reach(task.threshold) for arm in task.arms}
    learned = {name: one for name, one in found.items() if one.learned}
    where, longest, threshold = f"on {task.label}", task.trained[1], task.threshold
    if not any(seed.ended for seed in task.seeds):
        return f"{where}, no confirming run is over yet"
    if all(one.learned is None for one in found.values()):
        return f"{where}, no arm has a result"
    idle, rest = _missed(task, found)
    if not learned:
        return f"{where}, no arm reaches skill {threshold:g} at length {longest}{rest}"
    furthest = max(one.last_length_above or 0 for one in learned.values())
    best = [name for name, one in learned.items() if one.last_length_above == furthest]
    if max(task.lengths) <= longest:
        verb = "reaches" if len(learned) == 1 else "reach"
        held = f"{verb} skill {threshold:g} at length {longest}, the longest tested"
        return f"{where}, {arms_of(list(learned), task)} {held}{idle}{rest}"
    if furthest == longest:
        return (
            f"{where}, no arm's mean skill stays at {threshold:g} or above beyond the trained "
            f"lengths{idle}{rest}"
        )
    verb = "stays" if len(best) == 1 else "stay"
    held = f"at {threshold:g} skill or above up to length {furthest}"
    others = _others({name: one for name, one in learned.items() if name not in best}, task)
    return f"{where}, {arms_of(best, task)} {verb} {held}{others}{idle}{rest}"


def _others(rest: Mapping[str, Reach], task: Task) -> str:
    """Name the arms that learned and reach less far than the best."""
    fall = sum(one.first_length_below is not None for one in rest.values())
    text = ", another arm that learned falls earlier" if fall else ""
    if fall > 1:
        text = f", the {fall} other arms that learned fall earlier"
    elif len(rest) == fall == 1:
        text = ", the other arm that learned falls earlier"
    short = [name for name, one in rest.items() if one.first_length_below is None]
    return text + (f"; {arms_of(short, task)} cannot be asked so far" if short else "")


def _missed(task: Task, found: Mapping[str, Reach]) -> tuple[str, str]:
    """Name the arms that did not learn, and those that seldom did or have no result."""
    missed = [arm for arm in task.arms if found[arm.name].learned is False]
    learners = {arm.name: arm.learners(task.threshold) for arm in missed}
    idle = [name for name, seeds in learners.items() if not seeds]
    some = [arm for arm in missed if learners[arm.name]]
    empty = [name for name, one in found.items() if one.learned is None]
    rest = ""
    if some:
        only = seldom_learned(learners[some[0].name], len(some[0].seeds))
        only = only if len(some) == 1 else "learned in a part of their seeds only"
        rest = f"; {arms_of([arm.name for arm in some], task)} {only}"
    if empty:
        rest += f"; {arms_of(empty, task)} {'has' if len(empty) == 1 else 'have'} no result"
    return f"; {arms_of(idle, task)} did not learn the trained lengths" if idle else "", rest


def _lost(task: Task) -> str:
    """Count the seeds without numbers of their own, over all arms."""
    diverged, failed = (sum(arm.count(one) for arm in task.arms) for one in ("diverged", "failed"))
    counted = all(arm.has_skill for arm in task.arms if arm.count("diverged"))
    lost = lost_seeds(diverged, failed, len(task.seeds), counted)
    return "".join(f"; {one}" for one in lost)


def arms_of(names: list[str], task: Task) -> str:
    """Name arms where they are few, else count them."""
    if len(names) > NAMED:
        return out_of(len(names), len(task.arms), "arm")
    return listed([f"“{name}”" if name in WORDS else name for name in names])


def listed(names: list[str]) -> str:
    """Join names as one reads them aloud: a, b and c; a, d = 1; b and c where they hold commas."""
    between = "; " if any(", " in name for name in names) else ", "
    return names[0] if len(names) == 1 else f"{between.join(names[:-1])} and {names[-1]}"


def counts(tasks: list[Task]) -> str:
    """Count the final runs behind the results, and those that ended without numbers."""
    seeds = [seed for task in tasks for seed in task.seeds]
    ended, lost = sum(seed.ended for seed in seeds), sum(seed.lost for seed in seeds)
    tail = f"; {lost} of them ended without numbers" if lost else ""
    left = f"; {len(seeds) - ended} still to be done" if ended < len(seeds) else ""
    return f"{ended} confirming run{'' if ended == 1 else 's'}{tail}{left}"
