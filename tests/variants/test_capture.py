"""Encoders are captured whole by torch.compile, in few graphs for many lengths."""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import registry

ALWAYS: dict[str, dict[str, Any]] = {
    "rope": {"position": "rope", "n_layers": 1, "training": True},
}
SLOW: dict[str, dict[str, Any]] = {
    **{name: {"position": name, "training": True} for name in registry.positions},
    "rope, deeper": {"position": "rope", "n_layers": 3, "training": True},
    "causal": {"position": "rope", "mask": "causal", "training": True},
    "prefix": {"position": "rope", "mask": "causal | prefix(length=2)", "training": True},
    "explicit": {"position": "alibi", "attention": "explicit", "training": True},
    "post": {"norm_placement": "post", "norm": "rmsnorm", "readout": "mean", "training": True},
    "last": {"feedforward": "swiglu", "readout": "last", "training": False},
}


@cache
def captured(slow: bool) -> dict[str, dict[str, float]]:
    here = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, str(here / "capture.py")],
        input=json.dumps(SLOW if slow else ALWAYS),
        capture_output=True,
        text=True,
        cwd=here.parents[1],
        env={"PYTHONPATH": str(here.parents[1])},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("name", "slow"),
    [(name, False) for name in ALWAYS]
    + [pytest.param(name, True, marks=pytest.mark.slow) for name in SLOW],
)
def test_an_encoder_is_captured_whole(name: str, slow: bool) -> None:
    result = captured(slow)[name]
    assert 1 <= result["graphs"] <= 3
    assert result["difference"] < 1e-5
