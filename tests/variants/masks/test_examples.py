"""What the documents show is so; the example of a test file of one's own would catch a leak."""

import doctest
import os
import subprocess
import sys
from pathlib import Path

import variants.masks
from tests.messages import Messages

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "test_my_mask.py"


def test_the_drawing_in_the_documentation_of_the_package_is_right() -> None:
    result = doctest.testmod(variants.masks)
    assert result.attempted > 0
    assert result.failed == 0


def test_the_example_passes_and_fails_where_the_attention_drops_its_mask(
    messages: Messages, tmp_path: Path
) -> None:
    text = EXAMPLE.read_text(encoding="utf-8")
    dropped = text.replace('.masked_fill(~allowed, float("-inf"))', "")
    assert dropped != text
    file = tmp_path / "test_dropped.py"
    file.write_text(dropped, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(EXAMPLE), str(file)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "2 failed, 8 passed" in done.stdout
    assert f"{file.name}:" in done.stdout
    assert f"{EXAMPLE.name}:" not in done.stdout
    errors = [line for line in done.stdout.splitlines() if line.startswith("E  ")]
    messages("\n".join(errors), hide=r"\d+\.\d+")
