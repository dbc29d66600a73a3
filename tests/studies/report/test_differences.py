"""What a report tells of the differences between arms."""

from studies.report.findings import differences, shared
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


def test_what_is_shared_is_told_in_words_of_a_config() -> None:
    evaluation = {"test_lengths": [16, 32], "examples": 8, "probes": ["symmetries"]}
    told = shared(plan(2, panels=[{"task": "shift", "evaluation": evaluation}]))
    assert told["encoder.d_head"] == "none"
    assert told["evaluation.test_lengths"] == "[16, 32]"
    assert told["evaluation.probes"].startswith("symmetries (")
