"""The sentences of a report; each follows from the findings and says nothing more."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from studies.analysis.phrases import lost_seeds, out_of, seldom_learned
from studies.analysis.results import Reach, reach
from studies.experiment.hypothesis import SIGNS
from studies.report.findings import Arm, Findings, Panel

if TYPE_CHECKING:
    from studies.experiment.hypothesis import Hypothesis
    from studies.statistics import Verdict


COLOUR_OF = {
    "supported": "#00785a",
    "refuted": "#b3261e",
    "inconclusive": "#8a5a00",
    "not tested": "#6b7080",
}
"""The colour of each status of a verdict."""

ORDER = tuple(COLOUR_OF)
NAMED = 6
"""So many arms are named in a sentence; more are counted."""
WORDS = ("none", "nothing", "all")
"""Names of arms that would read as words of the sentence."""


def answer(findings: Findings) -> list[str]:
    """The answer in two sentences: what became of the claims, and how far the arms reach."""
    return [claims(findings.verdicts), reaches(findings)]


def claims(verdicts: list["Verdict"]) -> str:
    """How many of the primary hypotheses came to what, each by its name.

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
        status: [verdict for verdict in primary if verdict.status == status] for status in ORDER
    }
    told = [
        f"{len(group)} {status} ({'; '.join(v.hypothesis.name for v in group)})"
        for status, group in groups.items()
        if group
    ]
    fixed = max(len(primary), *(verdict.family for verdict in primary))
    noun = "hypothesis" if fixed == 1 else "hypotheses"
    part = f", {len(primary)} asked here" if len(primary) < fixed else ""
    return f"Of {fixed} {noun} fixed before the confirming runs{part}: {', '.join(told)}."


def contrast_name(hypothesis: "Hypothesis") -> str:
    """A contrast in few signs, such as "rope > learned on shift"."""
    sign, one, other = SIGNS[hypothesis.direction], hypothesis.arm, hypothesis.against
    if hypothesis.than is not None:
        one, other = (" − ".join(pair) for pair in ((one, other), hypothesis.than))
        one, other = f"({one})", f"({other})"
    what = "" if hypothesis.metric == "skill" else f" in {hypothesis.metric}"
    return f"{one} {sign} {other}{what} on {hypothesis.panel}"


def reaches(findings: Findings) -> str:
    """Which arms hold furthest beyond the trained lengths, and which did not learn, by panel."""
    trained = [panel for panel in findings.panels if panel.has_skill]
    if not trained:
        return outcomes(findings) or f"measured were {listed([p.label for p in findings.panels])}."
    short = [panel for panel in trained if max(panel.lengths) <= panel.trained[1]]
    if len(short) == len(trained) > 1:
        told = [_learned(panel, findings.threshold) for panel in trained]
        return f"skill {findings.threshold:g} at the trained lengths is reached by {listed(told)}."
    told = [_furthest(panel, findings.threshold) + _lost(panel) for panel in trained]
    return "; ".join(told) + "."


def outcomes(findings: Findings) -> str:
    """How often each outcome was found; all but the commonest are named while they are few."""
    if not findings.lines:
        return ""
    groups: dict[str, list[str]] = {}
    for line in findings.lines:
        groups.setdefault(line.outcome, []).append(line.asked)
    commonest, *others = sorted(groups, key=lambda outcome: -len(groups[outcome]))
    told = [f"{len(groups[commonest])} of {len(findings.lines)} {commonest}"]
    for outcome in others:
        asked = groups[outcome]
        names = f" ({'; '.join(asked)})" if len(asked) <= NAMED else ""
        told.append(f"{len(asked)} {outcome}{names}")
    return f"{', '.join(told)}."


def _learned(panel: Panel, threshold: float) -> str:
    learned = sum(bool(reach_of(arm, panel, threshold).learned) for arm in panel.arms)
    return f"{out_of(learned, len(panel.arms), 'arm')} on {panel.label}"


def _furthest(panel: Panel, threshold: float) -> str:
    found = {arm.name: reach_of(arm, panel, threshold) for arm in panel.arms}
    learned = {name: one for name, one in found.items() if one.learned}
    where, longest = f"on {panel.label}", panel.trained[1]
    if not any(seed.ended for arm in panel.arms for seed in arm.seeds):
        return f"{where}, no confirming run is over yet"
    if all(one.learned is None for one in found.values()):
        return f"{where}, no arm has a result"
    missed = _missed(panel, found, threshold)
    if not learned:
        only = _seldom(panel, found, threshold) + _empty(panel, found)
        return f"{where}, no arm reaches skill {threshold:g} at length {longest}{only}"
    furthest = max(one.held or 0 for one in learned.values())
    best = [name for name, one in learned.items() if one.held == furthest]
    verb = "stays" if len(best) == 1 else "stay"
    others = _others({name: one for name, one in learned.items() if name not in best}, panel)
    if max(panel.lengths) <= longest:
        verb = "reaches" if len(learned) == 1 else "reach"
        held = f"{verb} skill {threshold:g} at length {longest}, the longest tested"
        return f"{where}, {arms_of(list(learned), panel)} {held}{missed}"
    if furthest == longest:
        return (
            f"{where}, no arm's mean skill stays at {threshold:g} or above beyond the trained "
            f"lengths{missed}"
        )
    held = f"at {threshold:g} skill or above up to length {furthest}"
    return f"{where}, {arms_of(best, panel)} {verb} {held}{others}{missed}"


