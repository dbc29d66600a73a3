"""A part is one new file: it is listed, shown, checked and built without another edit."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from registry import build_encoder, positions
from registry.cli import main
from registry.plugins import load

ROOT = Path(__file__).parents[2]
FACTS = "distance_only = True\n    sees_direction = False"
PART = f'''"""Attention that prefers neighbours."""

import torch
from torch import Tensor

from variants.positions.position import Position, relative


class Neighbours(Position):
    """bias(i, j) = -(i - j)², in every head.

    Source: a test.
    """

    name = "neighbours"
    {FACTS}

    def bias(self, q_index: Tensor, k_index: Tensor) -> Tensor:
        away = relative(q_index, k_index).to(torch.float32)
        return -away.square().unsqueeze(1).expand(-1, self.dims.n_heads, -1, -1)
'''
PROGRAM = """
import registry
from registry.cli import main
from variants.positions import Neighbours
assert registry.positions["neighbours"] is Neighbours
assert registry.build_encoder({"position": "neighbours"}, seed=0).positions[0].name == "neighbours"
assert registry.check(Neighbours, only=["declared_distance_is_true"]).ok
for words in (["list", "position"], ["show", "position", "neighbours"]):
    try:
        main(words)
    except SystemExit as end:
        assert not end.code
"""


def test_a_built_in_part_is_one_new_file_in_its_folder(tmp_path: Path) -> None:
    for package in ("variants", "registry"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("*.pyc"))
    (tmp_path / "variants" / "positions" / "neighbours.py").write_text(PART)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "  neighbours " in done.stdout
    assert str(tmp_path / "variants" / "positions" / "neighbours.py") in done.stdout


def test_a_part_of_ones_own_is_one_new_file_anywhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "neighbours.py"
    file.write_text(
        PART.replace("class N", "@register\nclass N").replace(
            "import torch\n", "import torch\nfrom registry import register\n", 1
        )
    )
    for words, code in (
        (["list", "position", "--import", str(file)], 0),
        (["show", "position", "neighbours", "--import", str(file)], 0),
        (["check", str(file), "--only", "declared_distance_is_true"], 0),
    ):
        with pytest.raises(SystemExit) as end:
            main(words)
        assert (end.value.code or 0) == code
        assert "neighbours" in capsys.readouterr().out
    load(str(file))
    assert "neighbours" in positions
    assert build_encoder({"position": "neighbours"}, seed=0).positions[0].name == "neighbours"
