"""Check a draft before anything is done: every arm on every panel, every contrast."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from registry.choices import build_mask
from registry.config import EncoderConfig
from registry.errors import ConfigError, Problem, UnknownNameError, nearest_one
from studies.experiment.contrasts import contrast_problems, why_not_asked
from studies.experiment.draft import Draft
from studies.experiment.hypothesis import Hypothesis
from studies.experiment.overlays import EXAMPLES, PLAIN, lies_under, nested
from studies.experiment.overrides import holds, resolve_settings
from studies.experiment.plan import Cell
from studies.experiment.settings import Setting
from studies.training.settings import Evaluation, RunConfig, Training, task_of

BY_TASK = ("vocab_size", "n_classes")


def draft_problems(draft: Draft) -> list[Problem]:
    """Everything that is wrong with a draft."""
    problems = [*_of_labels(draft), *_of_arms(draft), *_without_effect(draft)]
    problems += [*match_problems(draft), *key_problems(draft)]
    if problems:
        return problems
    problems = [problem for cell in draft.cells() for problem in _of_cell(draft, cell)]
    problems += _of_settings(draft)
    if problems:
        return problems
    late = [*_of_search(draft), *knob_problems(draft)]
    return [*late, *_twins(draft), *contrast_problems(draft)]


def unanswerable_claims(draft: Draft, budget: str) -> list[Problem]:
    """Hypotheses that even the study as it is written cannot decide: most likely a slip."""
    left = {one.name for one in draft.settings.study.claims() if why_not_asked(draft, one)}
    own = resolve_settings(draft.study.budgets[budget].settings).settings if left else None
    if own is None:
        return []
    written, file = replace(draft, settings=own), draft.study.file
    return [
        Problem(
            "study.hypotheses",
            why,
            item=one.name,
            nearest=_meant(written, one),
            file=None if file is None else str(file),
        )
        for one in own.study.claims()
        if one.name in left and (why := why_not_asked(written, one))
    ]


def _meant(draft: Draft, claim: Hypothesis) -> str | None:
    """The nearest name to the first that a hypothesis has and the study does not."""
    for name, known in (
        *((arm, [*draft.arms]) for arm in claim.arms),
        (claim.panel, draft.labels()),
    ):
        if name not in known:
            return nearest_one(name, known)
    return None


def _of_labels(draft: Draft) -> list[Problem]:
    labels = draft.labels()
    if "" in labels:
        return [Problem("study.panels", "a panel without a task needs a label")]
    twice = [label for label in labels if labels.count(label) > 1]
    if twice:
        rule = (
            f"each panel has a label of its own; {twice[0]!r} comes {labels.count(twice[0])} times"
        )
        return [Problem("study.panels", rule)]
    return []


def _of_arms(draft: Draft) -> list[Problem]:
    if not draft.arms:
        return [Problem("study.arms", "a study has arms or factors; got none")]
    problems = list(_of_names(draft))
    for arm in draft.arms.values():
        try:
            arm.over(draft.study.variables)
        except ConfigError as error:
            problems += error.problems
    return problems


def _of_names(draft: Draft) -> Iterator[Problem]:
    """Arms that a panel names and the study does not have; panels without any arm."""
    declared = [arm.name for arm in draft.settings.study.declared()]
    for number, panel in enumerate(draft.settings.study.panels):
        for name in panel.arms or ():
            if name not in declared and name not in draft.arms:
                wrong = UnknownNameError("arm of this study", name, declared)
                yield Problem(f"study.panels.{number}.arms", str(wrong), name)


def _without_effect(draft: Draft) -> list[Problem]:
    shared = {"encoder": nested(draft.settings.encoder)}
    overlays = [arm.over(draft.study.variables) for arm in draft.arms.values()]
    problems: list[Problem] = []
    for variable in draft.variables:
        if holds(shared, variable) and all(holds(overlay, variable) for overlay in overlays):
            rule = (
                f"the arms of this study differ in their {variable}: name them by --arms, and "
                "leave out one for all"
            )
            problems.append(Problem(variable, rule))
    if any(panel.task is not None for panel in draft.settings.study.panels):
        rule = "the task decides this key; leave it out"
        told = [key for key in BY_TASK if key in draft.settings.encoder]
        problems += [Problem(f"encoder.{key}", rule) for key in told]
    return problems


def _refused(draft: Draft, cell: Cell, setting: Setting | None = None) -> list[Problem]:
    """The problems for which the config of a cell is refused."""
    try:
        draft.config(cell, setting)
    except ConfigError as error:
        return list(error.problems)
    return []


def _of_cell(draft: Draft, cell: Cell) -> list[Problem]:
    refused = _refused(draft, cell)
    if refused:
        return [attributed(draft, cell, problem) for problem in refused]
    config = draft.config(cell)
    return [*_of_run(config, cell), *_of_lengths(config)]


def _of_run(config: RunConfig, cell: Cell) -> list[Problem]:
    """A run that trains needs a task and a model; the encoder has to fit the task."""
    if config.perform is not None:
        return []
    if config.task is None:
        return [Problem("study.panels", f"a run that trains needs a task; {cell.task} has none")]
    if config.encoder is None:
        return []
    task, problems = task_of(config.task), list[Problem]()
    readout = config.encoder.readout.name
    if (readout == "tokens") != (task.readout == "tokens"):
        rule = f"{config.task} is read at {task.readout}, so {readout} does not fit"
        problems.append(Problem("encoder.readout", rule, readout))
    if config.training.lengths_per_batch > 1 and config.encoder.pad_id != task.pad_id:
        rule = f"batches of several lengths are padded, so pad_id must be {task.pad_id}"
        problems.append(Problem("encoder.pad_id", rule, config.encoder.pad_id))
    if task.causal and build_mask(config.encoder.mask).looks_ahead():
        rule = (
            f"{config.task.name} shows its answers later in the text, so no query may attend "
            "to a later key; use causal, alone or with & and another mask"
        )
        problems.append(Problem("encoder.mask", rule, str(config.encoder.mask)))
    return problems


def _of_lengths(config: RunConfig) -> list[Problem]:
    if config.task is None:
        return []
    task = task_of(config.task)
    least, most = task.min_length, task.max_length
    lengths = {
        "training.train_lengths": config.training.train_lengths[1:],
        "evaluation.test_lengths": config.evaluation.test_lengths,
    }
    to = "on" if most is None else f"to {most}"
    return [
        Problem(key, f"{config.task} has answers from length {least} {to}; got {length}", length)
        for key, values in lengths.items()
        for length in values
        if length < least or (most is not None and length > most)
    ]


def _of_settings(draft: Draft) -> list[Problem]:
    """Settings of tuning that no run can have; those of training alone fail for all arms alike."""
    settings = draft.settings.study.settings()[1:]
    inside = all(key.startswith("training.") for setting in settings for key in setting)
    return [
        problem.within("study.tune")
        for cell in (draft.cells()[:1] if inside else draft.cells())
        if not _refused(draft, cell)
        for setting in settings
        for problem in _refused(draft, cell, setting)
    ]


def _of_search(draft: Draft) -> Iterator[Problem]:
    search = draft.settings.study.search
    if search is None:
        return
    config = draft.config(draft.cells()[0]).plain()
    for key in search.space:
        if not holds(config, key):
            yield Problem("study.search.space", f"a run of this study has no key {key!r}", key)


def _twins(draft: Draft) -> list[Problem]:
    """Arms that are one and the same: their runs could not be told apart."""
    problems: list[Problem] = []
    for panel in draft.labels():
        seen: dict[str, str] = {}
        cells = [cell for cell in draft.cells() if cell.task == panel]
        for name in [cell.arm for cell in cells]:
            config = repr(draft.config(draft.cell(panel, name)))
            if config in seen:
                rule = f"{seen[config]} and {name} have the same config on {panel}"
                problems.append(Problem("study.arms", rule))
            seen[config] = name
    return problems


def attributed(draft: Draft, cell: Cell, problem: Problem) -> Problem:
    """A problem of a cell under its arm, its panel or the setting of tuning that brought it."""
    arm = draft.arms[cell.arm]
    if _brings(arm.over(draft.study.variables), problem.key):
        if all(one.name != arm.name for one in draft.settings.study.declared()):
            return _of_typed(draft, arm.name, problem)
        told = problem.within("study.arms", arm.name)
        return told if arm.overlay is not None else replace(told, inside="")
    only = len(draft.settings.study.panels) == 1 and problem.key.split(".")[0] == "task"
    if not only and _brings(draft.panel(cell).overlay(), problem.key):
        return replace(problem, key=f"study.panels.{cell.panel}.{problem.key}")
    if _brings(nested(draft.settings.study.settings()[0]), problem.key):
        return problem.within("study.tune")
    return problem


def _of_typed(draft: Draft, name: str, problem: Problem) -> Problem:
    """A problem of an arm that the study does not declare: it may be the slip of one that it does.

    Such an arm is a bare value of the variable, typed for one call.
    """
    known = [one.name for one in draft.settings.study.declared()]
    near = nearest_one(name, known)
    allowed = tuple(dict.fromkeys((*known, *problem.allowed))) if problem.allowed else ()
    return replace(
        problem, key="--arms", item=name, allowed=allowed, nearest=near or problem.nearest
    )


def _brings(overlay: Mapping[str, Any], key: str) -> bool:
    """Return whether an overlay sets a key or the part whose option it is."""
    root, _, rest = key.partition(".")
    places = {key, f"{root}.{rest.partition('.')[0]}"} | (set() if root in PLAIN else {root})
    return any(holds(overlay, place) for place in places)


FIELDS = {
    "encoder": EncoderConfig.model_fields,
    "training": Training.model_fields,
    "evaluation": Evaluation.model_fields,
}
"""The keys of the roots that hold no part with options of its own."""


def key_problems(draft: Draft) -> Iterator[Problem]:
    """Keys that are declared to differ between arms, and that no run has."""
    match = draft.settings.study.match
    declared = [("variable", one) for one in draft.study.variables]
    declared += [("study.also_differs", one) for one in draft.settings.study.also_differs]
    declared += [("study.match.adjust", match.knob)] if match is not None else []
    for place, key in declared:
        root, _, rest = key.partition(".")
        known = [f"{root}.{one}" for one in FIELDS[root]] if root in FIELDS else [*EXAMPLES]
        asked = f"{root}.{rest.partition('.')[0]}" if root in FIELDS else root
        if asked not in known and (rest or root not in EXAMPLES):
            rule = f"no run has the key {key!r}"
            near = nearest_one(asked, known)
            file = draft.study.file if place == "variable" else None
            yield Problem(place, rule, key, nearest=near, file=file and str(file))


def knob_problems(draft: Draft) -> list[Problem]:
    """A knob that holds something else than a whole number in a run, or nothing at all."""
    match = draft.settings.study.match
    if match is None:
        return []
    values = [match.value_in(draft.config(cell)) for cell in draft.cells()]
    wrong = [one for one in values if one is not None and type(one) is not int]
    rule = f"a knob holds a whole number; {match.knob} is {wrong[0]!r}" if wrong else ""
    return [Problem("study.match.adjust", rule, match.knob)] if wrong else []


def match_problems(draft: Draft) -> list[Problem]:
    """The problems of `study.match` that do not depend on an arm."""
    match, study = draft.settings.study.match, draft.settings.study
    if match is None:
        return []
    knob = match.knob
    rules = {
        f"{knob} is what the arms differ in; adjust another key": any(
            lies_under(one, (knob,)) for one in draft.variables
        ),
        f"{knob} is tuned, and so cannot be adjusted as well": any(
            knob in setting for setting in study.settings()
        ),
        f"a knob is a key of encoder, model or training; got {knob!r}": (
            knob.split(".")[0] not in ("encoder", "model", "training")
        ),
    }
    found = [Problem("study.match.adjust", rule, knob) for rule, broken in rules.items() if broken]
    names = [arm.name for arm in study.declared()] or list(draft.arms)
    if draft.reference not in names:
        rule = str(UnknownNameError("arm of this study", draft.reference, names))
        found.append(Problem("study.match.to", rule, match.to))
    return found
