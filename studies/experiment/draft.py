"""A study with its settings before they are resolved: what validation looks into.

A draft may be wrong: each config is made, and refused, by itself. `studies.experiment.resolve`
makes a plan of a draft that is right.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from registry.errors import ConfigError, Problem
from studies.experiment.arms import Arm, select
from studies.experiment.match import COUNTED, costly, matched, turn
from studies.experiment.overlays import PLAIN, nested, not_a_mapping
from studies.experiment.plan import Cell
from studies.experiment.settings import Panel, Setting, Settings, merge_all
from studies.experiment.study import Study
from studies.training.settings import RunConfig, check_run, task_of


@dataclass(frozen=True)
class Draft:
    """A study with its settings, whose configs are made when they are asked for.

    Args:
        study: The study.
        settings: Its settings.
        budget: The name of the budget that they are those of.
        plugins: What registers parts of it.
        files: Paths of the file of the study and of a settings file, by "study" and "settings".
        generation: How often a search has added arms to it.
    """

    study: Study
    settings: Settings
    budget: str = ""
    plugins: tuple[dict[str, Any], ...] = ()
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    generation: int = 0

    @property
    def variables(self) -> tuple[str, ...]:
        """The dotted keys that the arms differ in: those of the study, and the factors."""
        return tuple(dict.fromkeys((*self.settings.study.factors, *self.study.variables)))

    @cached_property
    def arms(self) -> dict[str, Arm]:
        """The arms of this call, by name.

        Raises:
            UnknownNameError: If one is named that the study does not have.
        """
        return {arm.name: arm for arm in self._select(self.settings.study.only)}

    def arm(self, name: str) -> Arm:
        """An arm of the study, whether this call asks for it or not.

        Raises:
            UnknownNameError: If the study does not have it.
        """
        return self.arms[name] if name in self.arms else self._select([name])[0]

    def _select(self, names: Sequence[str] | None) -> list[Arm]:
        study = self.settings.study
        bare_too = len(self.study.variables) == 1 and not study.factors
        return select(study.declared(), names, bare_too)

    def cells(self) -> list[Cell]:
        """Every arm on every panel, in the order of the settings."""
        return [
            Cell(number, label, arm)
            for number, label in enumerate(self.labels())
            for arm in self.arms
            if self.is_on(number, arm)
        ]

    def is_on(self, panel: int, arm: str) -> bool:
        """Return whether a panel is for an arm."""
        names = self.settings.study.panels[panel].arms
        return names is None or arm in names

    def cell(self, label: str, arm: str) -> Cell:
        """The cell of an arm on the panel of this label."""
        return Cell(self.labels().index(label), label, arm)

    def labels(self) -> list[str]:
        """A name for each panel: its label, or its task with options where one comes twice."""
        panels = self.settings.study.panels
        names = ["" if panel.task is None else panel.task.name for panel in panels]
        return [
            panel.label or (str(panel.task) if names.count(name) > 1 else name)
            for name, panel in zip(names, panels, strict=True)
        ]

    def panel(self, cell: Cell) -> Panel:
        """The panel of a cell."""
        return self.settings.study.panels[cell.panel]

    def config(self, cell: Cell, setting: Setting | None = None) -> RunConfig:
        """The config of the runs of a cell at a setting; None: the first that tuning tries.

        Raises:
            ConfigError: If the arm does not fit the rest of the config.
        """
        setting = self.settings.study.settings()[0] if setting is None else setting
        key = cell, repr(sorted(setting.items()))
        if key not in self._configs:
            knob = self._knob(cell, setting)
            self._configs[key] = check_run(self.roots(cell, {**setting, **knob}))
        return self._configs[key]

    @cached_property
    def _configs(self) -> dict[Any, RunConfig]:
        return {}

    @cached_property
    def knobs(self) -> dict[Any, int | None]:
        """The values that matching has found so far."""
        return {}

    @property
    def reference(self) -> str:
        """The name of the arm that the others are matched to."""
        match, declared = self.settings.study.match, self.settings.study.declared()
        named = None if match is None else match.to
        return named or (declared[0].name if declared else next(iter(self.arms)))

    def _knob(self, cell: Cell, setting: Setting) -> dict[str, Any]:
        """The overlay by which matching adjusts a cell at a setting; empty if it does not.

        Raises:
            ConfigError: If the arm or the reference is no valid config, or cannot be matched.
        """
        match = self.settings.study.match
        if match is None or cell.arm == self.reference:
            return {}
        reference = replace(cell, arm=self.reference)
        one, other = (check_run(self.roots(each, setting)) for each in (cell, reference))
        if one.task is None or one.perform is not None or other.task is None:
            rule = f"runs that train a model can be matched; those of {cell.arm} do not"
            raise ConfigError([Problem("study.match", rule)])
        # What tuning tries seldom changes a cost, and counting takes a model.
        key = cell.panel, cell.arm, repr([costly(one), costly(other)])
        if key not in self.knobs:

            def turned(value: int | None) -> RunConfig:
                return check_run(self.roots(cell, {**setting, **turn(one, match.knob, value)}))

            target = float(COUNTED[match.what](other))
            self.knobs[key] = matched(match, (cell.arm, reference.arm), target, turned)
        return turn(one, match.knob, self.knobs[key])

    def roots(self, cell: Cell, setting: Setting) -> dict[str, Any]:
        """The config of a cell's runs at a setting, before it is checked."""
        arm = self.arm(cell.arm).over(self.study.variables)
        data = merge_all(self.settings.shared(), self.panel(cell).overlay(), arm, nested(setting))
        wrong = [not_a_mapping(root, data.get(root, {})) for root in PLAIN]
        if any(wrong):
            raise ConfigError(one for one in wrong if one)
        if data.get("model") is not None or (data.get("perform") and not data["encoder"]):
            del data["encoder"]
        if "encoder" in data and data.get("task") is not None:
            told = _set_by_task(data["task"])
            # An arm or a panel may read the answer elsewhere; sizes are the task's alone.
            data["encoder"] = {"readout": told.pop("readout"), **data["encoder"], **told}
        return dict(self.study.complete(data))


def _set_by_task(task: Any) -> dict[str, Any]:
    """The keys of an encoder that its task decides."""
    from registry.choices import resolve

    try:
        made = task_of(resolve("task", task))
    except ConfigError as error:
        raise ConfigError(
            one if one.key.startswith("task") else one.under("task") for one in error.problems
        ) from None
    return {
        "vocab_size": made.vocab_size,
        "n_classes": made.n_classes * made.answers,
        "readout": made.readout,
    }
