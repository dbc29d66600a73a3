"""In what a call of a published table differs from the protocol of its source."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from studies.experiment.overlays import leaves
from studies.experiment.overrides import gather
from studies.experiment.plan import Plan
from studies.experiment.settings import Settings
from studies.published.study import PAPER
from studies.published.table import Published

SHOWN = 4
"""Of a longer list only its ends are shown."""


def told(table: Published, plan: Plan) -> list[str]:
    """What ours always does otherwise, then what this call does."""
    return [*table.protocol.differences, *differences(table, plan)]


def differences(table: Published, plan: Plan) -> list[str]:
    """Rows and arms that are left out, then every setting that is another than the source's."""
    paper = gather(plan.study.budgets[PAPER].settings)
    ours, theirs = dict(_leaves(plan.settings)), dict(_leaves(paper))
    lines = [
        f"{key}: {shown(ours.get(key))} here, {shown(theirs.get(key))} there"
        for key in (*ours, *(key for key in theirs if key not in ours))
        if ours.get(key) != theirs.get(key)
    ]
    return [*_left_out("rows", table.runnable_rows(), plan.labels()),
            *_left_out("columns", table.runnable_arms(), plan.arms), *lines]  # fmt: skip


def _left_out(what: str, every: Mapping[str, Any], here: Any) -> Iterator[str]:
    missing = [one for one in every if one not in here]
    if missing:
        yield f"{what} not run in this call: {', '.join(missing)}"


def _leaves(settings: Settings) -> Iterator[tuple[str, Any]]:
    """What the protocol of a source may say, by dotted key."""
    yield from leaves({"encoder": _plain(settings.encoder)})
    yield from leaves({"training": settings.training.model_dump()})
    yield from leaves({"evaluation": settings.evaluation.model_dump(exclude={"batch_size"})})
    yield "study.seeds", settings.study.seeds
    yield "study.learning_rates", settings.study.learning_rates
    yield "study.tuning_seeds", settings.study.tuning_seeds
    for panel in settings.study.panels:
        if panel.perform is not None:
            options = panel.perform.model_dump(exclude={"name"})
            yield from leaves({f"{panel.label}.perform": options})


def _plain(encoder: Mapping[str, Any]) -> dict[str, Any]:
    """A part by its name alone is that part without options."""
    return {
        key: value["name"] if isinstance(value, Mapping) and set(value) == {"name"} else value
        for key, value in encoder.items()
    }


def shown(value: Any) -> str:
    """A setting in few signs."""
    if isinstance(value, Mapping):
        options = ", ".join(f"{key} {shown(one)}" for key, one in value.items() if key != "name")
        return f"{value.get('name', '')} ({options})".strip() if options else str(value["name"])
    if isinstance(value, Sequence) and not isinstance(value, str):
        listed = [shown(one) for one in value]
        if len(listed) > SHOWN:
            return f"{listed[0]}, {listed[1]} … {listed[-1]} ({len(listed)} of them)"
        return ", ".join(listed) or "none"
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    return f"{value:,}" if isinstance(value, int) else f"{value}"
