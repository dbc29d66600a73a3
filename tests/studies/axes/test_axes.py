"""Further axes of the extrapolation study."""

import sys

import pytest

from registry import ConfigError
from studies.axes import AXES
from studies.experiment.contrasts import differences, why_not_asked
from studies.experiment.draft import Draft
from studies.experiment.load import Typed, load_draft
from studies.extrapolation import main
from tests.messages import Messages

BUDGETS = ("smoke", "quick", "standard")


def planned(axis: str, budget: str = "quick", *assignments: str) -> Draft:
    return load_draft(AXES.read(axis), Typed(budget, assignments=assignments))


@pytest.mark.parametrize("axis", AXES.names())
@pytest.mark.parametrize("budget", BUDGETS)
def test_an_axis_is_a_study_whose_claims_can_be_asked(axis: str, budget: str) -> None:
    draft = planned(axis, budget)

    assert draft.study.name == f"extrapolation.{axis}"
    assert draft.study.program == f"python -m studies.extrapolation --axis {axis}"
    claims = draft.settings.study.hypotheses
    assert claims
    assert [why_not_asked(draft, claim) for claim in claims] == [""] * len(claims)


def test_a_contrast_of_places_moves_the_place_alone() -> None:
    """And what follows from it: where logits are read, and whether there is an empty token."""
    draft = planned("readout_place")

    moved = {
        claim.name: {_key(one.key) for one in differences(draft, claim)}
        for claim in draft.settings.study.hypotheses
    }

    assert moved == {
        "last before appended": {"task.answer_at", "encoder.vocab_size"},
        "last before first": {"task.answer_at", "encoder.readout"},
        "sinusoids before rope at last": {"encoder.position"},
        "rope before sinusoids at appended": {"encoder.position"},
    }


def _key(key: str) -> str:
    return ".".join(key.split(".")[:2])


def test_each_axis_is_listed_and_an_unknown_one_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--help"])
    assert end.value.code == 0
    help_text = " ".join(capsys.readouterr().out.split())
    assert all(axis in help_text for axis in AXES.names())

    with pytest.raises(SystemExit) as end:
        main(["--axis", "readout"])
    assert end.value.code == 2
    assert "no axis is named 'readout'; did you mean 'readout_place'" in capsys.readouterr().err


def test_a_study_without_axes_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    from studies.norm_depth import main as another

    with pytest.raises(SystemExit) as end:
        another(["--axis", "readout_place", "--plan"])

    assert end.value.code == 2
    told = "--axis: python -m studies.norm_depth has no axes; leave --axis out"
    assert told in capsys.readouterr().err


def test_settings_are_checked_along_an_axis_too(messages: Messages) -> None:
    with messages.raises(ConfigError):
        planned("log_length", "quick", "training.stepps=3")
    assert "studies.axes" in sys.modules
