"""What changed between the arms of a study in size and cost, panel by panel."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from studies.experiment.match import Costs, costs_of
from studies.training.settings import RunConfig

if TYPE_CHECKING:
    from studies.experiment.plan import Cell, Plan

HEADS = ("parameters", "FLOPs per token", "training tokens", "steps")


def cost_rows(config: RunConfig) -> dict[str, str]:
    """The costs of a run as they are printed; empty where nothing is trained."""
    costs = _costs(config)
    return {} if costs is None else _told(costs)


def _costs(config: RunConfig) -> Costs | None:
    return None if config.task is None or config.perform is not None else costs_of(config)


def _told(costs: Costs) -> dict[str, str]:
    values = (costs.parameters, costs.flops_per_token, costs.tokens, costs.steps)
    texts = ("n/a" if value is None else f"{value:,.0f}" for value in values)
    return dict(zip(HEADS, texts, strict=True))


def _row(plan: "Plan", cell: "Cell", costs: Costs | None) -> dict[str, str]:
    """The costs of an arm on a panel and, where arms are matched, its knob."""
    match = plan.settings.study.match
    row = {} if costs is None else _told(costs)
    if match is None:
        return row
    value = match.value_in(plan.config(cell))
    return {**row, match.knob: "its default" if value is None else str(value)}


def cost_lines(plan: "Plan") -> Iterator[str]:
    """A table for each panel whose runs train, what raises, and what arms are matched in."""
    for label in plan.labels():
        costs = {cell: _costs(plan.config(cell)) for cell in plan.cells() if cell.task == label}
        rows = {cell.arm: _row(plan, cell, one) for cell, one in costs.items()}
        heads = list(next(iter(rows.values()), {}))
        if not heads:
            continue
        cells = [["", *heads], *([arm, *row.values()] for arm, row in rows.items())]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        yield f"What changed between arms on {label}:"
        for name, *values in cells:
            shown = (value.rjust(width) for value, width in zip(values, widths[1:], strict=True))
            yield f"  {name.ljust(widths[0])}  {'  '.join(shown)}"
        for cell, one in costs.items():
            if one is not None and one.broken:
                yield f"cannot run: {cell.arm} on {label} ({one.broken})"
    match = plan.settings.study.match
    if match is not None:
        yield f"Matched to {plan.reference}: {match}."
