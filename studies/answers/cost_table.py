"""What changed between the arms of a study in size and cost, panel by panel."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from studies.design.costs import costs_of
from studies.design.knobs import reference_of
from studies.training.settings import RunConfig

if TYPE_CHECKING:
    from studies.design.plan import Cell, Plan

HEADS = ("parameters", "FLOPs per token", "training tokens", "steps")


def cost_rows(config: RunConfig) -> dict[str, str]:
    """The costs of a run as they are printed; empty where nothing is trained."""
    if config.task is None or config.perform is not None:
        return {}
    costs = costs_of(config)
    values = (costs.parameters, costs.flops_per_token, costs.tokens, costs.steps)
    return {head: f"{value:,.0f}" for head, value in zip(HEADS, values, strict=True)}


def costs_by_arm(plan: "Plan", label: str) -> dict[str, Mapping[str, str]]:
    """The costs of every arm on a panel and, where arms are matched, the knob of each."""
    return {cell.arm: _row(plan, cell) for cell in plan.cells() if cell.task == label}


def _row(plan: "Plan", cell: "Cell") -> dict[str, str]:
    match = plan.settings.study.match
    row = cost_rows(plan.config(cell))
    if match is None:
        return row
    value = match.value_in(plan.config(cell))
    return {**row, match.knob: "its default" if value is None else str(value)}


def cost_lines(plan: "Plan") -> Iterator[str]:
    """A table for each panel whose runs train, and what arms are matched in."""
    for label in plan.labels():
        rows = costs_by_arm(plan, label)
        heads = list(next(iter(rows.values()), {}))
        if not heads:
            continue
        cells = [["", *heads], *([arm, *row.values()] for arm, row in rows.items())]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        yield f"What changed between arms on {label}:"
        for name, *values in cells:
            shown = (value.rjust(width) for value, width in zip(values, widths[1:], strict=True))
            yield f"  {name.ljust(widths[0])}  {'  '.join(shown)}"
    match = plan.settings.study.match
    if match is not None:
        yield f"Matched to {reference_of(plan, match)}: {match}."
