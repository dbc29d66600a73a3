"""What a report tells of the differences between arms."""

from studies.report.differences import differences
from tests.studies.made_up import plan


def test_a_model_without_an_encoder_does_not_differ_in_every_key_of_one() -> None:
    arms = {
        "rope": {"encoder.position": "rope"},
        "none": {"encoder.position": "none"},
        "gru": {"model": "examples.gru:build"},
    }

    told = dict(differences(plan(2, arms=arms, hypotheses=[])))

    assert list(told)[:2] == ["encoder.position", "model"]
    assert "parameters" in list(told)[2]
    assert told["encoder.position"]["gru"] == ""
    assert told["model"]["gru"].startswith("examples.gru:build")
