"""What the documents show is so; the example of a test file of one's own would catch a leak."""

import doctest
import os
import subprocess
import sys
from pathlib import Path

import variants.masks

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "test_my_mask.py"


def test_the_drawing_in_the_documentation_of_the_package_is_right() -> None:
    result = doctest.testmod(variants.masks)
    assert result.attempted > 0
    assert result.failed == 0


def run(file: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(file)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        command, cwd=file.parent, env=env, capture_output=True, text=True, check=False
    )


def test_the_example_passes() -> None:
    done = run(EXAMPLE)
    assert done.returncode == 0, done.stdout
    assert "5 passed" in done.stdout


def test_the_example_fails_where_the_attention_drops_its_mask(tmp_path: Path) -> None:
    text = EXAMPLE.read_text(encoding="utf-8")
    dropped = text.replace('.masked_fill(~allowed, float("-inf"))', "")
    assert dropped != text
    file = tmp_path / "test_my_mask.py"
    file.write_text(dropped, encoding="utf-8")
    done = run(file)
    assert done.returncode == 1
    assert "a forbidden key reaches a query at (batch 0, query 0, key 1)" in done.stdout
    assert "padding changes the result: " in done.stdout
    assert "2 failed, 3 passed" in done.stdout
