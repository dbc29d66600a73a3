"""The budgets of the extrapolation study that follow Ruoss et al., against their table as data."""

from functools import cache

import pytest

from studies.experiment.draft import Draft
from studies.experiment.load import Typed, load_draft
from studies.extrapolation import STUDY
from studies.published import load

TABLE = load("ruoss_2023")


@cache
def planned(budget: str) -> Draft:
    return load_draft(STUDY, Typed(budget))


def test_the_whole_protocol_is_that_of_the_published_table() -> None:
    """Every setting that both name; lengths start where even pairs has a question."""
    assert TABLE.protocol is not None
    published = TABLE.protocol.settings
    draft = planned("paper")
    config = draft.config(draft.cell("even_pairs", "sinusoidal"))
    ours = config.plain()

    for key, value in published["training"].items():
        if key != "train_lengths":
            assert ours["training"][key] == value, key
    assert ours["training"]["train_lengths"] == [2, published["training"]["train_lengths"][1]]
    for key in ("d_model", "n_heads", "n_layers", "embedding_scale", "initializer", "dropout"):
        assert ours["encoder"][key] == published["encoder"][key]
    for key in ("feedforward", "norm", "norm_placement"):
        chosen = published["encoder"][key]
        name = chosen if isinstance(chosen, str) else chosen["name"]
        assert ours["encoder"][key]["name"] == name
    assert draft.settings.study.seeds == published["study"]["seeds"]
    rates = [one["training.learning_rate"] for one in draft.settings.study.settings()]
    assert rates == published["study"]["learning_rates"]


@pytest.mark.parametrize(("budget", "below"), [("standard", 512), ("paper", 2048)])
def test_random_positions_are_drawn_as_far_as_the_budget_says(budget: str, below: int) -> None:
    draft = planned(budget)

    for arm in ("randomized_sinusoidal", "randomized_rope", "randomized_transformer_xl"):
        encoder = draft.config(draft.cell("even_pairs", arm)).encoder
        assert encoder is not None
        options = encoder.position.options()
        assert options["max_length"] == below
        assert options["inner"].name == arm.removeprefix("randomized_")


def test_standard_scales_what_it_says_it_scales() -> None:
    import studies.published.ruoss_protocol as protocol

    draft = planned("standard")
    config = draft.config(draft.cell("even_pairs", "rope"))
    assert config.encoder is not None
    told = " ".join((protocol.__doc__ or "").split())
    for what in (
        f"{config.encoder.n_layers} layers in place of 5",
        f"batches of {config.training.batch_size} in place of 128",
        f"lengths up to {config.training.train_lengths[1]} in place of 40",
        f"{config.training.steps:,} steps",
    ):
        assert what in told
    assert config.task is not None
    assert config.task.options() == {"answer_at": "appended"}
