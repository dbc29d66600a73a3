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
from dataclasses import dataclass
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
            near = (home for one in imports for home in _homes(module, one))
            waiting += (home for home in near if not _is_within(home.name, beside))
    for file, name in list(found.items()):
        for package in _packages_of(Module(name, file)):
            found.setdefault(package.file, package.name)
    return found


def _is_within(name: str, packages: Collection[str]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


class Import(NamedTuple):
    """`from module import name`, or `import module` where there is no name; level counts dots."""

    module: str
    level: int
    name: str | None


@dataclass(frozen=True)
class Source:
    """What a file says of other modules.

    Args:
        imports: What it imports when it runs, at its top or in a function.
        bound: Names that it takes from elsewhere, also for type checkers alone.
        defined: Names that it defines itself.
    """

    imports: tuple[Import, ...]
    bound: dict[str, Import]
    defined: frozenset[str]


def _homes(module: Module, one: Import) -> Iterator[Module]:
    """The modules behind one import of a module."""
    name = _absolute(module, one)
    if one.name is None:
        parents = [name.rsplit(".", count)[0] for count in range(name.count(".") + 1)]
        for parent in parents:
            yield from _whole(parent, _find(parent, module))
        return
    file = _find(name, module)
    if file is None or _is_package(file):
        yield from _home_of(module, name, file, one.name)
    else:
        yield Module(name, file)


def _whole(name: str, file: Path | None) -> Iterator[Module]:
    """A module itself; our own packages are faces, which compute nothing."""
    if file is not None and not (_is_package(file) and _top(name) in OURS):
        yield Module(name, file)


def _home_of(module: Module, package: str, init: Path | None, name: str) -> Iterator[Module]:
    """The module that defines a name of a package, which may have no `__init__` at all."""
    source = _source_of(init) if init else NOTHING
    inner = f"{package}.{name}"
    known = source.bound.get(name)
    if init and known and (_absolute(Module(package, init), known), known.name) != (package, name):
        yield from _homes(Module(package, init), known)
    elif init and name in source.defined:
        yield Module(package, init)
    elif found := _find(inner, module):
        yield from _whole(inner, found)
    elif init:
        yield _definer(package, init, name) or Module(package, init)


def _definer(package: str, init: Path, name: str) -> Module | None:
    """The module of a package that defines a name which its `__init__` looks up when asked."""
    for file in sorted(init.parent.glob("*.py")):
        if file != init and name in _source_of(file).defined:
            return Module(f"{package}.{file.stem}", file)
    return None


def _packages_of(module: Module) -> Iterator[Module]:
    """The `__init__` of each package around a module that is not ours."""
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


def _absolute(module: Module, one: Import) -> str:
    if not one.level:
        return one.module
    inside = module.name.split(".")
    kept = len(inside) - one.level + _is_package(module.file)
    return ".".join([*inside[: max(kept, 0)], *filter(None, [one.module])])


def _is_package(file: Path) -> bool:
    return file.name == "__init__.py"


def _top(name: str) -> str:
    return name.split(".")[0]


def _real_name(module: str) -> str:
    """`python -m package.module` hides the name of a module in its spec."""
    spec = getattr(sys.modules.get(module), "__spec__", None) if module == "__main__" else None
    return spec.name if spec else module


NOTHING = Source((), {}, frozenset())


def _source_of(file: Path) -> Source:
    return _parsed(file, _stamp(file))


@lru_cache(maxsize=4096)
def _parsed(file: Path, stamp: Stamp) -> Source:
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return NOTHING
    nodes = list(_running(tree))
    imports = [one for node in nodes for one in _imports(node)]
    aliases = {local: place for node in nodes for local, place in _aliases(node)}
    imports += [one for node in nodes for one in _taken(node, aliases)]
    statements = list(_top_level(tree.body))
    bound = {name: one for node in statements for name, one in _binds(node)}
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
    if not isinstance(node, ast.If):
        return False
    test = node.test
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", None)
    return name == "TYPE_CHECKING"


def _top_level(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module, also those inside `if` and `try`."""
    for node in body:
        if isinstance(node, ast.If | ast.Try):
            handlers = node.handlers if isinstance(node, ast.Try) else []
            inner = [*node.body, *node.orelse, *(one for by in handlers for one in by.body)]
            yield from _top_level(inner)
        else:
            yield node


def _imports(node: ast.AST) -> Iterator[Import]:
    match node:
        case ast.Import():
            yield from (Import(alias.name, 0, None) for alias in node.names)
        case ast.ImportFrom():
            yield from (one for _, one in _binds(node))
        case ast.Call(
            ast.Name("import_module") | ast.Attribute(attr="import_module"),
            [ast.Constant(str(name))],
        ):
            yield Import(name, 0, None)
        case _:
            pass


def _aliases(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Local names of modules, or of what may be one, and what they stand for."""
    match node:
        case ast.Import():
            for alias in node.names:
                local = alias.asname or _top(alias.name)
                yield local, alias.name if alias.asname else local
        case ast.ImportFrom(module=str(module), level=0):
            for alias in node.names:
                yield alias.asname or alias.name, f"{module}.{alias.name}"
        case _:
            pass


def _taken(node: ast.AST, aliases: Mapping[str, str]) -> Iterator[Import]:
    """What is taken from a package as `package.name`."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if names and isinstance(node, ast.Name) and node.id in aliases:
        place = ".".join([aliases[node.id], *reversed(names)]).rpartition(".")
        if _top(place[0]) in OURS:
            yield Import(place[0], 0, place[2])


def _binds(node: ast.AST) -> Iterator[tuple[str, Import]]:
    if isinstance(node, ast.ImportFrom):
        for alias in node.names:
            yield alias.asname or alias.name, Import(node.module or "", node.level, alias.name)


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
    """What a class without a source file says: its plain values and the code of its methods."""
    for name, value in sorted(vars(part).items()):
        inner = getattr(value, "__func__", value)
        if isinstance(inner, FunctionType):
            yield f"{name} {inner.__defaults__} {inner.__kwdefaults__} {_code(inner.__code__)}"
        elif isinstance(value, str | int | float | tuple) and not name.startswith("__"):
            yield f"{name} {value!r}"


def _code(code: CodeType) -> str:
    constants = [_code(one) if isinstance(one, CodeType) else _text(one) for one in code.co_consts]
    return f"{code.co_code.hex()} {code.co_names} {constants}"


def _text(constant: Any) -> str:
    """Its repr, with sets in order: that of a set differs from process to process."""
    if isinstance(constant, frozenset):
        return repr(sorted(cast(frozenset[Any], constant), key=repr))
    return repr(constant)
