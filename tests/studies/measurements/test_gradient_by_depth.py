"""Gradients of the last layer by depth: one by hand, slopes against the published theory."""

from typing import Any

import pytest
import torch

from registry import ConfigError, build_encoder
from studies.measurements import gradient_by_depth
from studies.measurements.gradient_by_depth import last_gradient, measure, slope
from studies.training.outcome import Measured, Outcome, Work
from studies.training.settings import check_run
from tests.messages import Messages

CPU = torch.device("cpu")
SMALL: dict[str, Any] = {"d_model": 16, "n_heads": 2, "feedforward": {"name": "relu", "d_ff": 16}}


def work(seed: int = 0, length: int = 6, perform: Any = None, **encoder: Any) -> Work:
    """A run on symbols that say which symbol came before."""
    data = {
        "perform": {"name": "studies.measurements.gradient_by_depth:measure", **(perform or {})},
        "task": {"name": "shift", "k": 1, "alphabet": 99},
        "encoder": {**SMALL, "vocab_size": 100, "n_classes": 99, "n_layers": 1, **encoder},
        "training": {"steps": 0, "batch_size": 4},
        "evaluation": {"test_lengths": [length]},
    }
    return Work(check_run(data), seed, CPU)


def run(work: Work) -> Outcome:
    assert work.config.perform is not None
    return measure(work, **work.config.perform.options())


def slopes(outcome: Outcome) -> list[float]:
    found = [one.value for one in outcome.scores if one.metric == "slope"]
    return [value for value in found if value is not None]


def test_the_gradient_of_the_second_matrix_is_the_outer_product_of_error_and_activity() -> None:
    # One layer, Pre-LN, a linear head: every factor of the chain rule is at hand.
    made = work(norm="none", norm_placement="pre", initializer="xavier")
    assert made.config.encoder is not None
    model = build_encoder(made.config.encoder, seed=made.seeds.seed("init", 0)).eval()
    gradient_by_depth.attend_to_all_alike(model)
    batch = _batch(made)
    seen: dict[str, torch.Tensor] = {}
    layer = model.get_submodule("blocks.0.feedforward.to_model")
    layer.register_forward_hook(lambda _, given, __: seen.update(active=given[0].detach()))

    logits = model(batch.tokens).logits
    chances = logits.softmax(-1)
    right = torch.nn.functional.one_hot(batch.targets.clamp_min(0), 99)
    scored = (batch.targets >= 0).unsqueeze(-1)
    errors = (chances - right) * scored / scored.sum()
    (head,) = (one for name, one in model.named_parameters() if one.shape == (99, 16))
    expected = torch.einsum("bsc,cm,bsf->mf", errors, head, seen["active"])

    assert last_gradient(made, 6, 1, True) == pytest.approx(expected.norm().item(), rel=1e-5)


def _batch(made: Work) -> Any:
    from studies.training.settings import task_of

    generator = made.seeds.generator("evaluation", "gradient", 6, 0)
    return task_of(made.config.task).sample(generator, 4, 6)


def test_queries_of_zero_attend_to_all_alike_and_others_do_not() -> None:
    made = work(attention="explicit")
    assert made.config.encoder is not None
    model = build_encoder(made.config.encoder, seed=1).eval()
    tokens = torch.arange(1, 7).unsqueeze(0)
    assert not torch.allclose(model(tokens, need_weights=True).weights[0], torch.tensor(1 / 6))
    gradient_by_depth.attend_to_all_alike(model)
    torch.testing.assert_close(
        model(tokens, need_weights=True).weights[0], torch.full((1, 2, 6, 6), 1 / 6)
    )


def test_a_slope_is_the_exponent_of_a_power_law() -> None:
    assert slope({depth: 3.0 * depth**0.7 for depth in (1, 2, 5, 9)}) == pytest.approx(0.7)
    # Two points at each end and one off the line between: least squares, worked by hand.
    assert slope({1: 1.0, 2: 4.0, 4: 1.0}) == pytest.approx(0.0)


def test_each_depth_and_the_slope_are_measured_at_every_length() -> None:
    outcome = run(work(perform={"depths": [1, 2, 3]}))
    assert [(one.metric, one.bin) for one in outcome.scores] == [
        *(("last_gradient", depth) for depth in (1, 2, 3)),
        ("slope", None),
    ]
    norms = {one.bin or 0: one.value or 0.0 for one in outcome.scores[:-1]}
    assert slopes(outcome) == [pytest.approx(slope(norms))]
    assert outcome.scores[0] == Measured("test", 6, "last_gradient", 4, norms[1], bin=1)


def test_deeper_encoders_share_the_layers_of_shallower_ones() -> None:
    # Post-LN without residual depth: the gradient of depth 1 is the same in every list of depths.
    first, second = run(work(perform={"depths": [1, 4]})), run(work(perform={"depths": [1, 2]}))
    assert first.scores[0] == second.scores[0]


def test_over_several_models_the_gradient_is_their_mean() -> None:
    made = work(perform={"depths": [1, 2], "models": 3})
    alone = [last_gradient(made, 6, 2, True, number) for number in range(3)]
    assert len(set(alone)) == 3
    found = run(made).scores[1]
    assert (found.value, found.n) == (pytest.approx(sum(alone) / 3), 12)


def test_a_mean_over_no_model_is_refused(messages: Messages) -> None:
    with messages.raises(ConfigError):
        run(work(perform={"models": 0}))


@pytest.mark.parametrize("depths", [[2], [0, 2]])
def test_too_few_depths_are_refused(messages: Messages, depths: list[int]) -> None:
    with messages.raises(ConfigError):
        run(work(perform={"depths": depths}))


def test_a_block_without_a_feed_forward_is_refused(messages: Messages) -> None:
    with messages.raises(ValueError):
        run(work(feedforward="none"))


BANDS = {"post": (-0.1, 0.2), "pre": (-0.6, -0.35), "deepnorm": (-0.55, -0.45)}


@pytest.mark.parametrize("placement", list(BANDS))
def test_the_slope_lies_where_theory_has_it(placement: str) -> None:
    # Xiong et al. 2020, theorem 1: 0 for Post-LN, -1/2 for Pre-LN.
    wide = {"d_model": 64, "feedforward": {"name": "relu", "d_ff": 64}, "norm_placement": placement}
    found = [slopes(run(work(seed, 16, {"depths": [4, 16]}, **wide)))[0] for seed in range(3)]
    low, high = BANDS[placement]
    assert low <= sum(found) / len(found) <= high


def test_a_gradient_that_is_zero_has_no_slope() -> None:
    assert slope({1: 0.0, 2: 1.0}) is None
