"""The house rules: which way imports point, what names mean, what the public face is."""

import ast
import importlib
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

from registry.registry import REGISTRIES, Registry
from registry.summary import source_of, summary

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
"""What a folder of parts shows besides its contract and its parts."""

WITHOUT_A_PAPER = {
    *(("mask", name) for name in ("dense", "full", "padding")),
    *(("readout", name) for name in ("last", "max", "mean", "tokens")),
}
"""Parts that nobody's paper introduced."""

AXIS_JUGGLING = {"view", "transpose", "permute", "unsqueeze", "swapaxes", "movedim"}


def test_imports_point_one_way() -> None:
    code = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports())"
    shown = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert shown.returncode == 0, shown.stdout
    assert " 0 broken" in shown.stdout


@pytest.mark.parametrize("package", PACKAGES)
def test_nobody_imports_the_tests(package: str) -> None:
    for file in (ROOT / package).rglob("*.py"):
        assert not [name for name in imported(file) if name.split(".")[0] == "tests"], file


def imported(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}, line {node.lineno}: a relative import"
            yield node.module or ""


def test_what_is_installed_holds_every_package_and_every_file_beside_their_code() -> None:
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    folders = {file.parent for file in FILES if "__pycache__" not in file.parts}
    packages = {".".join(folder.relative_to(ROOT).parts): folder for folder in folders}
    assert sorted(told["packages"]) == sorted(packages)
    for package, folder in packages.items():
        beside = {file.name for file in folder.iterdir() if file.is_file() and file.suffix != ".py"}
        patterns = told["package-data"].get(package, [])
        assert not {name for name in beside if not any(fnmatch(name, one) for one in patterns)}


def test_names_say_what_they_hold() -> None:
    vague = {"utils", "util", "helpers", "helper", "common", "base", "core", "misc"}
    named = {part.removesuffix(".py").strip("_") for file in FILES for part in file.parts}
    assert not named & vague


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_a_file_fits_in_the_head(file: Path) -> None:
    assert len(file.read_text().splitlines()) <= 250


@pytest.mark.parametrize("face", sorted(FACES))
def test_a_public_face_is_what_the_documents_say(face: str) -> None:
    module = importlib.import_module(face)
    assert set(module.__all__) == FACES[face]
    assert set(module.__all__) <= set(dir(module))


@pytest.mark.parametrize("table", REGISTRIES.values(), ids=lambda table: table.plural)
def test_a_folder_of_parts_shows_its_contract_and_its_parts(table: Registry) -> None:
    module = importlib.import_module(table.package)
    if table.package.startswith("studies."):
        assert {table.contract.__name__, table.plural} <= set(module.__all__)
        return
    classes = {table.contract, *(table[name] for name in table)}
    beside = BESIDE_PARTS.get(table.package, set())
    assert set(module.__all__) == {part.__name__ for part in classes} | beside


@pytest.mark.parametrize(
    "face",
    [
        *FACES,
        "store",
        "studies.statistics",
        "studies.tasks",
        *(t.package for t in REGISTRIES.values()),
    ],
)
def test_every_public_name_resolves(face: str) -> None:
    module = importlib.import_module(face)
    assert len(set(module.__all__)) == len(module.__all__)
    for name in module.__all__:
        assert getattr(module, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        module.no_such_name  # noqa: B018  (looking it up is the test)


@pytest.mark.parametrize(("kind", "name"), BUILT_IN)
def test_a_part_is_a_file_of_its_name_with_a_docstring(kind: str, name: str) -> None:
    part = REGISTRIES[kind][name]
    assert source_of(REGISTRIES[kind], name).stem == name
    assert part.__module__ == f"{REGISTRIES[kind].package}.{name}"
    assert summary(REGISTRIES[kind], name) == (part.__doc__ or "").split("\n")[0]
    assert summary(REGISTRIES[kind], name).endswith((".", ":"))


@pytest.mark.parametrize(
    ("kind", "name"), [one for one in BUILT_IN if one[0] not in ("task", "attention")]
)
def test_a_part_names_its_paper(kind: str, name: str) -> None:
    has_source = "Source: " in (REGISTRIES[kind][name].__doc__ or "")
    assert has_source == ((kind, name) not in WITHOUT_A_PAPER)


def juggled(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Lines that move axes by number instead of by a pattern."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in {*AXIS_JUGGLING, "T", "mT"}:
            yield node.lineno, node.attr
        steps = node.slice if isinstance(node, ast.Subscript) else None
        for step in steps.elts if isinstance(steps, ast.Tuple) else []:
            if isinstance(step, ast.Constant) and step.value is None:
                yield step.lineno, "[…, None]"


@pytest.mark.parametrize(
    "file", [file for file in FILES if "variants" in file.parts], ids=lambda file: file.stem
)
def test_axes_have_names_in_the_variants(file: Path) -> None:
    assert list(juggled(ast.parse(file.read_text()))) == []


@pytest.mark.parametrize(
    "line", ["x.view(2)", "x.transpose(0, 1)", "x[:, None]", "x.T", "x[None, 0]"]
)
def test_that_check_sees_what_it_looks_for(line: str) -> None:
    assert list(juggled(ast.parse(line)))
