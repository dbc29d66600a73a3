"""Contrasts: which hypotheses a call can ask, and that one thing changes between their arms."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from registry.problems import Problem
from studies.hypothesis import Hypothesis
from studies.merging import lies_under

if TYPE_CHECKING:
    from studies.plan import Cell, Plan


@dataclass(frozen=True)
class Difference:
    """One key in which two configs differ, with the value of each."""

    key: str
    arm: Any
    against: Any

    def __str__(self) -> str:
        return f"{self.key}: {_shown(self.arm)} against {_shown(self.against)}"


def asked(plan: "Plan") -> list[Hypothesis]:
    """The hypotheses that this call can decide."""
    return [claim for claim in plan.settings.study.claims() if not why_not_asked(plan, claim)]


def why_not_asked(plan: "Plan", claim: Hypothesis) -> str:
    """Why a call cannot decide a hypothesis, or ""."""
    arms = [arm for arm in (claim.arm, claim.against) if arm not in plan.arms]
    if arms:
        return f"no arm {arms[0]!r} in this call"
    if claim.panel not in plan.labels():
        return f"no panel {claim.panel!r} in this call"
    tested = plan.config(plan.cell(claim.panel, claim.arm)).evaluation.test_lengths
    untested = [length for length in claim.lengths if length not in tested]
    return f"length {untested[0]} is not tested in this call" if untested else ""


def differences(plan: "Plan", claim: Hypothesis) -> list[Difference]:
    """Every key in which the configs of the two arms of a hypothesis differ."""
    arm, against = (
        _flat(_config(plan, plan.cell(claim.panel, name))) for name in (claim.arm, claim.against)
    )
    return [
        Difference(key, arm.get(key), against.get(key))
        for key in sorted({*arm, *against})
        if arm.get(key) != against.get(key)
    ]


def undeclared(plan: "Plan", claim: Hypothesis) -> list[Difference]:
    """The differences that are neither the variable of the study nor declared beside it."""
    declared = (*plan.variables, *plan.settings.study.also_differs)
    return [one for one in differences(plan, claim) if not lies_under(one.key, declared)]


def contrast_problems(plan: "Plan") -> list[Problem]:
    """What is wrong with the contrasts: more than one thing changes, or nothing."""
    problems: list[Problem] = []
    for claim in asked(plan):
        problems += _problems(plan, claim)
    return problems


def _problems(plan: "Plan", claim: Hypothesis) -> list[Problem]:
    key = f"study.hypotheses ({claim.name})"
    pair = f"{claim.arm} and {claim.against}"
    found = differences(plan, claim)
    if not found:
        return [Problem(key, f"{pair} have the same config, so there is nothing to compare")]
    strange = undeclared(plan, claim)
    if strange:
        rule = (
            f"one thing changes in a contrast, but {pair} differ in {'; '.join(map(str, strange))} "
            f"beside {' and '.join(plan.variables) or 'the variable'}; declare it in "
            "study.also_differs, and it is shown with the answer"
        )
        return [Problem(key, rule)]
    levels = [plan.arms[name].levels for name in (claim.arm, claim.against)]
    moved = [factor for factor in levels[0] if levels[0][factor] != levels[1].get(factor)]
    if len(moved) > 1 and not set(moved) <= set(plan.settings.study.also_differs):
        rule = f"one thing changes in a contrast, but {pair} differ in {' and '.join(moved)}"
        return [Problem(key, rule)]
    return []


def _config(plan: "Plan", cell: "Cell") -> dict[str, Any]:
    return plan.config(cell).plain()


def _flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The plain values of a config under their dotted keys."""
    found: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, Mapping) and value:
            found |= _flat(value, f"{prefix}{key}.")
        else:
            found[prefix + key] = value
    return found


def _shown(value: Any) -> str:
    return "nothing" if value is None else str(value)
