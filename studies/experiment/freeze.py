"""Freeze the plan of a study before its first confirming run; what comes later is exploratory."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from registry.config import hash_of, without_defaults
from studies.experiment.draft import Draft
from studies.experiment.hypothesis import Frozen, Hypothesis
from studies.experiment.plan import Plan

if TYPE_CHECKING:
    from store.ledger import Ledger
    from store.records import Frozen as Kept
    from store.results import Results


CHOSEN_LATER = ("panels", "arms", "factors", "only", "seeds", "hypotheses", "explored")
"""Settings of the study that may change without making another protocol of it."""

SELECTION = {
    "lowest": "lowest mean validation nll at trained lengths",
    "middle": "of the settings whose mean validation nll at trained lengths is as good as the "
    "lowest, the one nearest to the middle of the list",
}
"""The rules of choosing a setting, in words."""


def protocol_of(draft: Draft) -> dict[str, Any]:
    """The protocol to freeze: question, arms, tasks, hypotheses and number of seeds.

    `frame` and `panels` are fingerprints of the rest: with another one, runs are other runs. They
    leave out what is as by default, as the identity of a run does, so that a new setting with its
    default makes no other protocol.
    """
    settings, match = without_defaults(draft.settings), draft.settings.study.match
    study = {key: one for key, one in settings["study"].items() if key not in CHOSEN_LATER}
    shared = {**settings, "study": study, "study name": draft.study.name}
    panels = [
        without_defaults(panel.model_copy(update={"arms": None}))
        for panel in draft.settings.study.panels
    ]
    return {
        "question": draft.study.question,
        "variables": list(draft.variables),
        "arms": list(draft.arms),
        "seeds": draft.settings.study.seeds,
        "hypotheses": [_plain(one) for one in draft.settings.study.hypotheses],
        "tried": draft.settings.study.settings(),
        "selection": SELECTION[draft.settings.study.ties],
        "match": match and {**match.model_dump(), "to": draft.reference},
        "frame": hash_of(shared),
        "panels": {label: hash_of(one) for label, one in zip(draft.labels(), panels, strict=True)},
    }


def kept_for(plan: Plan, results: "Results") -> "Kept | None":
    """The first protocol that was frozen for the runs of this plan; None where there is none."""
    protocol = plan.frozen
    for kept in results.protocols(study=plan.study):
        same = kept.protocol.get("frame") == protocol["frame"]
        if same and _panels(kept.protocol) & _panels(protocol):
            return kept
    return None


def freeze(plan: Plan, ledger: "Ledger", results: "Results", run_ids: Sequence[int]) -> "Kept":
    """The first protocol that was frozen for the runs of this plan; this one, if there is none.

    `run_ids` are the confirming runs of the plan so far.
    """
    return kept_for(plan, results) or ledger.freeze(plan.study, plan.frozen, run_ids)


def frozen_for(plan: Plan, kept: "Kept") -> Frozen:
    """The family and seeds that a stored protocol fixed for this plan; empty if runs preceded it.

    Nor is anything fixed for a call with fewer seeds than were announced. A call for a part of the
    arms or panels judges its claims as members of the whole family.
    """
    announced, protocol = kept.protocol, plan.frozen
    if kept.runs_before or plan.protocol.seeds < announced["seeds"]:
        return Frozen((), ())
    panels = {label for label, _ in _panels(announced) & _panels(protocol)}
    family = [_claim(one) for one in announced["hypotheses"]]
    family = [one for one in family if _was_asked(one, announced)]
    claims = tuple(one for one in family if one.panel in panels)
    return Frozen(claims, tuple(range(announced["seeds"])), len(family))


def _was_asked(claim: Hypothesis, announced: Mapping[str, Any]) -> bool:
    """A protocol lists what a study claims about arms that were no part of the plan, too."""
    return set(claim.arms) <= set(announced["arms"]) and claim.panel in announced["panels"]


def _panels(protocol: dict[str, Any]) -> set[tuple[str, str]]:
    return set(protocol.get("panels", {}).items())


def _plain(hypothesis: Hypothesis) -> dict[str, Any]:
    return {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in asdict(hypothesis).items()
        if value is not None
    }


def _claim(plain: Mapping[str, Any]) -> Hypothesis:
    told: dict[str, Any] = {
        key: tuple(one) if isinstance(one, list) else one for key, one in plain.items()
    }
    return Hypothesis(**told)
