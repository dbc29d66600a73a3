"""A fact is decided once, and every surface tells the same: what once was told in two ways."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from registry import ConfigError
from tests.golden.renew import told_of
from tests.golden.replay import plan_of

ROOT = Path(__file__).parents[1]
RATE = "training.learning_rate"

Told = Mapping[str, Any]


def rows(told: Told, query: str) -> dict[str, dict[str, Any]]:
    """The rows of a query by arm."""
    table = told["store"][query]
    found = [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]
    return {row["arm"]: row for row in found}


def arms(told: Told) -> dict[str, dict[str, Any]]:
    """What the study says of each arm."""
    return {arm["arm"]: arm for arm in told["study"]["arms"]}


# A: which setting did tuning choose?


@pytest.mark.parametrize("case", ["ties_middle", "ties_lowest", "clean", "superseded"])
def test_store_best_names_the_setting_that_the_study_chose(case: str, tmp_path: Path) -> None:
    told = told_of(case, tmp_path)

    best = rows(told, "best")
    for arm, found in arms(told).items():
        assert best[arm][RATE] == found["tuning"]["setting"][RATE]
        edge = found["tuning"]["edges"].get(RATE)
        assert (best[arm]["at_edge"] or "") == (f"{edge} {RATE}" if edge else "")


# B: … when a tuning run failed?


def test_store_best_names_no_setting_where_a_tuning_run_failed(tmp_path: Path) -> None:
    told = told_of("tuning_failed", tmp_path)

    assert arms(told)["rope"]["tuning"]["setting"] is None
    best = rows(told, "best")["rope"]
    assert (best.get("run_id"), best.get("nll"), best.get(RATE)) == (None, None, None)


# C: how far does an arm hold when a seed diverged?


@pytest.fixture(scope="module")
def diverged(tmp_path_factory: pytest.TempPathFactory) -> Told:
    return told_of("diverged", tmp_path_factory.mktemp("diverged"))


def test_how_far_an_arm_holds_is_told_alike_when_a_seed_diverged(diverged: Told) -> None:
    reach, below = arms(diverged)["rope"]["reach"], rows(diverged, "below skill")["rope"]

    assert (reach["held"], reach["fell"]) == (16, 32)
    assert (below["holds_to"], below["falls_at"]) == (16, 32)
    assert below["value"] == pytest.approx(reach["skill"])
    assert (below["seeds"], below["seeds_above"]) == (5, 4)


@pytest.mark.parametrize("metric", ["skill", "accuracy", "exact"])
def test_means_are_told_alike_when_a_seed_diverged(diverged: Told, metric: str) -> None:
    table = diverged["store"][f"lengths {metric}"]
    found = [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]

    for row in found:
        told = arms(diverged)[row["arm"]]["means"][f"test {metric} {row['length']}"]
        assert [row["mean"], row["low"], row["high"]] == pytest.approx(told[:3])
        assert row["seeds"] == told[3] == 5


@pytest.mark.parametrize(("query", "metric"), [("cost", "accuracy"), ("cost skill", "skill")])
def test_the_value_beside_a_cost_is_the_mean_that_the_study_tells(
    diverged: Told, query: str, metric: str
) -> None:
    for arm, row in rows(diverged, query).items():
        means = arms(diverged)[arm]["means"]
        told = [means[f"test {metric} {length}"][0] for length in (16, 32, 64)]
        assert row["value"] == pytest.approx(sum(told) / 3)
        assert row["seeds"] == 5


# D: has the code behind these numbers changed?

OWN = """
name: own
question: What is a run made of?
variable: encoder.position
import: [tilted.py]
encoder: {d_model: 8, n_heads: 2, n_layers: 1, mask: window(radius=4), norm: rmsnorm}
task: {name: shift, k: 1, alphabet: 3}
training: {steps: 2, batch_size: 4, train_lengths: [2, 8], until: {value: 1.0, every: 1, cap: 1.0}}
evaluation: {test_lengths: [8, 12], examples: 4, probes: [scores_by_index]}
study:
  seeds: 1
  arms: [tilted, rope]
"""
TILTED = '''"""A slope, whose size another file knows."""

from einops import rearrange

from registry import register
from slopes import SLOPE, slope_of
from variants.positions import Position


@register
class Tilted(Position):
    """A slope that every head shares."""

    name = "tilted"
    sees_direction = False
    distance_only = True

    def bias(self, q_index, k_index):
        query = rearrange(q_index, "batch query -> batch 1 query 1")
        key = rearrange(k_index, "batch key -> batch 1 1 key")
        return slope_of(query - key).expand(-1, self.dims.n_heads, -1, -1)
'''
SLOPES = '''"""How steep."""

SLOPE = -0.1


def slope_of(distance):
    return SLOPE * distance.abs().float()
'''


FINDING = {
    f"product/{name}.py"
    for name in (
        "registry/errors",
        "registry/registry",
        "registry/presets/__init__",
        "variants/faces",
    )
}
"""What finds, names and refuses: the classes and the config that it leads to count themselves."""


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a copy of the product, and a study with a part of its own beside it."""
    folder = tmp_path_factory.mktemp("copied")
    for package in ("registry", "store", "studies", "variants"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, folder / "product" / package, ignore=ignored)
    own = folder / "own"
    own.mkdir()
    for name, text in {"own.yaml": OWN, "tilted.py": TILTED, "slopes.py": SLOPES}.items():
        (own / name).write_text(text, encoding="utf-8")
    yield folder
    shutil.rmtree(folder)


