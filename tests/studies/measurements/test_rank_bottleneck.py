"""Fits of one head to random attention weights, against what theory allows."""

from typing import Any

import pytest
import torch

from registry import ConfigError
from studies.measurements.rank_bottleneck import Drawn, divergence, draw, error, fit, measure
from studies.training.outcome import Outcome, Work
from studies.training.settings import check_run
from tests.messages import Messages

CPU = torch.device("cpu")


def work(width: int, lengths: tuple[int, ...] = (8,), seed: int = 0, **options: Any) -> Work:
    name = "studies.measurements.rank_bottleneck:measure"
    data = {
        "perform": {"name": name, "width": width, **options},
        "training": {"steps": 0},
        "evaluation": {"test_lengths": list(lengths)},
    }
    return Work(check_run(data), seed, CPU)


def run(width: int, *rest: Any, **options: Any) -> Outcome:
    made = work(width, *rest, **options)
    assert made.config.perform is not None
    return measure(made, **made.config.perform.options())


def errors(width: int, **options: Any) -> float:
    (found,) = (one.value for one in run(width, **options).scores if one.metric == "error")
    assert found is not None
    return found


def truncated(target: torch.Tensor, width: int) -> torch.Tensor:
    """The best scores of that rank by Eckart and Young, for log P without the mean of its rows."""
    logits = target.log()
    u, s, v = torch.linalg.svd(logits - logits.mean(dim=-1, keepdim=True))
    return ((u[:, :width] * s[:width]) @ v[:width]).softmax(dim=-1)


@pytest.mark.parametrize("width", [7, pytest.param(16, marks=pytest.mark.slow)])
def test_a_head_about_as_wide_as_the_sequence_realizes_any_weights(width: int) -> None:
    assert errors(width) < 1e-3


def test_narrower_heads_stay_farther_away() -> None:
    found = [errors(width, steps=100) for width in (1, 4, 6)]
    assert found == sorted(found, reverse=True)
    assert found[-1] > 0.002
    assert found[0] > 0.3


@pytest.mark.parametrize("width", [1, 3, 5])
def test_a_fit_is_at_least_as_close_as_cutting_off_singular_values(width: int) -> None:
    drawn = draw(work(width), 8, 32)
    cut = truncated(drawn.target, width)
    ours = fit(drawn, width, torch.Generator().manual_seed(1), 1000)
    assert divergence(ours, drawn.target) <= divergence(cut, drawn.target)


def test_the_scores_of_a_fit_have_no_more_rank_than_the_head_is_wide() -> None:
    ours = fit(draw(work(2), 8, 32), 2, torch.Generator().manual_seed(1), 50)
    logits = ours.log()
    # A row is known up to a constant, which adds one to the rank at most.
    assert torch.linalg.matrix_rank(logits - logits.mean(-1, keepdim=True), rtol=1e-8) <= 3


def test_distances_from_weights_are_those_worked_by_hand() -> None:
    target = torch.tensor([[0.5, 0.5], [0.25, 0.75]], dtype=torch.float64)
    even = torch.full((2, 2), 0.5, dtype=torch.float64)
    assert error(even, target) == pytest.approx((0.125 / 1.125) ** 0.5)
    # ln 2 less the entropy of (1/4, 3/4), halved since the first row is right.
    assert divergence(even, target) == pytest.approx(0.130812 / 2, abs=1e-6)
    assert error(target, target) == divergence(target, target) == 0


def test_every_width_of_a_replicate_is_fitted_to_the_same_weights() -> None:
    first, second = (draw(work(width), 8, 16) for width in (1, 8))
    assert torch.equal(first.target, second.target)
    assert torch.equal(first.tokens, second.tokens)
    assert not torch.equal(draw(work(1, seed=1), 8, 16).target, first.target)
    torch.testing.assert_close(first.target.sum(-1), torch.ones(8, dtype=torch.float64))


def test_both_metrics_are_measured_at_every_length() -> None:
    outcome = run(1, (3, 5), steps=2)
    assert [(one.length, one.metric) for one in outcome.scores] == [
        *((3, "error"), (3, "kl"), (5, "error"), (5, "kl"))
    ]


@pytest.mark.parametrize(
    "options",
    [{"width": 0}, {"width": 2, "d_model": 7}],
)
def test_sizes_that_mean_nothing_are_refused(messages: Messages, options: dict[str, Any]) -> None:
    with messages.raises(ConfigError):
        run(**options)


def test_tokens_of_low_rank_realize_less() -> None:
    # The theorem asks for tokens of full rank: two equal tokens get equal rows of weights.
    drawn = draw(work(8), 4, 8)
    tokens = drawn.tokens.clone()
    tokens[1] = tokens[0]
    ours = fit(Drawn(tokens, drawn.target), 8, torch.Generator().manual_seed(1), 200)
    torch.testing.assert_close(ours[0], ours[1])


def test_without_a_width_the_heads_of_the_encoder_are_fitted(messages: Messages) -> None:
    data = {
        "encoder": {"d_model": 16, "n_heads": 4, "n_layers": 1},
        "perform": {"name": "studies.measurements.rank_bottleneck:measure", "steps": 5},
        "training": {"steps": 0},
        "evaluation": {"test_lengths": [8]},
    }
    found = measure(Work(check_run(data), 0, CPU), steps=5)
    assert found.scores == run(4, steps=5).scores
    with messages.raises(ConfigError):
        measure(Work(check_run({**data, "encoder": None}), 0, CPU), steps=5)
