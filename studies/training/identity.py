"""What a run is made of besides its settings: the source of its parts."""

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from registry.choices import Choice
from registry.config import hash_of
from registry.plugins import is_plugin, origin, source_hash
from registry.registry import registry_of
from studies.training import references
from studies.training.settings import RunConfig

if TYPE_CHECKING:
    from store.records import Component

# What numbers rest on besides the parts that a config names.
SKELETON = ("variants.encoder", "variants.block", "variants.multihead", "variants.embedding")
TRAINING = (
    *("studies.training.execute", "studies.training.loop", "studies.training.schedules"),
    *("studies.training.data", "studies.training.evaluation"),
    *("studies.seeds", "studies.scoring"),
)


def components(config: RunConfig) -> tuple["Component", ...]:
    """The source of each part of a run, of its task's generator, and of what they are put into.

    That is the skeleton of an encoder and the training loop, each file on its own.
    """
    from store.records import Component

    parts = [
        Component(kind, name, origin=origin(part), source_hash=source_hash(part))
        for kind, name, part in _parts_of(config)
    ]
    functions = [
        Component(kind, name, origin=name, source_hash=_hash_of_file(path))
        for kind, name, path in _functions_of(config)
    ]
    machinery = [
        Component(kind, module.rpartition(".")[2], module, _hash_of_file(_file_of(module)))
        for kind, module in _machinery_of(config)
    ]
    return (*parts, *functions, *machinery)


def hash_of_code(parts: Iterable["Component"]) -> str:
    """The fingerprint that stands for the source of all parts of a run."""
    return hash_of({f"{part.kind} {part.name}": part.source_hash for part in parts})


def foreign_sources(config: RunConfig) -> dict[str, str]:
    """The fingerprint of each part that does not ship with the sandbox, by kind and name.

    Another source of one of these is another run.
    """
    parts = {
        f"{kind} {name}": source_hash(part)
        for kind, name, part in _parts_of(config)
        if is_plugin(part)
    }
    functions = {
        f"{kind} {name}": _hash_of_file(path)
        for kind, name, path in _functions_of(config)
        if not references.is_ours(name)
    }
    return parts | functions


def _parts_of(config: RunConfig) -> Iterator[tuple[str, str, type]]:
    """The classes that a run is made of, with kind and name."""
    if config.encoder is not None:
        for kind in type(config.encoder).model_fields:
            yield from _classes(kind, getattr(config.encoder, kind))
    yield from _classes("task", config.task)


def _classes(kind: str, chosen: object) -> Iterator[tuple[str, str, type]]:
    if not isinstance(chosen, Choice):
        return
    if chosen.name.isidentifier():
        yield kind, chosen.name, registry_of(kind)[chosen.name]
    for inner in chosen.options().values():
        yield from _classes(kind, inner)


def _functions_of(config: RunConfig) -> Iterator[tuple[str, str, Path]]:
    """The functions that a run is done by, with the key and the name that name them."""
    for kind in ("model", "perform"):
        chosen: Any = getattr(config, kind)
        if chosen is not None:
            yield kind, chosen.name, references.source_of(chosen.name)


def _machinery_of(config: RunConfig) -> Iterator[tuple[str, str]]:
    """The modules of ours that a run is done by, each with its kind."""
    if config.encoder is not None:
        yield from (("skeleton", module) for module in SKELETON)
    if config.perform is None:
        yield from (("training", module) for module in TRAINING)


def _file_of(module: str) -> Path:
    # Beside this one, without an import of what may be heavy.
    return Path(__file__).parents[2].joinpath(*module.split(".")).with_suffix(".py")


def _hash_of_file(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
