"""What the numbers of a run rest on: whatever file can change them changes the hash of its code."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from registry import fingerprint, register
from registry.plugins import load
from studies.training.identity import components, foreign_sources, hash_of_code
from studies.training.settings import RunConfig, check_run

ENCODER: dict[str, Any] = {
    "vocab_size": 11, "n_classes": 10, "d_model": 16, "position": "rope", "norm": "rmsnorm",
    "mask": "causal & window(radius=4)", "attention": "chunked",
}  # fmt: skip


def run(**changes: Any) -> RunConfig:
    encoder = {**ENCODER, **changes.pop("encoder", {})}
    return check_run({"encoder": encoder, "task": {"name": "parity"}, **changes})


def code_of(config: RunConfig) -> str:
    return hash_of_code(components(config))


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packages")
    for package in ("variants", "registry", "studies", "store"):
        left_out = shutil.ignore_patterns("__pycache__")
        shutil.copytree(fingerprint.ROOT / package, folder / package, ignore=left_out)
    return folder


@pytest.fixture
def copied(packages: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file of a copy of the packages, which can be changed; its name is a parameter."""
    monkeypatch.setattr(fingerprint, "ROOT", packages)
    file = packages / name
    text = file.read_text()
    yield file
    file.write_text(text)


def comment(file: Path) -> None:
    before, _, after = file.read_text().split('"""', 2)
    file.write_text(f'# a comment\n{before}"""Another docstring."""{after}')


def edit(file: Path) -> None:
    file.write_text(f"{file.read_text()}\nADDED = 1\n")


@pytest.mark.parametrize(
    "name",
    [
        "variants/positions/rope.py",
        "variants/positions/position.py",
        "variants/norms/rmsnorm.py",
        "variants/norms/norm.py",
        "variants/feedforwards/feedforward.py",
        "variants/masks/window.py",
        "variants/masks/mask.py",
        "variants/attentions/chunked.py",
        "variants/attentions/_softmax.py",
        "variants/initializers/xavier.py",
        "variants/dims.py",
        "variants/embedding.py",
        "variants/encoder.py",
        "variants/block.py",
        "registry/build.py",
        "registry/config.py",
        "studies/tasks/parity.py",
        "studies/tasks/task.py",
        "studies/tasks/_shapes.py",
        "studies/tasks/_floors.py",
        "studies/training/execute.py",
        "studies/training/evaluation.py",
        "studies/training/settings.py",
        "studies/training/data.py",
        "studies/scoring.py",
        "studies/seeds.py",
    ],
)
def test_a_file_that_can_change_numbers_counts_by_its_code_alone(copied: Path) -> None:
    config = run()
    before = code_of(config)
    comment(copied)
    assert code_of(config) == before
    edit(copied)
    assert code_of(config) != before


@pytest.mark.parametrize(
    "name",
    [
        "variants/positions/alibi.py",
        "variants/positions/sinusoidal.py",
        "variants/norms/layernorm.py",
        "variants/masks/dilated.py",
        "variants/masks/__init__.py",
        "variants/attentions/sdpa.py",
        "studies/tasks/shift.py",
        "studies/tasks/__init__.py",
        "studies/extrapolation.py",
        "registry/errors.py",
        "registry/cli.py",
        "store/models.py",
    ],
)
def test_a_file_that_a_run_does_not_use_does_not_count(copied: Path) -> None:
    config = run()
    before = code_of(config)
    edit(copied)
    assert code_of(config) == before


def test_a_run_rests_on_nothing_that_looks_at_runs() -> None:
    """Else every edit there would call its numbers outdated."""
    allowed = ("variants.", "registry.", "studies.training.", "studies.tasks.", "studies.probes.")
    config = run(evaluation={"probes": ["attention"]})
    origins = [one.origin.partition(":")[0] for one in components(config)]
    assert [one for one in origins if not one.startswith(allowed)] == [
        "studies.scoring",
        "studies.seeds",
    ]
    assert not [one for one in origins if one.startswith(("registry.cli", "registry.conformance"))]


def test_masks_of_an_expression_probes_and_parts_in_parts_are_named() -> None:
    config = run(
        encoder={"position": {"name": "randomized", "inner": "rope"}},
        evaluation={"probes": ["gradient_norms"]},
    )
    named = {(one.kind, one.name) for one in components(config)}
    assert {("mask", "causal"), ("mask", "window"), ("probe", "gradient_norms")} <= named
    assert {("position", "randomized"), ("position", "rope")} <= named


def test_a_run_done_by_a_function_rests_on_what_that_imports() -> None:
    config = check_run({"perform": {"name": "studies.measurements.numerics:measure"}})
    named = {(one.kind, one.name) for one in components(config)}
    assert ("perform", "studies.measurements.numerics:measure") in named
    assert ("training", "training.loop") not in named


def plugin(folder: Path, helper: str = "TWO = 2\n") -> None:
    (folder / "mine.py").write_text(
        "import my_helper_of_a_plugin as helper\nfrom registry import register\n"
        "from variants.positions import Position\n\n"
        "@register\nclass Mine(Position):\n    name = 'mine'\n    size = helper.TWO\n"
    )
    (folder / "my_helper_of_a_plugin.py").write_text(helper)


def test_helpers_of_a_plugin_are_part_of_what_tells_its_runs_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    plugin(tmp_path)
    load(str(tmp_path / "mine.py"))
    config = run(encoder={"position": "mine"})
    before, code = foreign_sources(config), code_of(config)
    assert set(before) == {"position mine", "helper my_helper_of_a_plugin"}

    plugin(tmp_path, "# two\nTWO = 2\n")
    assert foreign_sources(config) == before

    plugin(tmp_path, "TWO = 3\n")
    after = foreign_sources(config)
    assert after["position mine"] == before["position mine"]
    assert after != before
    assert code_of(config) != code


def test_a_part_typed_at_a_prompt_counts_too() -> None:
    space: dict[str, Any] = {"__name__": "__console__"}
    exec(
        "from variants.positions import Position\nclass Typed(Position):\n    name = 'typed'", space
    )
    register(space["Typed"])
    assert set(foreign_sources(run(encoder={"position": "typed"}))) == {"position typed"}


def test_our_own_parts_tell_no_runs_apart() -> None:
    assert foreign_sources(run()) == {}