def _others(rest: Mapping[str, Reach], panel: Panel) -> str:
    """What became of the arms that learned and reach less far than the best."""
    fall = sum(one.fell is not None for one in rest.values())
    told = f", the {fall} other arms that learned fall earlier" if fall > 1 else ""
    told = ", the other arm that learned falls earlier" if len(rest) == fall == 1 else told
    told = told or (", another arm that learned falls earlier" if fall else "")
    short = [name for name, one in rest.items() if one.fell is None]
    return told + (f"; {arms_of(short, panel)} cannot be asked so far" if short else "")


def _missed(panel: Panel, found: Mapping[str, Reach], threshold: float) -> str:
    """Which arms did not learn, which did in some seeds, and which have no result."""
    idle = [
        arm.name
        for arm in panel.arms
        if found[arm.name].learned is False and not _learners(arm, panel, threshold)
    ]
    told = f"; {arms_of(idle, panel)} did not learn the trained lengths" if idle else ""
    return told + _seldom(panel, found, threshold) + _empty(panel, found)


def _empty(panel: Panel, found: Mapping[str, Reach]) -> str:
    """Which arms have no result."""
    empty = [name for name, one in found.items() if one.learned is None]
    has = "has" if len(empty) == 1 else "have"
    return f"; {arms_of(empty, panel)} {has} no result" if empty else ""


def _lost(panel: Panel) -> str:
    """How many seeds ended without numbers of their own, over all arms."""
    diverged, failed = (sum(arm.count(one) for arm in panel.arms) for one in ("diverged", "failed"))
    total = sum(len(arm.seeds) for arm in panel.arms)
    counted = all(_is_counted(arm) for arm in panel.arms if arm.count("diverged"))
    return "".join(f"; {told}" for told in lost_seeds(diverged, failed, total, counted))


def _is_counted(arm: Arm) -> bool:
    """Has the arm a skill, among which its diverged seeds count?"""
    return any(metric == "skill" for seed in arm.seeds for _, metric, _ in seed.values)


def _seldom(panel: Panel, found: Mapping[str, Reach], threshold: float) -> str:
    """Which arms learned in some of their seeds, and in too few for their mean."""
    some = [
        arm
        for arm in panel.arms
        if found[arm.name].learned is False and _learners(arm, panel, threshold)
    ]
    if not some:
        return ""
    names = arms_of([arm.name for arm in some], panel)
    if len(some) > 1:
        return f"; {names} learned in a part of their seeds only"
    return f"; {names} {seldom_learned(_learners(some[0], panel, threshold), len(some[0].seeds))}"


def _learners(arm: Arm, panel: Panel, threshold: float) -> int:
    """How many seeds learned the trained lengths."""
    longest = panel.trained[1]
    values = arm.values("skill", longest) or arm.values("skill", longest, "validation")
    return sum(value >= threshold for value in values.values())


def reach_of(arm: Arm, panel: Panel, threshold: float) -> Reach:
    """How far an arm holds on a panel."""
    return reach(arm, panel.trained[1], panel.lengths, threshold)


def arms_of(names: list[str], panel: Panel) -> str:
    """Arms by name where they are few, else how many they are."""
    if len(names) > NAMED:
        return out_of(len(names), len(panel.arms), "arm")
    return listed([f"“{name}”" if name in WORDS else name for name in names])


def listed(names: list[str]) -> str:
    """Names as one reads them aloud: a, b and c; a, d = 1; b and c where commas are in them."""
    between = "; " if any(", " in name for name in names) else ", "
    return names[0] if len(names) == 1 else f"{between.join(names[:-1])} and {names[-1]}"


def counts(findings: Findings) -> str:
    """How many runs stand behind the page, and how many of them ended without numbers."""
    seeds = [seed for panel in findings.panels for arm in panel.arms for seed in arm.seeds]
    ended = sum(seed.ended for seed in seeds)
    lost = sum(seed.ended and not seed.ended_well for seed in seeds)
    tail = f"; {lost} of them ended without numbers" if lost else ""
    left = f"; {len(seeds) - ended} still to be done" if ended < len(seeds) else ""
    return f"{ended} confirming run{'' if ended == 1 else 's'}{tail}{left}"


