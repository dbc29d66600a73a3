"""The house rules: one test a rule, which lists everything that breaks it."""

import ast
import importlib
import pkgutil
import re
import subprocess
import sys
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from functools import cache, partial
from pathlib import Path

import grimp
import pytest

from registry.registry import REGISTRIES
from registry.summary import source_of, summary
from tests.messages import session_messages

ROOT = Path(__file__).parents[1]
PACKAGES = ("variants", "registry", "studies", "store")
FILES = sorted(file for package in PACKAGES for file in (ROOT / package).rglob("*.py"))
BUILT_IN = [(kind, name) for kind, table in sorted(REGISTRIES.items()) for name in table]

FACES = {
    "registry": {
        *("EncoderConfig", "build_encoder", "register", "isolated", "Registry", "Table"),
        *("check", "conformance"),
        *("ConfigError", "UnknownNameError", "DuplicateNameError"),
        *("positions", "feedforwards", "norms", "norm_placements", "masks", "attentions"),
        *("readouts", "initializers"),
    },
    "studies": {"load"},
    "variants": {"Block", "Dims", "Encoder", "EncoderOutput", "MultiHeadAttention", "Part"},
}
BESIDE_PARTS = {
    "variants.positions": {"BeyondTableError"},
    "variants.masks": {"Sizes", "CONVENTION"},
}
"""What a folder of parts exports besides its contract and its parts."""

WITHOUT_A_PAPER = {
    *(("mask", name) for name in ("dense", "full", "padding")),
    *(("readout", name) for name in ("last", "max", "mean", "tokens")),
}
"""Parts that nobody's paper introduced."""

LONG_FUNCTIONS = {
    "studies/cli/acceptance.py: application": "options of a command are parameters",
    "studies/cli/command.py: application": "options of a command are parameters",
    "studies/cli/command.py: main": "options of a command are parameters",
}
"""Functions that may exceed 40 lines, and why."""

CIRCLES: list[list[str]] = []
"""Circles of imports that are left; none may be added."""

UNUSED_EXPORTS: dict[str, str] = {}
"""Public names that no product code uses and no document mentions, and why."""

PINNED_SENTENCES = {
    "store/test_database.py": "of SQLite, which differ between its versions",
    "store/test_maintenance.py": "of SQLite, which differ between its versions",
    "store/test_postgresql.py": "of PostgreSQL",
    "store/test_models.py": "of SQLAlchemy",
    "studies/training/test_loop.py": "of torch",
    "studies/training/test_saved_models.py": "of torch",
    "variants/masks/test_testing.py": "a pattern of places",
    "studies/analysis/*": "to be moved to messages.yaml",
    "studies/experiment/*": "to be moved to messages.yaml",
    "studies/report/*": "to be moved to messages.yaml",
    "test_one_truth.py": "to be moved to messages.yaml",
    "studies/test_factor_study.py": "to be moved to messages.yaml",
}
"""Tests that match errors of four words or more themselves, and whose or why."""

VAGUE = {"utils", "util", "helpers", "helper", "common", "base", "core", "misc", "manager"}
AXIS_JUGGLING = {"view", "transpose", "permute", "unsqueeze", "swapaxes", "movedim"}


@cache
def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def none(offenders: Iterable[object], hint: str = "") -> None:
    """Nothing breaks the rule; otherwise all that does is listed."""
    __tracebackhide__ = True
    if found := sorted(map(str, offenders)):
        pytest.fail("\n".join([hint or "These break the rule:", *found]), pytrace=False)


def place(file: Path, node: ast.AST | None = None) -> str:
    at = f":{node.lineno}" if isinstance(node, ast.stmt | ast.expr) else ""
    return f"{file.relative_to(ROOT)}{at}"


# Imports ------------------------------------------------------------------------------------


def test_imports_point_one_way() -> None:
    code = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports())"
    shown = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert shown.returncode == 0, shown.stdout
    assert " 0 broken" in shown.stdout


def imports(file: Path) -> Iterator[tuple[ast.Import | ast.ImportFrom, str]]:
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            yield node, "." * node.level + (node.module or "")


def test_nobody_imports_the_tests() -> None:
    found = [(file, node, name) for file in FILES for node, name in imports(file)]
    none(place(file, node) for file, node, name in found if name.split(".")[0] == "tests")


def test_imports_are_absolute() -> None:
    found = [(file, node, name) for file in FILES for node, name in imports(file)]
    none(place(file, node) for file, node, name in found if name.startswith("."))


def lies_in(circle: Collection[str], patterns: Sequence[str]) -> bool:
    return all(any(fnmatch(module, pattern) for pattern in patterns) for module in circle)


