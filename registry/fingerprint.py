"""The source files that a computation rests on: those of its classes, and all that these import.

`closure` follows imports in parsed code, so nothing is imported to find them. A name that comes
through the lazy face of a package leads to the module that defines it, not to the package.
"""

import ast
import hashlib
import inspect
import sys
import sysconfig
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple, TypeGuard, cast

from registry.plugins import OURS, Plugin

ROOT = Path(__file__).parents[1]
"""The folder that holds our packages."""

INSTALLED = tuple(Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib"))


class Module(NamedTuple):
    """A module and its file."""

    name: str
    file: Path


def module_of(part: type) -> Module | None:
    """The module that defines a class; None for a class typed at a prompt, which has no file."""
    try:
        file = Path(inspect.getfile(part))
    except (OSError, TypeError):
        return None
    name = _real_name(part.__module__)
    return Module(name, _ours(name) or file) if file.is_file() else None


def origin(part: type) -> str:
    """Where a class is from: `module:qualname`, or `path:qualname` for a plug-in's file."""
    known = getattr(sys.modules.get(part.__module__), "__plugin__", None)
    if isinstance(known, Plugin) and known.spec.endswith(".py"):
        return f"{known.file}:{part.__qualname__}"
    return f"{part.__module__}:{part.__qualname__}"


def find(name: str) -> Module:
    """A module of ours."""
    file = _ours(name)
    assert file is not None, name
    return Module(name, file)


def is_ours(thing: type | str) -> bool:
    """Does this class, or the module of this name, ship with our packages?"""
    return _top(_real_name(thing if isinstance(thing, str) else thing.__module__)) in OURS


def hash_of_class(part: type) -> str:
    """The fingerprint of a class that has no file: its values and the bytecode of its methods."""
    facts = "\n".join([part.__qualname__, *_facts(part)])
    return hashlib.sha256(facts.encode()).hexdigest()


def closure(root: Module, beside: frozenset[str] = frozenset()) -> dict[Path, str]:
    """The files of a module and of all that it imports, each with its module's name.

    Imports inside functions count, imports for type checkers do not. What is installed is left out,
    except for the package of the importing module itself. So are the `__init__` files of our own
    packages, unless they define a name that is asked for; those of other packages count, but not
    what they import beyond the names that are asked for.

    The answer is kept for this process, and found again once one of its files has changed.

    Args:
        root: Where to begin.
        beside: Modules and packages that are left out.
    """
    stamps, found = _CLOSURES.get((root, beside), ({}, {}))
    if not found or any(_stamp(file) != stamp for file, stamp in stamps.items()):
        found = _walk(root, beside)
        _CLOSURES[root, beside] = {file: _stamp(file) for file in found}, found
    return found


Stamp = tuple[int, int] | None
_CLOSURES: dict[tuple[Module, frozenset[str]], tuple[dict[Path, Stamp], dict[Path, str]]] = {}


def _stamp(file: Path) -> Stamp:
    try:
        stat = file.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size


def _walk(root: Module, beside: Collection[str]) -> dict[Path, str]:
    found: dict[Path, str] = {}
    waiting = [root]
    while waiting:
        module = waiting.pop()
        if module.file not in found:
            found[module.file] = module.name
            imports = _source_of(module.file).imports
            near = (home for wanted in imports for home in _homes(module, wanted))
            waiting += (
                home
                for home in near
                if not any(f"{home.name}.".startswith(f"{one}.") for one in beside)
            )
    for file, name in list(found.items()):
        for package in _packages_of(Module(name, file)):
            found.setdefault(package.file, package.name)
    return found


class Import(NamedTuple):
    """`from module import name`, or `import module` where there is no name; level counts dots."""

    module: str
    level: int
    name: str | None

    def absolute(self, importer: Module) -> str:
        """The full name of the module."""
        if not self.level:
            return self.module
        inside = importer.name.split(".")
        kept = len(inside) - self.level + _is_package(importer.file)
        return ".".join([*inside[: max(kept, 0)], *filter(None, [self.module])])


@dataclass(frozen=True)
class Source:
    """What a file says of other modules.

    Args:
        imports: What it imports when it runs, at its top or in a function.
        bound: Names that it takes from elsewhere, also for type checkers alone.
        defined: Names that it defines itself.
    """

    imports: tuple[Import, ...] = ()
    bound: Mapping[str, Import] = field(default_factory=dict[str, Import])
    defined: frozenset[str] = frozenset()


def _homes(importer: Module, wanted: Import) -> Iterator[Module]:
    name = wanted.absolute(importer)
    if wanted.name is None:
        for count in range(name.count(".") + 1):
            parent = name.rsplit(".", count)[0]
            yield from _computing(parent, _find(parent, importer))
        return
    file = _find(name, importer)
    if file is None or _is_package(file):
        yield from _home_of(importer, name, file, wanted.name)
    else:
        yield Module(name, file)


def _computing(name: str, file: Path | None) -> Iterator[Module]:
    """A module itself; our own packages are faces, which compute nothing."""
    if file is not None and not (_is_package(file) and _top(name) in OURS):
        yield Module(name, file)


def _home_of(importer: Module, package: str, init: Path | None, name: str) -> Iterator[Module]:
    """The module that defines a name of a package, which may have no `__init__` at all."""
    inner = f"{package}.{name}"
    if init is None:
        yield from _computing(inner, _find(inner, importer))
        return
    face, source = Module(package, init), _source_of(init)
    known = source.bound.get(name)
    if known and (known.absolute(face), known.name) != (package, name):
        yield from _homes(face, known)
    elif name in source.defined:
        yield face
    elif found := _find(inner, importer):
        yield from _computing(inner, found)
    else:
        # The `__init__` may look the name up in its modules when it is asked for.
        modules = (file for file in sorted(init.parent.glob("*.py")) if file != init)
        home = next((file for file in modules if name in _source_of(file).defined), None)
        yield Module(f"{package}.{home.stem}", home) if home else face


def _packages_of(module: Module) -> Iterator[Module]:
    if _top(module.name) in OURS:
        return
    folder = module.file.parent
    names = module.name.split(".")[:-1]
    for count in range(len(names), 0, -1):
        init = folder / "__init__.py"
        if folder.name != names[count - 1] or not init.is_file():
            return
        yield Module(".".join(names[:count]), init)
        folder = folder.parent


def _find(name: str, importer: Module) -> Path | None:
    """The file of a module, if it counts for what the importing module computes."""
    top = _top(name)
    if top in OURS:
        return _ours(name)
    if top in sys.stdlib_module_names:
        return None
    loaded = getattr(sys.modules.get(name), "__file__", None)
    if loaded is not None:
        file = Path(loaded)
    else:
        file = _below(importer.file.parent, name) or _on_path(name)
    if file is None or file.suffix != ".py":
        return None
    foreign = any(file.is_relative_to(folder) for folder in INSTALLED)
    return None if foreign and top != _top(importer.name) else file


def _ours(name: str) -> Path | None:
    return _below(ROOT, name) if _top(name) in OURS else None


def _below(folder: Path, name: str) -> Path | None:
    place = folder.joinpath(*name.split("."))
    choices = (place / "__init__.py", place.with_suffix(".py"))
    return next((file for file in choices if file.is_file()), None)


def _on_path(name: str) -> Path | None:
    """The file of a module that is not imported yet; nothing is run to find it."""
    top, _, rest = name.partition(".")
    try:
        spec = find_spec(top)
    except (ImportError, ValueError):
        return None
    if spec is not None and rest:
        folders = map(Path, spec.submodule_search_locations or [])
        return next((file for folder in folders if (file := _below(folder, rest))), None)
    return Path(spec.origin) if spec is not None and spec.origin else None


def _is_package(file: Path) -> bool:
    return file.name == "__init__.py"


def _top(name: str) -> str:
    return name.split(".")[0]


def _real_name(module: str) -> str:
    """`python -m package.module` hides the name of a module in its spec."""
    spec = getattr(sys.modules.get(module), "__spec__", None) if module == "__main__" else None
    return spec.name if spec else module


def _source_of(file: Path) -> Source:
    return _parsed(file, _stamp(file))


@lru_cache(maxsize=4096)
def _parsed(file: Path, stamp: Stamp) -> Source:
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return Source()
    running, statements = list(_running(tree)), list(_top_level(tree.body))
    bindings = [binding for node in running for binding in _bindings(node)]
    aliases = dict(alias for binding in bindings for alias in _alias(*binding))
    imports = [wanted for _, wanted in bindings]
    imports += [wanted for node in running for wanted in _taken(node, aliases)]
    bound = {
        local: wanted for node in statements for local, wanted in _bindings(node) if wanted.name
    }
    defined = frozenset(name for node in statements for name in _defines(node))
    return Source(tuple(dict.fromkeys(imports)), bound, defined)


def _running(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node but those of blocks for type checkers."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        inner = node.orelse if _for_checkers(node) else ast.iter_child_nodes(node)
        waiting.extend(inner)


def _for_checkers(node: ast.AST) -> TypeGuard[ast.If]:
    match node:
        case ast.If(ast.Name("TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING")):
            return True
        case _:
            return False


def _top_level(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module, also those inside `if` and `try`."""
    for node in body:
        if isinstance(node, ast.If | ast.Try):
            handlers = node.handlers if isinstance(node, ast.Try) else []
            inner = [*node.body, *node.orelse, *(one for by in handlers for one in by.body)]
            yield from _top_level(inner)
        else:
            yield node


def _bindings(node: ast.AST) -> Iterator[tuple[str, Import]]:
    match node:
        case ast.Import():
            for alias in node.names:
                yield alias.asname or alias.name, Import(alias.name, 0, None)
        case ast.ImportFrom():
            for alias in node.names:
                yield alias.asname or alias.name, Import(node.module or "", node.level, alias.name)
        case _:
            pass


def _alias(local: str, wanted: Import) -> Iterator[tuple[str, str]]:
    """The local name of a module, or of what may be one, and what it stands for."""
    if wanted.name is not None and not wanted.level:
        yield local, f"{wanted.module}.{wanted.name}"
    elif wanted.name is None:
        # `import a.b` binds a.
        plain = local == wanted.module
        yield (_top(local), _top(local)) if plain else (local, wanted.module)


def _taken(node: ast.AST, aliases: Mapping[str, str]) -> Iterator[Import]:
    """What is taken from a package as `package.name`, or imported by `import_module`."""
    match node:
        case ast.Call(
            ast.Name("import_module") | ast.Attribute(attr="import_module"),
            [ast.Constant(str(name))],
        ):
            yield Import(name, 0, None)
        case _:
            pass
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.insert(0, node.attr)
        node = node.value
    if names and isinstance(node, ast.Name) and node.id in aliases:
        package, _, name = ".".join([aliases[node.id], *names]).rpartition(".")
        if _top(package) in OURS:
            yield Import(package, 0, name)


def _defines(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
            yield name
        case ast.Assign():
            targets = [one for target in node.targets for one in ast.walk(target)]
            yield from (one.id for one in targets if isinstance(one, ast.Name))
        case ast.AnnAssign(target=ast.Name(name)):
            yield name
        case _:
            pass


def _facts(part: type) -> Iterator[str]:
    for name, value in sorted(vars(part).items()):
        inner = getattr(value, "__func__", value)
        if isinstance(inner, FunctionType):
            yield f"{name} {inner.__defaults__} {inner.__kwdefaults__} {_code(inner.__code__)}"
        elif isinstance(value, str | int | float | tuple) and not name.startswith("__"):
            yield f"{name} {value!r}"


def _code(code: CodeType) -> str:
    constants: list[str] = []
    for value in code.co_consts:
        if isinstance(value, CodeType):
            constants.append(_code(value))
        elif isinstance(value, frozenset):
            # The order of a set differs from process to process.
            constants.append(repr(sorted(cast(frozenset[Any], value), key=repr)))
        else:
            constants.append(repr(value))
    return f"{code.co_code.hex()} {code.co_names} {constants}"