def called(copied: Path, *words: str) -> str:
    """What a module of the copy prints."""
    paths = [copied / "product", copied / "own", ROOT]
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=copied / "own",
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def touched(copied: Path) -> dict[str, list[str]]:
    roots = str(copied / "product"), str(copied / "own")
    found = json.loads(called(copied, "tests.golden.touching", "own.yaml", *roots))
    place = f"{copied.resolve()}/"
    return {key: [path.removeprefix(place) for path in paths] for key, paths in found.items()}


def test_a_run_executes_what_decides_its_numbers(touched: dict[str, list[str]]) -> None:
    """Else the next tests would see too little."""
    executed = set(touched["executed"])

    assert {"own/tilted.py", "own/slopes.py"} <= executed
    assert {f"product/variants/{name}.py" for name in ("encoder", "norms/rmsnorm")} <= executed
    assert "product/studies/tasks/shift.py" in executed
    assert len(executed) > 30


def test_every_file_that_a_run_executes_changes_its_code_hash(
    touched: dict[str, list[str]],
) -> None:
    assert set(touched["unseen"]) <= FINDING


def test_comments_and_docstrings_change_no_code_hash(touched: dict[str, list[str]]) -> None:
    assert touched["commented"] == []


@pytest.mark.slow
def test_store_changed_and_the_study_tell_of_a_file_that_changed(copied: Path) -> None:
    storage = "sqlite:///own.db"
    run = ("studies.run", "own.yaml", "--workers", "1", "--storage", storage)
    asked = ("store", "changed", "--format", "json", "--storage", storage)
    called(copied, *run)
    assert json.loads(called(copied, *asked)) == []

    file = copied / "product/studies/tasks/task.py"
    file.write_text(file.read_text(encoding="utf-8") + "\n_touched = 1\n", encoding="utf-8")

    found = json.loads(called(copied, *asked))
    assert {row["state"] for row in found} == {"changed"}
    assert any("tasks" in f"{row['name']} {row['origin']}" for row in found)


# E: does this mask look ahead?

CAUSAL = {
    "name": "ahead",
    "question": "Does it look ahead?",
    "variable": "encoder.position",
    "encoder": {"d_model": 8, "n_heads": 2, "n_layers": 1},
    "task": "causal_copy",
    "training": {"steps": 2, "train_lengths": [2, 8]},
    "evaluation": {"test_lengths": [8], "examples": 4},
    "study": {"arms": ["none"], "seeds": 1},
}
AHEAD = ["causal | dilated(rate=7)", "causal | dilated(rate=70)"]


@pytest.mark.parametrize("mask", AHEAD)
def test_a_causal_task_refuses_a_mask_that_looks_ahead_however_far(
    mask: str, tmp_path: Path
) -> None:
    file = tmp_path / "ahead.yaml"
    file.write_text(json.dumps({**CAUSAL, "encoder": {**CAUSAL["encoder"], "mask": mask}}))

    with pytest.raises(ConfigError, match=r"encoder\.mask"):
        plan_of(file)


def test_a_causal_task_takes_a_mask_that_does_not_look_ahead(tmp_path: Path) -> None:
    file = tmp_path / "ahead.yaml"
    mask = "causal & dilated(rate=70)"
    file.write_text(json.dumps({**CAUSAL, "encoder": {**CAUSAL["encoder"], "mask": mask}}))

    assert plan_of(file)


def test_a_position_for_earlier_keys_refuses_a_mask_that_looks_ahead(tmp_path: Path) -> None:
    file = tmp_path / "ahead.yaml"
    encoder = {**CAUSAL["encoder"], "position": "xpos", "mask": "causal | dilated(rate=70)"}
    file.write_text(json.dumps({**CAUSAL, "task": "shift", "encoder": encoder}))

    with pytest.raises(ConfigError, match=r"encoder\.position|encoder\.mask"):
        plan_of(file)


def test_acceptance_reads_the_answer_where_the_mask_lets_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A mask that looks ahead far away is as one that looks ahead nearby: both read it first."""
    from studies.acceptance import main

    told: list[str] = []
    for rate in (7, 70):
        mask = f"causal | dilated(rate={rate})"
        with pytest.raises(SystemExit):
            main(["--describe", "--set", f'encoder.mask="{mask}"'])
        told.append(capsys.readouterr().out.replace(f"rate={rate}", "rate=…"))

    assert told[0] == told[1]
