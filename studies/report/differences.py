"""What differs between the arms of a study, and what all of them share."""

from collections.abc import Mapping
from typing import Any

from studies.answers.cost_table import cost_rows
from studies.experiment.overlays import leaves
from studies.experiment.plan import Cell, Plan

ENCODER = "encoder."


def differences(plan: Plan) -> list[tuple[str, Mapping[str, Any]]]:
    """What differs between arms: keys of their configs, and what follows without being said.

    Costs are those of the first panel, counted in the built models.
    """
    first: dict[str, Cell] = {}
    for cell in plan.cells():
        first.setdefault(cell.arm, cell)
    flat = {arm: dict(leaves(plan.config(cell).plain())) for arm, cell in first.items()}
    changed = sorted({key for label in plan.labels() for key in _changed(plan, label)})
    rows: list[tuple[str, Mapping[str, Any]]] = [
        (key, {arm: _shown(one.get(key)) for arm, one in flat.items()}) for key in changed
    ]
    costs = {arm: cost_rows(plan.config(cell)) for arm, cell in first.items()}
    heads = dict.fromkeys(head for one in costs.values() for head in one)
    rows += [(head, {arm: one.get(head, "") for arm, one in costs.items()}) for head in heads]
    match = plan.settings.study.match
    if match is not None:
        reference = plan.reference
        told = {arm: "reference" if arm == reference else "matched" for arm in first}
        rows.append((f"matched: {match}", told))
    return rows


def _changed(plan: Plan, label: str) -> list[str]:
    """The keys in which arms of one panel differ; one without an encoder has none of its keys."""
    here = [cell for cell in plan.cells() if cell.task == label]
    flat = [dict(leaves(plan.config(cell).plain())) for cell in here]
    built = [one for one in flat if any(key.startswith(ENCODER) for key in one)]
    keys = {key for one in flat for key in one}
    return [
        key
        for key in keys
        for having in [built if key.startswith(ENCODER) else flat]
        if len({repr(one.get(key)) for one in having}) > 1
    ]


def _shown(value: Any) -> str:
    if isinstance(value, Mapping) and "name" in value:
        options = ", ".join(f"{key}={one}" for key, one in value.items() if key != "name")
        return f"{value['name']} ({options})" if options else str(value["name"])
    if isinstance(value, list) and any(isinstance(one, Mapping) for one in value):
        return ", ".join(map(_shown, value))
    return "" if value is None else str(value)


def shared(plan: Plan) -> dict[str, str]:
    """The settings that every run shares, under dotted keys."""
    flat = [dict(leaves(plan.config(cell).plain())) for cell in plan.cells()]
    tuned = {key for setting in plan.settings.study.settings() for key in setting}
    return {
        key: "none" if value is None else _shown(value)
        for key, value in flat[0].items()
        if key not in tuned and all(repr(one.get(key)) == repr(value) for one in flat)
    }
