"""Registries: the classes of one kind under their names.

A registry knows its built-in names from the files of a folder, so that listing them imports
nothing; a class is imported when it is asked for. Installed packages may add more
(`registry.plugins`). Any package may create one, which `REGISTRIES` then holds.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
import sys
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar, get_args, get_type_hints

from registry.errors import ConfigError, DuplicateNameError, Problem, UnknownNameError
from registry.plugins import load_installed

PartClass = TypeVar("PartClass", bound=type)

INTERACTIVE = "<interactive>"
"""Stands for the file of a class that was typed at a prompt."""

REGISTRIES: dict[str, Registry] = {}


class InstalledParts:
    """The parts of installed packages: imported once, when they are first needed."""

    joined = False

    def join(self) -> None:
        if not self.joined:
            self.joined = True  # parts ask their registries while they join
            try:
                load_installed(register)
            except BaseException:
                self.joined = False  # a broken package is an error each time, until it is mended
                raise


INSTALLED = InstalledParts()


@dataclass(frozen=True)
class Origin:
    """Where a class comes from: its module, qualified name and source file."""

    module: str
    qualname: str
    file: str

    @classmethod
    def of(cls, part: type) -> Origin:
        try:
            file = inspect.getfile(part)
        except (TypeError, OSError):
            file = INTERACTIVE
        return cls(part.__module__, part.__qualname__, file)

    def is_that_of(self, other: Origin) -> bool:
        """Is it one class, perhaps under two module names, as when a script imports itself?"""
        same_file = self.file == other.file != INTERACTIVE
        return self.qualname == other.qualname and (self.module == other.module or same_file)

    def __str__(self) -> str:
        return f"{self.qualname} in {self.file}"


class Registry(Mapping[str, type]):
    """The classes of one kind, by name.

    Args:
        kind: The singular: config key and command word, such as "position".
        plural: The plural: folder and name of the registry, such as "positions".
        contract: Where the base class lives, as "package.module:Class".
        package: The package whose modules hold one built-in class each, file stem = name.
        not_parts: Modules of that package that hold no part.
        about: One sentence: what a part of this kind does.
        promises: Modules with the promises that its parts keep (`registry.conformance`).
    """

    def __init__(
        self,
        kind: str,
        plural: str,
        contract: str,
        package: str,
        not_parts: frozenset[str] = frozenset(),
        about: str = "",
        promises: tuple[str, ...] = (),
    ) -> None:
        self.kind, self.plural, self.package, self.about = kind, plural, package, about
        self.promises = promises
        self._contract = contract
        spec = importlib.util.find_spec(package)
        if spec is None or spec.submodule_search_locations is None:
            raise ModuleNotFoundError(f"{package} is not a package")
        stems = {module.name for module in pkgutil.iter_modules(spec.submodule_search_locations)}
        beside = {contract.partition(":")[0].rpartition(".")[2], *not_parts}
        self._builtin = {stem for stem in stems - beside if stem[0] != "_"}
        self._added: dict[str, type] = {}
        REGISTRIES[kind] = self

    @property
    def contract(self) -> type[Any]:
        """The base class of the kind."""
        module, name = self._contract.split(":")
        return getattr(importlib.import_module(module), name)

    def __getitem__(self, name: Any) -> type[Any]:
        if not isinstance(name, str):
            raise TypeError(f"a {self.kind} is asked for by its name; got {name!r}")
        if name not in self:
            raise UnknownNameError(self.kind, name, sorted(self))
        return self._added[name] if name in self._added else self._load(name)

    def __contains__(self, name: object) -> bool:
        if name not in self._added and name not in self._builtin:
            INSTALLED.join()
        return name in self._added or name in self._builtin

    def get(self, key: str, default: Any = None) -> Any:
        """The class of a name, or the default where there is none."""
        try:
            return self[key]
        except UnknownNameError:
            return default

    def __iter__(self) -> Iterator[str]:
        INSTALLED.join()
        return iter(sorted({*self._added, *self._builtin}))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def is_builtin(self, name: str) -> bool:
        """Does this name belong to a part that ships with the package?"""
        return name in self._builtin

    def _load(self, stem: str) -> type:
        module = importlib.import_module(f"{self.package}.{stem}")
        for value in vars(module).values():
            if (
                isinstance(value, type)
                and issubclass(value, self.contract)
                and value.__module__ == module.__name__
                and vars(value).get("name") == stem
            ):
                return value
        raise LookupError(f"{module.__file__} holds no {self.kind} with name = {stem!r}")

    def add(self, part: type) -> None:
        """Enter a class under its `name`.

        Raises:
            TypeError: If the class does not extend the contract or has no name of its own.
            DuplicateNameError: If another class holds the name. The same class defined again
                (same qualified name in the same module or file, as when a notebook cell is run
                twice) replaces.
        """
        name = vars(part).get("name")
        if not issubclass(part, self.contract):
            raise TypeError(f"a {self.kind} extends {self.contract.__name__}; got {part!r}")
        if not isinstance(name, str) or not name.isidentifier():
            raise TypeError(
                f"a registered class says its name: give {part.__qualname__} a class attribute "
                f'such as name = "{part.__qualname__.lower()}"; got {name!r}'
            )
        old, new = Origin.of(self[name]) if name in self else None, Origin.of(part)
        if old is not None and not new.is_that_of(old):
            raise DuplicateNameError(
                f"two classes claim the {self.kind} name {name!r}: {old} and {new}; rename one"
            )
        self._added[name] = part

    def discard(self, name: str) -> None:
        """Forget an added class; built-in ones stay."""
        self._added.pop(name, None)

    @property
    def added(self) -> dict[str, type]:
        """The classes that are not built in; they can be replaced by another set."""
        return dict(self._added)

    @added.setter
    def added(self, parts: Mapping[str, type]) -> None:
        self._added = dict(parts)


def registry_of(word: str) -> Registry:
    """The registry of a kind, by its singular or plural name."""
    for table in REGISTRIES.values():
        if word in (table.kind, table.plural):
            return table
    raise UnknownNameError("kind", word, sorted(REGISTRIES))


def registry_for(part: type[Any]) -> Registry:
    """The registry of the kind that a class extends.

    Raises:
        TypeError: If it extends the contract of no kind.
    """
    for table in REGISTRIES.values():
        if isinstance(part, type) and issubclass(part, table.contract):  # pyright: ignore
            return table
    kinds = ", ".join(table.contract.__name__ for table in REGISTRIES.values())
    raise TypeError(f"a registered class extends one of {kinds}; {part!r} extends none of them")


def register(part: PartClass) -> PartClass:
    """Enter a class into the registry of its kind; the kind follows from its base class.

    Raises:
        TypeError: If it extends the contract of no kind.
        DuplicateNameError: If another class holds the name.
    """
    registry_for(part).add(part)
    return part


OF_ENCODERS = ("encoders", "weights", "declarations")


def _kind(
    contract: str,
    about: str,
    promises: str = "layers",
    more: tuple[str, ...] = OF_ENCODERS,
    not_parts: frozenset[str] = frozenset(),
) -> Registry:
    """The registry of a folder of `variants`, by its contract, as "kinds.kind:Class"."""
    plural, kind = contract.partition(":")[0].split(".")
    modules = tuple(f"registry.conformance.{name}" for name in (promises, *more))
    package = f"variants.{plural}"
    return Registry(kind, plural, f"variants.{contract}", package, not_parts, about, modules)


positions = _kind(
    "positions.position:Position", "tells the encoder where its tokens are", "positions"
)
feedforwards = _kind("feedforwards.feedforward:FeedForward", "works on each token alone")
norms = _kind("norms.norm:Norm", "brings each token's vector to a standard size")
norm_placements = _kind(
    "norm_placements.norm_placement:NormPlacement", "joins a sublayer to the residual stream"
)
masks = _kind(
    "masks.mask:Mask",
    "says which keys each query may attend to",
    "masks",
    more=("declarations",),
    not_parts=frozenset({"testing"}),
)
attentions = _kind("attentions.attention:Attention", "computes attention (a backend)", "attentions")
readouts = _kind(
    "readouts.readout:Readout", "reads one vector a sequence, or one a token, from the final states"
)
initializers = _kind(
    "initializers.initializer:Initializer",
    "sets the weights before training",
    more=("weights", "declarations"),
)


@contextmanager
def isolated() -> Generator[None]:
    """Forget afterwards what is registered inside, whole registries included.

    Modules that registered it are forgotten too, so that importing them again registers again.

    >>> from registry import isolated, positions, register
    >>> from variants.positions import Position
    >>> with isolated():
    ...     mine = register(type("Mine", (Position,), {"name": "mine"}))
    ...     "mine" in positions
    True
    >>> "mine" in positions
    False
    """
    before = dict(REGISTRIES)
    added = {kind: table.added for kind, table in before.items()}
    modules, joined = set(sys.modules), INSTALLED.joined
    try:
        yield
    finally:
        INSTALLED.joined = joined
        homes = {table.package for kind, table in REGISTRIES.items() if kind not in before}
        REGISTRIES.clear()
        REGISTRIES.update(before)
        for kind, table in before.items():
            dropped = set(table.added.values()) - set(added[kind].values())
            homes |= {part.__module__ for part in dropped}
            table.added = added[kind]
        for module in homes - modules:
            sys.modules.pop(module, None)


GIVEN = ("self", "dims", "make_norm")
"""What the builder hands to a constructor; every other argument is an option."""


RESERVED = frozenset(
    {"name", "options", "copy", "json", "dict", "schema", "validate", "construct", "model_config"}
)
"""Names that mean something to every choice."""


def options_of(part: type) -> Iterator[tuple[str, Any, Any]]:
    """The options of a class: name, annotation and default (`...` where there is none).

    Raises:
        ConfigError: If its constructor takes `*args`, `**kwargs` or an option without annotation.
    """
    if part.__init__ is object.__init__:
        return
    try:
        hints = get_type_hints(part.__init__)
    except NameError as error:
        rule = f"{part.__qualname__} has an annotation that cannot be resolved: {error}"
        raise ConfigError([Problem("", rule)]) from error
    for name, parameter in inspect.signature(part.__init__).parameters.items():
        if name in GIVEN:
            continue
        rule = None
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            rule = (
                f" takes {parameter}: name each option, with a type and a default, since that "
                "signature is the config schema"
            )
        elif name in RESERVED:
            rule = f": an option cannot be called {name!r}; choose another name"
        elif name not in hints:
            rule = f": the option {name!r} needs a type annotation"
        if rule:
            raise ConfigError([Problem("", f"{part.__qualname__}{rule}")])
        default = ... if parameter.default is parameter.empty else parameter.default
        yield name, hints[name], default


def holds_tensor(annotation: Any) -> bool:
    """Is an option of this type made of a tensor, which no config can hold?"""
    text = f"{getattr(annotation, '__module__', '')} {annotation!r}"
    return "Tensor" in text or any(holds_tensor(inner) for inner in get_args(annotation))


def needs_tensor(part: type) -> bool:
    """Is a class made of a tensor, so that no config can hold it?"""
    return any(holds_tensor(annotation) for _, annotation, _ in options_of(part))