def circles(imported: Mapping[str, Collection[str]]) -> list[list[str]]:
    """The groups of modules that reach one another (Tarjan 1972), larger than one."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    waiting: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        order[module] = lowest[module] = len(order)
        waiting.append(module)
        for other in sorted(imported[module]):
            if other not in order:
                visit(other)
            if other in waiting:
                lowest[module] = min(lowest[module], lowest[other])
        if lowest[module] == order[module]:
            start = waiting.index(module)
            if len(waiting) - start > 1:
                found.append(sorted(waiting[start:]))
            del waiting[start:]

    for module in sorted(imported):
        if module not in order:
            visit(module)
    return found


def test_no_modules_import_one_another_in_a_circle() -> None:
    graph = grimp.build_graph(*PACKAGES, exclude_type_checking_imports=False, cache_dir=None)
    found = circles({one: graph.find_modules_directly_imported_by(one) for one in graph.modules})
    known = {str(circle): next(filter(partial(lies_in, circle), CIRCLES), None) for circle in found}
    none(circle for circle, one in known.items() if one is None)
    none(
        [one for one in CIRCLES if one not in known.values()],
        "No circle any more; remove from CIRCLES:",
    )


def test_circles_are_found() -> None:
    imported = {"a": ["b"], "b": ["c", "d"], "c": ["a"], "d": ["e"], "e": [], "f": ["g", "a"]}
    assert circles({**imported, "g": ["f"]}) == [["a", "b", "c"], ["f", "g"]]


# Names, sizes, what is installed ------------------------------------------------------------


def test_what_is_installed_holds_every_package_and_every_file_beside_their_code() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    folders = {file.parent for file in FILES if "__pycache__" not in file.parts}
    packages = {".".join(folder.relative_to(ROOT).parts): folder for folder in folders}
    assert sorted(declared["packages"]) == sorted(packages)
    for package, folder in packages.items():
        beside = {file.name for file in folder.iterdir() if file.is_file() and file.suffix != ".py"}
        patterns = declared["package-data"].get(package, [])
        assert not {name for name in beside if not any(fnmatch(name, one) for one in patterns)}


def test_names_say_what_they_hold() -> None:
    parts = {(file, part) for file in FILES for part in file.relative_to(ROOT).parts}
    vague = {file for file, part in parts if part.removesuffix(".py").strip("_") in VAGUE}
    none(map(place, vague))


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Its lines without its docstring and without its decorators."""
    lines = (function.end_lineno or 0) - function.lineno + 1
    if ast.get_docstring(function) is None:
        return lines
    first = function.body[0]
    return lines - ((first.end_lineno or 0) - first.lineno + 1)


def test_a_function_has_40_lines_or_fewer() -> None:
    long = {
        f"{place(file)}: {node.name}"
        for file in FILES
        for node in ast.walk(tree(file))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and length(node) > 40
    }
    none(long - set(LONG_FUNCTIONS))
    none(set(LONG_FUNCTIONS) - long, "Short by now; remove from LONG_FUNCTIONS:")


# Public names -------------------------------------------------------------------------------


def exporting() -> Iterator[str]:
    """The modules that say which of their names are public."""
    for package in PACKAGES:
        yield package
        for module in pkgutil.walk_packages([str(ROOT / package)], f"{package}."):
            file = Path(str(module.module_finder.path), module.name.rpartition(".")[2])  # type: ignore[union-attr]
            text = (file / "__init__.py" if module.ispkg else file.with_suffix(".py")).read_text()
            if re.search(r"^__all__|^__getattr__", text, re.MULTILINE):
                yield module.name


def test_public_faces_are_what_the_documents_say() -> None:
    modules = {face: importlib.import_module(face) for face in FACES}
    assert {face: set(module.__all__) for face, module in modules.items()} == FACES
    assert all(set(module.__all__) <= set(dir(module)) for module in modules.values())


def test_a_folder_of_parts_shows_its_contract_and_its_parts() -> None:
    wrong = {}
    for table in REGISTRIES.values():
        public = set(importlib.import_module(table.package).__all__)
        if table.package.startswith("studies."):
            wrong[table.package] = {table.contract.__name__, table.plural} - public
        else:
            classes = {table.contract, *(table[name] for name in table)}
            beside = BESIDE_PARTS.get(table.package, set())
            wrong[table.package] = public ^ ({part.__name__ for part in classes} | beside)
    none(f"{package}: {sorted(names)}" for package, names in wrong.items() if names)


def test_every_public_name_resolves_and_no_other_does() -> None:
    for face in exporting():
        module = importlib.import_module(face)
        public: list[str] = list(module.__all__)
        assert len(set(public)) == len(public), face
        assert [name for name in public if not hasattr(module, name)] == [], face
        with pytest.raises(AttributeError, match="no_such_name"):
            module.no_such_name  # noqa: B018  (looking it up is the test)


