"""What a call says of the study that it finds under its name."""

from dataclasses import replace
from pathlib import Path

import pytest

from store.ledger import Ledger
from studies.execution.running import warn_of_namesake
from studies.extrapolation import STUDY

MINE = replace(STUDY, name="mine", text="Does rope carry shift?\n\nIt should.")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Does alibi carry reverse?", True),
        ("Does rope carry shift?", False),
        ("\nDoes rope carry shift?  \n\nOne never knows.", False),
    ],
)
def test_a_study_that_asks_something_else_under_the_same_name_is_told(
    text: str, told: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger = Ledger.create(f"sqlite:///{tmp_path / 'sandbox.db'}")
    for one in (replace(MINE, text=text), MINE):
        warn_of_namesake(one, ledger.describe_study(one.name, one.text))

    said = capsys.readouterr().err
    assert said.startswith(f"Note: study mine in this database asked so far: {text}") is told
