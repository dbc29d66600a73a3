"""Contrasts: which hypotheses a call can ask, and that one thing changes between their arms."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from registry.errors import ConfigError, Problem, nearest_one
from registry.registry import registry_of
from store.metrics import METRICS, metric_of
from studies.experiment.draft import Draft
from studies.experiment.hypothesis import Hypothesis
from studies.experiment.overlays import differing, lies_under
from studies.experiment.plan import Difference


def asked(draft: Draft) -> list[Hypothesis]:
    """The hypotheses that this call can decide."""
    return [claim for claim in draft.settings.study.claims() if not why_not_asked(draft, claim)]


def why_not_asked(draft: Draft, claim: Hypothesis) -> str:
    """The reason why a call cannot decide a hypothesis, or ""."""
    arms = [arm for arm in claim.arms if arm not in draft.arms]
    if arms:
        return f"no arm {arms[0]!r} in this call; its arms: {', '.join(draft.arms)}"
    if claim.panel not in draft.labels():
        return f"no panel {claim.panel!r} in this call; its panels: {', '.join(draft.labels())}"
    panel = draft.labels().index(claim.panel)
    absent = [arm for arm in claim.arms if not draft.is_on(panel, arm)]
    if absent:
        return f"the panel {claim.panel!r} is not for the arm {absent[0]!r}"
    if metric_of(claim.metric).kind == "time":
        return ""
    return next((why for arm in claim.arms if (why := _untested(draft, claim, arm))), "")


def _untested(draft: Draft, claim: Hypothesis, name: str) -> str:
    """Which length of a hypothesis is not tested with this arm, or ""."""
    try:
        tested = draft.config(draft.cell(claim.panel, name)).evaluation.test_lengths
    except ConfigError:
        return ""  # what is wrong with the arm is told of the arm
    untested = [length for length in claim.lengths if length not in tested]
    if not untested:
        return ""
    return f"length {untested[0]} is not tested in this call, but {', '.join(map(str, tested))}"


def simple_contrasts(claim: Hypothesis) -> list[tuple[str, str]]:
    """The pairs of arms between which one thing changes: one pair, or the four of an interaction.

    The first change is made under two levels of the second factor, and the other way round.
    """
    if claim.than is None:
        return [(claim.arm, claim.against)]
    arm, against = claim.than
    return [(claim.arm, claim.against), (arm, against), (claim.arm, arm), (claim.against, against)]


def differences(draft: Draft, claim: Hypothesis) -> list[Difference]:
    """Every key in which the configs of two arms of a hypothesis differ, each once."""
    found = [one for pair in simple_contrasts(claim) for one in _between(draft, claim.panel, pair)]
    return list(dict.fromkeys(found))


def _between(draft: Draft, panel: str, pair: tuple[str, str]) -> list[Difference]:
    configs = [draft.config(draft.cell(panel, name)).plain() for name in pair]
    # A model of one's own stands in place of the whole encoder: that is one difference, not fifty.
    one_model = len({bool(config.get("encoder")) for config in configs}) > 1
    arm, against = (
        _flat({key: one for key, one in config.items() if key != "encoder" or not one_model})
        for config in configs
    )
    return [
        Difference(key, arm.get(key), against.get(key)) for key in sorted(differing(arm, against))
    ]


def _undeclared(draft: Draft, found: Iterable[Difference]) -> list[Difference]:
    """The differences that are neither a variable of the study nor declared beside it.

    The knob by which arms are matched is declared with `study.match`.
    """
    match = draft.settings.study.match
    knob = () if match is None else (match.knob,)
    declared = (*draft.variables, *draft.settings.study.also_differs, *knob)
    return [one for one in found if not lies_under(one.key, declared)]


def beside(draft: Draft, claim: Hypothesis) -> list[Difference]:
    """The differences that are declared to go along with the variables of the study."""
    found = differences(draft, claim)
    strange, also = _undeclared(draft, found), draft.settings.study.also_differs
    about = [one for one in draft.variables if one not in also]
    return [one for one in found if one not in strange and not lies_under(one.key, about)]


def contrast_problems(draft: Draft) -> list[Problem]:
    """The problems of contrasts in which several things change, or nothing."""
    problems: list[Problem] = []
    for claim in asked(draft):
        key = f"study.hypotheses ({claim.name})"
        rules = [rule for pair in simple_contrasts(claim) for rule in _of_pair(draft, claim, pair)]
        rules += [*_of_interaction(draft, claim), *_of_time(draft, claim), *_of_size(claim)]
        problems += [*(Problem(key, rule) for rule in rules), *_of_metric(draft, claim, key)]
    return problems


def _of_pair(draft: Draft, claim: Hypothesis, pair: tuple[str, str]) -> Iterator[str]:
    shown, found = " and ".join(pair), _between(draft, claim.panel, pair)
    if not found:
        yield f"{shown} have the same config, so there is nothing to compare"
        return
    strange = _undeclared(draft, found)
    if strange:
        variable = " and ".join(draft.variables) or "the variable"
        yield (
            f"one thing changes in a contrast, but {shown} differ in "
            f"{'; '.join(map(str, strange))} beside {variable}; declare it in "
            "study.also_differs, and it is shown with the answer"
        )
        return
    moved = _moved(draft, found)
    if len(moved) > 1:
        yield (
            f"one thing changes in a contrast, but {shown} differ in {' and '.join(moved)}; "
            "compare arms that share the others, or declare those in study.also_differs"
        )


def _moved(draft: Draft, found: Iterable[Difference]) -> list[str]:
    """The variables that differ, but for those that are declared to go along."""
    declared, keys = draft.settings.study.also_differs, [one.key for one in found]
    free = [one for one in draft.variables if one not in declared]
    return [one for one in free if any(lies_under(key, [one]) for key in keys)]


def _of_interaction(draft: Draft, claim: Hypothesis) -> Iterator[str]:
    """The second pair makes the same change as the first."""
    if claim.than is None:
        return
    varied = draft.variables
    first, second = (
        {str(one) for one in _between(draft, claim.panel, pair) if lies_under(one.key, varied)}
        for pair in ((claim.arm, claim.against), claim.than)
    )
    if first != second:
        yield (
            f"an interaction compares one change under two levels of another factor, but "
            f"{claim.arm} against {claim.against} changes {'; '.join(sorted(first))} and "
            f"{claim.than[0]} against {claim.than[1]} changes {'; '.join(sorted(second))}"
        )


def _of_size(claim: Hypothesis) -> Iterator[str]:
    """An effect that no two arms can have was most likely meant in points."""
    if metric_of(claim.metric).kind == "share" and claim.smallest_effect >= 1:
        yield (
            f"{claim.metric} is a share, in which no two arms differ by 1 or more; got "
            f"smallest_effect={claim.smallest_effect:g}; five points are 0.05"
        )


def _of_time(draft: Draft, claim: Hypothesis) -> Iterator[str]:
    """A time is measured at the longest trained length, where a criterion of fit is looked at."""
    if metric_of(claim.metric).kind != "time":
        return
    for arm in claim.arms:
        training = draft.config(draft.cell(claim.panel, arm)).training
        if training.until is None:
            yield f"{claim.metric} needs a criterion of fit; say it in training.until"
            return
        if claim.lengths != (training.train_lengths[1],):
            longest = training.train_lengths[1]
            yield f"{claim.metric} is asked at the longest trained length; say lengths: [{longest}]"
            return


def _of_metric(draft: Draft, claim: Hypothesis, key: str) -> Iterator[Problem]:
    """A run that trains has the usual scores and those of its probes; others name their own."""
    config = draft.config(draft.cell(claim.panel, claim.arm))
    if config.perform is not None:
        return
    probes = [registry_of("probe")[probe.name] for probe in config.evaluation.probes]
    if any(probe.metrics is None for probe in probes):
        return
    usual = [name for name, one in METRICS.items() if one.direction is not None]
    known = (*usual, *(metric for probe in probes for metric in probe.metrics))
    if re.split(r"[.\[]", claim.metric)[0] not in known:
        rule = (
            f"no run has the metric {claim.metric!r} without a probe in evaluation.probes; "
            f"measured are {', '.join(known)}"
        )
        if probes:
            rule = f"no run has the metric {claim.metric!r}; measured are {', '.join(known)}"
        near = nearest_one(claim.metric, known)
        yield Problem(key, rule, claim.metric, nearest=near)


def _flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The plain values of a config under their dotted keys."""
    found: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, Mapping) and value:
            found |= _flat(value, f"{prefix}{key}.")
        else:
            found[prefix + key] = value
    return found
