"""Keys that a study declares to differ between its arms: each has to be one that a run has."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from registry.config import EncoderConfig
from registry.errors import Problem, nearest
from studies.design.merging import EXAMPLES
from studies.training.settings import Evaluation, Training

if TYPE_CHECKING:
    from studies.design.plan import Plan

FIELDS = {
    "encoder": EncoderConfig.model_fields,
    "training": Training.model_fields,
    "evaluation": Evaluation.model_fields,
}
"""The keys of the roots that hold no part with options of its own."""


def key_problems(plan: "Plan") -> Iterator[Problem]:
    """Keys that are declared to differ between arms, and that no run has."""
    match = plan.settings.study.match
    declared = [("variable", one) for one in plan.study.variables]
    declared += [("study.also_differs", one) for one in plan.settings.study.also_differs]
    declared += [("study.match.adjust", match.knob)] if match is not None else []
    for place, key in declared:
        root, _, rest = key.partition(".")
        known = [f"{root}.{one}" for one in FIELDS[root]] if root in FIELDS else [*EXAMPLES]
        asked = f"{root}.{rest.partition('.')[0]}" if root in FIELDS else root
        if asked not in known and (rest or root not in EXAMPLES):
            rule = f"no run has the key {key!r}"
            near = next(iter(nearest(asked, known)), None)
            file = plan.study.file if place == "variable" else None
            yield Problem(place, rule, key, nearest=near, file=file and str(file))
