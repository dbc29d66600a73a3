"""Position encodings can be imported and used with torch, einops and jaxtyping alone."""

import subprocess
import sys
from pathlib import Path

import registry

ROOT = Path(__file__).parents[3]

PROGRAM = """
import sys
from importlib.abc import MetaPathFinder

OTHERS = {others!r}

class Refuse(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in OTHERS:
            raise ImportError(f"{{name}} is not needed here")

sys.meta_path.insert(0, Refuse())
import importlib
import torch
from variants.dims import Dims
for name in {names!r}:
    importlib.import_module(f"variants.positions.{{name}}")
from variants.positions.rope import RoPE
q = torch.ones(1, 1, 2, 4)
index = torch.tensor([[0, 1]])
turned, _ = RoPE(Dims(4, 1, 4, 1)).rotate(q, q, index, index)
print(turned.shape)
"""

OTHERS = {
    *("registry", "studies", "store", "lazy_loader", "pydantic", "optuna", "sqlalchemy"),
    *("alembic", "typer", "rich", "scipy", "pandas", "matplotlib", "ruamel", "jinja2", "beartype"),
    *("transformers", "x_transformers", "safetensors", "hypothesis", "pytest"),
}


def run(program: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(ROOT)},
    )


def test_every_position_can_be_imported_without_the_rest_of_the_project() -> None:
    names = [name for name in registry.positions if registry.positions.is_builtin(name)]
    done = run(PROGRAM.format(others=sorted(OTHERS), names=names))
    assert (done.returncode, done.stdout) == (0, "torch.Size([1, 1, 2, 4])\n"), done.stderr
    assert len(names) >= 20


def test_that_check_sees_what_it_looks_for() -> None:
    done = run(PROGRAM.format(others=["registry"], names=["rope"]) + "import registry\n")
    assert "registry is not needed here" in done.stderr
