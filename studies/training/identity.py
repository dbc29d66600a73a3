"""The source code that a run's numbers rest on: its parts, and every file that these import."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from registry.choices import Choice, MaskExpression
from registry.config import hash_of
from registry.fingerprint import Module, closure, find, hash_of_class, is_ours, module_of, origin
from registry.registry import registry_of
from store.records import Component
from store.source_code import hash_of_file
from studies.training import references
from studies.training.settings import RunConfig

ENTRY = "studies.training.execute"
"""The module by which a run is trained and scored, where no function of its config does it."""

BESIDE = frozenset(
    {
        # They find, name and refuse. What comes of it, classes and a config, is recorded itself.
        *("registry.errors", "registry.plugins", "registry.registry", "registry.yaml_file"),
        *("registry.fingerprint", "registry.presets", "studies.errors"),
        # They look at runs; no run looks at them.
        *("store", "studies.training.identity", "studies.training.saved_models"),
    }
)
"""Modules that runs import and that cannot change a number; all else that they import counts."""

KINDS = {"variants": "skeleton", "registry": "builder", "studies": "training"}
"""The kind under which a file of each package of ours is recorded, where it is no named part."""


def components(config: RunConfig) -> tuple[Component, ...]:
    """The source of each part of a run, of its functions, and of every file that they import."""
    return tuple(component for component, _ in _sources(config))


def hash_of_code(parts: Iterable[Component]) -> str:
    """The fingerprint that stands for the source of all parts of a run."""
    return hash_of({f"{part.kind} {part.name}": part.source_hash for part in parts})


def foreign_sources(config: RunConfig) -> dict[str, str]:
    """The fingerprint of each part and file that does not ship with the sandbox, by kind and name.

    Another source of one of these is another run.
    """
    return {
        f"{component.kind} {component.name}": component.source_hash
        for component, ours in _sources(config)
        if not ours
    }


_Named = tuple[Component, Module | None, bool]
"""A part or function of a config, its module if it has a file, and whether it ships with us."""


def _sources(config: RunConfig) -> Iterator[tuple[Component, bool]]:
    """Everything that counts, each with whether it ships with the sandbox."""
    named = [*_parts_of(config), *_functions_of(config)]
    yield from ((component, ours) for component, _, ours in named)
    roots = {module for _, module, _ in named if module is not None}
    files: dict[Path, str] = {}
    for root in (*roots, *([] if config.perform else [find(ENTRY)])):
        files |= closure(root, BESIDE)
    beside = {file: name for file, name in files.items() if file not in {one.file for one in roots}}
    count = Counter(beside.values())
    for file, name in sorted(beside.items()):
        top, _, rest = name.partition(".")
        if top in KINDS:
            yield Component(KINDS[top], rest, name, hash_of_file(file)), True
        else:
            name = name if count[name] == 1 else str(file)
            yield Component("helper", name, str(file), hash_of_file(file)), False


def _parts_of(config: RunConfig) -> Iterator[_Named]:
    if config.encoder is not None:
        for kind in type(config.encoder).model_fields:
            yield from _chosen(kind, getattr(config.encoder, kind))
    yield from _chosen("task", config.task)
    for probe in config.evaluation.probes:
        yield from _chosen("probe", probe)


def _chosen(kind: str, chosen: object) -> Iterator[_Named]:
    """The classes that a choice names: its own and those of its options, or of its expression."""
    if not isinstance(chosen, Choice):
        return
    expression = not chosen.name.isidentifier()
    for name in MaskExpression(chosen.name).names() if expression else [chosen.name]:
        part = registry_of(kind)[name]
        module = module_of(part)
        source = hash_of_file(module.file) if module else hash_of_class(part)
        yield Component(kind, name, origin(part), source), module, is_ours(part)
    for inner in chosen.options().values():
        yield from _chosen(kind, inner)


def _functions_of(config: RunConfig) -> Iterator[_Named]:
    for kind, chosen in (("model", config.model), ("perform", config.perform)):
        if chosen is not None:
            module = references.source_of(chosen.name)
            component = Component(kind, chosen.name, chosen.name, hash_of_file(module.file))
            yield component, module, is_ours(module.name)
