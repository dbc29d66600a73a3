"""The files that a study was typed with: its own, its settings, its plug-ins."""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from studies.experiment.plan import Plan

FOLDER = "sources"
KINDS = (".yaml", ".yml", ".py")


def bring_sources(plan: Plan, words: Sequence[str], bundle: Path) -> list[str]:
    """Copy the files that the words name into a bundle; return words that name the copies.

    Plug-ins that a study's own file imports lie beside its copy as they did beside the file; one
    that lies above it is left out, and then the study can be made again only where it is.
    """
    copied: dict[Path, str] = {}
    told = [_with_copy(word, bundle, copied) for word in words]
    for plugin, place in _imported(plan):
        target = bundle / FOLDER / place
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(plugin, target)
    return told


def _with_copy(word: str, bundle: Path, copied: dict[Path, str]) -> str:
    option, sign, value = word.partition("=") if word.startswith("--") else ("", "", word)
    file = Path(value)
    if file.suffix not in KINDS or not file.is_file():
        return word
    place = file.resolve()
    if place not in copied:
        taken = set(copied.values())
        names = (f"{FOLDER}/{'_' * count}{file.name}" for count in range(len(taken) + 1))
        copied[place] = next(name for name in names if name not in taken)
        (bundle / FOLDER).mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, bundle / copied[place])
    return f"{option}{sign}{copied[place]}"


def _imported(plan: Plan) -> Iterator[tuple[Path, Path]]:
    """The plug-ins of a study's file, each with its place as seen from that file."""
    for plugin in map(Path, plan.study.plugins if plan.study.file is not None else ()):
        assert plan.study.file is not None
        beside = plan.study.file.parent.resolve()
        if plugin.suffix == ".py" and plugin.resolve().is_relative_to(beside):
            yield plugin, plugin.resolve().relative_to(beside)
