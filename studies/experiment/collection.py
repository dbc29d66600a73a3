"""Studies in YAML files of one folder, which share a command; a file is read when it is needed."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from studies.experiment.study import Budget, Study

SMOKE: Mapping[str, Any] = {
    "training": {"steps": 4},
    "evaluation": {"examples": 16},
    "study": {"seeds": 2},
}
STANDARD: Mapping[str, Any] = {"study": {"seeds": 16, "tuning_seeds": 3}}


@dataclass(frozen=True)
class Collection:
    """The studies of a folder, one file each.

    A file says the budget `quick`, and any other; `smoke` and `standard` follow from it where it
    does not.

    Args:
        folder: Where the files are.
        kind: What one is called.
        called: The module and the words that a name is put behind, to run a study.
    """

    folder: Path
    kind: str
    called: str

    def names(self) -> list[str]:
        """The studies, sorted."""
        return sorted(file.stem for file in self.folder.glob("*.yaml"))

    def file(self, name: str) -> Path:
        """The file of a study.

        Raises:
            UnknownNameError: If there is none of this name.
        """
        from registry.errors import UnknownNameError

        if name not in self.names():
            raise UnknownNameError(self.kind, name, self.names())
        return self.folder / f"{name}.yaml"

    def read(self, name: str) -> "Study":
        """A study.

        Raises:
            UnknownNameError: If there is none of this name.
            ConfigError: If its file does not describe a study.
        """
        from studies.experiment.study_file import read_study

        study = read_study(self.file(name))
        quick = study.budgets["quick"]
        budgets = {
            "smoke": _over(quick, SMOKE, "seconds, to see that everything works"),
            "quick": quick,
            "standard": _over(quick, STANDARD, "16 seeds, and 3 for tuning"),
        }
        return replace(study, budgets=budgets | dict(study.budgets), called=f"{self.called} {name}")


def _over(quick: "Budget", changes: Mapping[str, Any], about: str) -> "Budget":
    from studies.experiment.overrides import merge_settings

    return replace(quick, about=about, settings=merge_settings(quick.settings, changes))
