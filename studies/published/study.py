"""A published table as a study of ours: its rows are panels, its columns arms."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from registry.errors import UnknownNameError
from studies.experiment.draft import Draft
from studies.experiment.overlays import differing, leaves, merge
from studies.experiment.overrides import gather
from studies.experiment.settings import Settings
from studies.experiment.study import Budget, Study
from studies.published.table import POINT, Budgeted, Published, load, ranges_written_out

if TYPE_CHECKING:
    from rich.console import Console

    from studies.analysis.results import StudyResults


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


def _show(form: str, console: "Console", results: "StudyResults") -> None:
    # Imported here, so that --help stays fast.
    from studies.published.comparison import write

    write(form, console, results)


def _notes(draft: Draft) -> Sequence[str]:
    """Note how this call differs from its source, and what of that is not verified."""
    table = load(draft.study.name)
    lines = [f"Different from the source, {table.source}:"]
    every = [*table.protocol.differences, *differences(table, draft)]
    lines += [f"{POINT}{one}" for one in every]
    unverified = [claim.about for claim in table.claims if not claim.verified]
    if not table.verified:
        lines.append(f"† not verified at its source: {table.note}")
    elif unverified:
        lines.append(f"† not verified at its source: {'; '.join(unverified)}")
    return lines


def text_of(table: Published) -> str:
    """Describe a table before its runs."""
    lines = [
        f"{table.title}: {table.measure.about}.",
        f"Source: {table.source}. {table.note}",
        "What ours does otherwise:",
        *(f"- {one}" for one in table.protocol.differences),
    ]
    if table.protocol.left_out:
        every = {**table.rows, **table.columns}
        left_out = [name for name, overlay in every.items() if overlay is None]
        lines.append(f"Not run here: {', '.join(left_out)}. {table.protocol.left_out}")
    return "\n\n".join(lines)


def variables_of(table: Published) -> tuple[str, ...]:
    """Return the dotted keys that the columns differ in."""
    overlays = table.runnable_arms().values()
    return tuple(dict.fromkeys(key for overlay in overlays for key, _ in leaves(overlay)))


def settings_of(
    table: Published, budget: Budgeted, rows: Sequence[str] | None = None
) -> dict[str, Any]:
    """Return the settings of a study at a budget, nested like the roots of a config."""
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
    panel: dict[str, Any] = {"label": row} if task is None else {"label": row, "task": task}
    panel |= {root: overlay[root] for root in IN_PANELS if root in overlay}
    if "perform" in panel:
        panel["perform"] = {**panel["perform"], **perform}
    return panel


SHOWN = 4
"""Of a longer list only its ends are shown."""


def differences(table: Published, draft: Draft) -> list[str]:
    """Name rows and arms that are left out, then settings that differ from the source's."""
    paper = gather(draft.study.budgets[PAPER].settings)
    ours, theirs = dict(_leaves(draft.settings)), dict(_leaves(paper))
    lines = [
        f"{key}: {shown(ours.get(key))} here, {shown(theirs.get(key))} there"
        for key in differing(ours, theirs)
    ]
    return [*_left_out("rows", table.runnable_rows(), draft.labels()),
            *_left_out("columns", table.runnable_arms(), draft.arms), *lines]  # fmt: skip


def _left_out(what: str, every: Mapping[str, Any], here: Any) -> Iterator[str]:
    missing = [one for one in every if one not in here]
    if missing:
        yield f"{what} not run in this call: {', '.join(missing)}"


def _leaves(settings: Settings) -> Iterator[tuple[str, Any]]:
    """Yield what the protocol of a source may say, by dotted key."""
    # A part by its name alone is that part without options.
    encoder = {
        key: value["name"] if isinstance(value, Mapping) and set(value) == {"name"} else value
        for key, value in settings.encoder.items()
    }
    yield from leaves({"encoder": encoder})
    yield from leaves({"training": settings.training.model_dump()})
    yield from leaves({"evaluation": settings.evaluation.model_dump(exclude={"batch_size"})})
    yield "study.seeds", settings.study.seeds
    yield "study.learning_rates", settings.study.learning_rates
    yield "study.tuning_seeds", settings.study.tuning_seeds
    for panel in settings.study.panels:
        if panel.perform is not None:
            options = panel.perform.model_dump(exclude={"name"})
            yield from leaves({f"{panel.label}.perform": options})


def shown(value: Any) -> str:
    """Write a setting in few signs."""
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