def test_every_public_name_is_used_or_documented() -> None:
    documents = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*.py")]
    mentioned = set(re.findall(r"\w+", "\n".join(file.read_text() for file in documents)))
    plurals = {table.plural for table in REGISTRIES.values()}
    unused = {
        f"{face}.{name}"
        for face in set(exporting()) - {table.package for table in REGISTRIES.values()}
        for name in set(importlib.import_module(face).__all__) - mentioned - plurals
        if not any(name in used(file) for file in FILES if file not in homes(face, name))
    }
    none(unused - set(UNUSED_EXPORTS))
    none(set(UNUSED_EXPORTS) - unused, "Used by now; remove from UNUSED_EXPORTS:")


def homes(face: str, name: str) -> set[Path]:
    """The files of the face and of the module that defines a name: neither is a use."""
    found = getattr(importlib.import_module(face), name)
    modules = {face, getattr(found, "__module__", face)}
    return {Path(str(sys.modules[module].__file__)) for module in modules}


@cache
def used(file: Path) -> set[str]:
    """The names that a file reads or imports; a face that passes them on does neither."""
    if file.name == "__init__.py":
        return set()
    nodes = list(ast.walk(tree(file)))
    return {
        *(node.id for node in nodes if isinstance(node, ast.Name)),
        *(node.attr for node in nodes if isinstance(node, ast.Attribute)),
        *(node.name for node in nodes if isinstance(node, ast.alias)),
    }


# Tests --------------------------------------------------------------------------------------


def test_every_stored_message_has_its_test(request: pytest.FixtureRequest) -> None:
    outdated = session_messages(request.config).outdated()
    none((f"{file}::{test}" for file, test in outdated), "Renew with --renew-messages:")


def matched(file: Path) -> Iterator[ast.expr]:
    """The texts of four words or more that a test asks of an error."""
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.keyword) and node.arg == "match":
            found = [part.value for part in ast.walk(node.value) if isinstance(part, ast.Constant)]
            if len(re.findall(r"[^\W\d]+", " ".join(map(str, found)))) >= 4:
                yield node.value


def test_sentences_of_errors_are_stored_messages() -> None:
    files = {file: list(matched(file)) for file in (ROOT / "tests").rglob("test_*.py")}
    found = {file.relative_to(ROOT / "tests"): nodes for file, nodes in files.items() if nodes}
    known = {file for file in found for one in PINNED_SENTENCES if fnmatch(str(file), one)}
    none((f"tests/{file}:{found[file][0].lineno}" for file in set(found) - known), "See messages:")


# Parts --------------------------------------------------------------------------------------


def test_a_part_is_a_file_of_its_name_with_a_docstring() -> None:
    wrong = []
    for kind, name in BUILT_IN:
        table, first = REGISTRIES[kind], summary(REGISTRIES[kind], name)
        part = table[name]
        at_home = source_of(table, name).stem == name
        at_home &= part.__module__ == f"{table.package}.{name}"
        told = first == (part.__doc__ or "").split("\n")[0] and first.endswith((".", ":"))
        wrong += [] if at_home and told else [f"{kind} {name}"]
    none(wrong)


def test_a_part_names_its_paper() -> None:
    parts = {one for one in BUILT_IN if one[0] not in ("task", "attention")}
    silent = {one for one in parts if "Source: " not in (REGISTRIES[one[0]][one[1]].__doc__ or "")}
    assert silent == WITHOUT_A_PAPER


def juggled(found: ast.AST) -> Iterator[tuple[int, str]]:
    """Lines that move axes by number instead of by a pattern."""
    for node in ast.walk(found):
        if isinstance(node, ast.Attribute) and node.attr in {*AXIS_JUGGLING, "T", "mT"}:
            yield node.lineno, node.attr
        steps = node.slice if isinstance(node, ast.Subscript) else None
        for step in steps.elts if isinstance(steps, ast.Tuple) else []:
            if isinstance(step, ast.Constant) and step.value is None:
                yield step.lineno, "[…, None]"


def test_axes_have_names_in_the_variants() -> None:
    files = [file for file in FILES if (ROOT / "variants") in file.parents]
    none(f"{place(file)}:{line}: {what}" for file in files for line, what in juggled(tree(file)))


@pytest.mark.parametrize(
    "line", ["x.view(2)", "x.transpose(0, 1)", "x[:, None]", "x.T", "x[None, 0]"]
)
def test_that_check_sees_what_it_looks_for(line: str) -> None:
    assert list(juggled(ast.parse(line)))
