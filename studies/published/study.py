"""A published table as a study of ours: its rows are panels, its columns arms."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from registry.errors import UnknownNameError
from studies.design.merging import leaves, merge
from studies.design.study import Budget, Study
from studies.published.protocol import Budgeted
from studies.published.table import Published, load, ranges_written_out

if TYPE_CHECKING:
    from rich.console import Console

    from studies.answers.answer import ArmResult
    from studies.design.plan import Plan

PROGRAM = "studies.published"
IN_PANELS = ("task", "encoder", "perform", "training", "evaluation")
PAPER = "paper"
"""The budget that is the protocol of the source itself."""


def study_of(name: str, rows: Sequence[str] | None = None, form: str = "table") -> Study:
    """The study that runs our arms of a table, and prints the comparison as its answer.

    Args:
        name: Of the table.
        rows: The rows to run; None: those of the budget.
        form: "table", or "markdown" for documents.

    Raises:
        UnknownNameError: If there is no such table, or no such row in it that is run here.
    """
    table = load(name)
    known = list(table.runnable_rows())
    for row in rows or ():
        if row not in known:
            raise UnknownNameError(f"row of {name} that is run here", row, known)
    paper = Budgeted(about=table.protocol.budget)
    budgets = {**table.protocol.budgets, PAPER: paper}
    return Study(
        name=name,
        question=f"Does {table.place} of {table.authors} come out in the same order here?",
        text=text_of(table),
        variables=variables_of(table),
        budgets={
            key: Budget(budget.about, settings_of(table, budget, rows))
            for key, budget in budgets.items()
        },
        called=f"{PROGRAM} --table {name}",
        show=partial(_show, form),
        notes=_notes,
    )


def _show(form: str, console: "Console", plan: "Plan", gathered: "list[ArmResult]") -> None:
    # Imported here, so that --help stays fast.
    from studies.published.printing import write

    write(console, plan, gathered, form)


def _notes(plan: "Plan") -> Sequence[str]:
    """In what this call differs from its source, and what of that is not verified."""
    from studies.published.differing import told

    table = load(plan.study.name)
    lines = [f"Different from the source, {table.source}:"]
    lines += [f"- {one}" for one in told(table, plan)]
    unverified = [claim.about for claim in table.claims if not claim.verified]
    if not table.verified:
        lines.append(f"† not verified at its source: {table.note}")
    elif unverified:
        lines.append(f"† not verified at its source: {'; '.join(unverified)}")
    return lines


def text_of(table: Published) -> str:
    """What a reader should know of a table before its runs."""
    lines = [
        f"{table.title}: {table.measure.about}.",
        f"Source: {table.source}. {table.note}",
        "What ours does otherwise:",
        *(f"- {one}" for one in table.protocol.differences),
    ]
    if table.protocol.left_out:
        lines.append(f"Not run here: {', '.join(left_out(table))}. {table.protocol.left_out}")
    return "\n\n".join(lines)


def left_out(table: Published) -> list[str]:
    """The rows and columns that have numbers but are not run here."""
    every = {**table.rows, **table.columns}
    return [name for name, overlay in every.items() if overlay is None]


def variables_of(table: Published) -> tuple[str, ...]:
    """The dotted keys that the columns differ in."""
    overlays = table.runnable_arms().values()
    return tuple(dict.fromkeys(key for overlay in overlays for key, _ in leaves(overlay)))


def settings_of(
    table: Published, budget: Budgeted, rows: Sequence[str] | None = None
) -> dict[str, Any]:
    """The settings of a study at a budget, nested like the roots of a config."""
    shared = ranges_written_out(merge(table.protocol.settings, budget.settings))
    task, perform = shared.pop("task", None), shared.pop("perform", {})
    known = table.runnable_rows()
    wanted = rows or budget.rows or list(known)
    panels = [_panel(row, known[row], task, perform) for row in wanted]
    arms = table.runnable_arms()
    chosen = {arm: arms[arm] for arm in budget.arms or arms}
    return {**shared, "study": {**shared.get("study", {}), "panels": panels, "arms": chosen}}


def _panel(
    row: str, overlay: Mapping[str, Any], task: Any, perform: Mapping[str, Any]
) -> dict[str, Any]:
    shared = {"task": task} if task is not None else {}
    panel = {
        "label": row,
        **shared,
        **{root: overlay[root] for root in IN_PANELS if root in overlay},
    }
    if "perform" in panel:
        panel["perform"] = {**panel["perform"], **perform}
    return panel