def methods(findings: Findings) -> str:
    """How the study was done, in the words of a methods section."""
    trained = [panel for panel in findings.panels if panel.task]
    tuned = any(arm.tuning for panel in findings.panels for arm in panel.arms)
    told = [
        _training(findings, trained) if trained else _measuring(findings),
        _replicates(findings, tuned),
        "Intervals of means are Student's over seeds; shares of seeds have Wilson's.",
    ]
    if trained:
        told.insert(1, _tuning(findings, tuned))
    if findings.verdicts:
        told.append(_contrasts(findings.verdicts))
    return " ".join([*told, *_counted_as(trained), "No seed was dropped."])


def _contrasts(verdicts: "list[Verdict]") -> str:
    """How the claims were tested: each kind that there is, and the families they form."""
    from studies.analysis.results import TIMES

    claims = [verdict.hypothesis for verdict in verdicts]
    whole = [claim for claim in claims if claim.than is None]
    tests = {
        "a studentized two-sample permutation test over seeds": [
            claim for claim in whole if claim.metric not in TIMES or claim.direction == "same"
        ],
        "a permutation log-rank test where they are about times": [
            claim for claim in whole if claim.metric in TIMES and claim.direction != "same"
        ],
        "permuted residuals of the additive model (Freedman & Lane) where they are interactions": [
            claim for claim in claims if claim.than is not None
        ],
    }
    used = listed([name for name, tested in tests.items() if tested])
    fixed = any(not verdict.exploratory for verdict in verdicts)
    families = ["the family fixed before the first confirming run"] if fixed else []
    if any(verdict.exploratory for verdict in verdicts):
        later = "those that came later" if fixed else "their family, none being fixed beforehand"
        families.append(f"{later} (exploratory)")
    return (
        f"Contrasts are tested by {used}, with Holm's correction over {listed(families)}, and "
        "judged by simultaneous intervals against the smallest effect of interest."
    )


def _training(findings: Findings, trained: list[Panel]) -> str:
    known = findings.hyperparameters
    tasks = listed(
        [
            f"{panel.task} ({panel.steps} steps on lengths {panel.trained[0]} to "
            f"{panel.trained[1]})"
            for panel in trained
        ]
    )
    return (
        f"We trained every arm from scratch on {tasks}, with AdamW, "
        f"batches of {known.get('training.batch_size')} sequences and the "
        f"{known.get('training.schedule')} schedule with {known.get('training.warmup_steps')} "
        "warm-up steps."
    )


def _measuring(findings: Findings) -> str:
    labels = listed([panel.label for panel in findings.panels])
    return f"Nothing was trained: we measured every arm on {labels}."


def _tuning(findings: Findings, tuned: bool) -> str:
    if not tuned:
        return "Every arm was trained with the same settings; none was tuned."
    return (
        "Each arm tried the same settings on seeds kept apart, and one was chosen: "
        f"{findings.selection} (nll: validation cross-entropy); test lengths had no say."
    )


def _replicates(findings: Findings, tuned: bool) -> str:
    seeds = sorted({len(arm.seeds) for panel in findings.panels for arm in panel.arms})
    counted = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    noun = "seed" if seeds == [1] else "seeds"
    run = (
        f"The chosen setting was then run on {counted} fresh {noun} an arm"
        if tuned
        else (f"It was run on {counted} {noun} an arm")
    )
    return f"{run}; every arm saw the same data and the same test sets in each replicate."


def _counted_as(trained: list[Panel]) -> list[str]:
    """What seeds without numbers of their own were counted as."""
    arms = [arm for panel in trained for arm in panel.arms]
    told: list[str] = []
    if any(arm.count("diverged") for arm in arms):
        told.append("A seed that diverged counts as one that learned nothing.")
    if any(arm.count("failed") for arm in arms):
        told.append(
            "A run that failed is in no mean; a verdict is given only where it is the same "
            "whatever that run would have scored."
        )
    return told


def latex_table(findings: Findings) -> str:
    r"""The hyperparameters as a LaTeX table; needs \usepackage{booktabs}."""
    rows = "\n".join(
        rf"{_escaped(key)} & {_escaped(str(value))} \\"
        for key, value in findings.hyperparameters.items()
    )
    head = "\\begin{tabular}{ll}\n\\toprule\nSetting & Value \\\\\n\\midrule"
    return f"{head}\n{rows}\n\\bottomrule\n\\end{{tabular}}\n"


SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}


def _escaped(text: str) -> str:
    return "".join(SPECIAL.get(sign, sign) for sign in text)
